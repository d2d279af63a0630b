//! The plan of a world: its znodes and writes, the programs of its sessions, the faults that it has, and the mistake that is planted.

use super::mistake::StagingMistake;

/// Groups of a world: home and two others.
pub(super) const GROUPS: usize = 3;
/// The group that decides.
pub(super) const HOME: usize = 0;

/// A stamp as the models count it: small numbers instead of milliseconds.
pub(super) type Stamp = u8;
/// A set of writes, one bit for each node of the order; a multi is one node.
pub(super) type Nodes = u16;

/// A write, or a check of a multi.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StagedOperation {
    /// Sets the data of a znode.
    Set(u8),
    /// Holds if the znode was never set.
    Check(u8),
}

impl StagedOperation {
    pub(super) fn znode(self) -> u8 {
        match self {
            StagedOperation::Set(znode) | StagedOperation::Check(znode) => znode,
        }
    }
}

/// Operations that are staged together.
#[derive(Clone, Debug)]
pub(super) struct StagedTransaction {
    /// All or nothing, with a vote; a run else.
    pub(super) is_multi: bool,
    /// Its operations in order, by their places in the plan.
    pub(super) operations: Vec<u8>,
}

/// A request of a session. Numbers are places in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedRequest {
    /// An ordinary write.
    Write(u8),
    Read {
        znode: u8,
    },
    /// A run or a multi.
    Staged(u8),
    Sync,
}

/// Faults that may happen in a world, by their number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Members that coordinate for a session and die.
    pub(super) deaths: u8,
    /// Attempts that home gives up although their coordinator lives.
    pub(super) timeouts: u8,
    /// Elections, each of which may lose what its group has not committed.
    pub(super) elections: u8,
    /// Parts that arrive again or late, and items that arrive again or early.
    pub(super) strays: u8,
    /// The group that may lose its quorum for good.
    pub(super) away: Option<usize>,
}

/// A thing that has to happen in a world, so that it is about something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StagingShown {
    /// A command is parked.
    Parked,
    /// A part is busy.
    Busy,
    /// A vote is no.
    No,
    /// An attempt is made group after group.
    InOrder,
}

#[derive(Clone, Debug)]
pub(super) struct StagingPlan {
    pub(super) mistake: Option<StagingMistake>,
    /// Group of each znode.
    pub(super) znodes: Vec<usize>,
    pub(super) operations: Vec<StagedOperation>,
    pub(super) transactions: Vec<StagedTransaction>,
    /// Requests of each session.
    pub(super) programs: Vec<Vec<PlannedRequest>>,
    pub(super) faults: Faults,
    /// True if a log may have entries that are not committed yet. Else they are committed as soon as they are logged.
    pub(super) has_tails: bool,
    /// Things that have to happen in some state.
    pub(super) shows: &'static [StagingShown],
    /// Stamps with which the groups begin: their clocks differ.
    pub(super) first_stamps: [Stamp; GROUPS],
}

impl StagingPlan {
    pub(super) fn with(&self, mistake: StagingMistake) -> StagingPlan {
        StagingPlan { mistake: Some(mistake), ..self.clone() }
    }

    /// The plan of which these things have to be seen.
    pub(super) fn showing(self, shows: &'static [StagingShown]) -> StagingPlan {
        StagingPlan { shows, ..self }
    }

    pub(super) fn has(&self, mistake: StagingMistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn group_of(&self, operation: u8) -> usize {
        self.znodes[usize::from(self.operations[usize::from(operation)].znode())]
    }

    pub(super) fn transaction(&self, transaction: u8) -> &StagedTransaction {
        &self.transactions[usize::from(transaction)]
    }

    pub(super) fn is_set(&self, operation: u8) -> bool {
        matches!(self.operations[usize::from(operation)], StagedOperation::Set(_))
    }

    /// Operations of a transaction in a group, in order.
    pub(super) fn operations_in(&self, transaction: u8, group: usize) -> impl Iterator<Item = u8> + '_ {
        let operations = self.transaction(transaction).operations.iter().copied();
        operations.filter(move |operation| self.group_of(*operation) == group)
    }

