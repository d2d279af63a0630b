//! Sessions as one member knows them: when each was heard, the connection that serves it here, what that one watches, and ids for new
//! ones.
//!
//! Invariant: a connection that serves no session any more has no watches.

use paddock_proto::SessionId;
use paddock_state::{ConnId, Liveness, Serving, WatchTable};
use paddock_tree::Tree;

/// Time between two ticks of a member that runs, at most, in milliseconds. What is more, it stood still.
const BETWEEN_TICKS_MS: u64 = 1000;

#[derive(Debug)]
pub(crate) struct Sessions {
    tick_ms: u64,
    /// Moment of the last tick of the member, or since which the sessions have their time.
    ticked_ms: Option<u64>,
    /// This member.
    own: u64,
    pub(crate) liveness: Liveness,
    serving: Serving,
    watches: WatchTable,
    /// Sessions that this member has found expired as leader.
    pub(crate) expired: u64,
    /// Entry up to which a leader may have ended sessions, as far as is applied here.
    pub(crate) ended_through: u64,
    /// Id of the next new session.
    next_id: i64,
}

impl Sessions {
    /// Sessions of a member that serves none yet. Its ids begin with the low byte of its number and that of its start.
    pub(crate) fn new(tick_ms: u64, member: u64, incarnation: u64, watches: WatchTable) -> Sessions {
        Sessions {
            tick_ms,
            ticked_ms: None,
            own: member,
            liveness: Liveness::new(tick_ms),
            serving: Serving::default(),
            watches,
            expired: 0,
            ended_through: 0,
            next_id: first_id(member, incarnation),
        }
    }

    /// Watches over the sessions of a state that was loaded, each with its whole timeout before it.
    pub(crate) fn adopt(&mut self, tree: &Tree, now_ms: u64) {
        self.liveness = Liveness::new(self.tick_ms);
        for (session, timeout_ms) in tree.sessions() {
            self.liveness.add(session, timeout_ms, now_ms);
            self.skip_id(session);
        }
    }

    /// Gives every session its whole timeout from now on.
    pub(crate) fn renew_all(&mut self, now_ms: u64) {
        self.liveness.renew_all(now_ms);
        self.ticked_ms = Some(now_ms);
    }

    /// A tick of the member. Time in which its process or its machine stood still is no session's silence: requests that came meanwhile have not been read yet.
    pub(crate) fn tick(&mut self, now_ms: u64) {
        let since_ms = self.ticked_ms.replace(now_ms).map_or(0, |before| now_ms.saturating_sub(before));
        if since_ms > BETWEEN_TICKS_MS {
            tracing::warn!(milliseconds = since_ms, "this member stood still: sessions get the time back");
            self.liveness.put_off(since_ms - BETWEEN_TICKS_MS);
        }
    }

    /// Watches over a session that a member has created: perhaps this one, before it was restarted.
    pub(crate) fn add(&mut self, session: SessionId, timeout_ms: i32, now_ms: u64, maker: u64) {
        self.liveness.add(session, timeout_ms, now_ms);
        if maker == self.own {
            self.skip_id(session);
        }
    }

    pub(crate) fn take_id(&mut self) -> SessionId {
        let session = SessionId(self.next_id);
        self.next_id = behind(self.next_id);
        session
    }

    /// Ids are those of another start from now on, unless that is behind.
    pub(crate) fn begin_start(&mut self, member: u64, incarnation: u64) {
        self.next_id = self.next_id.max(first_id(member, incarnation));
    }

    /// An id that was given out by this member is never given out again. One of another member has another low byte or another place, and
    /// is not met.
    fn skip_id(&mut self, used: SessionId) {
        let is_of_same_place = (used.0 ^ self.next_id) & (0xff << 56 | PLACES << SESSION_BITS) == 0;
        if is_of_same_place {
            self.next_id = self.next_id.max(behind(used.0));
        }
    }

    pub(crate) fn watches(&self) -> &WatchTable {
        &self.watches
    }

    /// The connection that serves the session.
    pub(crate) fn conn(&self, session: SessionId) -> Option<ConnId> {
        self.serving.conn(session)
    }

    /// Serves the session on `conn`. Returns the connection that served it until now, if it is another one, which has no watches any more.
    pub(crate) fn serve(&mut self, session: SessionId, conn: ConnId) -> Option<ConnId> {
        let former = self.serving.begin(session, conn)?;
        self.watches.drop_conn(former);
        Some(former)
    }

    /// Sessions are served by these connections. None was served before.
    pub(crate) fn adopt_serving(&mut self, serving: Serving) {
        assert!(self.serving.end_all().is_empty(), "nothing was served before");
        self.serving = serving;
    }

    /// Serves the session no more. Returns the connection that did, and has its watches yet.
    pub(crate) fn end_session(&mut self, session: SessionId) -> Option<ConnId> {
        self.serving.end_session(session)
    }

