//! Replies to reads, sent together: a worker writes to its sockets when the connections that had something to read have had
//! their turn.
//!
//! To write to a client that sleeps is to wake it, which costs more than the write itself. Sessions often share a process, or
//! a machine: whoever is woken for the first reply is awake when the others come, if they come together.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::wire::Wire;
use crate::worker::Worker;

/// Nobody waits longer than until so many others have had their turn,
const CONNECTIONS_MAX: usize = 16;
/// and who has so much to be sent does not wait at all.
const BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    wires: RefCell<Vec<Rc<Wire>>>,
    begun: Notify,
}

impl Outgoing {
    /// Sends what the connection has to send: soon, or at once.
    pub(crate) fn add(&self, wire: &Rc<Wire>, worker: &Worker, at_once: bool) {
        if at_once || wire.unsent() >= BYTES_MAX {
            wire.flush();
            return;
        }
        wire.is_outgoing.set(true);
        self.wires.borrow_mut().push(wire.clone());
        let count = self.wires.borrow().len();
        if count == 1 {
            self.begun.notify_one();
        } else if count >= CONNECTIONS_MAX {
            self.send(worker);
        }
    }

    fn send(&self, worker: &Worker) {
        for wire in self.wires.borrow_mut().drain(..) {
            wire.is_outgoing.set(false);
            // The task has to wait for a socket that does not take all, and to end a connection that has sent all.
            if !wire.flush() || wire.is_closing() || worker.shared.is_stopping() {
                wire.nudge();
            }
        }
    }
}

/// Sends whenever something is outgoing, behind the turns of those connections that were ready with it.
pub(crate) async fn send_together(worker: Rc<Worker>) {
    loop {
        worker.outgoing.begun.notified().await;
        worker.outgoing.send(&worker);
    }
}