    /// Groups in which a transaction has a part.
    pub(super) fn participants(&self, transaction: u8) -> impl Iterator<Item = usize> + '_ {
        (0..GROUPS).filter(move |group| self.operations_in(transaction, *group).next().is_some())
    }

    /// True if a part touches this znode of its group.
    pub(super) fn touches(&self, transaction: u8, znode: u8) -> bool {
        let operations = &self.transaction(transaction).operations;
        operations.iter().any(|operation| self.operations[usize::from(*operation)].znode() == znode)
    }

    /// The node of a write in the order: that of a multi's first operation for all of them.
    pub(super) fn node(&self, operation: u8) -> Nodes {
        let multi = self
            .transactions
            .iter()
            .find(|transaction| transaction.is_multi && transaction.operations.contains(&operation));
        1 << multi.map_or(operation, |multi| multi.operations[0])
    }

    /// Writes to a znode, as nodes.
    pub(super) fn writes_to(&self, znode: u8) -> impl Iterator<Item = u8> + '_ {
        let count = self.operations.len() as u8;
        (0..count).filter(move |at| self.operations[usize::from(*at)] == StagedOperation::Set(znode))
    }

    /// Operations that a request carries out, in order.
    pub(super) fn operations_of(&self, request: PlannedRequest) -> Vec<u8> {
        match request {
            PlannedRequest::Write(operation) => vec![operation],
            PlannedRequest::Staged(transaction) => self.transaction(transaction).operations.clone(),
            PlannedRequest::Read { .. } | PlannedRequest::Sync => Vec::new(),
        }
    }

    /// The session that asks for a transaction.
    pub(super) fn session_of(&self, transaction: u8) -> usize {
        let asks = |program: &Vec<PlannedRequest>| program.contains(&PlannedRequest::Staged(transaction));
        self.programs.iter().position(asks).expect("each transaction stands in a program")
    }

    /// Transactions that a session asks for before this one.
    pub(super) fn earlier_windows(&self, transaction: u8) -> Vec<u8> {
        let program = &self.programs[self.session_of(transaction)];
        let before = program.iter().take_while(|request| **request != PlannedRequest::Staged(transaction));
        before
            .filter_map(|request| match request {
                PlannedRequest::Staged(earlier) => Some(*earlier),
                _ => None,
            })
            .collect()
    }

    /// The floor of a write of a session that has seen this.
    pub(super) fn floor(&self, seen: &[Stamp; GROUPS]) -> Stamp {
        if self.has(StagingMistake::FloorWithoutSeen) { 0 } else { above(seen) }
    }

    /// The floor of a part of a session that has seen this.
    pub(super) fn part_floor(&self, seen: &[Stamp; GROUPS]) -> Stamp {
        if self.has(StagingMistake::PartWithoutSeen) { 0 } else { above(seen) }
    }
}

fn above(seen: &[Stamp; GROUPS]) -> Stamp {
    seen.iter().max().map_or(0, |seen| seen + 1)
}

/// A run of these operations.
pub(super) fn run(operations: &[u8]) -> StagedTransaction {
    StagedTransaction { is_multi: false, operations: operations.to_vec() }
}

/// A multi of these operations.
pub(super) fn multi(operations: &[u8]) -> StagedTransaction {
    StagedTransaction { is_multi: true, operations: operations.to_vec() }
}

/// A plan without faults: groups of the znodes, operations, transactions, programs of sessions.
pub(super) fn plan(
    znodes: &[usize],
    operations: &[StagedOperation],
    transactions: &[StagedTransaction],
    programs: &[&[PlannedRequest]],
) -> StagingPlan {
    StagingPlan {
        mistake: None,
        znodes: znodes.to_vec(),
        operations: operations.to_vec(),
        transactions: transactions.to_vec(),
        programs: programs.iter().map(|program| program.to_vec()).collect(),
        faults: Faults::default(),
        has_tails: false,
        shows: &[],
        first_stamps: [0, 3, 0],
    }
}
