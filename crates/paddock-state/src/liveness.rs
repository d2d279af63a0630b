//! Sessions that have been heard of, and those that have been silent for too long.
//!
//! Times are rounded up to whole ticks, as ZooKeeper does: a session is never ended early. A session stands in the
//! queue at the tick of its deadline as it was when it was queued; being heard only moves the deadline, so that a
//! touch costs one table look-up. A resume may bring the deadline forward: the session is queued again then, and its former
//! place counts no more.

use std::collections::{BTreeMap, HashMap};

use paddock_proto::SessionId;

#[derive(Debug)]
struct Pulse {
    timeout_ms: u64,
    deadline: u64,
    /// Tick at which it stands in the queue; in others of its places it does not count.
    queued: u64,
    /// Its end has been proposed: it is asked for once.
    ending: bool,
}

#[derive(Debug)]
pub struct Liveness {
    tick_ms: u64,
    sessions: HashMap<SessionId, Pulse>,
    queue: BTreeMap<u64, Vec<SessionId>>,
}

impl Liveness {
    pub fn new(tick_ms: u64) -> Liveness {
        assert!(tick_ms > 0, "a tick takes time");
        Liveness { tick_ms, sessions: HashMap::new(), queue: BTreeMap::new() }
    }

    /// Starts to watch over a session, with its whole timeout before it.
    pub fn add(&mut self, session: SessionId, timeout_ms: i32, now_ms: u64) {
        let timeout_ms = u64::try_from(timeout_ms).unwrap_or(0);
        let deadline = (now_ms + timeout_ms).next_multiple_of(self.tick_ms);
        self.sessions.insert(session, Pulse { timeout_ms, deadline, queued: deadline, ending: false });
        self.queue.entry(deadline).or_default().push(session);
    }

