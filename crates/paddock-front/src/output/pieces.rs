//! Bytes in front of a connection's own buffer: events and lists that it shares with other connections, and what stands between them.
//!
//! Nothing is copied until the socket is about to take it, and a large piece not even then. A client that does not read therefore costs a
//! pointer for each event, and one that reads is sent as much in one call as from a buffer of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use super::held_bytes;

/// Bytes that are made ready for the socket at a time, at least.
const RUN_BYTES: usize = 64 << 10;
/// Bytes of a piece that is sent as it is: to copy it costs more than a call of its own.
const WHOLE_BYTES: usize = 32 << 10;

#[derive(Debug)]
pub(super) enum Piece {
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
    Names(Arc<Vec<u8>>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Own(bytes) => bytes,
            Piece::Shared(bytes) => bytes,
            Piece::Names(bytes) => bytes,
        }
    }

    fn len(&self) -> usize {
        self.bytes().len()
    }
}

/// A run of bytes for the socket, and the pieces behind it.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    run: Vec<u8>,
    /// The piece that is the run, in the place of copied ones.
    whole: Option<Piece>,
    pieces: VecDeque<Piece>,
    /// Bytes of all pieces behind the run.
    bytes: usize,
}

impl Pieces {
    /// Pieces behind `run`.
    pub(super) fn behind(run: Vec<u8>) -> Pieces {
        Pieces { run, ..Pieces::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.run_len() + self.bytes
    }

    /// Bytes of memory, as if nothing were shared: others may let go of it at any time.
    pub(super) fn held_bytes(&self) -> usize {
        held_bytes(&self.run) + self.whole.as_ref().map_or(0, Piece::len) + self.bytes
    }

    pub(super) fn push(&mut self, piece: Piece) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
    }

    /// The run that is sent next, with as many pieces in it as it takes.
    pub(super) fn ready(&mut self) -> &[u8] {
        while self.whole.is_none()
            && self.run.len() < RUN_BYTES
            && let Some(piece) = self.pieces.front()
        {
            let is_large = piece.len() >= WHOLE_BYTES;
            if is_large && !self.run.is_empty() {
                break;
            }
            let piece = self.pieces.pop_front().expect("it was just looked at");
            self.bytes -= piece.len();
            if is_large {
                self.whole = Some(piece);
            } else {
                self.run.extend_from_slice(piece.bytes());
            }
        }
        self.run()
    }

    fn run(&self) -> &[u8] {
        self.whole.as_ref().map_or(&self.run, Piece::bytes)
    }

    /// Bytes of the run.
    pub(super) fn run_len(&self) -> usize {
        self.run().len()
    }

    /// The buffer of the runs, empty.
    pub(super) fn into_run(self) -> Vec<u8> {
        self.run
    }

    /// The run was sent. Returns true if nothing is left.
    pub(super) fn end_run(&mut self) -> bool {
        if self.whole.take().is_none() {
            self.run.clear();
        }
        self.pieces.is_empty()
    }
}
