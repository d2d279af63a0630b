//! Membership of the Raft group: voters and learners, and both sets of voters while one follows the other.

use raft::eraftpb::ConfState;

/// Members of the Raft group by their numbers, which are sorted. Learners get every entry and have no vote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    pub voters: Vec<u64>,
    pub learners: Vec<u64>,
    /// The voters before, while both majorities are needed; otherwise empty.
    pub voters_outgoing: Vec<u64>,
    /// Voters before that will be learners.
    pub learners_next: Vec<u64>,
}

/// Part that a step gives to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepTo {
    Voter,
    Learner,
    Removed,
}

/// One step from a membership to the next: the members that change. An empty one ends a joint membership.
pub(crate) type MembershipStep = Vec<(u64, StepTo)>;

/// A member as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Follower {
    /// Entry up to which it has everything.
    pub(crate) matched: u64,
    /// True if it was heard within the election timeout that runs, which may have begun a moment ago.
    pub(crate) is_active: bool,
    /// True if it was heard within the election timeout that runs, or the one before.
    pub(crate) is_heard: bool,
    /// True if it is to get a snapshot first.
    pub(crate) gets_snapshot: bool,
}

impl Follower {
    /// True if it leads as soon as it is asked to: until it does, nothing is proposed. A member that is gone counts as heard for a while, but lacks what
    /// was `committed` since.
    pub(crate) fn can_lead_at_once(&self, committed: u64) -> bool {
        self.is_heard && !self.gets_snapshot && self.matched >= committed
    }
}

impl Membership {
    pub fn new(mut voters: Vec<u64>, mut learners: Vec<u64>) -> Membership {
        voters.sort_unstable();
        learners.sort_unstable();
        Membership { voters, learners, ..Membership::default() }
    }

    /// True if there are no voters: a member that has not been told yet where it belongs.
    pub fn is_empty(&self) -> bool {
        self.voters.is_empty()
    }

    /// All members, whatever their part.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.lists().into_iter().flatten().copied()
    }

    /// True while one set of voters follows another.
    pub(crate) fn is_joint(&self) -> bool {
        !self.voters_outgoing.is_empty()
    }

    pub(crate) fn is_alone(&self, member: u64) -> bool {
        self.voters == [member] && self.learners.is_empty() && !self.is_joint()
    }

    pub(crate) fn contains(&self, member: u64) -> bool {
        self.lists().into_iter().any(|list| list.contains(&member))
    }

    fn lists(&self) -> [&Vec<u64>; 4] {
        [&self.voters, &self.learners, &self.voters_outgoing, &self.learners_next]
    }

    /// Each list behind the count of its members, all numbers of eight bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for list in self.lists() {
            out.extend_from_slice(&(list.len() as u64).to_le_bytes());
            list.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
        }
        out
    }

    /// `None` for bytes that `encode` did not write.
    pub fn decode(bytes: &[u8]) -> Option<Membership> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut list = || -> Option<Vec<u64>> {
            let count = words.next()?;
            (0..count).map(|_| words.next()).collect()
        };
        let [voters, learners] = [list()?, list()?];
        let [voters_outgoing, learners_next] = [list()?, list()?];
        let is_all = rest.is_empty() && words.next().is_none();
        is_all.then_some(Membership { voters, learners, voters_outgoing, learners_next })
    }

    pub(crate) fn from_raft(state: &ConfState) -> Membership {
        let sorted = |list: &[u64]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        Membership {
            voters: sorted(&state.voters),
            learners: sorted(&state.learners),
            voters_outgoing: sorted(&state.voters_outgoing),
            learners_next: sorted(&state.learners_next),
        }
    }

    pub(crate) fn to_raft(&self) -> ConfState {
        ConfState {
            voters: self.voters.clone(),
            learners: self.learners.clone(),
            voters_outgoing: self.voters_outgoing.clone(),
            learners_next: self.learners_next.clone(),
            ..ConfState::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_as_encoded() {
        let simple = Membership::new(vec![3, 1, 2], vec![5]);
        assert_eq!(simple.voters, [1, 2, 3]);
        let joint = Membership { voters_outgoing: vec![1, 4], learners_next: vec![4], ..simple.clone() };
        for membership in [Membership::default(), simple, joint] {
            let bytes = membership.encode();
            assert_eq!(Membership::decode(&bytes), Some(membership.clone()));
            assert_eq!(Membership::from_raft(&membership.to_raft()), membership);
            for end in 0..bytes.len() {
                assert_eq!(Membership::decode(&bytes[..end]), None, "cut at {end}");
            }
            assert_eq!(Membership::decode(&[bytes, vec![0; 8]].concat()), None);
        }
        assert_eq!(Membership::decode(&[0xff; 64]), None);
    }

    #[test]
    fn a_member_that_was_lost_a_moment_ago_is_not_asked_to_lead() {
        let quick = Follower { matched: 224, is_active: true, is_heard: true, gets_snapshot: false };
        let lost = Follower { matched: 185, is_active: false, ..quick };
        assert!(quick.can_lead_at_once(224));
        assert!(!lost.can_lead_at_once(224), "it was heard within the last two election timeouts");
        assert!(!Follower { is_heard: false, ..quick }.can_lead_at_once(224));
        assert!(!Follower { gets_snapshot: true, ..quick }.can_lead_at_once(224));
    }
}
