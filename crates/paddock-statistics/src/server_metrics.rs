//! Events and times that ZooKeeper has metrics of, and that no other part of a member counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use paddock_proto::MemberNumber;
use paddock_replica::{Role, Standing};
use parking_lot::Mutex;

use super::summary::SummaryCounter;

/// Counters and times of one member.
#[derive(Debug, Default)]
pub struct ServerMetrics {
    /// Clients that have greeted, and those of them that went on with a session.
    pub greetings: AtomicU64,
    /// Clients that went on with a session.
    pub resumptions: AtomicU64,
    /// Connections that ended though neither side had closed their session.
    pub lost_connections: AtomicU64,
    /// Connections that were closed because they sent no greeting in time.
    pub silent_connections: AtomicU64,
    /// Connections that were closed because the member had no contact to a quorum.
    pub out_of_contact: AtomicU64,
    /// Connections of clients that have proved nothing by TLS: from this machine, and from others.
    pub unproven_local: AtomicU64,
    /// Connections from other machines that have proved nothing.
    pub unproven_remote: AtomicU64,
    /// Snapshots over HTTP that were refused because the last one was taken a short time ago.
    pub snapshots_rate_limited: AtomicU64,
    /// Times in milliseconds of syncs of the log.
    pub syncs: Arc<SummaryCounter>,
    /// Times in milliseconds of snapshots.
    pub snapshots: SummaryCounter,
    /// Times in milliseconds of turns in which watches of connections that are gone were removed.
    pub watch_sweeps: SummaryCounter,
    /// Times of the member's start.
    pub start: Mutex<StartTimes>,
    /// The work that the start is at.
    pub start_progress: Arc<StartProgress>,
    /// Times without a leader.
    pub elections: Elections,
    /// Entries of the ensemble's log.
    pub entries: EntryCounts,
}

/// The work that a start is at, as it was noted last.
#[derive(Debug, Default)]
pub struct StartProgress(Mutex<Option<StartStep>>);

/// Long work of a start, and how much of it is done.
#[derive(Clone, Copy, Debug)]
pub struct StartStep {
    /// Name of the work.
    pub work: &'static str,
    /// Units that are done.
    pub done: u64,
    /// Name of the unit.
    pub unit: &'static str,
}

impl StartProgress {
    /// Notes the work that the start is at.
    pub fn note(&self, step: StartStep) {
        *self.0.lock() = Some(step);
    }

    /// The work that was noted last.
    pub fn last(&self) -> Option<StartStep> {
        *self.0.lock()
    }
}

/// Times of a member's start.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartTimes {
    /// Milliseconds in which the newest snapshot was loaded and the log was read.
    pub recovery_ms: u64,
    /// Milliseconds in which the entries behind the snapshot were applied.
    pub replay_ms: u64,
    /// Number of these entries.
    pub replayed: u64,
}

/// Times without a leader.
#[derive(Debug, Default)]
pub struct Elections {
    state: Mutex<ElectionState>,
    /// Number of times that the member began to look for a leader.
    pub looking: AtomicU64,
    /// Times in milliseconds until there was a leader.
    pub times: SummaryCounter,
    /// Elections that ended with this member as the leader.
    pub times_won: SummaryCounter,
}

#[derive(Debug, Default)]
struct ElectionState {
    is_looking: bool,
    /// Monotonic time in milliseconds since which there is no leader.
    without_leader_since_ms: Option<u64>,
}

impl Elections {
    /// The member has this role now.
    pub fn note_role(&self, role: Role, now_ms: u64) {
        let mut state = self.state.lock();
        let is_looking = role == Role::Looking;
        if is_looking && !state.is_looking {
            self.looking.fetch_add(1, Relaxed);
        }
        state.is_looking = is_looking;
        match role {
            Role::Looking | Role::ReadOnly => {
                state.without_leader_since_ms.get_or_insert(now_ms);
            }
            Role::Alone | Role::Leader | Role::Follower | Role::Observer => {
                let Some(since_ms) = state.without_leader_since_ms.take() else { return };
                let length_ms = now_ms.saturating_sub(since_ms);
                self.times.record(length_ms);
                if role == Role::Leader {
                    self.times_won.record(length_ms);
                }
            }
        }
    }
}

