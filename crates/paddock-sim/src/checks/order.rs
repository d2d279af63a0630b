//! Order in time: what was answered before something was asked is seen by it. And order within a session: answers come in
//! the order of the questions, and no answer is older than the one before, wherever the client went.
//!
//! All writes have their place in one order, their zxid. So linearizability of writes, and of reads behind a sync, is this:
//! a client that asks after any client was shown a zxid gets a later one, or the same for a sync.

use paddock_proto::Zxid;

use super::{Checked, ensure};

const REAL_TIME: &str = "linearizability";
const SESSION: &str = "session order";

/// The newest zxid that any client has been shown.
#[derive(Debug, Default)]
pub(crate) struct RealTime {
    shown: Zxid,
    of_every_read: bool,
}

impl RealTime {
    /// Expects of every read what it expects of a sync.
    pub(crate) fn of_every_read(of_every_read: bool) -> RealTime {
        RealTime { of_every_read, ..RealTime::default() }
    }

    pub(crate) fn is_of_every_read(&self) -> bool {
        self.of_every_read
    }

    /// Zxid that a question which is asked now has to see.
    pub(crate) fn shown(&self) -> Zxid {
        self.shown
    }

    pub(crate) fn show(&mut self, zxid: Zxid) {
        self.shown = self.shown.max(zxid);
    }

    /// A write that was asked for when `shown` was the newest got this zxid.
    pub(crate) fn check_write(shown: Zxid, zxid: Zxid) -> Checked {
        ensure!(
            zxid > shown,
            REAL_TIME,
            "a write got zxid {zxid}, but {shown} was seen before it was asked for"
        );
        Ok(())
    }

    /// Checks a read, if that is to be expected.
    pub(crate) fn check_read(&self, shown: Zxid, zxid: Zxid) -> Checked {
        ensure!(
            zxid >= shown || !self.of_every_read,
            REAL_TIME,
            "a read saw zxid {zxid}, but {shown} was seen before it was asked for"
        );
        Ok(())
    }

    /// Checks a sync.
    pub(crate) fn check_sync(shown: Zxid, zxid: Zxid) -> Checked {
        ensure!(
            zxid >= shown,
            REAL_TIME,
            "a sync saw zxid {zxid}, but {shown} was seen before it was asked for"
        );
        Ok(())
    }
}

/// An answer to a session, or an event, at `zxid`, after one at `before`.
pub(crate) fn check_monotonic(before: Zxid, zxid: Zxid) -> Checked {
    ensure!(zxid >= before, SESSION, "the client is shown zxid {zxid} after it has seen {before}");
    Ok(())
}

/// The number of an answer, and that of the oldest question without one.
pub(crate) fn check_turn(expected: Option<i32>, xid: i32) -> Checked {
    ensure!(expected == Some(xid), SESSION, "answer to request {xid} where {expected:?} has its turn");
    Ok(())
}
