//! A process beside its engine: the threads that serve connections and take snapshots. They have the state while the engine does
//! not, which is also the case between two commands of an entry.

use std::net::SocketAddr;

use paddock_proto::SessionId;
use paddock_replica::Input;
use paddock_state::{ConnId, Now};

use super::front::{Workers, Yield};
use super::shell::{Locked, SnapshotDesk};
use crate::wire::{Frame, WirePacket};

/// The world, which decides which threads have the state when the engine lets it go within an entry.
pub(crate) trait Others {
    fn have_state(&mut self, beside: &mut Beside<'_>);
}

/// No thread wants it.
impl Others for () {
    fn have_state(&mut self, _: &mut Beside<'_>) {}
}

#[derive(Debug)]
pub(crate) struct Beside<'a> {
    pub(crate) now: Now,
    pub(crate) state: &'a Locked,
    pub(crate) workers: &'a mut Workers,
    pub(crate) desk: &'a mut SnapshotDesk,
    pub(crate) inbox: &'a mut Vec<Input>,
}

impl Beside<'_> {
    pub(crate) fn accept(&mut self, conn: ConnId, address: SocketAddr) {
        self.workers.accept(conn, address);
    }

    pub(crate) fn session(&self, conn: ConnId) -> SessionId {
        self.workers.session(conn)
    }

    /// True if all that has come on a connection was read: a connection that asks for too much is not.
    pub(crate) fn has_read_all(&self, conn: ConnId) -> bool {
        self.workers.has_read_all(conn)
    }

    /// A worker's thread: a frame has come.
    pub(crate) fn receive(&mut self, conn: ConnId, frame: &Frame) -> Vec<(ConnId, WirePacket)> {
        let out = self.workers.receive(conn, frame, self.now);
        self.hand_over(out)
    }

    /// A worker's thread: frames have come, whole.
    pub(crate) fn receive_bytes(&mut self, conn: ConnId, bytes: &[u8]) -> Vec<(ConnId, WirePacket)> {
        let out = self.workers.receive_bytes(conn, bytes, self.now);
        self.hand_over(out)
    }

    /// A worker's thread: there is mail.
    pub(crate) fn deliver(&mut self, worker: usize) -> Vec<(ConnId, WirePacket)> {
        let out = self.workers.deliver(worker, self.now);
        self.hand_over(out)
    }

    /// The workers' threads: connections whose turns were cut short have their next ones.
    pub(crate) fn take_turns(&mut self) -> Vec<(ConnId, WirePacket)> {
        let out = self.workers.take_turns(self.now);
        self.hand_over(out)
    }

    /// The workers' threads: it is time to report the sessions that were heard, and to look for those that cannot be served any
    /// more.
    pub(crate) fn report_heard(&mut self) -> Vec<(ConnId, WirePacket)> {
        let out = self.workers.report_heard(self.now);
        self.hand_over(out)
    }

    /// The snapshot's thread. Says whether there is more to do.
    pub(crate) fn walk(&mut self) -> bool {
        self.desk.step(self.state, self.now)
    }

    fn hand_over(&mut self, out: Yield) -> Vec<(ConnId, WirePacket)> {
        self.inbox.extend(out.inputs.into_iter().map(Input::Client));
        out.packets
    }
}
