//! Members compare what they are: at some entries each takes a digest of its state, and followers tell the leader theirs.
//! Members whose digests of one entry differ are not what the log made them, at least one of them.
//!
//! The state that most of the voters have is right. A member that has something else stops at once, puts its files aside, and is told
//! the state again. As long as it is not known what most have, because too few can be heard, those that differ serve nobody.

use std::collections::{BTreeMap, VecDeque};

use paddock_tree::Tree;

use super::{Effects, Replica};
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
    /// Digests that members told this leader: entry, member, digest.
    heard: BTreeMap<u64, BTreeMap<u64, u64>>,
    /// Differences that have not been reported.
    differing: Vec<u64>,
    /// Another member's digest differs, and it is not known what most have.
    is_in_doubt: bool,
    /// The entry at which most have another state than this member.
    diverged_at: Option<u64>,
}

impl Digests {
    pub(super) fn take(&mut self, index: u64, tree: &Tree) {
        if index.is_multiple_of(EVERY) {
            self.taken.push_back((index, tree.digest()));
            if self.taken.len() > REMEMBERED {
                self.taken.pop_front();
            }
        }
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// The state was replaced, or another member leads: what was said of it before is void.
    pub(super) fn begin_anew(&mut self) {
        (self.told, self.heard) = (0, BTreeMap::new());
    }

    fn at(&self, index: u64) -> Option<u64> {
        let place = self.taken.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        Some(self.taken[place].1)
    }

    /// Those that have not been told to the leader.
    fn untold(&mut self) -> Vec<(u64, u64)> {
        let last = self.taken.back().map_or(0, |(index, _)| *index);
        let told = std::mem::replace(&mut self.told, last);
        self.taken.iter().copied().filter(|(index, _)| *index > told).collect()
    }

    /// Notes what a member has told. Returns what all have said of that entry.
    fn note(&mut self, from: u64, index: u64, digest: u64) -> BTreeMap<u64, u64> {
        let heard = self.heard.entry(index).or_default();
        heard.insert(from, digest);
        let heard = heard.clone();
        if self.heard.len() > REMEMBERED {
            self.heard.pop_first();
        }
        heard
    }
}

/// The digest that most of the voters have, if there is one.
fn majority(voters: &[u64], digests: &BTreeMap<u64, u64>) -> Option<u64> {
    let of_voters = || voters.iter().filter_map(|voter| digests.get(voter));
    let count = |digest: u64| of_voters().filter(|other| **other == digest).count();
    of_voters().copied().find(|digest| count(*digest) > voters.len() / 2)
}

impl Replica {
    /// A follower tells the leader its digests, once.
    pub(super) fn tell_digests(&mut self, effects: &mut Effects) {
        effects.differing.append(&mut self.digests.differing);
        effects.diverged_at = effects.diverged_at.or(self.digests.diverged_at);
        let leader = self.leadership.leader.filter(|leader| *leader != self.options.member);
        let Some(leader) = leader else { return };
        for (index, digest) in self.digests.untold() {
            let is_in_doubt = self.digests.is_in_doubt;
            effects.messages.push((leader, PeerMessage::Digest { index, digest, is_in_doubt }.encode()));
        }
    }

    /// In doubt the newest digest is told again: the leader may have heard more meanwhile.
    pub(super) fn tick_digests(&mut self) {
        if self.digests.is_in_doubt {
            self.digests.told = self.digests.told.saturating_sub(1);
        }
    }

    /// Another member's digest.
    pub(super) fn on_digest(&mut self, from: u64, index: u64, digest: u64, is_in_doubt: bool) {
        match self.consensus.is_leader() {
            true => self.judge_digests(from, index, digest, is_in_doubt),
            false => self.compare_with_leader(from, index, digest),
        }
    }

    fn compare_with_leader(&mut self, leader: u64, index: u64, digest: u64) {
        match self.digests.at(index) {
            Some(own) if own == digest => self.digests.is_in_doubt = false,
            Some(own) => self.note_difference(leader, index, own, digest),
            None => {}
        }
    }

    fn judge_digests(&mut self, from: u64, index: u64, digest: u64, is_in_doubt: bool) {
        let Some(own) = self.digests.at(index) else { return };
        let mut digests = self.digests.note(from, index, digest);
        digests.insert(self.options.member, own);
        let do_all_agree = digests.values().all(|digest| *digest == own);
        if do_all_agree && !is_in_doubt && !self.digests.is_in_doubt {
            return;
        }
        if digest != own {
            self.note_difference(from, index, own, digest);
        }
        let Some(right) = majority(&self.consensus.membership().voters, &digests) else {
            let message = PeerMessage::Digest { index, digest: own, is_in_doubt: true };
            return self.letters.push((from, message.encode()));
        };
        self.digests.is_in_doubt = false;
        for (member, digest) in digests.into_iter().filter(|(member, _)| *member != self.options.member) {
            let message = match digest == right {
                true => PeerMessage::Digest { index, digest: right, is_in_doubt: false },
                false => PeerMessage::Diverged { index, digest: right },
            };
            self.letters.push((member, message.encode()));
        }
        if own != right {
            self.diverge(index, own, right);
        }
    }

    /// Two members differ: one of them is wrong.
    fn note_difference(&mut self, member: u64, index: u64, own: u64, other: u64) {
        let (own, other) = (format!("{own:016x}"), format!("{other:016x}"));
        tracing::error!(member, index, own, other, "the states of two members differ");
        self.digests.differing.push(member);
        self.digests.is_in_doubt = true;
    }

    /// The leader says what most of the voters have.
    pub(super) fn on_diverged(&mut self, index: u64, right: u64) {
        if let Some(own) = self.digests.at(index).filter(|own| *own != right) {
            self.diverge(index, own, right);
        }
    }

    fn diverge(&mut self, index: u64, own: u64, right: u64) {
        let (own, right) = (format!("{own:016x}"), format!("{right:016x}"));
        tracing::error!(index, own, right, "most members have another state than this one: it stops serving");
        self.digests.diverged_at = Some(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_voters_say_what_is_right() {
        let check = |voters: &[u64], digests: &[(u64, u64)], expected| {
            assert_eq!(majority(voters, &digests.iter().copied().collect()), expected, "{digests:?}");
        };
        check(&[1, 2, 3], &[(1, 7), (2, 8)], None);
        check(&[1, 2, 3], &[(1, 7), (2, 8), (3, 9)], None);
        check(&[1, 2, 3], &[(1, 7), (2, 8), (3, 8)], Some(8));
        check(&[1, 2, 3], &[(1, 7), (2, 8), (4, 8), (5, 8)], None);
        check(&[1, 2, 3, 4], &[(1, 7), (2, 7), (3, 8), (4, 8)], None);
        check(&[1], &[(1, 7), (2, 8)], Some(7));
    }
}
