//! Order of requests as this member has carried them out, by the zxids in its answers: a write has its own, and a read that of the state
//! which it has seen. The answers of several workers come nearly in this order; so each waits for a moment for those before it.

use std::collections::BTreeMap;

use paddock_proto::OpCode;
use paddock_state::ConnId;

/// Time that an answer waits for others that belong in front of it, in milliseconds.
const WAIT_MS: u64 = 100;

/// Place of a request among all: by its zxid; at the same one by its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    zxid: i64,
    kind: Kind,
}

/// Kinds of requests, in the order of those with one zxid. A write that is refused may have no zxid of its own: a front end on etcd gives it
/// that of the state which refused it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    #[default]
    Write,
    RefusedWrite,
    Read,
}

impl Kind {
    /// Kind of an operation, by the reply to it from behind its length.
    pub(super) fn of(op: i32, reply: &[u8]) -> Kind {
        if !writes(op) {
            return Kind::Read;
        }
        let word =
            |at: usize| reply.get(at..at + 4).and_then(|word| word.try_into().ok()).map(i32::from_be_bytes);
        let (error, first) = (word(12), word(16));
        // The results of a multi that was refused begin with an error.
        if error != Some(0) || first == Some(-1) { Kind::RefusedWrite } else { Kind::Write }
    }
}

impl Place {
    pub(super) const LAST: Place = Place { zxid: i64::MAX, kind: Kind::Read };

    pub(super) fn new(zxid: i64, kind: Kind) -> Place {
        Place { zxid, kind }
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

/// True for operations that change the tree or a session.
pub(super) fn writes(op: i32) -> bool {
    use OpCode::*;
    !matches!(
        OpCode::from_code(op),
        Some(
            Exists
                | GetData
                | GetAcl
                | GetChildren
                | GetChildren2
                | Sync
                | Check
                | CheckWatches
                | RemoveWatches
                | MultiRead
                | Auth
                | SetWatches
                | SetWatches2
                | AddWatch
                | GetEphemerals
                | GetAllChildrenNumber
                | WhoAmI
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_in_the_order_of_their_zxids_a_moment_later() {
        let conn = ConnId::new(0, 1);
        let mut sequencer = Sequencer::default();
        let answered = [
            (7, "r7", Kind::Read),
            (8, "w8", Kind::Write),
            (7, "x7", Kind::RefusedWrite),
            (7, "w7", Kind::Write),
            (6, "r6", Kind::Read),
        ];
        for (zxid, name, kind) in answered {
            sequencer.push(Place::new(zxid, kind), (conn, name.into(), kind != Kind::Read), 100);
        }
        let mut all = |now_ms| {
            let names = std::iter::from_fn(|| sequencer.next(now_ms));
            names.map(|next| String::from_utf8(next.frame).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(all(100 + WAIT_MS - 1), Vec::<String>::new());
        assert_eq!(all(100 + WAIT_MS), ["r6", "w7", "x7", "r7", "w8"]);
    }

    #[test]
    fn a_write_that_is_refused_is_told_from_others() {
        let reply = |error: i32, body: &[u8]| [&[0; 12], &error.to_be_bytes()[..], body].concat();
        let multi = OpCode::Multi.code();
        for (op, reply, expected) in [
            (multi, reply(0, &[0, 0, 0, 1]), Kind::Write),
            (multi, reply(0, &[0xff; 4]), Kind::RefusedWrite),
            (OpCode::Create.code(), reply(-110, &[]), Kind::RefusedWrite),
            (OpCode::Delete.code(), reply(0, &[]), Kind::Write),
            (OpCode::Exists.code(), reply(-101, &[]), Kind::Read),
        ] {
            assert_eq!(Kind::of(op, &reply), expected, "{op}");
        }
    }
}
