//! Bytes in front of a connection's own buffer: events that it shares with other connections, and what stands between them.
//!
//! Nothing is copied until the socket is about to take it. A client that does not read therefore costs a pointer for each event, and
//! one that reads is sent as much in one call as from a buffer of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{clear, held_bytes};

/// Bytes that are made ready for the socket at a time, at least.
const RUN_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Piece {
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
}

/// A run of bytes for the socket, and the pieces behind it.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    run: Vec<u8>,
    pieces: VecDeque<Piece>,
    /// Bytes of all pieces.
    bytes: usize,
}

impl Pieces {
    /// Pieces behind `run`.
    pub(super) fn behind(run: Vec<u8>) -> Pieces {
        Pieces { run, ..Pieces::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.run.len() + self.bytes
    }

    /// Bytes of memory, as if nothing were shared: others may let go of it at any time.
    pub(super) fn held_bytes(&self) -> usize {
        held_bytes(&self.run) + self.bytes
    }

    pub(super) fn push_own(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.pieces.push_back(Piece::Own(bytes));
    }

    pub(super) fn push_shared(&mut self, bytes: Arc<[u8]>) {
        self.bytes += bytes.len();
        self.pieces.push_back(Piece::Shared(bytes));
    }

    /// The run that is sent next, with as many pieces in it as it takes.
    pub(super) fn ready(&mut self) -> &[u8] {
        while self.run.len() < RUN_BYTES
            && let Some(piece) = self.pieces.pop_front()
        {
            let bytes: &[u8] = match &piece {
                Piece::Own(bytes) => bytes,
                Piece::Shared(bytes) => bytes,
            };
            self.bytes -= bytes.len();
            self.run.extend_from_slice(bytes);
        }
        &self.run
    }

    /// Bytes of the run.
    pub(super) fn run_len(&self) -> usize {
        self.run.len()
    }

    /// The run was sent. Returns true if nothing is left.
    pub(super) fn end_run(&mut self) -> bool {
        clear(&mut self.run);
        self.pieces.is_empty()
    }
}
