//! The state of a world: the logs of its groups, its sessions, and the members that coordinate for them.

use std::cell::RefCell;
use std::rc::Rc;

use super::entry::{Attempt, GroupEntry, GroupLog, Ruling};
use super::plan::{GROUPS, HOME, Nodes, PlannedRequest, StagingPlan, Stamp};
use super::replicated::{PartAnswer, Replicated};

/// A session and its client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SessionState {
    /// Place of the next request in its program; those before were sent.
    pub(super) next: usize,
    /// Requests that were answered.
    pub(super) answered: usize,
    /// The largest stamp that it was told of each group.
    pub(super) seen: [Stamp; GROUPS],
    /// Writes that it has seen.
    pub(super) observed: Nodes,
    /// Entries of each group that it has to see since its last sync.
    pub(super) synced: [usize; GROUPS],
    pub(super) sync: Option<SyncState>,
    /// True once its member has died.
    pub(super) is_stopped: bool,
}

impl SessionState {
    /// The largest stamp that it has seen in other groups than this one.
    pub(super) fn elsewhere(&self, group: usize) -> Stamp {
        elsewhere(&self.seen, group)
    }
}

/// A sync that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SyncState {
    /// Parts that were staged when it came, with their groups.
    pub(super) behind: Vec<(usize, Attempt)>,
    /// Writes that some client had seen when it came.
    pub(super) known: Nodes,
}

/// The member that coordinates a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CoordinatorState {
    /// Number of the attempt; 0 before the first.
    pub(super) attempt: u8,
    /// True if it stages group after group.
    pub(super) is_ordered: bool,
    /// True once the session is told that a vote was no.
    pub(super) has_failed: bool,
    /// The session's `seen` when it began, its own writes included.
    pub(super) seen: [Stamp; GROUPS],
}

/// Faults that have happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct FaultCounts {
    pub(super) deaths: u8,
    pub(super) timeouts: u8,
    pub(super) elections: u8,
    pub(super) strays: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Whole {
    pub(super) logs: [GroupLog; GROUPS],
    pub(super) sessions: Vec<SessionState>,
    pub(super) coordinators: Vec<CoordinatorState>,
    /// For each write those that a session found missing after it had seen this one.
    pub(super) missed: Vec<Nodes>,
    pub(super) faults: FaultCounts,
}

/// The largest number of other groups than this one.
pub(super) fn elsewhere(seen: &[Stamp; GROUPS], group: usize) -> Stamp {
    (0..GROUPS).filter(|other| *other != group).map(|other| seen[other]).max().unwrap_or(0)
}

impl Whole {
    pub(super) fn new(plan: &StagingPlan) -> Whole {
        Whole {
            sessions: vec![SessionState::default(); plan.programs.len()],
            coordinators: vec![CoordinatorState::default(); plan.transactions.len()],
            missed: vec![0; plan.operations.len()],
            ..Whole::default()
        }
    }

    pub(super) fn log(&mut self, plan: &StagingPlan, group: usize, entry: GroupEntry) {
        let log = &mut self.logs[group];
        log.entries.push(entry);
        if !plan.has_tails {
            log.committed = log.entries.len();
        }
    }

    /// Notes that a session finds these writes missing.
    pub(super) fn miss(&mut self, observed: Nodes, missing: Nodes) {
        for (node, missed) in self.missed.iter_mut().enumerate() {
            if observed & (1 << node) != 0 {
                *missed |= missing;
            }
        }
    }
}

/// A state together with what its groups' logs make of themselves.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) plan: &'a StagingPlan,
    pub(super) whole: &'a Whole,
    /// Replicated states after all that is committed.
    pub(super) committed: Rc<[Replicated]>,
}

type LastReplayed = Option<([GroupLog; GROUPS], Rc<[Replicated]>)>;

thread_local! {
    /// Logs that were replayed last. Each property looks at the same state, and a thread belongs to the run of one plan.
    static LAST_REPLAYED: RefCell<LastReplayed> = const { RefCell::new(None) };
}

fn replayed(plan: &StagingPlan, logs: &[GroupLog; GROUPS]) -> Rc<[Replicated]> {
    LAST_REPLAYED.with_borrow_mut(|last| match last {
        Some((known, replicated)) if known == logs => Rc::clone(replicated),
        _ => {
            let of =
                |group: usize| Replicated::after(plan, group, &logs[group].entries[..logs[group].committed]);
            let replicated: Rc<[Replicated]> = (0..GROUPS).map(of).collect();
            *last = Some((logs.clone(), Rc::clone(&replicated)));
            replicated
        }
    })
}

impl View<'_> {
    pub(super) fn new<'a>(plan: &'a StagingPlan, whole: &'a Whole) -> View<'a> {
        View { plan, whole, committed: replayed(plan, &whole.logs) }
    }

    /// The replicated state after all that is logged, committed or not.
    pub(super) fn logged(&self, group: usize) -> Replicated {
        Replicated::after(self.plan, group, &self.whole.logs[group].entries)
    }

    pub(super) fn home(&self) -> &Replicated {
        &self.committed[HOME]
    }

    pub(super) fn attempt(&self, transaction: u8) -> Attempt {
        Attempt { transaction, number: self.whole.coordinators[usize::from(transaction)].attempt }
    }

    pub(super) fn ruling(&self, transaction: u8) -> Option<Ruling> {
        self.home().ruling(self.attempt(transaction))
    }

    pub(super) fn is_away(&self, group: usize) -> bool {
        self.whole.logs[group].is_away
    }

    pub(super) fn has_away(&self, transaction: u8) -> bool {
        self.plan.participants(transaction).any(|group| self.is_away(group))
    }

    /// True if a group has applied home's ruling on an attempt.
    pub(super) fn has_ended(&self, attempt: Attempt, group: usize) -> bool {
        let Some(item) =
            self.home().stream(self.plan, group).into_iter().rfind(|item| item.attempt == attempt)
        else {
            return false;
        };
        let is_applied = group == HOME
            || self.plan.has(super::mistake::StagingMistake::ReleaseInAnyOrder)
            || item.number <= self.committed[group].items;
        is_applied && !self.committed[group].is_staged(attempt)
    }

    /// True if all parts of a transaction are released.
    pub(super) fn is_released(&self, transaction: u8) -> bool {
        let is_decided = matches!(self.ruling(transaction), Some(Ruling::Released { .. }));
        let mut participants = self.plan.participants(transaction);
        is_decided && participants.all(|group| self.has_ended(self.attempt(transaction), group))
    }

    /// The first vote of no that an attempt got. Its part may have come again, and got another answer.
    pub(super) fn refusal(&self, transaction: u8) -> Option<(usize, PartAnswer)> {
        let attempt = self.attempt(transaction);
        self.plan.participants(transaction).find_map(|group| {
            let mut answers = self.committed[group].answers.iter();
            let is_no = |(known, answer): &&(Attempt, PartAnswer)| {
                *known == attempt && matches!(answer, PartAnswer::No { .. })
            };
            answers.find(is_no).map(|(_, answer)| (group, *answer))
        })
    }

    /// The request at a place of a session's program.
    pub(super) fn request(&self, session: usize, place: usize) -> Option<PlannedRequest> {
        self.plan.programs[session].get(place).copied()
    }

    /// Requests of a session that are not answered.
    pub(super) fn outstanding(&self, session: usize) -> &[PlannedRequest] {
        let state = &self.whole.sessions[session];
        &self.plan.programs[session][state.answered..state.next]
    }
}
