//! Members compare what they are: at some entries each takes a digest of its state, and followers tell the leader theirs.
//! Two that differ at one entry are an alarm: one of them is not what the log made it.

use std::collections::VecDeque;

use super::{Effects, Replica};
use crate::State;
use crate::message::PeerMessage;

/// A digest is taken at every entry whose number is a multiple of this.
const EVERY: u64 = 64;
/// So many are remembered, for a member that lags.
const REMEMBERED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Digests {
    /// By rising entry.
    taken: VecDeque<(u64, u64)>,
    told: u64,
    /// Differences that have not been reported.
    differing: Vec<u64>,
}

impl Digests {
    pub(super) fn take(&mut self, index: u64, state: &State) {
        if index.is_multiple_of(EVERY) {
            self.taken.push_back((index, state.tree().digest()));
            if self.taken.len() > REMEMBERED {
                self.taken.pop_front();
            }
        }
    }

    fn at(&self, index: u64) -> Option<u64> {
        let place = self.taken.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        Some(self.taken[place].1)
    }
}

impl Replica {
    /// A follower tells the leader its newest digest, once.
    pub(super) fn tell_digest(&mut self, effects: &mut Effects) {
        effects.differing.append(&mut self.digests.differing);
        let Some(&(index, digest)) = self.digests.taken.back() else { return };
        let leader = self.leadership.leader.filter(|leader| *leader != self.options.member);
        if let Some(leader) = leader.filter(|_| index > self.digests.told) {
            self.digests.told = index;
            effects.messages.push((leader, PeerMessage::Digest { index, digest }.encode()));
        }
    }

    /// Another member's digest. If it is not this member's, both raise the alarm.
    pub(super) fn on_digest(&mut self, from: u64, index: u64, digest: u64) {
        let Some(own) = self.digests.at(index).filter(|own| *own != digest) else { return };
        tracing::error!(
            member = from,
            index,
            own = format!("{own:016x}"),
            other = format!("{digest:016x}"),
            "the states of two members differ: compare their snapshots, and let the wrong one begin anew with an empty directory"
        );
        self.digests.differing.push(from);
        if self.consensus.is_leader() {
            self.letters.push((from, PeerMessage::Digest { index, digest: own }.encode()));
        }
    }
}
