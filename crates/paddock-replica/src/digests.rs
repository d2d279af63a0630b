//! Digests of the state: at some entries each member takes one, and followers tell the leader theirs. Members whose digests of
//! one entry differ are not what the log made them, at least one of them.
//!
//! The state that most of the voters have is right. A member that has something else stops at once, puts its files aside, and is told
//! the state again. As long as it is not known what most have, because too few can be heard, those that differ serve no clients.

use std::collections::{BTreeMap, VecDeque};

use paddock_tree::Tree;

use crate::Membership;
use crate::effects::{Effects, Messages};
use crate::message::PeerMessage;
use crate::raft_id::logged;

/// Number of entries between two digests: one is taken at every multiple of it.
const EVERY: u64 = 64;
/// Number of digests that are remembered, for a member that lags.
const REMEMBERED: usize = 64;

/// Digests of this member.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    /// Entry and digest, by rising entry.
    taken: VecDeque<(u64, u64)>,
    /// The newest entry whose digest the leader was told.
    told: u64,
    /// Members with other states, since the last alarm.
    differing: Vec<u64>,
    /// True if another member's digest differs, and it is not known what most have.
    is_in_doubt: bool,
    /// The entry at which most have another state than this member.
    diverged_at: Option<u64>,
}

/// Digests that members have told this leader: entry, member, digest.
#[derive(Debug, Default)]
pub(crate) struct DigestReports {
    heard: BTreeMap<u64, BTreeMap<u64, u64>>,
}

/// One digest as a member tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToldDigest {
    pub(crate) from: u64,
    pub(crate) index: u64,
    pub(crate) digest: u64,
    /// True if the sender does not know whether its state is right.
    pub(crate) is_in_doubt: bool,
}

impl Digests {
    /// Takes a digest, if one is due at this entry, which was just applied.
    pub(crate) fn take(&mut self, index: u64, tree: &Tree) {
        if index.is_multiple_of(EVERY) {
            self.note_taken(index, tree.digest());
        }
    }

