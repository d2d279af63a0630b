//! Age of disks: whether a member was started with all that it has acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use paddock_tree::Tree;

use crate::Recovered;
use crate::message::{FoundOnDisk, Ruling};
use crate::raft_id::{logged, raft_id};

/// The last entry that a member had acknowledged: its term, as far as that is known, and its index.
pub(crate) type Acknowledged = (Option<u64>, u64);

/// Starts of all members, as the state knows them.
#[derive(Debug)]
pub(crate) struct DiskAge {
    own: u64,
    /// This member's disk as it was when the process was started, or as it is since the member has learned all that it had forgotten.
    found: FoundOnDisk,
    /// The newest start of this member before this process's, as its log and its state told when the process was started.
    known_before: u64,
    /// The number of the last start of each member.
    starts: BTreeMap<u64, u64>,
    /// Member and start of the processes whose disk this member has found too old as leader: each is logged once.
    complaints: BTreeSet<(u64, u64)>,
    /// The number of this start is of no use, and clients are sent away before the start gets another one.
    pub(crate) is_number_used_up: bool,
}

impl DiskAge {
    pub(crate) fn new(own: u64, recovered: &Recovered) -> DiskAge {
        DiskAge {
            own,
            found: recovered.found(),
            known_before: recovered.last_known_start(),
            starts: BTreeMap::new(),
            complaints: BTreeSet::new(),
            is_number_used_up: false,
        }
    }

    pub(crate) fn found(&self) -> FoundOnDisk {
        self.found
    }

    /// Takes the starts from a state that was loaded.
    pub(crate) fn adopt(&mut self, tree: &Tree) {
        self.starts = tree.incarnations().map(|(member, start)| (raft_id(member), start)).collect();
    }

    /// The state has applied something of this start of a member.
    pub(crate) fn note_start(&mut self, member: u64, start: u64) {
        self.starts.insert(member, start);
    }

    /// The number of the member's last start that the state knows of; 0 if it knows of none.
    pub(crate) fn last_start(&self, member: u64) -> u64 {
        self.starts.get(&member).copied().unwrap_or_default()
    }

    /// True if the state knows a start of this member that its disk had forgotten when it was started: what the member sends under an
    /// earlier number is refused for ever.
    pub(crate) fn has_forgotten_start(&self) -> bool {
        let last = self.last_start(self.own);
        last > self.known_before && last != self.found.start
    }

    /// This process goes on under the number of another start, behind all that the state knows of.
    pub(crate) fn begin_anew(&mut self, start: u64) {
        self.known_before = self.last_start(self.own).max(self.found.start);
        self.found = FoundOnDisk { former_start: self.known_before, start, ..self.found };
    }

    /// A leader's judgement of the disk with which a member was started.
    pub(crate) fn rule(
        &mut self,
        member: u64,
        found: &FoundOnDisk,
        acknowledged: Option<Acknowledged>,
    ) -> Ruling {
        let has_forgotten_entries = acknowledged.is_some_and(|(term, index)| {
            let (last_term, last) = found.last;
            last < index || term.is_some_and(|term| last_term < term)
        });
        // Numbers tell starts apart and say nothing of their order, for clocks go back: a start that the state knows is this one, or one
        // that the disk should know, too.
        let known_start = self.last_start(member);
        let has_forgotten_start = found.former_start < known_start && known_start != found.start;
        if !has_forgotten_entries && !has_forgotten_start {
            return Ruling::Admitted;
        }
        if self.complaints.insert((member, found.start)) {
            tracing::error!(
                member = logged(member),
                last_entry = found.last.1,
                acknowledged = acknowledged.map(|(_, index)| index),
                start = found.former_start,
                last_start = known_start,
                "a member's disk is empty, or older than what it has acknowledged: it learns before it votes"
            );
        }
        Ruling::Outdated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knowledge of member 1, which has found this disk and has heard of no start.
    fn disk_age(found: FoundOnDisk) -> DiskAge {
        let known_before = found.former_start;
        DiskAge {
            own: 1,
            found,
            known_before,
            starts: BTreeMap::new(),
            complaints: BTreeSet::new(),
            is_number_used_up: false,
        }
    }

    #[test]
    fn a_disk_without_what_was_acknowledged_is_outdated() {
        let found = FoundOnDisk { former_start: 5, start: 6, last: (3, 20) };
        let check = |known_start: u64, acknowledged, expected| {
            let mut age = disk_age(FoundOnDisk::default());
            age.note_start(2, known_start);
            assert_eq!(age.rule(2, &found, acknowledged), expected, "{known_start} {acknowledged:?}");
        };
        check(5, None, Ruling::Admitted);
        check(5, Some((Some(3), 20)), Ruling::Admitted);
        check(5, Some((Some(3), 21)), Ruling::Outdated);
        check(5, Some((None, 21)), Ruling::Outdated);
        check(5, Some((Some(4), 19)), Ruling::Outdated);
        check(6, None, Ruling::Admitted);
        check(0, None, Ruling::Admitted);
    }

    #[test]
    fn a_disk_from_before_a_known_start_is_outdated_whatever_the_clock_said_then() {
        let found = FoundOnDisk { former_start: 5, start: 9, last: (3, 20) };
        let mut age = disk_age(FoundOnDisk::default());
        for known_start in [6, 7, 8, 10, u64::MAX] {
            age.note_start(2, known_start);
            assert_eq!(age.rule(2, &found, None), Ruling::Outdated, "{known_start}");
        }
        for known_start in [0, 4, 5, 9] {
            age.note_start(2, known_start);
            assert_eq!(age.rule(2, &found, None), Ruling::Admitted, "{known_start}");
        }
        assert_eq!(age.rule(3, &found, None), Ruling::Admitted, "nothing is known of that one");
    }

    #[test]
    fn a_member_sees_in_the_state_that_it_has_forgotten_a_start() {
        let mut age = disk_age(FoundOnDisk { former_start: 5, start: 9, last: (3, 20) });
        for (start, expected) in [(4, false), (5, false), (9, false), (7, true), (10, true)] {
            age.note_start(1, start);
            age.note_start(2, 100);
            assert_eq!(age.has_forgotten_start(), expected, "{start}");
        }
        age.begin_anew(20);
        assert!(!age.has_forgotten_start());
        age.note_start(1, 20);
        assert!(!age.has_forgotten_start());
        assert_eq!(age.found(), FoundOnDisk { former_start: 10, start: 20, last: (3, 20) });
    }
}