    pub fn remove(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    /// The session was heard.
    pub fn touch(&mut self, session: SessionId, now_ms: u64) {
        let tick_ms = self.tick_ms;
        if let Some(pulse) = self.sessions.get_mut(&session) {
            pulse.deadline = pulse.deadline.max((now_ms + pulse.timeout_ms).next_multiple_of(tick_ms));
        }
    }

    /// A client has resumed the session, and may have asked for another timeout, which counts from now on. An end that was asked for
    /// may be refused now.
    pub fn resume(&mut self, session: SessionId, timeout_ms: i32, now_ms: u64) {
        let Some(pulse) = self.sessions.get_mut(&session) else { return };
        pulse.timeout_ms = u64::try_from(timeout_ms).unwrap_or(0);
        pulse.deadline = (now_ms + pulse.timeout_ms).next_multiple_of(self.tick_ms);
        if pulse.ending || pulse.deadline < pulse.queued {
            (pulse.queued, pulse.ending) = (pulse.deadline, false);
            self.queue.entry(pulse.deadline).or_default().push(session);
        }
    }

    /// Gives every session its whole timeout anew. Ends that were asked for of a former leader may never come.
    pub fn renew_all(&mut self, now_ms: u64) {
        let tick_ms = self.tick_ms;
        for pulse in self.sessions.values_mut() {
            pulse.deadline = (now_ms + pulse.timeout_ms).next_multiple_of(tick_ms);
            pulse.ending = false;
        }
        self.queue_all();
    }

    /// Gives every session this time more, in which no session could be heard.
    pub fn put_off(&mut self, by_ms: u64) {
        let tick_ms = self.tick_ms;
        for pulse in self.sessions.values_mut() {
            pulse.deadline = (pulse.deadline + by_ms).next_multiple_of(tick_ms);
        }
        self.queue_all();
    }

    /// Queues all sessions anew, but for those whose ends have been asked for.
    fn queue_all(&mut self) {
        self.queue.clear();
        let mut sessions: Vec<_> = self.sessions.iter_mut().filter(|(_, pulse)| !pulse.ending).collect();
        // The table's own order is another one in every process.
        sessions.sort_unstable_by_key(|(session, _)| **session);
        for (&session, pulse) in sessions {
            pulse.queued = pulse.deadline;
            self.queue.entry(pulse.deadline).or_default().push(session);
        }
    }

    /// The sessions whose time has run out. Each is returned once, and stays known until it is removed.
    pub fn expire(&mut self, now_ms: u64) -> Vec<SessionId> {
        let mut expired = Vec::new();
        while let Some(entry) = self.queue.first_entry().filter(|entry| *entry.key() <= now_ms) {
            let (tick, sessions) = entry.remove_entry();
            for session in sessions {
                let Some(pulse) = self.sessions.get_mut(&session) else { continue };
                if pulse.queued != tick {
                    continue;
                }
                if pulse.deadline > now_ms {
                    pulse.queued = pulse.deadline;
                    self.queue.entry(pulse.deadline).or_default().push(session);
                } else if !pulse.ending {
                    pulse.ending = true;
                    expired.push(session);
                }
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SessionId = SessionId(1);
    const B: SessionId = SessionId(2);

    #[test]
    fn time_in_which_no_session_could_be_heard_is_given_to_all() {
        let mut liveness = Liveness::new(10);
        liveness.add(A, 30, 0);
        liveness.add(B, 10, 0);
        assert_eq!(liveness.expire(10), [B]);
        liveness.put_off(1005);
        assert_eq!(liveness.expire(1039), []);
        assert_eq!(liveness.expire(1040), [A], "and B's end was asked for already");
    }

    #[test]
    fn a_silent_session_expires_once_and_never_early() {
        let mut liveness = Liveness::new(100);
        liveness.add(A, 1000, 50);
        assert_eq!(liveness.expire(1050), []);
        assert_eq!(liveness.expire(1099), []);
        assert_eq!(liveness.expire(1100), [A]);
        assert_eq!(liveness.expire(9999), []);
        liveness.renew_all(10_000);
        assert_eq!(liveness.expire(10_999), []);
        assert_eq!(liveness.expire(11_000), [A], "another leader asks for its end again");
    }

    #[test]
    fn a_session_that_is_heard_lives_on() {
        let mut liveness = Liveness::new(100);
        liveness.add(A, 1000, 0);
        liveness.add(B, 1000, 0);
        liveness.touch(A, 900);
        assert_eq!(liveness.expire(1000), [B]);
        assert_eq!(liveness.expire(1899), []);
        assert_eq!(liveness.expire(1900), [A]);
    }

    #[test]
    fn a_removed_session_is_forgotten() {
        let mut liveness = Liveness::new(100);
        liveness.add(A, 1000, 0);
        liveness.remove(A);
        liveness.touch(A, 10);
        assert_eq!(liveness.expire(u64::MAX), []);
    }

    #[test]
    fn a_resumed_session_has_the_timeout_of_its_new_connection() {
        let mut liveness = Liveness::new(100);
        liveness.add(A, 1000, 0);
        liveness.resume(A, 5000, 500);
        assert_eq!(liveness.expire(5499), []);
        assert_eq!(liveness.expire(5500), [A]);
    }

    #[test]
    fn a_shorter_timeout_counts_from_the_resume_on() {
        let mut liveness = Liveness::new(100);
        liveness.add(A, 15_000, 0);
        liveness.touch(A, 500);
        liveness.resume(A, 2000, 1000);
        assert_eq!(liveness.expire(2999), []);
        assert_eq!(liveness.expire(3000), [A]);
        assert_eq!(liveness.expire(99_999), [], "its former place in the queue counts no more");
    }

    #[test]
    fn a_session_whose_timeout_goes_up_and_down_is_queued_where_it_counts() {
        let mut liveness = Liveness::new(100);
        liveness.add(A, 15_000, 0);
        for round in 0..1000 {
            liveness.resume(A, 2000, round);
            liveness.resume(A, 15_000, round);
        }
        assert_eq!(liveness.queue.values().map(Vec::len).sum::<usize>(), 2);
        liveness.resume(A, 1000, 2000);
        assert_eq!(liveness.expire(2999), []);
        assert_eq!(liveness.expire(3000), [A]);
    }

    #[test]
    fn a_session_that_is_resumed_while_its_end_is_asked_for_expires_again() {
        let mut liveness = Liveness::new(100);
        liveness.add(A, 1000, 0);
        assert_eq!(liveness.expire(1000), [A]);
        liveness.resume(A, 1000, 1050);
        assert_eq!(liveness.expire(2099), []);
        assert_eq!(liveness.expire(2100), [A]);
    }
}
