//! Order of requests as this member has carried them out, by the zxids in its answers: a write has its own, and a read that of the state
//! which it has seen. The answers of several workers come nearly in this order; so each waits for a moment for those before it.

use std::collections::BTreeMap;

use paddock_state::ConnId;

/// Time that an answer waits for others that belong in front of it, in milliseconds.
const WAIT_MS: u64 = 100;

/// Place of a request among all: by its zxid; at the same one writes come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    zxid: i64,
    is_read: bool,
}

impl Place {
    pub(super) const LAST: Place = Place { zxid: i64::MAX, is_read: true };

    pub(super) fn new(zxid: i64, writes: bool) -> Place {
        Place { zxid, is_read: !writes }
    }
}

/// A request that this member has answered, and that has not gone to the reference.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) conn: ConnId,
    pub(super) frame: Vec<u8>,
    pub(super) writes: bool,
    due_ms: u64,
}

#[derive(Debug, Default)]
pub(super) struct Sequencer {
    /// By place, and then as they came.
    answered: BTreeMap<(Place, u64), Answered>,
    count: u64,
}

impl Sequencer {
    pub(super) fn push(&mut self, place: Place, (conn, frame, writes): (ConnId, Vec<u8>, bool), now_ms: u64) {
        self.count += 1;
        let due_ms = now_ms + WAIT_MS;
        self.answered.insert((place, self.count), Answered { conn, frame, writes, due_ms });
    }

    pub(super) fn len(&self) -> usize {
        self.answered.len()
    }

    /// The first request, if nothing comes in front of it any more.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<Answered> {
        let first = self.answered.first_entry()?;
        (first.get().due_ms <= now_ms).then(|| first.remove())
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        self.answered.retain(|_, answered| answered.conn != conn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_in_the_order_of_their_zxids_a_moment_later() {
        let conn = ConnId::new(0, 1);
        let mut sequencer = Sequencer::default();
        for (zxid, name, writes) in [(7, "r7", false), (8, "w8", true), (7, "w7", true), (6, "r6", false)] {
            sequencer.push(Place::new(zxid, writes), (conn, name.into(), writes), 100);
        }
        let mut all = |now_ms| {
            let names = std::iter::from_fn(|| sequencer.next(now_ms));
            names.map(|next| String::from_utf8(next.frame).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(all(100 + WAIT_MS - 1), Vec::<String>::new());
        assert_eq!(all(100 + WAIT_MS), ["r6", "w7", "r7", "w8"]);
    }
}
