//! One Raft group with the logs of its three voters, and the ways to know that nothing comes at or below a stamp any more.
//!
//! The design has one way: an entry with that stamp, or a later one, is applied. A closing promises the same without an entry: the leader
//! asks voters to note a stamp, and when a quorum has, those who have applied the leader's log are at it. Later leaders hear of the note from one of the
//! quorum that elects them. Each of the ways in which that failed is a mistake here; entries survive the same faults.
//!
//! Messages are carried out at once: what a late one could do is done by leaders that do not know yet that they were replaced.

mod voters;

use stateright::{Model, Property};

use crate::world::ModelWorld;
use voters::{ClosingsState, ENTRIES, ModelVoter, TERMS, VOTERS};

const CLOSED: &str = "nothing is committed at or below what a replica is at";
const LOG: &str = "what is committed stays";

/// The way to be at a stamp, and its mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClosingRule {
    /// An entry of that stamp or a later one is applied.
    Entry,
    /// The leader has committed an entry of its term, a quorum has noted the stamp, and the leader's log is applied.
    Note,
    /// Noted, and the leader has not committed an entry of its term: one of an earlier leader may come behind.
    NoteBeforeOwnEntry,
    /// Noted, and acknowledgements of several groups together do not say in which term of this one.
    NoteWithoutTerm,
}

#[derive(Clone, Debug)]
struct Closings {
    rule: ClosingRule,
    /// Disks that are lost, whose members are admitted again.
    lost_disks: u8,
    /// Voters in whose place others come.
    replacements: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ClosingsStep {
    Elect { leader: usize, by: usize },
    Propose { leader: usize },
    Replicate { leader: usize, to: usize },
    Commit { leader: usize },
    AskToNote { leader: usize },
    Note { leader: usize, voter: usize },
    Close { leader: usize },
    LoseDisk { voter: usize },
    Admit { leader: usize, voter: usize },
    Replace { leader: usize, voter: usize },
}

use ClosingsStep::{Admit, AskToNote, Close, Commit, Elect, LoseDisk, Note, Propose, Replace, Replicate};

impl Closings {
    fn has_notes(&self) -> bool {
        self.rule != ClosingRule::Entry
    }

    fn of_leader(&self, state: &ClosingsState, leader: usize, steps: &mut Vec<ClosingsStep>) {
        let known = &state.voters[leader];
        if known.log.len() < ENTRIES {
            steps.push(Propose { leader });
        }
        if state.quorum_has(leader) > known.committed {
            steps.push(Commit { leader });
        }
        let may_close = self.has_notes()
            && (known.has_committed_its_term() || self.rule == ClosingRule::NoteBeforeOwnEntry);
        if may_close && known.asked.is_none() && known.noted == 0 {
            steps.push(AskToNote { leader });
        }
        if self.has_notes()
            && known.asked.is_some_and(|(_, _, voters)| voters.count_ones() as usize > VOTERS / 2)
        {
            steps.push(Close { leader });
        }
        for voter in (0..VOTERS).filter(|voter| *voter != leader) {
            let other = &state.voters[voter];
            // A leader admits and replaces others only while the rest follows it.
            let leads = state.followers(leader).count() > VOTERS / 2 && known.has_committed_its_term();
            if other.is_admitted
                && other.term <= known.term
                && (other.term, &other.log) != (known.term, &known.log)
            {
                steps.push(Replicate { leader, to: voter });
            }
            let is_its_term = other.term == known.term || self.rule == ClosingRule::NoteWithoutTerm;
            if other.is_admitted
                && is_its_term
                && known.asked.is_some_and(|(_, _, voters)| voters & (1 << voter) == 0)
            {
                steps.push(Note { leader, voter });
            }
            if !other.is_admitted && leads {
                steps.push(Admit { leader, voter });
            }
            let others_follow =
                state.followers(leader).filter(|follower| *follower != other).count() > VOTERS / 2;
            if other.is_admitted && leads && others_follow && state.replacements < self.replacements {
                steps.push(Replace { leader, voter });
            }
        }
    }
}

impl Model for Closings {
    type State = ClosingsState;
    type Action = ClosingsStep;

    fn init_states(&self) -> Vec<ClosingsState> {
        let voter = ModelVoter { is_admitted: true, ..ModelVoter::default() };
        vec![ClosingsState { voters: vec![voter; VOTERS], ..ClosingsState::default() }]
    }

