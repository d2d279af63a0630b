//! Followers that are silent, and entries that stay in memory for those that do not have them yet.

use std::collections::BTreeMap;

use raft::{INVALID_INDEX, Progress, ProgressState, StateRole};

use super::Consensus;

/// Silence of a follower, as its leader notes it: the library forgets each election timeout whom it has heard.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    /// Ticks since the leader has heard the follower, or since it leads.
    ticks: usize,
    /// True once the leader has heard it.
    has_ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Laggards {
    silences: BTreeMap<u64, Silence>,
}

impl Consensus {
    /// True if this leader has heard a follower within the election timeout that runs, or the one before: that which runs may have
    /// begun a moment ago.
    pub(super) fn is_heard(&self, id: u64, progress: &Progress) -> bool {
        let within_timeout =
            |silence: &Silence| silence.has_ended && silence.ticks < Consensus::ELECTION_TICKS;
        progress.recent_active || self.laggards.silences.get(&id).is_some_and(within_timeout)
    }

    /// A leader holds what stands behind the entry where the last follower goes on that is there. One that was not heard for
    /// long is not waited for: it gets a snapshot when it comes back.
    pub(super) fn hold_entries(&mut self) {
        let raft = &self.node.raft;
        let silences = &mut self.laggards.silences;
        if raft.state != StateRole::Leader {
            silences.clear();
            return self.node.mut_store().hold(None);
        }
        silences.retain(|id, _| raft.prs().get(*id).is_some());
        let mut held = None;
        for (&id, progress) in raft.prs().iter().filter(|(id, _)| **id != raft.id) {
            let silence = silences.entry(id).or_default();
            *silence = match progress.recent_active {
                true => Silence { ticks: 0, has_ended: true },
                false => Silence { ticks: silence.ticks.saturating_add(1), ..*silence },
            };
            if silence.ticks >= Consensus::SILENCE_TICKS {
                continue;
            }
            let goes_on_behind = match progress.state {
                ProgressState::Snapshot if progress.pending_snapshot != INVALID_INDEX => {
                    Some(progress.pending_snapshot)
                }
                _ => raft.raft_log.store.goes_on_behind(progress.matched),
            };
            held = held.into_iter().chain(goes_on_behind).min();
        }
        self.node.mut_store().hold(held);
    }
}
