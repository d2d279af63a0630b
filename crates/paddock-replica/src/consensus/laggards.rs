//! Which entries stay in memory for followers that do not have them yet.

use std::collections::BTreeMap;

use raft::{INVALID_INDEX, ProgressState};

use super::Consensus;

/// A follower that was not heard for so many ticks is not waited for. It gets a snapshot when it comes back.
const PATIENCE_TICKS: u32 = 2 * Consensus::ELECTION_TICKS as u32;

#[derive(Debug, Default)]
pub(super) struct Laggards {
    /// For how many ticks a leader has not heard its followers. The library forgets each election timeout whom it has heard.
    silent_ticks: BTreeMap<u64, u32>,
}

impl Consensus {
    /// The entry behind which the last follower that is there goes on.
    pub(super) fn hold_entries(&mut self) {
        let raft = &mut self.node.raft;
        let (own, is_leader) = (raft.id, raft.state == raft::StateRole::Leader);
        let silent = &mut self.laggards.silent_ticks;
        silent.retain(|id, _| is_leader && raft.prs().get(*id).is_some());
        let mut held = None;
        for (&id, progress) in raft.prs().iter().filter(|(id, _)| is_leader && **id != own) {
            let ticks = silent.entry(id).or_default();
            *ticks = if progress.recent_active { 0 } else { ticks.saturating_add(1) };
            if *ticks >= PATIENCE_TICKS {
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
