//! Sessions that this front end serves: when each was heard, its lease, and ids for new ones.

use std::collections::BTreeMap;

use paddock_proto::SessionId;
use paddock_state::{Liveness, Serving};

/// Bits of an id that count the sessions of a front end.
const COUNT_BITS: u32 = 24;

#[derive(Debug)]
pub(crate) struct Leases {
    pub(crate) liveness: Liveness,
    pub(crate) serving: Serving,
    leases: BTreeMap<SessionId, Lease>,
    tick_ms: u64,
    next_id: i64,
}

#[derive(Debug)]
struct Lease {
    timeout_ms: u64,
    renewed_ms: u64,
}

impl Leases {
    pub(crate) fn new(tick_ms: u64, front: u64) -> Leases {
        // A lease's id is positive, and ids of two front ends differ by the number that each has drawn.
        let first = (front >> 1) as i64 >> COUNT_BITS << COUNT_BITS | 1;
        Leases {
            liveness: Liveness::new(tick_ms),
            serving: Serving::default(),
            leases: BTreeMap::new(),
            tick_ms,
            next_id: first,
        }
    }

    pub(crate) fn take_id(&mut self) -> SessionId {
        let id = SessionId(self.next_id);
        self.next_id = (self.next_id + 1).max(1);
        id
    }

    /// Time to live of a session's lease in seconds. It is renewed when its client is heard and a quarter of the timeout has
    /// passed; so it lives for the timeout at least when the client was heard last, and a tick longer.
    pub(crate) fn ttl_s(&self, timeout_ms: i32) -> i64 {
        let timeout_ms = i64::from(timeout_ms.max(0));
        (timeout_ms + timeout_ms / 4 + self.tick_ms as i64) / 1000 + 2
    }

    /// This front end serves the session from now on.
    pub(crate) fn add(&mut self, session: SessionId, timeout_ms: i32, now_ms: u64) {
        if self.leases.contains_key(&session) {
            self.liveness.resume(session, timeout_ms, now_ms);
        } else {
            self.liveness.add(session, timeout_ms, now_ms);
        }
        let timeout_ms = timeout_ms.max(0) as u64;
        self.leases.insert(session, Lease { timeout_ms, renewed_ms: now_ms });
    }

    /// The session has ended, or another front end serves it.
    pub(crate) fn remove(&mut self, session: SessionId) {
        self.liveness.remove(session);
        self.leases.remove(&session);
    }

    /// The session was heard. True if its lease is to be renewed.
    pub(crate) fn touch(&mut self, session: SessionId, now_ms: u64) -> bool {
        self.liveness.touch(session, now_ms);
        let Some(lease) = self.leases.get_mut(&session) else { return false };
        let is_due = now_ms >= lease.renewed_ms + lease.timeout_ms / 4;
        if is_due {
            lease.renewed_ms = now_ms;
        }
        is_due
    }

    /// Gives every session its whole timeout anew. Returns the sessions whose leases are to be renewed: those that are served.
    pub(crate) fn renew_all(&mut self, now_ms: u64) -> Vec<SessionId> {
        self.liveness.renew_all(now_ms);
        let served = self.leases.iter_mut().filter(|(session, _)| self.serving.conn(**session).is_some());
        let renewed = served.map(|(session, lease)| {
            lease.renewed_ms = now_ms;
            *session
        });
        renewed.collect()
    }

    /// Forgets all sessions.
    pub(crate) fn clear(&mut self) {
        self.leases.clear();
        self.liveness = Liveness::new(self.tick_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_outlives_its_sessions_timeout_and_its_id_is_positive() {
        for front in [0, 1, u64::MAX, 1 << 63, (1 << 24) - 1] {
            let mut leases = Leases::new(2000, front);
            let ids = [leases.take_id(), leases.take_id()];
            assert!(ids[0].0 > 0 && ids[1].0 == ids[0].0 + 1, "{front}: {ids:?}");
        }
        let leases = Leases::new(2000, 7);
        for timeout_ms in [0, 4000, 40_000, i32::MAX] {
            assert!(leases.ttl_s(timeout_ms) * 1000 > i64::from(timeout_ms) * 5 / 4 + 2000);
        }
    }

    #[test]
    fn a_lease_is_renewed_when_a_quarter_has_passed() {
        let mut leases = Leases::new(2000, 7);
        let session = leases.take_id();
        leases.add(session, 4000, 0);
        assert!(!leases.touch(session, 999));
        assert!(leases.touch(session, 1000));
        assert!(!leases.touch(session, 1999));
        assert_eq!(leases.renew_all(2000), [], "nobody serves it");
        leases.remove(session);
        assert!(!leases.touch(session, 9999));
    }
}
