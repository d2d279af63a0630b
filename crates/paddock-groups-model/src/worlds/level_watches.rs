//! World: a session with watches in home and groups, which learn late of what home has decided.
//!
//! An event has the place of its change, and an item that is applied behind that change pulls it forward to the place of its decision.
//! Events and replies wait at the member until the groups in which the session watches have reached their place. An answer in front of which an
//! event leaves is read again; the session's own write cannot be made again, so its reply has a place like an event.

mod leaving;
mod list;
mod rules;
mod serving;
mod session;
mod state;

use stateright::{Model, Property};

use super::terminal::is_terminal;
pub(super) use list::worlds;
use rules::LevelWatches;
use state::{LevelWatchesState, LevelWatchesStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix, its watches before sight";
const ONCE: &str = "one event for one registration, behind its reply";
const FIRES: &str = "a change that is watched is told";

impl Model for LevelWatches {
    type State = LevelWatchesState;
    type Action = LevelWatchesStep;

    fn init_states(&self) -> Vec<LevelWatchesState> {
        vec![LevelWatchesState::default()]
    }

    fn actions(&self, state: &LevelWatchesState, actions: &mut Vec<LevelWatchesStep>) {
        if !state.order.has_circle() && state.events_of_one <= 1 {
            state.actions(self, actions);
        }
    }

    fn next_state(&self, last: &LevelWatchesState, action: LevelWatchesStep) -> Option<LevelWatchesState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &LevelWatchesState| !state.order.has_circle()),
            Property::always(ONCE, |_, state: &LevelWatchesState| state.events_of_one <= 1),
            Property::always(FIRES, |model: &Self, state: &LevelWatchesState| {
                !state.owes_event(model) || state.order.has_circle() || !is_terminal(model, state)
            }),
            Property::sometimes("an event is told", |_, state: &LevelWatchesState| state.events_of_one > 0),
            Property::sometimes("all is answered", |model: &Self, state: &LevelWatchesState| {
                state.is_answered(model)
            }),
        ]
    }
}
