//! Founding of an ensemble by members without data.
//!
//! A member that has nothing, no entry and no snapshot, asks the members that its configuration names. If most of the
//! voters have nothing either, this is a new ensemble: each of them writes the same first entry, which says who votes.
//! If one of them belongs to an ensemble already, this member is new to it, or has lost its data. Then it waits to be
//! told everything, and has no say before: it might have promised something once that it does not know any more.
//!
//! The founders agree on the id of their ensemble (`own_cluster.rs`). A founder that was away when the first leader wrote it down, and had
//! not heard of the number that became it, hears of the ensemble from most of its voters; or from one, if that
//! ensemble has exactly the members and addresses with which it founds.
//!
//! A member that has written the first entry and knows no leader yet proves nothing. It may have slept since the founding, and the
//! member that asks may have led the others meanwhile and lost its data: those two must not begin anew. Nobody needs it
//! either: whoever heard that another member has nothing has told that member the same of itself.

use std::collections::BTreeSet;

use paddock_proto::OpCode;
use paddock_proto::jute::Writer;

use crate::configuration::ConfigurationEntry;
use crate::{HardState, LogEntry, Membership};

/// Number of the round that the founding is. No round of the Raft library has it.
pub(crate) const FOUNDING_ROUND: u64 = 0;
/// Term of the first entry. Nobody leads in it.
pub(crate) const FIRST_TERM: u64 = 1;

/// Members without data, as a member without data has heard of them.
#[derive(Debug, Default)]
pub(crate) struct Founders {
    /// Others besides this one.
    others: BTreeSet<u64>,
    /// True while the first entry is on its way to the disk.
    is_writing: bool,
}

impl Founders {
    /// Another member says that it has no data.
    pub(crate) fn note_empty(&mut self, member: u64) {
        self.others.insert(member);
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// The first entry is on its way to the disk.
    pub(crate) fn begin_writing(&mut self) {
        self.is_writing = true;
    }

    /// True if this member is a voter and most of the voters have no data.
    pub(crate) fn is_quorum(&self, own: u64, voters: &[u64]) -> bool {
        let present = self.others.iter().filter(|id| voters.contains(id)).count() + 1;
        voters.contains(&own) && present > voters.len() / 2
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
        id.is_some_and(|id| membership.contains(id))
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
        let mut body = Vec::new();
        [-1, -1].iter().for_each(|&null| body.put_i32(null));
        body.put_string(members);
        body.put_i64(-1);
        commands.push((OpCode::Reconfig, body));
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_voters_have_to_be_without_data() {
        let check = |others: &[u64], voters: &[u64], expected| {
            let founders = Founders { others: others.iter().copied().collect(), is_writing: false };
            assert_eq!(founders.is_quorum(1, voters), expected, "{others:?} of {voters:?}");
        };
        check(&[], &[1], true);
        check(&[], &[1, 2, 3], false);
        check(&[3], &[1, 2, 3], true);
        check(&[8, 9], &[1, 2, 3], false);
        check(&[2, 3], &[2, 3, 4], false);
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
