//! Home's numbered stream to one group, while leaders of both change.
//!
//! A group is its log: entries up to `committed` stay, a new leader may lose any of those behind. Home's entries are decisions, each of which
//! appends an item to the stream when it is applied. Home sends items until they are acknowledged; links repeat and reorder them.

use stateright::{Model, Property};

use crate::world::ModelWorld;

/// Decisions of home.
const ITEMS: u8 = 3;

const IN_ORDER: &str = "items are applied once and in order";
const END: &str = "every item is applied in the end";

/// A mistake that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamsMistake {
    /// An item with a number that was applied is applied again.
    DuplicatesApplied,
    /// An item is applied although one before it is missing.
    GapsApplied,
    /// The group's leader leaves out what it has logged itself; whatever is logged is applied.
    CheckedByLeader,
    /// Home's leader numbers an item when it proposes it, from a counter of its own.
    NumberedByLeader,
    /// The group acknowledges an item when its leader has logged it.
    AcknowledgedEarly,
}

#[derive(Clone, Debug)]
struct Streams {
    mistake: Option<StreamsMistake>,
    /// Elections, of both groups together.
    elections: u8,
    /// Items that a link repeats, or lets arrive too early.
    strays: u8,
}

/// An item as it travels: its number in the stream, and which decision it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StreamItem {
    number: u8,
    decision: u8,
}

