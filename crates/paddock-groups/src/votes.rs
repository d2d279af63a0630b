//! Votes of groups on multis, on their way to the home group.

use std::collections::BTreeMap;

use paddock_proto::{GroupsCommand, Vote, Zxid};

use crate::last_proposal::{LOST_TICKS, LastProposal};

/// Votes that the home group waits for, and those that have been given, as the replicas of one member know them.
#[derive(Debug, Default)]
pub(crate) struct Votes {
    given: BTreeMap<u32, BTreeMap<i64, Given>>,
    awaited: BTreeMap<(i64, u32), Awaited>,
}

/// A vote, and the zxid of a state in which the group had given it.
#[derive(Clone, Copy, Debug)]
struct Given {
    vote: Vote,
    zxid: Zxid,
}

impl Given {
    /// Tells the home group. The client of a multi that is refused is shown what the group had when it voted, and no item moves that in front of the decision: so the decision is stamped above it.
    fn tell(self, multi: i64, group: u32, mut submit: impl FnMut(&GroupsCommand<'_>)) {
        let Given { vote, zxid } = self;
        if let Vote::No { .. } = vote {
            submit(&GroupsCommand::Mark { at_least: zxid });
        }
        submit(&GroupsCommand::Vote { multi, group, vote });
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Awaited {
    /// Ticks since the group was asked. When what was proposed counts as lost, a group that has not voted counts as busy.
    ticks: u32,
    /// By the group's leader.
    proposed: LastProposal,
    /// By the home group's leader, because none had come.
    missing: LastProposal,
}

impl Votes {
    /// The home group's replica here waits for these votes.
    pub(crate) fn await_these(&mut self, awaited: impl Iterator<Item = (i64, u32)>) {
        let known = std::mem::take(&mut self.awaited);
        self.awaited = awaited.map(|key| (key, known.get(&key).copied().unwrap_or_default())).collect();
    }

    /// Groups whose votes are awaited.
    pub(crate) fn awaited_groups(&self) -> impl Iterator<Item = u32> {
        self.awaited.keys().map(|(_, group)| *group)
    }

    /// A group's replica here, which has this zxid, has given these votes, on multis that are not settled there.
    pub(crate) fn are_given(&mut self, group: u32, zxid: Zxid, votes: impl Iterator<Item = (i64, Vote)>) {
        let known = self.given.remove(&group).unwrap_or_default();
        let zxid_of = |multi: &i64| known.get(multi).map_or(zxid, |given| given.zxid.min(zxid));
        let given = |(multi, vote): (i64, Vote)| (multi, Given { vote, zxid: zxid_of(&multi) });
        let votes: BTreeMap<i64, Given> = votes.map(given).collect();
        if !votes.is_empty() {
            self.given.insert(group, votes);
        }
    }

    pub(crate) fn tick(&mut self) {
        for awaited in self.awaited.values_mut() {
            awaited.ticks = awaited.ticks.saturating_add(1);
            awaited.proposed.tick();
            awaited.missing.tick();
        }
    }

    /// Gives `submit` the votes of a group that the home group is to have. This member leads the group in this term.
    pub(crate) fn propose(&mut self, group: u32, term: u64, mut submit: impl FnMut(&GroupsCommand<'_>)) {
        let Some(given) = self.given.get(&group) else { return };
        for ((multi, _), awaited) in self.awaited.iter_mut().filter(|((_, of), _)| *of == group) {
            if let Some(given) = given.get(multi).filter(|_| !awaited.proposed.is_under_way(term)) {
                given.tell(*multi, group, &mut submit);
                awaited.proposed.note(term);
            }
        }
    }

    /// Gives `propose` votes of groups from which none has come for too long: what the group has said, if that is known here, or that it is busy. For the log of the
    /// home group, which this member leads in this term.
    pub(crate) fn propose_missing(&mut self, term: u64, mut propose: impl FnMut(&GroupsCommand<'_>)) {
        for ((multi, group), awaited) in
            self.awaited.iter_mut().filter(|(_, awaited)| awaited.ticks >= LOST_TICKS)
        {
            if !awaited.missing.is_under_way(term) {
                let given = self.given.get(group).and_then(|votes| votes.get(multi)).copied();
                let busy = Given { vote: Vote::Busy, zxid: Zxid(0) };
                given.unwrap_or(busy).tell(*multi, *group, &mut propose);
                awaited.missing.note(term);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::ErrorCode;

    use super::*;

    /// Votes that are proposed by the leader of group 1, or by that of the home group.
    fn proposed(votes: &mut Votes, by_home: bool, term: u64) -> Vec<(i64, u32, Vote)> {
        let mut found = Vec::new();
        let note = |command: &GroupsCommand<'_>| match command {
            GroupsCommand::Vote { multi, group, vote } => found.push((*multi, *group, *vote)),
            other => panic!("{other:?}"),
        };
        if by_home {
            votes.propose_missing(term, note)
        } else {
            votes.propose(1, term, note)
        }
        found
    }

    #[test]
    fn votes_are_proposed_once_in_a_term_and_a_group_that_is_away_is_busy() {
        let mut votes = Votes::default();
        votes.await_these([(5, 1), (5, 2)].into_iter());
        assert_eq!(proposed(&mut votes, false, 3), []);
        votes.are_given(1, Zxid(7), [(5, Vote::Yes), (6, Vote::Busy)].into_iter());
        votes.are_given(2, Zxid(7), [(5, Vote::Yes)].into_iter());
        let own = vec![(5, 1, Vote::Yes)];
        assert_eq!((proposed(&mut votes, false, 3), proposed(&mut votes, false, 3)), (own.clone(), vec![]));
        assert_eq!(proposed(&mut votes, false, 4), own);
        assert_eq!(proposed(&mut votes, true, 4), []);
        (0..LOST_TICKS).for_each(|_| votes.tick());
        votes.are_given(2, Zxid(8), std::iter::empty());
        assert_eq!(proposed(&mut votes, true, 4), [(5, 1, Vote::Yes), (5, 2, Vote::Busy)]);
        assert_eq!((proposed(&mut votes, true, 4), proposed(&mut votes, false, 4)), (vec![], own));
        votes.await_these(std::iter::empty());
        assert_eq!((proposed(&mut votes, true, 5), proposed(&mut votes, false, 5)), (vec![], vec![]));
    }

    /// A group whose clock is ahead may have given a znode a zxid above that which home would decide with.
    #[test]
    fn a_refusal_is_decided_above_what_the_group_had_when_it_voted() {
        let (mut votes, no) = (Votes::default(), Vote::No { operation: 1, error: ErrorCode::NoNode });
        votes.await_these([(5, 1), (6, 1)].into_iter());
        votes.are_given(1, Zxid(30), [(5, no)].into_iter());
        votes.are_given(1, Zxid(40), [(5, no), (6, no)].into_iter());
        let mut told = Vec::new();
        votes.propose(1, 3, |command| told.push(format!("{command:?}")));
        let expected = [(5, 30), (6, 40)].map(|(multi, zxid)| {
            let mark = GroupsCommand::Mark { at_least: Zxid(zxid) };
            [mark, GroupsCommand::Vote { multi, group: 1, vote: no }].map(|command| format!("{command:?}"))
        });
        assert_eq!(told, expected.concat());
    }
}