    fn note_taken(&mut self, index: u64, digest: u64) {
        self.taken.push_back((index, digest));
        if self.taken.len() > REMEMBERED {
            self.taken.pop_front();
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// Another member leads: it has been told nothing.
    pub(crate) fn tell_anew(&mut self) {
        self.told = 0;
    }

    /// In doubt the newest digest is told again: the leader may have heard more meanwhile.
    pub(crate) fn tick(&mut self) {
        if self.is_in_doubt {
            self.told = self.told.saturating_sub(1);
        }
    }

    fn at(&self, index: u64) -> Option<u64> {
        let place = self.taken.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        Some(self.taken[place].1)
    }

    /// Hands the alarms to the shell.
    pub(crate) fn report(&mut self, effects: &mut Effects) {
        effects.differing.append(&mut self.differing);
        effects.diverged_at = effects.diverged_at.or(self.diverged_at);
    }

    /// Tells the leader the digests that it has not been told.
    pub(crate) fn tell(&mut self, leader: u64, out: &mut Messages) {
        let last = self.taken.back().map_or(0, |(index, _)| *index);
        let told = std::mem::replace(&mut self.told, last);
        let is_in_doubt = self.is_in_doubt;
        for &(index, digest) in self.taken.iter().filter(|(index, _)| *index > told) {
            out.push((leader, PeerMessage::Digest { index, digest, is_in_doubt }.encode()));
        }
    }

    /// A follower compares its state with the leader's. A leader in doubt is told once more what this member has: it may have missed that.
    pub(crate) fn compare_with_leader(&mut self, told: ToldDigest) {
        match self.at(told.index) {
            Some(own) if own == told.digest => {
                self.is_in_doubt = false;
                if told.is_in_doubt {
                    self.told = self.told.min(told.index.saturating_sub(1));
                }
            }
            Some(own) => self.note_difference(told, own),
            None => {}
        }
    }

    /// A leader compares what the members have told it, and tells them what most of the voters have.
    pub(crate) fn judge(
        &mut self,
        own_id: u64,
        told: ToldDigest,
        reports: &mut DigestReports,
        membership: &Membership,
        out: &mut Messages,
    ) {
        let ToldDigest { from, index, digest, is_in_doubt } = told;
        let Some(own) = self.at(index) else { return };
        let mut digests = reports.note(from, index, digest);
        digests.insert(own_id, own);
        let do_all_agree = digests.values().all(|digest| *digest == own);
        if do_all_agree && !is_in_doubt && !self.is_in_doubt {
            return;
        }
        if digest != own {
            self.note_difference(told, own);
        }
        let Some(right) = majority(&membership.voters, &digests) else {
            let message = PeerMessage::Digest { index, digest: own, is_in_doubt: true }.encode();
            let unheard = membership.voters.iter().filter(|voter| !digests.contains_key(voter)).copied();
            // A voter that agrees would tell at once what it has told.
            let differing = Some(from).filter(|_| digest != own);
            return out.extend(unheard.chain(differing).map(|member| (member, message.clone())));
        };
        self.is_in_doubt = false;
        for (member, digest) in digests.into_iter().filter(|(member, _)| *member != own_id) {
            let message = if digest == right {
                PeerMessage::Digest { index, digest: right, is_in_doubt: false }
            } else {
                PeerMessage::Diverged { index, digest: right }
            };
            out.push((member, message.encode()));
        }
        if own != right {
            self.diverge(index, own, right);
        }
    }

    /// The leader tells what most of the voters have.
    pub(crate) fn on_diverged(&mut self, index: u64, right: u64) {
        if let Some(own) = self.at(index).filter(|own| *own != right) {
            self.diverge(index, own, right);
        }
    }

    /// Two members differ: one of them is wrong.
    fn note_difference(&mut self, told: ToldDigest, own: u64) {
        let ToldDigest { from, index, digest, .. } = told;
        let (own, other) = (format!("{own:016x}"), format!("{digest:016x}"));
        tracing::error!(member = logged(from), index, own, other, "the states of two members differ");
        self.differing.push(from);
        self.is_in_doubt = true;
    }

    fn diverge(&mut self, index: u64, own: u64, right: u64) {
        let (own, right) = (format!("{own:016x}"), format!("{right:016x}"));
        tracing::error!(index, own, right, "most members have another state than this one: it stops serving");
        self.diverged_at = Some(index);
    }
}

impl DigestReports {
    /// Notes what a member has told. Returns what all have told of that entry, by member.
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

    fn told(from: u64, digest: u64) -> ToldDigest {
        ToldDigest { from, index: 64, digest, is_in_doubt: false }
    }

    #[test]
    fn a_leader_in_the_minority_stops_and_one_in_doubt_asks_for_more() {
        let membership = Membership::new(vec![1, 2, 3], vec![]);
        let (mut digests, mut reports) = (Digests::default(), DigestReports::default());
        let mut out = Messages::new();
        digests.note_taken(64, 7);
        digests.judge(1, told(2, 8), &mut reports, &membership, &mut out);
        assert!(digests.is_in_doubt());
        let doubt = PeerMessage::Digest { index: 64, digest: 7, is_in_doubt: true }.encode();
        assert_eq!(std::mem::take(&mut out), [(3, doubt.clone()), (2, doubt)]);
        digests.judge(1, told(3, 8), &mut reports, &membership, &mut out);
        let right = PeerMessage::Digest { index: 64, digest: 8, is_in_doubt: false }.encode();
        assert_eq!(out, [(2, right.clone()), (3, right)]);
        let mut effects = Effects::default();
        digests.report(&mut effects);
        assert_eq!((effects.differing, effects.diverged_at), (vec![2, 3], Some(64)));
    }

    #[test]
    fn a_leader_is_told_each_digest_once() {
        let mut digests = Digests::default();
        let told = |digests: &mut Digests| {
            let mut out = Messages::new();
            digests.tell(2, &mut out);
            out.len()
        };
        digests.note_taken(64, 7);
        digests.note_taken(128, 8);
        assert_eq!((told(&mut digests), told(&mut digests)), (2, 0));
        let doubt = |index, digest| ToldDigest { from: 2, index, digest, is_in_doubt: true };
        digests.compare_with_leader(doubt(128, 8));
        assert_eq!((told(&mut digests), told(&mut digests)), (1, 0), "and once more for a leader in doubt");
        digests.compare_with_leader(doubt(0, 1));
        digests.tell_anew();
        assert_eq!(told(&mut digests), 2);
    }
}