/// StreamLog of a group, of which the first `committed` entries cannot be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct StreamLog {
    entries: Vec<StreamItem>,
    committed: usize,
    /// Number that the leader remembers, in its memory alone.
    leaders_number: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct StreamsState {
    home: StreamLog,
    group: StreamLog,
    /// Number through which home knows that the group has its items.
    acknowledged: u8,
    elections: u8,
    strays: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum StreamsStep {
    Decide(u8),
    CommitAtHome,
    Send(StreamItem),
    SendStray(StreamItem),
    CommitInGroup,
    Acknowledge(u8),
    ElectAtHome { entries_kept: usize },
    ElectInGroup { entries_kept: usize },
}

impl Streams {
    /// The stream: items of the decisions that home has applied. A decision that was logged twice counts once.
    fn stream(&self, state: &StreamsState) -> Vec<StreamItem> {
        let mut stream: Vec<StreamItem> = Vec::new();
        for entry in &state.home.entries[..state.home.committed] {
            if stream.iter().all(|item| item.decision != entry.decision) {
                let is_by_leader = self.mistake == Some(StreamsMistake::NumberedByLeader);
                let number = if is_by_leader { entry.number } else { stream.len() as u8 + 1 };
                stream.push(StreamItem { number, ..*entry });
            }
        }
        stream
    }

    /// Decisions that the group has applied, in order.
    fn applied(&self, log: &StreamLog) -> Vec<StreamItem> {
        let mut applied: Vec<StreamItem> = Vec::new();
        for item in &log.entries[..log.committed] {
            let last = applied.last().map_or(0, |item| item.number);
            let is_next = match self.mistake {
                Some(StreamsMistake::DuplicatesApplied) => item.number <= last + 1,
                Some(StreamsMistake::GapsApplied) => item.number > last,
                Some(StreamsMistake::CheckedByLeader) => true,
                _ => item.number == last + 1,
            };
            if is_next {
                applied.push(*item);
            }
        }
        applied
    }

    /// Number of the last item that was applied.
    fn last_applied(&self, log: &StreamLog) -> u8 {
        self.applied(log).iter().map(|item| item.number).max().unwrap_or(0)
    }

    fn append(&self, log: &mut StreamLog, item: StreamItem) {
        if self.mistake == Some(StreamsMistake::CheckedByLeader) {
            if item.number != log.leaders_number + 1 {
                return;
            }
            log.leaders_number = item.number;
        }
        log.entries.push(item);
    }

    /// Steps that are no faults. When none is left, all has to have ended.
    fn steps(&self, state: &StreamsState, actions: &mut Vec<StreamsStep>) {
        let logged = |log: &StreamLog, decision| log.entries.iter().any(|entry| entry.decision == decision);
        actions
            .extend((1..=ITEMS).filter(|decision| !logged(&state.home, *decision)).map(StreamsStep::Decide));
        if state.home.committed < state.home.entries.len() {
            actions.push(StreamsStep::CommitAtHome);
        }
        let last = self.last_applied(&state.group);
        let uncommitted = &state.group.entries[state.group.committed..];
        let stream = self.stream(state);
        let next = stream.iter().find(|item| item.number > state.acknowledged.max(last));
        actions.extend(next.filter(|item| !uncommitted.contains(item)).map(|item| StreamsStep::Send(*item)));
        if state.group.committed < state.group.entries.len() {
            actions.push(StreamsStep::CommitInGroup);
        }
        let is_early = self.mistake == Some(StreamsMistake::AcknowledgedEarly);
        let logged = state.group.entries.iter().map(|item| item.number).max().unwrap_or(0);
        let reached = if is_early { logged } else { last };
        if reached > state.acknowledged {
            actions.push(StreamsStep::Acknowledge(reached));
        }
    }

    fn faults(&self, state: &StreamsState, actions: &mut Vec<StreamsStep>) {
        if state.strays < self.strays {
            actions.extend(self.stream(state).into_iter().map(StreamsStep::SendStray));
        }
        if state.elections < self.elections {
            let kept = |log: &StreamLog| log.committed..=log.entries.len();
            actions.extend(kept(&state.home).map(|entries_kept| StreamsStep::ElectAtHome { entries_kept }));
            actions.extend(kept(&state.group).map(|entries_kept| StreamsStep::ElectInGroup { entries_kept }));
        }
    }
}

impl Model for Streams {
    type State = StreamsState;
    type Action = StreamsStep;

    fn init_states(&self) -> Vec<StreamsState> {
        vec![StreamsState::default()]
    }

    fn actions(&self, state: &StreamsState, actions: &mut Vec<StreamsStep>) {
        self.steps(state, actions);
        self.faults(state, actions);
    }

    fn next_state(&self, state: &StreamsState, action: StreamsStep) -> Option<StreamsState> {
        let mut next = state.clone();
        match action {
            StreamsStep::Decide(decision) => {
                next.home.leaders_number += 1;
                next.home.entries.push(StreamItem { number: next.home.leaders_number, decision });
            }
            StreamsStep::CommitAtHome => next.home.committed = next.home.entries.len(),
            StreamsStep::Send(item) => self.append(&mut next.group, item),
            StreamsStep::SendStray(item) => {
                next.strays += 1;
                self.append(&mut next.group, item);
            }
            StreamsStep::CommitInGroup => next.group.committed = next.group.entries.len(),
            StreamsStep::Acknowledge(number) => next.acknowledged = number,
            StreamsStep::ElectAtHome { entries_kept } => {
                next.elections += 1;
                next.home.entries.truncate(entries_kept);
                next.home.leaders_number =
                    self.stream(&next).iter().map(|item| item.number).max().unwrap_or(0);
            }
            StreamsStep::ElectInGroup { entries_kept } => {
                next.elections += 1;
                next.group.entries.truncate(entries_kept);
                next.group.leaders_number = self.last_applied(&next.group);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(IN_ORDER, |model: &Streams, state: &StreamsState| {
                let stream = decisions(model.stream(state));
                stream.starts_with(&decisions(model.applied(&state.group)))
            }),
            Property::always(END, |model: &Streams, state: &StreamsState| {
                let mut steps = Vec::new();
                model.steps(state, &mut steps);
                !steps.is_empty() || model.applied(&state.group).len() == usize::from(ITEMS)
            }),
            Property::sometimes("an item is passed over", |model: &Streams, state: &StreamsState| {
                model.applied(&state.group).len() < state.group.committed
            }),
        ]
    }
}

fn decisions(items: Vec<StreamItem>) -> Vec<u8> {
    items.iter().map(|item| item.decision).collect()
}

/// The worlds of streams.
pub(super) fn worlds() -> Vec<ModelWorld> {
    let with = |mistake| Streams { mistake: Some(mistake), elections: 2, strays: 2 };
    vec![
        ModelWorld::holds(
            "streams",
            "duplicates and gaps are passed over at apply; both groups have two elections and the link two strays",
            Streams { mistake: None, elections: 2, strays: 2 },
        ),
        ModelWorld::finds(
            "streams/duplicates",
            "an item that was applied is applied again",
            IN_ORDER,
            with(StreamsMistake::DuplicatesApplied),
        ),
        ModelWorld::finds(
            "streams/gaps",
            "an item is applied although one before it is missing",
            IN_ORDER,
            with(StreamsMistake::GapsApplied),
        ),
        ModelWorld::finds(
            "streams/checked-by-leader",
            "the leader leaves out what it has logged, and all that is logged is applied",
            IN_ORDER,
            with(StreamsMistake::CheckedByLeader),
        ),
        ModelWorld::finds(
            "streams/numbered-by-leader",
            "home's leader numbers items when it proposes them",
            END,
            with(StreamsMistake::NumberedByLeader),
        ),
        ModelWorld::finds(
            "streams/acknowledged-early",
            "the group acknowledges what its leader has logged",
            END,
            with(StreamsMistake::AcknowledgedEarly),
        ),
    ]
}
