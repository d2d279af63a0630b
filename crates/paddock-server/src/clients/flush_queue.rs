//! Replies to reads, sent together: a worker writes to its sockets when the connections that had something to read have had
//! their turn.
//!
//! To write to a client that sleeps is to wake it, which costs more than the write itself. Sessions often share a process, or
//! a machine: a process that is woken for the first reply is awake when the others come, if they come together.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::Notify;

use super::wire::Wire;

/// Replies are flushed after at most this many connections have been served.
const CONNECTIONS_MAX: usize = 16;
/// A connection with this many bytes of replies is flushed at once.
pub(super) const BYTES_MAX: usize = 64 << 10;

/// Connections that wait to be flushed.
#[derive(Debug, Default)]
pub(super) struct FlushQueue {
    wires: RefCell<Vec<Rc<Wire>>>,
    begun: Notify,
}

impl FlushQueue {
    /// Adds a connection. Returns true if those that wait are to be flushed now.
    pub(super) fn add(&self, wire: &Rc<Wire>) -> bool {
        wire.waits_for_flush.set(true);
        self.wires.borrow_mut().push(wire.clone());
        let count = self.wires.borrow().len();
        if count == 1 {
            self.begun.notify_one();
        }
        count >= CONNECTIONS_MAX
    }

    /// Takes all that wait.
    pub(super) fn take(&self) -> Vec<Rc<Wire>> {
        let wires = self.wires.take();
        wires.iter().for_each(|wire| wire.waits_for_flush.set(false));
        wires
    }

    /// Gives the emptied vector back, for its memory.
    pub(super) fn give_back(&self, mut emptied: Vec<Rc<Wire>>) {
        let mut wires = self.wires.borrow_mut();
        if wires.is_empty() {
            emptied.clear();
            *wires = emptied;
        }
    }

    /// Returns behind the turns of those connections that were ready when the first one began to wait.
    pub(super) async fn wait(&self) {
        self.begun.notified().await;
    }
}
