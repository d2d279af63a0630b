//! Order in which requests go to the reference: one that writes waits until those of other connections that came before it are
//! answered, and others wait for those that write. So the reference answers a read behind the writes that its client knows of.

use std::collections::{HashMap, VecDeque};

use paddock_state::ConnId;

#[derive(Debug)]
struct HeldFrame {
    conn: ConnId,
    frame: Vec<u8>,
    writes: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Outstanding {
    all: usize,
    writes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    waiting: VecDeque<HeldFrame>,
    /// Requests that are with the reference.
    total: Outstanding,
    of_conn: HashMap<ConnId, Outstanding>,
}

impl Gate {
    pub(super) fn push(&mut self, conn: ConnId, frame: Vec<u8>, writes: bool) {
        self.waiting.push_back(HeldFrame { conn, frame, writes });
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The next request, if it may go now. One of a connection that `has_to_wait` holds up all behind it, but for those of connections
    /// that are `waited_for`.
    pub(super) fn next(
        &mut self,
        has_to_wait: impl Fn(ConnId) -> bool,
        is_waited_for: impl Fn(ConnId) -> bool,
    ) -> Option<(ConnId, Vec<u8>)> {
        let is_held_up = has_to_wait(self.waiting.front()?.conn);
        let may_go = |waiting: &HeldFrame| !has_to_wait(waiting.conn) && is_waited_for(waiting.conn);
        let at = if is_held_up { self.waiting.iter().position(may_go)? } else { 0 };
        let HeldFrame { conn, writes, .. } = self.waiting[at];
        let own = self.of_conn.entry(conn).or_default();
        let is_free = if writes { self.total.all == own.all } else { self.total.writes == own.writes };
        if !is_free {
            return None;
        }
        let count = usize::from(writes);
        (self.total.all, self.total.writes) = (self.total.all + 1, self.total.writes + count);
        (own.all, own.writes) = (own.all + 1, own.writes + count);
        self.waiting.remove(at).map(|next| (next.conn, next.frame))
    }

    pub(super) fn answered(&mut self, conn: ConnId, wrote: bool) {
        let Some(own) = self.of_conn.get_mut(&conn).filter(|own| own.all > 0) else { return };
        let count = usize::from(wrote).min(own.writes);
        (own.all, own.writes) = (own.all - 1, own.writes - count);
        (self.total.all, self.total.writes) = (self.total.all - 1, self.total.writes - count);
    }

    /// Nothing of the connection waits, or is waited for, any more.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.waiting.retain(|waiting| waiting.conn != conn);
        if let Some(own) = self.of_conn.remove(&conn) {
            self.total.all -= own.all;
            self.total.writes -= own.writes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_waits_for_the_writes_of_others_and_a_write_for_all() {
        let [first, second] = [1, 2].map(|number| ConnId::new(0, number));
        let mut gate = Gate::default();
        for (conn, name, writes) in
            [(first, "w1", true), (first, "r2", false), (second, "r3", false), (first, "w4", true)]
        {
            gate.push(conn, name.into(), writes);
        }
        let next = |gate: &mut Gate| {
            gate.next(|_| false, |_| false).map(|(_, name)| String::from_utf8(name).unwrap())
        };
        assert_eq!(next(&mut gate).as_deref(), Some("w1"));
        assert_eq!(
            next(&mut gate).as_deref(),
            Some("r2"),
            "requests of a connection keep their order by themselves"
        );
        assert_eq!(next(&mut gate), None, "a write of another one is under way");
        gate.answered(first, true);
        assert_eq!(next(&mut gate).as_deref(), Some("r3"));
        assert_eq!(next(&mut gate), None, "a read of another one is under way");
        gate.forget(second);
        assert_eq!(next(&mut gate).as_deref(), Some("w4"));
        assert_eq!((next(&mut gate), gate.len()), (None, 0));
    }

    #[test]
    fn a_connection_that_has_to_wait_holds_up_others_but_those_that_it_waits_for() {
        let [held_up, other, waited_for] = [1, 2, 3].map(|number| ConnId::new(0, number));
        let mut gate = Gate::default();
        for (conn, name) in [(held_up, "h1"), (other, "o2"), (waited_for, "w3")] {
            gate.push(conn, name.into(), true);
        }
        let has_to_wait = |conn| conn == held_up;
        assert_eq!(gate.next(has_to_wait, |_| false), None);
        assert_eq!(gate.next(has_to_wait, |conn| conn == waited_for), Some((waited_for, b"w3".to_vec())));
        assert_eq!(gate.next(has_to_wait, |conn| conn == waited_for), None);
        gate.answered(waited_for, true);
        assert_eq!(gate.next(|_| false, |_| false), Some((held_up, b"h1".to_vec())));
    }
}
