//! World: a session ends whose ephemerals lie in several groups.
//!
//! Home times the session out, each attached group fences it, then the end is staged in all of them and released at one
//! point of the order. A write of the session is still on its way; a group may lose its quorum and regain it; another
//! session reads anywhere; the session's client comes back, is told that its session expired, and wants its lock again.

mod rules;
mod state;
mod steps;

use stateright::{Model, Property};

use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{Ends, EndsMistake};
use state::{EndsEntry, EndsState, EndsStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix";
const LATE_WRITE: &str = "no write after its client was told expired";
const OWN_LOCK: &str = "a client that was told expired finds its locks gone";
const HELD: &str = "a group that is away holds no other";
const COMES_ABOUT: &str = "every end comes about";

impl Model for Ends {
    type State = EndsState;
    type Action = EndsStep;

    fn init_states(&self) -> Vec<EndsState> {
        vec![EndsState::default()]
    }

    fn actions(&self, state: &EndsState, actions: &mut Vec<EndsStep>) {
        if !state.is_broken() {
            self.steps_of_end(state, actions);
            self.steps_of_sessions(state, actions);
        }
    }

    fn next_state(&self, last: &EndsState, action: EndsStep) -> Option<EndsState> {
        let mut state = last.clone();
        self.step(&mut state, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &EndsState| !state.order.has_circle()),
            Property::always(LATE_WRITE, |_, state: &EndsState| !state.wrote_after_told),
            Property::always(OWN_LOCK, |_, state: &EndsState| !state.found_own_lock),
            Property::always(HELD, |model: &Self, state: &EndsState| {
                let unheard = state.away.filter(|&group| {
                    state.timed_out
                        && !state.logged(group, EndsEntry::Fence)
                        && !state.logged(group, EndsEntry::Stage(1))
                });
                unheard.is_none_or(|_| {
                    model
                        .attached
                        .iter()
                        .all(|&group| state.logs[group].open_parts(state.logs[group].len()).next().is_none())
                })
            }),
            Property::always(COMES_ABOUT, |model: &Self, state: &EndsState| {
                model.has_ended(state) || state.is_broken() || !is_terminal(model, state)
            }),
            Property::sometimes("the session ended", |model: &Self, state: &EndsState| {
                model.has_ended(state)
            }),
        ]
    }
}

/// The worlds of ends.
pub(super) fn worlds() -> Vec<ModelWorld> {
    let ends = |mistake, attached: &[usize], reads| Ends {
        mistake,
        attached: attached.to_vec(),
        write_to: attached[1],
        other_to: attached[1],
        reads,
        outage: true,
    };
    let planted = |name, about, property, mistake| {
        ModelWorld::finds(name, about, property, ends(Some(mistake), &[1, 2], [2, 0]))
    };
    vec![
        ModelWorld::holds(
            "ends",
            "a session with ephemerals in home and a group ends; a late write; a group is away",
            ends(None, &[0, 1], [3, 2]),
        ),
        ModelWorld::holds("ends/two", "the same in two groups beside home", ends(None, &[1, 2], [2, 2]))
            .large(),
        ModelWorld::holds(
            "ends/fence-counts",
            "a fence need not refuse writes while the client is told of the end after its release",
            ends(Some(EndsMistake::FenceLetsWritesPass), &[1, 2], [2, 0]),
        )
        .large(),
        planted(
            "ends/not-staged",
            "each group removes its ephemerals when it hears of the end",
            ONE_ORDER,
            EndsMistake::NotStaged,
        ),
        planted(
            "ends/no-fence",
            "the end is staged at once, while a group is away",
            HELD,
            EndsMistake::Unfenced,
        ),
        planted(
            "ends/without-absent",
            "decided without the part of a group that is away",
            ONE_ORDER,
            EndsMistake::DecidedWithoutAbsent,
        ),
        planted(
            "ends/at-past-part",
            "a replica is at its last stamp though an older part is staged",
            ONE_ORDER,
            EndsMistake::AtPastStagedPart,
        ),
        planted(
            "ends/no-wait",
            "a read does not wait for what its session saw elsewhere",
            ONE_ORDER,
            EndsMistake::ReadDoesNotWait,
        ),
        planted(
            "ends/write-not-gated",
            "a write overtakes a part that is older than what its session saw elsewhere",
            ONE_ORDER,
            EndsMistake::WriteNotGated,
        ),
        planted(
            "ends/told-at-timeout",
            "\"expired\" is told from the timeout on",
            LATE_WRITE,
            EndsMistake::ToldAtTimeout,
        ),
        planted(
            "ends/told-when-fenced",
            "\"expired\" is told when all groups have fenced the session",
            OWN_LOCK,
            EndsMistake::ToldWhenFenced,
        ),
        planted(
            "ends/busy-is-final",
            "an end whose part was busy is not tried again",
            COMES_ABOUT,
            EndsMistake::BusyIsFinal,
        ),
    ]
}
