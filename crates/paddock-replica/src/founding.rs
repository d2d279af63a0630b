//! Founding of an ensemble by members without data.
//!
//! A member that has nothing, no entry and no snapshot, asks the members that its configuration names. If none of the
//! voters has more, this is a new ensemble: each of them writes the same first entry, which says who votes. A voter that was never heard
//! may have data, be it that of a member alone that is growing or all that two lost disks have left: it is waited for, unless the
//! operator knows better (`Founding::by_majority`).
//! If one of them belongs to an ensemble already, this member is new to it, or has lost its data. Then it waits to be
//! told everything, and has no say before: it might have promised something once that it does not know any more.
//!
//! The founders agree on the id of their ensemble (`own_cluster.rs`). A founder that was away when the first leader wrote it down, and had
//! not heard of the number that became it, hears of the ensemble from most of its voters; or from one, if that
//! ensemble has exactly the members and addresses with which it founds.
//!
//! A member that has written the first entry and knows no leader yet proves nothing. It may have slept since the founding, and the
//! member that asks may have led the others meanwhile and lost its data: those two must not begin anew. It does not count among the
//! most of the voters who have nothing; it has no data to wait for, though.

use std::collections::BTreeSet;

use paddock_proto::OpCode;
use paddock_proto::jute::Writer;

use crate::configuration::ConfigurationEntry;
use crate::raft_id::raft_id;
use crate::{HardState, LogEntry, Membership};

/// Number of the round that the founding is. No round of the Raft library has it.
pub(crate) const FOUNDING_ROUND: u64 = 0;
/// Term of the first entry. No member leads in it.
pub(crate) const FIRST_TERM: u64 = 1;

/// Ticks for which a founder waits for others before it says so, and after which it says so again.
const TELL_TICKS: (u32, u32) = (50, 600);

/// Members without data, as a member without data has heard of them.
#[derive(Debug, Default)]
pub(crate) struct Founders {
    /// Others besides this one.
    others: BTreeSet<u64>,
    /// Voters that have written the first entry, and know no leader yet.
    begun: BTreeSet<u64>,
    /// True while the first entry is on its way to the disk.
    is_writing: bool,
    /// The group was not there before this entry of the home group; `None` if this member does not know since when it may have been in it.
    not_before: Option<u64>,
    /// Ticks for which it has waited for voters that were not heard.
    ticks_waited: u32,
}

impl Founders {
    /// Founders of a group that was not there before this entry of the home group.
    pub(crate) fn of_group(not_before: u64) -> Founders {
        Founders { not_before: Some(not_before), ..Founders::default() }
    }

    pub(crate) fn note_not_before(&mut self, not_before: u64) {
        self.not_before = Some(not_before);
    }

    /// True if this member has never had anything of the group: it has applied the entry with which the group began as the ensemble did, and has lost nothing since. `learned_through`
    /// is the last entry of the home group of which that cannot be said.
    pub(crate) fn is_first_time(&self, learned_through: u64) -> bool {
        self.not_before.is_some_and(|index| index > learned_through)
    }

    /// Another member says that it has no data.
    pub(crate) fn note_empty(&mut self, member: u64) {
        self.others.insert(member);
    }

