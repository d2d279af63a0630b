//! Cross-check: the requests of clients also go to a reference server, and its answers and events are compared with this member's own.
//!
//! Workers hand over copies of what their sockets take and give, and never wait: the queue has a bound, and a connection whose copy
//! found no room is not checked any more. Everything else is on a thread of its own, so trouble of the reference does not reach
//! clients.

mod answer;
mod checker;
mod gate;
mod metrics;
mod pair;
mod reference;
mod returns;
mod sequencer;
mod sessions;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use paddock_os::threads::spawn;
use paddock_state::ConnId;
use parking_lot::Mutex;
use tokio::sync::mpsc::{Sender, channel};

pub use metrics::CrossCheckStats;

/// Pieces and bytes that may wait for the thread.
const PIECES_MAX: usize = 16 << 10;
const BYTES_MAX: usize = 64 << 20;

/// A copy of something that a connection did.
#[derive(Debug)]
enum Piece {
    Opened(ConnId),
    /// Bytes from a client.
    Client(ConnId, Vec<u8>),
    /// Bytes of this member to a client.
    Own(ConnId, Vec<u8>),
    Closed(ConnId),
    Stop,
}

/// The way to the thread, for workers.
#[derive(Debug)]
pub struct CrossCheck {
    pieces: Sender<Piece>,
    queue: Arc<Queue>,
    /// Counters of what was compared.
    pub stats: Arc<CrossCheckStats>,
}

/// Account of what waits for the thread.
#[derive(Debug, Default)]
struct Queue {
    bytes: AtomicUsize,
    /// Connections of which a piece found no room.
    torn: Mutex<HashSet<ConnId>>,
    has_torn: AtomicBool,
}

impl Queue {
    fn take_torn(&self) -> HashSet<ConnId> {
        if !self.has_torn.swap(false, Relaxed) {
            return HashSet::new();
        }
        std::mem::take(&mut *self.torn.lock())
    }
}

impl CrossCheck {
    /// Starts the thread. `reference`: host and port of the other server.
    pub fn start(reference: &str) -> CrossCheck {
        let (pieces, received) = channel(PIECES_MAX);
        let (queue, stats) = (Arc::<Queue>::default(), Arc::<CrossCheckStats>::default());
        let (of_thread, address) = ((queue.clone(), stats.clone()), reference.to_owned());
        drop(spawn("cross-check", move || reference::run(address, received, of_thread)));
        tracing::info!(reference, "cross-check: requests of clients go to a reference server, too");
        CrossCheck { pieces, queue, stats }
    }

    /// A connection was taken.
    pub fn opened(&self, conn: ConnId) {
        self.hand_over(conn, 0, Piece::Opened(conn));
    }

    /// A client has sent these bytes.
    pub fn received(&self, conn: ConnId, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.hand_over(conn, bytes.len(), Piece::Client(conn, bytes.to_vec()));
        }
    }

    /// A client was sent these bytes.
    pub fn sent(&self, conn: ConnId, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.hand_over(conn, bytes.len(), Piece::Own(conn, bytes.to_vec()));
        }
    }

    /// A connection has ended.
    pub fn closed(&self, conn: ConnId) {
        self.hand_over(conn, 0, Piece::Closed(conn));
    }

    /// Ends the thread, a moment later.
    pub fn stop(&self) {
        // The thread looks at nothing behind it; without room it ends with the process.
        let _ = self.pieces.try_send(Piece::Stop);
    }

    fn hand_over(&self, conn: ConnId, bytes: usize, piece: Piece) {
        let waiting = self.queue.bytes.fetch_add(bytes, Relaxed);
        if waiting + bytes <= BYTES_MAX && self.pieces.try_send(piece).is_ok() {
            return;
        }
        self.queue.bytes.fetch_sub(bytes, Relaxed);
        self.queue.torn.lock().insert(conn);
        self.queue.has_torn.store(true, Relaxed);
    }
}