/// Entries of an ensemble's log as they went through this member, and how long they took. One of some entries is timed.
#[derive(Debug, Default)]
pub struct EntryCounts {
    /// Proposed and committed while this member led.
    pub proposed: AtomicU64,
    /// Committed while this member led.
    pub committed: AtomicU64,
    /// Received from a leader, and learned to be committed, while this member followed.
    pub received: AtomicU64,
    /// Learned to be committed while this member followed.
    pub learned_committed: AtomicU64,
    /// Times in milliseconds from a leader's proposal until it is on its own disk, and until a quorum has it.
    pub own_ack: SummaryCounter,
    /// Times in milliseconds until a quorum has the proposal.
    pub quorum_ack: SummaryCounter,
    /// Snapshots that were sent to members that lag, and how many were under way whenever one more began.
    pub snapshots_sent: AtomicU64,
    /// Snapshots under way whenever one more began.
    pub snapshots_under_way: SummaryCounter,
}

impl EntryCounts {
    /// The log has grown by `added` entries, and `committed` more of them are known to be committed.
    pub fn note_progress(&self, role: Role, added: u64, committed: u64) {
        let (of_added, of_committed) = match role {
            Role::Leader => (&self.proposed, &self.committed),
            Role::Follower | Role::Observer => (&self.received, &self.learned_committed),
            Role::Alone | Role::Looking | Role::ReadOnly => return,
        };
        of_added.fetch_add(added, Relaxed);
        of_committed.fetch_add(committed, Relaxed);
    }

    /// A leader's proposal, made then, is on its own disk.
    pub fn note_own_ack(&self, role: Role, proposed: Instant) {
        if role == Role::Leader {
            self.own_ack.record_since(proposed);
        }
    }

    /// A quorum has a leader's proposal, made then.
    pub fn note_quorum_ack(&self, role: Role, proposed: Instant) {
        if role == Role::Leader {
            self.quorum_ack.record_since(proposed);
        }
    }

    /// The member's standing has changed from one to the other.
    pub fn note_standing(&self, before: &Standing, after: &Standing) {
        let getting = |standing: &Standing| -> Vec<MemberNumber> {
            let getting = standing.followers.iter().filter(|follower| follower.gets_snapshot);
            getting.map(|follower| follower.member).collect()
        };
        let (before, after) = (getting(before), getting(after));
        for _ in after.iter().filter(|member| !before.contains(member)) {
            self.snapshots_sent.fetch_add(1, Relaxed);
            self.snapshots_under_way.record(after.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_election_lasts_from_the_loss_of_a_leader_until_there_is_one() {
        let elections = Elections::default();
        for (role, now_ms) in [
            (Role::Looking, 100),
            (Role::Looking, 200),
            (Role::Leader, 538),
            (Role::Leader, 600),
            (Role::Looking, 1000),
            (Role::ReadOnly, 2000),
            (Role::Looking, 3000),
            (Role::Follower, 3100),
        ] {
            elections.note_role(role, now_ms);
        }
        assert_eq!(elections.looking.load(Relaxed), 3);
        let (all, won) = (elections.times.get(), elections.times_won.get());
        assert_eq!((all.count, all.min, all.max), (2, 438, 2100));
        assert_eq!((won.count, won.sum), (1, 438));
    }

    #[test]
    fn a_member_alone_has_no_elections() {
        let elections = Elections::default();
        elections.note_role(Role::Alone, 100);
        assert_eq!((elections.looking.load(Relaxed), elections.times.get().count), (0, 0));
    }
}
