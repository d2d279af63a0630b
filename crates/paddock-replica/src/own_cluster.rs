//! The ensemble that this member belongs to, and the peers that turned out to belong to others.

use std::collections::BTreeSet;

use paddock_state::Now;

use crate::{Cluster, LogEntry};

#[derive(Debug)]
pub(crate) struct OwnCluster {
    cluster: Cluster,
    /// True if the proposal is that of a founder whose log has begun.
    is_taken_over: bool,
    /// True if the log has named an ensemble, be it one that did not come to be.
    is_named: bool,
    /// Peers that belong to another ensemble, and its id, since the shell was told last.
    foreign: Vec<(u64, u64)>,
    /// True once a peer was refused for that: this member may stand at another one's address.
    has_met_foreign: bool,
    /// Peers that have led another ensemble, which has this member in its list, and have not been heard as anything else since.
    strangers: BTreeSet<u64>,
}

impl OwnCluster {
    /// The ensemble that the disk names, for a member with these entries behind its snapshot.
    pub(crate) fn new(cluster: Cluster, entries: &[LogEntry]) -> OwnCluster {
        let mut own = OwnCluster {
            cluster,
            is_taken_over: false,
            is_named: false,
            foreign: Vec::new(),
            has_met_foreign: false,
            strangers: BTreeSet::new(),
        };
        own.note_entries(entries);
        own
    }

    pub(crate) fn cluster(&self) -> Cluster {
        self.cluster
    }

    /// Proposes an id for the ensemble that this member may found.
    pub(crate) fn propose(&mut self, id: u64) {
        self.cluster = Cluster::Proposed(id);
    }

    /// A founder whose log is empty has heard of another one's proposal. The proposal of one whose log has begun counts more than all
    /// others: most of the voters have begun with it, or will.
    pub(crate) fn agree(&mut self, other: Cluster, has_begun: bool) {
        match (self.cluster, other) {
            _ if self.is_taken_over => {}
            (Cluster::Proposed(_), Cluster::Proposed(_)) if has_begun => {
                (self.cluster, self.is_taken_over) = (other, true);
            }
            _ => self.cluster = self.cluster.agree(other),
        }
    }

    /// Enough members have said to which ensemble this member belongs.
    pub(crate) fn learn(&mut self, id: u64) {
        self.cluster = Cluster::Known(id);
    }

    /// The state says to which ensemble it belongs. A member that has been told the id by others may be on its way there, through
    /// a log in which a survivor has begun an ensemble of its own.
    pub(crate) fn note_state(&mut self, id: u64) {
        if self.cluster.known().is_none() {
            self.cluster = Cluster::Known(id);
        }
    }

    /// An id that stands in the log is this member's proposal from then on, as long as it is not known that the entry is
    /// committed.
    pub(crate) fn note_entries(&mut self, entries: &[LogEntry]) {
        if matches!(self.cluster, Cluster::Proposed(_))
            && let Some(id) = entries.iter().rev().find_map(LogEntry::named_cluster)
        {
            (self.cluster, self.is_named) = (Cluster::Proposed(id), true);
        }
    }

    /// True if this member founds, and its log has named no ensemble yet: it holds nothing that could be missed.
    pub(crate) fn is_unnamed(&self) -> bool {
        matches!(self.cluster, Cluster::Proposed(_)) && !self.is_named
    }

    /// A peer belongs to another ensemble, and may lead it.
    pub(crate) fn note_foreign(&mut self, peer: u64, cluster: Cluster, leads: bool) {
        self.has_met_foreign = true;
        if leads {
            self.strangers.insert(peer);
        }
        self.foreign.push((peer, cluster.id()));
    }

    /// A peer belongs to no other ensemble.
    pub(crate) fn note_own(&mut self, peer: u64) {
        self.strangers.remove(&peer);
    }