    /// Serves the session no more. Returns the connection that did.
    pub(crate) fn end_serving(&mut self, session: SessionId) -> Option<ConnId> {
        let conn = self.end_session(session)?;
        self.watches.drop_conn(conn);
        Some(conn)
    }

    /// The connection serves nothing any more, a session of read-only mode neither.
    pub(crate) fn end_conn(&mut self, conn: ConnId) {
        self.watches.drop_conn(conn);
        self.serving.end_conn(conn);
    }

    /// Serves no session any more. Returns the connections that served one.
    pub(crate) fn end_all(&mut self) -> Vec<ConnId> {
        let conns = self.serving.end_all();
        conns.iter().for_each(|conn| self.watches.drop_conn(*conn));
        conns
    }
}

/// Bits of a session id that count the sessions of a place, and the bits above them that tell the place.
const SESSION_BITS: u32 = 9;
const PLACES: i64 = 0x7f;

/// The first session id of a start, so that ids are never used twice: the low byte of the member's number, as in ZooKeeper, then the
/// number of the start, which is a time in milliseconds as a rule, and 16 bits. Of members with the same low byte each has its own place in
/// these: members make different ids, unless their numbers are a multiple of 32768 apart. Should an id be in use nevertheless, the state
/// refuses it, and the member takes another.
fn first_id(member: u64, incarnation: u64) -> i64 {
    let start = (incarnation << 24) >> 8;
    let place = (member >> 8) as i64 & PLACES;
    (member << 56 | start) as i64 | place << SESSION_BITS
}

/// The id behind this one in the same place: behind the last there, the first of the next millisecond.
fn behind(id: i64) -> i64 {
    let next = id + 1;
    let is_same_place = next >> SESSION_BITS == id >> SESSION_BITS;
    if is_same_place { next } else { next + (PLACES << SESSION_BITS) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::raft_id::raft_id;

    fn sessions_of(member: u64, incarnation: u64) -> Sessions {
        Sessions::new(100, member, incarnation, WatchTable::default())
    }

    #[test]
    fn an_id_is_never_given_out_twice() {
        let mut sessions = sessions_of(3, 1000);
        let first = sessions.take_id();
        assert_eq!(first.0 >> 56, 3);
        sessions.add(SessionId(first.0 + 5), 1000, 0, 3);
        assert_eq!(sessions.take_id(), SessionId(first.0 + 6));
        sessions.add(SessionId((4 << 56) | (first.0 + 50)), 1000, 0, 4);
        assert_eq!(sessions.take_id(), SessionId(first.0 + 7), "that one is another member's");
        sessions.begin_start(3, 999);
        assert_eq!(sessions.take_id(), SessionId(first.0 + 8));
        sessions.begin_start(3, 1001);
        assert_eq!(sessions.take_id().0, first_id(3, 1001));
    }

    /// The clock went back, so that the number of this start is the one after that of the last, which made many sessions.
    #[test]
    fn a_start_skips_the_sessions_that_live_of_an_earlier_one() {
        let living = SessionId(first_id(1, 1003) + 5);
        let mut draft = paddock_tree::Draft::new();
        draft.begin_session(living, 4000);
        let (tree, _) = draft.finish(paddock_proto::Zxid(100), 1);
        let next_of = |member: u64| {
            let mut sessions = sessions_of(member, 1001);
            sessions.adopt(&tree, 0);
            sessions.take_id()
        };
        assert_eq!(next_of(1), SessionId(living.0 + 1));
        assert_eq!(next_of(2).0, first_id(2, 1001), "that one is another member's");
        assert_eq!(
            next_of(257).0,
            first_id(257, 1001),
            "that one is another member's, which may come back without a start"
        );
    }

    #[test]
    fn members_with_the_same_low_byte_make_different_ids() {
        let numbers = [1, 257, 513, 1 + 256 * 127];
        let mut started_together = numbers.map(|member| sessions_of(member, 1000));
        let mut seen = BTreeSet::new();
        for _ in 0..2000 {
            for at in 0..numbers.len() {
                let session = started_together[at].take_id();
                assert_eq!(session.0 >> 56, 1);
                assert!(seen.insert(session), "{session} was made before");
                for other in &mut started_together {
                    other.add(session, 1000, 0, numbers[at]);
                }
            }
        }
        // Nothing but its low byte is there of a number: that of 0 is 0, whose Raft id is another.
        assert_eq!(first_id(raft_id(0), 1000) >> 56, 0);
        assert_ne!(first_id(raft_id(0), 1000), first_id(raft_id(256), 1000));
        assert_eq!(first_id(raft_id(1001), 1000) >> 56, i64::from(1001_u32 as u8 as i8));
    }
}