    /// Another member says that its log has begun, and that it knows no leader yet.
    pub(crate) fn note_begun(&mut self, member: u64) {
        self.begun.insert(member);
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// The first entry is on its way to the disk.
    pub(crate) fn begin_writing(&mut self) {
        self.is_writing = true;
    }

    /// Another tick has gone by in waiting: true if it is time to tell of it.
    pub(crate) fn is_time_to_tell(&mut self) -> bool {
        let (first, again) = TELL_TICKS;
        self.ticks_waited += 1;
        self.ticks_waited == first || self.ticks_waited.is_multiple_of(again)
    }

    /// True if this member is a voter and most of the voters have no data.
    pub(crate) fn are_most(&self, own: u64, voters: &[u64]) -> bool {
        let present = self.others.iter().filter(|id| voters.contains(id)).count() + 1;
        voters.contains(&own) && present > voters.len() / 2
    }

    /// Voters of which nothing has been heard that says that they have no data.
    pub(crate) fn unheard(&self, own: u64, voters: &[u64]) -> Vec<u64> {
        let is_heard = |id: &u64| *id == own || self.others.contains(id) || self.begun.contains(id);
        voters.iter().filter(|id| !is_heard(id)).copied().collect()
    }
}

/// The first entry of the log, and the hard state that goes with it.
pub(crate) fn first_entry(founders: &Membership, written: &HardState) -> (LogEntry, HardState) {
    let payload = ConfigurationEntry::Founding(founders.clone()).encode();
    let term = written.term.max(FIRST_TERM);
    let hard_state = HardState { term, commit: 1, silent_until: 0, ..*written };
    (LogEntry { index: 1, term: FIRST_TERM, payload }, hard_state)
}

/// Commands with which the first leader names the ensemble and its members. `members` are the lines of the configuration; those that
/// are not in `membership` yet are to join.
pub(crate) fn naming_commands(
    cluster: u64,
    members: &str,
    membership: &Membership,
) -> Vec<(OpCode, Vec<u8>)> {
    let is_present = |line: &&str| {
        let id = line.strip_prefix("server.").and_then(|rest| rest.split('=').next()?.parse().ok());
        id.is_some_and(|id| membership.contains(raft_id(id)))
    };
    let present: String = members.lines().filter(is_present).map(|line| format!("{line}\n")).collect();
    let mut body = Vec::new();
    body.put_i64(cluster as i64);
    body.put_string(&present);
    let mut commands = vec![(OpCode::FoundEnsemble, body)];
    if present.len() < members.len() {
        tracing::info!(
            "a member alone becomes an ensemble: the other members of its configuration are to join"
        );
        commands.push((OpCode::Reconfig, reconfig_to(members)));
    }
    commands
}

/// The body of a request for the members of these lines, whichever there are.
pub(crate) fn reconfig_to(members: &str) -> Vec<u8> {
    let mut body = Vec::new();
    [-1, -1].iter().for_each(|&null| body.put_i32(null));
    body.put_string(members);
    body.put_i64(-1);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_voters_have_to_be_without_data() {
        let check = |others: &[u64], voters: &[u64], expected| {
            let founders = Founders { others: others.iter().copied().collect(), ..Founders::default() };
            assert_eq!(founders.are_most(1, voters), expected, "{others:?} of {voters:?}");
        };
        check(&[], &[1], true);
        check(&[], &[1, 2, 3], false);
        check(&[3], &[1, 2, 3], true);
        check(&[8, 9], &[1, 2, 3], false);
        check(&[2, 3], &[2, 3, 4], false);
    }

    #[test]
    fn voters_are_unheard_until_they_say_that_they_have_no_data() {
        let mut founders = Founders::default();
        assert_eq!(founders.unheard(1, &[1, 2, 3]), [2, 3]);
        founders.note_empty(3);
        founders.note_empty(9);
        assert_eq!(founders.unheard(1, &[1, 2, 3]), [2]);
        founders.note_begun(2);
        assert!(founders.unheard(1, &[1, 2, 3]).is_empty());
    }

    #[test]
    fn a_group_that_was_founded_behind_what_was_learned_is_new_to_a_member() {
        let mut founders = Founders::of_group(5);
        assert_eq!(
            [0, 4, 5, u64::MAX].map(|through| founders.is_first_time(through)),
            [true, true, false, false]
        );
        founders.note_not_before(6);
        assert!(founders.is_first_time(5), "the log has told it more exactly");
        assert!(!Founders::default().is_first_time(0), "the home group is founded by those who ask");
    }

    #[test]
    fn members_that_are_not_there_yet_are_to_join() {
        let members = "server.1=a:1:2:participant\nserver.12=b:1:2:participant\n";
        let ops = |voters: &[u64]| -> Vec<OpCode> {
            let membership = Membership::new(voters.to_vec(), vec![]);
            naming_commands(7, members, &membership).into_iter().map(|(op, _)| op).collect()
        };
        assert_eq!(ops(&[1, 12]), [OpCode::FoundEnsemble]);
        assert_eq!(ops(&[1]), [OpCode::FoundEnsemble, OpCode::Reconfig]);
    }
}