    /// True if a voter that the configuration names leads another ensemble, and the voters of this one are no majority of those named. One that
    /// has no quorum disturbs no client: it may be left of an ensemble that a survivor has gone on from.
    /// With such a majority a stranger stands at the wrong address, and disturbs no client.
    pub(crate) fn is_disputed(&self, voters: &[u64], named: &[u64]) -> bool {
        let is_outsider = |id: &&u64| named.contains(id) && !voters.contains(id);
        let own = named.iter().filter(|id| voters.contains(id) && !self.strangers.contains(id)).count();
        own <= named.len() / 2 && self.strangers.iter().any(|id| is_outsider(&id))
    }

    pub(crate) fn has_met_foreign(&self) -> bool {
        self.has_met_foreign
    }

    /// Moves the peers of other ensembles to the end of `foreign`.
    pub(crate) fn report_foreign(&mut self, foreign: &mut Vec<(u64, u64)>) {
        foreign.append(&mut self.foreign);
    }
}

/// A number that no other ensemble has, as far as is known: never 0.
pub(crate) fn new_cluster_id(process: u64, now: Now) -> u64 {
    let mixed = (process ^ (now.wall_ms as u64).rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)) | 1
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use paddock_proto::{IdList, SessionId};
    use paddock_tree::{Command, Origin};

    use super::*;
    use crate::Membership;
    use crate::batch::{BatchBuilder, EntryBuilder};
    use crate::founding::naming_commands;

    /// The entry in which a leader names the ensemble.
    fn naming_entry(cluster: u64) -> LogEntry {
        let mut batch = BatchBuilder::new();
        for (op, body) in naming_commands(cluster, "", &Membership::default()) {
            let mut command = Vec::new();
            Command::encode(SessionId(0), 0, IdList::NONE, op, &body, &mut command);
            batch.push(&command);
        }
        let mut entry = EntryBuilder::new(None);
        entry.add(&batch.take(Origin { member: 1, incarnation: 1 }, 0), Now::default());
        LogEntry { index: 3, term: 2, payload: entry.take() }
    }

    #[test]
    fn an_id_in_the_log_is_the_proposal_even_if_it_has_not_reached_the_identity() {
        let first_of_term = LogEntry { index: 2, term: 2, payload: Bytes::new() };
        let own = OwnCluster::new(Cluster::Proposed(5), std::slice::from_ref(&first_of_term));
        assert_eq!((own.cluster(), own.is_unnamed()), (Cluster::Proposed(5), true));
        let own = OwnCluster::new(Cluster::Proposed(5), &[first_of_term, naming_entry(9)]);
        assert_eq!((own.cluster(), own.is_unnamed()), (Cluster::Proposed(9), false));
    }

    #[test]
    fn an_id_that_enough_members_have_told_is_not_replaced_by_the_state() {
        let mut own = OwnCluster::new(Cluster::None, &[]);
        own.propose(9);
        own.agree(Cluster::Proposed(5), false);
        assert_eq!(own.cluster(), Cluster::Proposed(5));
        own.learn(7);
        own.note_state(5);
        assert_eq!(own.cluster(), Cluster::Known(7));
    }

    #[test]
    fn the_proposal_of_who_has_begun_counts_more_than_the_smallest() {
        let mut own = OwnCluster::new(Cluster::Proposed(5), &[]);
        own.agree(Cluster::Proposed(9), false);
        assert_eq!(own.cluster(), Cluster::Proposed(5));
        for other in [Cluster::Proposed(9), Cluster::Proposed(3)] {
            own.agree(other, true);
            assert_eq!(own.cluster(), Cluster::Proposed(9));
        }
        own.agree(Cluster::Proposed(2), false);
        assert_eq!(own.cluster(), Cluster::Proposed(9));
    }

    #[test]
    fn a_foreign_peer_is_reported_once_and_remembered() {
        let mut own = OwnCluster::new(Cluster::Known(7), &[]);
        assert!(!own.has_met_foreign());
        own.note_foreign(2, Cluster::Known(8), false);
        let mut foreign = Vec::new();
        own.report_foreign(&mut foreign);
        own.report_foreign(&mut foreign);
        assert_eq!((foreign, own.has_met_foreign()), (vec![(2, 8)], true));
    }
}
