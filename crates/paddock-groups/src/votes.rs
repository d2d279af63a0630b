//! Votes of groups on multis, on their way to the home group.

use std::collections::BTreeMap;

use paddock_proto::{GroupsCommand, Vote};

/// Ticks after which a group that has not voted counts as busy, and those after which a vote is proposed again.
const LOST_TICKS: u32 = 20;

/// Votes that the home group waits for, and those that have been given, as the replicas of one member know them.
#[derive(Debug, Default)]
pub(crate) struct Votes {
    given: BTreeMap<u32, BTreeMap<i64, Vote>>,
    awaited: BTreeMap<(i64, u32), Awaited>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Awaited {
    /// Ticks since the group was asked.
    ticks: u32,
    /// Term in which the vote was proposed, and the ticks since.
    proposed: Option<(u64, u32)>,
}

impl Votes {
    /// The home group's replica here waits for these votes.
    pub(crate) fn await_these(&mut self, awaited: impl Iterator<Item = (i64, u32)>) {
        let known = std::mem::take(&mut self.awaited);
        self.awaited = awaited.map(|key| (key, known.get(&key).copied().unwrap_or_default())).collect();
    }

    /// A group's replica here has given these votes, on multis that are not settled there.
    pub(crate) fn are_given(&mut self, group: u32, votes: impl Iterator<Item = (i64, Vote)>) {
        let votes: BTreeMap<i64, Vote> = votes.collect();
        if votes.is_empty() {
            self.given.remove(&group);
        } else {
            self.given.insert(group, votes);
        }
    }

    pub(crate) fn tick(&mut self) {
        for awaited in self.awaited.values_mut() {
            awaited.ticks = awaited.ticks.saturating_add(1);
            awaited.proposed.iter_mut().for_each(|(_, ticks)| *ticks = ticks.saturating_add(1));
        }
    }

    /// Gives `propose` the votes that are to be put into the log of the home group, which this member leads in this term.
    pub(crate) fn propose(&mut self, term: u64, mut propose: impl FnMut(&GroupsCommand<'_>)) {
        for ((multi, group), awaited) in &mut self.awaited {
            let given = self.given.get(group).and_then(|votes| votes.get(multi)).copied();
            let vote = given.or((awaited.ticks >= LOST_TICKS).then_some(Vote::Busy));
            let is_under_way = awaited.proposed.is_some_and(|(of, ticks)| of == term && ticks < LOST_TICKS);
            if let Some(vote) = vote.filter(|_| !is_under_way) {
                propose(&GroupsCommand::Vote { multi: *multi, group: *group, vote });
                awaited.proposed = Some((term, 0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(votes: &mut Votes, term: u64) -> Vec<(i64, u32, Vote)> {
        let mut found = Vec::new();
        votes.propose(term, |command| match command {
            GroupsCommand::Vote { multi, group, vote } => found.push((*multi, *group, *vote)),
            other => panic!("{other:?}"),
        });
        found
    }

    #[test]
    fn votes_are_proposed_once_in_a_term_and_a_group_that_is_away_is_busy() {
        let mut votes = Votes::default();
        votes.await_these([(5, 1), (5, 2)].into_iter());
        assert_eq!(proposed(&mut votes, 3), []);
        votes.are_given(1, [(5, Vote::Yes), (6, Vote::Busy)].into_iter());
        assert_eq!((proposed(&mut votes, 3), proposed(&mut votes, 3)), (vec![(5, 1, Vote::Yes)], vec![]));
        assert_eq!(proposed(&mut votes, 4), [(5, 1, Vote::Yes)]);
        votes.await_these([(5, 2)].into_iter());
        (0..LOST_TICKS).for_each(|_| votes.tick());
        assert_eq!(proposed(&mut votes, 4), [(5, 2, Vote::Busy)]);
        votes.await_these(std::iter::empty());
        assert_eq!(proposed(&mut votes, 5), []);
    }
}
