//! World: multis with parts in several groups, as two decisions of home's.
//!
//! The first decision is an item by which each group tries its part, votes, and holds what the part touches until its next item about it. The
//! second one decides by the votes and by home's own part, which is tried with that entry; its item sets the parts and lets go. Readers
//! and writers go by levels; a command on what is held is refused and sent again, as in the worlds of slots.

mod rules;
mod state;
mod steps;

use stateright::{Model, Property};

use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{LevelMulti, LevelMultis, LevelMultisMistake, LevelMultisRequest};
use state::{LevelMultiPhase, LevelMultisState, LevelMultisStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix";
const TRUE: &str = "what a session is told is true";
const ENDS: &str = "all that began ends";

impl Model for LevelMultis {
    type State = LevelMultisState;
    type Action = LevelMultisStep;

    fn init_states(&self) -> Vec<LevelMultisState> {
        vec![LevelMultisState::default()]
    }

    fn actions(&self, state: &LevelMultisState, actions: &mut Vec<LevelMultisStep>) {
        if !state.is_broken() {
            state.actions(self, actions);
        }
    }

    fn next_state(&self, last: &LevelMultisState, action: LevelMultisStep) -> Option<LevelMultisState> {
        let mut state = last.clone();
        state.step(self, action)?;
        state.look_for_lies(self);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &LevelMultisState| !state.order.has_circle()),
            Property::always(TRUE, |_, state: &LevelMultisState| !state.told_wrong),
            Property::always(ENDS, |model: &Self, state: &LevelMultisState| {
                let is_over = state.is_done(model) && !state.holds_any(model);
                is_over || state.is_broken() || !is_terminal(model, state)
            }),
            Property::sometimes("a multi takes effect", |_, state: &LevelMultisState| {
                state.multis[0].0 == LevelMultiPhase::Committed
            }),
            Property::sometimes("all is answered", |model: &Self, state: &LevelMultisState| {
                state.is_done(model)
            }),
        ]
    }
}

/// The worlds of multis as two decisions.
pub(super) fn worlds() -> Vec<ModelWorld> {
    use LevelMultisMistake::*;
    use LevelMultisRequest::{Look, Multi, Write};
    // The multi checks one group's znode, and sets the other's and home's.
    let checking = LevelMulti { checks: vec![(1, 2), (0, 3)], sets: vec![0, 2] };
    let one = |mistake| LevelMultis {
        mistake,
        multis: vec![checking.clone()],
        programs: vec![
            vec![Multi(0), Write { change: 4, group: 1 }],
            vec![Write { change: 2, group: 1 }],
            vec![Write { change: 3, group: 0 }],
            vec![Look, Look],
        ],
        moves: 0,
    };
    let moving = |mistake| LevelMultis {
        programs: vec![
            vec![Multi(0), Write { change: 4, group: 0 }],
            vec![Write { change: 2, group: 1 }],
            vec![Look],
        ],
        moves: 1,
        ..one(mistake)
    };
    let two = |mistake| LevelMultis {
        mistake,
        multis: vec![
            LevelMulti { checks: vec![(1, 1)], sets: vec![2] },
            LevelMulti { checks: vec![(2, 0)], sets: vec![1] },
        ],
        programs: vec![vec![Multi(0)], vec![Multi(1)], vec![Look, Look]],
        moves: 0,
    };
    vec![
        ModelWorld::holds(
            "level-multis",
            "a multi of home and two groups, writers of what it checks, a session that looks",
            one(None),
        ),
        ModelWorld::holds(
            "level-multis/moves",
            "its session gets a new owner meanwhile, and writes",
            moving(None),
        ),
        ModelWorld::holds(
            "level-multis/two",
            "two multis, each of which sets what the other one checks",
            two(None),
        ),
        ModelWorld::finds(
            "level-multis/no-hold",
            "a part that was tried holds nothing",
            ONE_ORDER,
            one(Some(NoHold)),
        ),
        ModelWorld::finds(
            "level-multis/checks-not-held",
            "a part holds what it sets, not what it checks",
            ONE_ORDER,
            one(Some(ChecksNotHeld)),
        ),
        ModelWorld::finds(
            "level-multis/ignores-holds",
            "a part is tried on what another multi holds",
            ONE_ORDER,
            two(Some(IgnoresHolds)),
        ),
        ModelWorld::finds(
            "level-multis/votes",
            "home decides for the multi whatever the votes",
            ONE_ORDER,
            one(Some(VotesDoNotCount)),
        ),
        ModelWorld::finds(
            "level-multis/home-early",
            "home tries its own part with the first decision",
            ONE_ORDER,
            one(Some(HomeTriesEarly)),
        ),
        ModelWorld::finds(
            "level-multis/outlives-owner",
            "an open multi goes on when its session has a new owner",
            ONE_ORDER,
            moving(Some(OutlivesOwner)),
        ),
        ModelWorld::finds(
            "level-multis/told-by-votes",
            "a client is told when all groups have voted for its multi",
            TRUE,
            one(Some(ToldByVotes)),
        ),
    ]
}
