//! Entries that stay in memory for followers that do not have them yet.

use std::collections::BTreeMap;

use raft::{INVALID_INDEX, ProgressState, StateRole};

use super::Consensus;

#[derive(Debug, Default)]
pub(super) struct Laggards {
    /// Ticks for which a leader has not heard each follower. The library forgets each election timeout whom it has heard.
    silent_ticks: BTreeMap<u64, usize>,
}

impl Consensus {
    /// A leader holds what stands behind the entry where the last follower goes on that is there. One that was not heard for
    /// long is not waited for: it gets a snapshot when it comes back.
    pub(super) fn hold_entries(&mut self) {
        let raft = &self.node.raft;
        let silent = &mut self.laggards.silent_ticks;
        if raft.state != StateRole::Leader {
            silent.clear();
            return self.node.mut_store().hold(None);
        }
        silent.retain(|id, _| raft.prs().get(*id).is_some());
        let mut held = None;
        for (&id, progress) in raft.prs().iter().filter(|(id, _)| **id != raft.id) {
            let ticks = silent.entry(id).or_default();
            *ticks = if progress.recent_active { 0 } else { ticks.saturating_add(1) };
            if *ticks >= Consensus::SILENCE_TICKS {
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
