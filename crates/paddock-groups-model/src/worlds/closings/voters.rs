//! The voters of a group, their logs, and what Raft makes of them.

/// Voters of the group.
pub(super) const VOTERS: usize = 3;
/// Elections, and entries of a log.
pub(super) const TERMS: u8 = 3;
pub(super) const ENTRIES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct VoterEntry {
    pub(super) term: u8,
    pub(super) stamp: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ModelVoter {
    pub(super) term: u8,
    pub(super) log: Vec<VoterEntry>,
    pub(super) committed: usize,
    /// The largest stamp that it has noted as closed.
    pub(super) noted: u8,
    /// True of the leader of its term, as far as it knows.
    pub(super) is_leader: bool,
    /// False from the loss of its disk until a leader has admitted it.
    pub(super) is_admitted: bool,
    /// A note that it asks for as a leader: the stamp, entries that are below it, and voters that have noted it.
    pub(super) asked: Option<(u8, usize, u8)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ClosingsState {
    pub(super) voters: Vec<ModelVoter>,
    /// Entries that some leader has committed.
    pub(super) committed: Vec<VoterEntry>,
    /// Stamps that a replica is at, with the number of entries that it has applied.
    pub(super) closed: Vec<(u8, usize)>,
    pub(super) is_contradicted: bool,
    pub(super) lost_disks: u8,
    pub(super) replacements: u8,
}

impl ModelVoter {
    pub(super) fn last(&self) -> VoterEntry {
        self.log.last().copied().unwrap_or(VoterEntry { term: 0, stamp: 0 })
    }

    /// True if its log is at least as good as another one's, as Raft compares them.
    pub(super) fn is_up_to_date(&self, other: &ModelVoter) -> bool {
        (self.last().term, self.log.len()) >= (other.last().term, other.log.len())
    }

    /// Logs an entry above its log, and above what it knows to be closed.
    pub(super) fn propose(&mut self) {
        let stamp = self.last().stamp.max(self.noted) + 1;
        self.log.push(VoterEntry { term: self.term, stamp });
    }

    pub(super) fn has_committed_its_term(&self) -> bool {
        self.log[..self.committed].iter().any(|entry| entry.term == self.term)
    }

    /// Follows a leader's log.
    pub(super) fn follow(&mut self, leader: &ModelVoter) {
        self.term = leader.term;
        self.log.clone_from(&leader.log);
        (self.is_leader, self.asked) = (false, None);
        self.committed = self.committed.max(leader.committed);
    }
}

impl ClosingsState {
    /// Voters that follow a leader in its term, itself included.
    pub(super) fn followers(&self, leader: usize) -> impl Iterator<Item = &ModelVoter> {
        let term = self.voters[leader].term;
        self.voters.iter().filter(move |voter| voter.is_admitted && voter.term == term)
    }

    /// Entries of a leader's log that a quorum has, if the last of them is of its own term.
    pub(super) fn quorum_has(&self, leader: usize) -> usize {
        let log = &self.voters[leader].log;
        let is_held = |through: &usize| {
            log[through - 1].term == self.voters[leader].term
                && self.followers(leader).filter(|voter| voter.log.starts_with(&log[..*through])).count()
                    > VOTERS / 2
        };
        (1..=log.len()).rev().find(is_held).unwrap_or(0)
    }

    pub(super) fn commit(&mut self, leader: usize) {
        let through = self.quorum_has(leader);
        self.voters[leader].committed = through;
        let log = &self.voters[leader].log[..through];
        let shorter = self.committed.len().min(through);
        self.is_contradicted |= self.committed[..shorter] != log[..shorter];
        if through > self.committed.len() {
            self.committed = log.to_vec();
        }
    }
}