    fn actions(&self, state: &ClosingsState, steps: &mut Vec<ClosingsStep>) {
        for leader in 0..VOTERS {
            let voter = &state.voters[leader];
            for by in (0..VOTERS).filter(|by| *by != leader) {
                let other = &state.voters[by];
                let may = voter.is_admitted && other.is_admitted && voter.log.len() < ENTRIES;
                if may && voter.is_up_to_date(other) && voter.term.max(other.term) < TERMS {
                    steps.push(Elect { leader, by });
                }
            }
            if voter.is_leader {
                self.of_leader(state, leader, steps);
            }
            // The others have to be there: a group that loses two disks is lost.
            if state.lost_disks < self.lost_disks && state.voters.iter().all(|voter| voter.is_admitted) {
                steps.push(LoseDisk { voter: leader });
            }
        }
    }

    fn next_state(&self, state: &ClosingsState, step: ClosingsStep) -> Option<ClosingsState> {
        let mut next = state.clone();
        match step {
            Elect { leader, by } => {
                let (term, noted) =
                    (state.voters[leader].term.max(state.voters[by].term) + 1, state.voters[by].noted);
                (next.voters[by].term, next.voters[by].is_leader) = (term, false);
                next.voters[by].asked = None;
                let voter = &mut next.voters[leader];
                (voter.term, voter.is_leader, voter.asked) = (term, true, None);
                voter.noted = voter.noted.max(noted);
                voter.propose();
            }
            Propose { leader } => next.voters[leader].propose(),
            Replicate { leader, to } => next.voters[to].follow(&state.voters[leader]),
            Commit { leader } => {
                next.commit(leader);
                if self.rule == ClosingRule::Entry {
                    let through = next.voters[leader].committed;
                    next.closed = vec![(next.voters[leader].log[through - 1].stamp, through)];
                }
            }
            AskToNote { leader } => {
                let voter = &mut next.voters[leader];
                voter.noted = voter.last().stamp + 2;
                voter.asked = Some((voter.noted, voter.log.len(), 1 << leader));
            }
            Note { leader, voter } => {
                let (stamp, entries, voters) = state.voters[leader].asked?;
                next.voters[voter].noted = state.voters[voter].noted.max(stamp);
                next.voters[leader].asked = Some((stamp, entries, voters | 1 << voter));
            }
            Close { leader } => {
                let (stamp, entries, _) = next.voters[leader].asked.take()?;
                next.closed.push((stamp, entries));
            }
            LoseDisk { voter } => {
                next.lost_disks += 1;
                next.voters[voter] = ModelVoter::default();
            }
            Admit { leader, voter } => {
                next.voters[voter].follow(&state.voters[leader]);
                next.voters[voter].is_admitted = true;
            }
            Replace { leader, voter } => {
                next.replacements += 1;
                next.voters[voter] = ModelVoter { is_admitted: true, ..ModelVoter::default() };
                next.voters[voter].follow(&state.voters[leader]);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LOG, |_, state: &ClosingsState| !state.is_contradicted),
            Property::always(CLOSED, |_, state: &ClosingsState| {
                state.closed.iter().all(|(stamp, entries)| {
                    state.committed.iter().skip(*entries).all(|entry| entry.stamp > *stamp)
                })
            }),
            Property::sometimes("something is closed", |_, state: &ClosingsState| !state.closed.is_empty()),
        ]
    }
}

/// The worlds of closings.
pub(super) fn worlds() -> Vec<ModelWorld> {
    let closings = |rule, lost_disks, replacements| Closings { rule, lost_disks, replacements };
    let find = |name, about, model| ModelWorld::finds(name, about, CLOSED, model);
    vec![
        ModelWorld::holds(
            "closings",
            "being at a stamp takes an entry; three elections, a lost disk, a voter that is replaced",
            closings(ClosingRule::Entry, 1, 1),
        ),
        ModelWorld::holds(
            "closings/notes",
            "no mistake: a quorum notes what is closed, and no disk is lost and no voter replaced",
            closings(ClosingRule::Note, 0, 0),
        ),
        find(
            "closings/notes-before-own-entry",
            "a leader closes before its own term's entry is applied",
            closings(ClosingRule::NoteBeforeOwnEntry, 0, 0),
        ),
        find(
            "closings/notes-without-term",
            "acknowledgements of notes do not say in which term of the group",
            closings(ClosingRule::NoteWithoutTerm, 0, 0),
        ),
        find(
            "closings/notes-lost-disk",
            "a disk with a note is lost, and its member admitted again with the log alone",
            closings(ClosingRule::Note, 1, 0),
        ),
        find(
            "closings/notes-other-members",
            "the group gets another voter, which has the log and no notes",
            closings(ClosingRule::Note, 0, 1),
        ),
    ]
}
