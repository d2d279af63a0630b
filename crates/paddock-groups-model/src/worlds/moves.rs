//! World: a slot of a split point moves from one group to another while clients write, read and list, and sessions end.
//!
//! The target copies the slot, the last delta is staged and holds it, and home's decision gives the map a new version. One
//! session writes to the slot and to another slot that stays, as many requests at once as go to one group. Another
//! session creates an ephemeral in the slot and ends. A third one reads and lists at any replicas.

mod handover;
mod rules;
mod sessions;
mod state;

use stateright::{Model, Property};

use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{Moves, MovesMistake};
use state::{MovesState, MovesStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix";
const LEFT: &str = "an ended session leaves no ephemeral";
const ONCE: &str = "a child is in a list once";
const DONE: &str = "what was sent is done in the end";

impl Model for Moves {
    type State = MovesState;
    type Action = MovesStep;

    fn init_states(&self) -> Vec<MovesState> {
        vec![MovesState::default()]
    }

    fn actions(&self, state: &MovesState, actions: &mut Vec<MovesStep>) {
        if !state.is_broken() {
            state.actions(self, actions);
        }
    }

    fn next_state(&self, last: &MovesState, action: MovesStep) -> Option<MovesState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &MovesState| !state.order.has_circle()),
            Property::always(ONCE, |_, state: &MovesState| !state.listed_twice),
            Property::always(LEFT, |model: &Self, state: &MovesState| {
                !state.has_orphan() || state.is_broken() || !is_terminal(model, state)
            }),
            Property::always(DONE, |model: &Self, state: &MovesState| {
                state.is_done(model) || state.is_broken() || !is_terminal(model, state)
            }),
            Property::sometimes("the slot moved and all was written", |model: &Self, state: &MovesState| {
                state.has_moved() && state.is_done(model)
            }),
        ]
    }
}

/// The worlds of moves.
pub(super) fn worlds() -> Vec<ModelWorld> {
    let writing = |mistake| Moves {
        mistake,
        program: vec![true, false, true],
        attempts: 2,
        ephemeral: false,
        looks: 0,
    };
    let looking =
        |mistake| Moves { mistake, program: vec![true, true], attempts: 2, ephemeral: false, looks: 2 };
    let both =
        |mistake| Moves { mistake, program: vec![true, false], attempts: 2, ephemeral: false, looks: 2 };
    let ending = |mistake, looks| Moves { mistake, program: Vec::new(), attempts: 1, ephemeral: true, looks };
    use MovesMistake::*;
    vec![
        ModelWorld::holds("moves", "a slot moves while a session writes to it and beside it", writing(None)),
        ModelWorld::holds("moves/reads", "another session reads and lists meanwhile", looking(None)).large(),
        ModelWorld::holds("moves/beside", "the same, with a write to a slot that stays", both(None)).large(),
        ModelWorld::holds(
            "moves/ends",
            "a session with an ephemeral in the slot ends meanwhile",
            ending(None, 1),
        )
        .large(),
        ModelWorld::holds(
            "moves/ends-writes",
            "the same, with a write to the slot",
            Moves { program: vec![true], attempts: 2, ..ending(None, 0) },
        )
        .large(),
        ModelWorld::finds(
            "moves/no-delta",
            "the map changes when the copy is there",
            ONE_ORDER,
            looking(Some(NoStagedDelta)),
        ),
        ModelWorld::finds(
            "moves/no-meanwhile",
            "changes between copy and delta are not in the delta",
            ONE_ORDER,
            writing(Some(DeltaLacksMeanwhile)),
        ),
        ModelWorld::finds(
            "moves/no-hold",
            "the last delta does not hold the slot",
            ONE_ORDER,
            writing(Some(DeltaDoesNotHold)),
        ),
        ModelWorld::finds(
            "moves/refuses-slot",
            "the source refuses commands on that slot only",
            ONE_ORDER,
            both(Some(RefusesSlotOnly)),
        ),
        ModelWorld::finds(
            "moves/refuses-nothing",
            "the source takes commands with an older map",
            ONE_ORDER,
            writing(Some(RefusesNothing)),
        ),
        ModelWorld::finds(
            "moves/mixes-versions",
            "a member sends with a new map while requests with the older one are on their way",
            ONE_ORDER,
            writing(Some(MixesVersions)),
        ),
        ModelWorld::finds(
            "moves/target-early",
            "the target takes commands before it has installed the slot",
            ONE_ORDER,
            writing(Some(TargetTakesEarly)),
        ),
        ModelWorld::finds(
            "moves/owners-once",
            "owners of ephemerals are attached before the copy only",
            LEFT,
            ending(Some(OwnersAttachedOnce), 0),
        ),
        ModelWorld::finds(
            "moves/end",
            "an end meanwhile does not make the delta busy",
            LEFT,
            ending(Some(EndDoesNotDisturb), 0),
        ),
        ModelWorld::finds(
            "moves/map-of-now",
            "a child's place is by the map of now",
            ONE_ORDER,
            looking(Some(PlaceByMapOfNow)),
        ),
        ModelWorld::finds(
            "moves/map-of-replica",
            "a child's place is by what each replica has applied",
            ONE_ORDER,
            looking(Some(PlaceByReplica)),
        ),
        ModelWorld::finds(
            "moves/lists-applied",
            "a list takes of each group what it has applied",
            ONCE,
            looking(Some(ListsApplied)),
        ),
        ModelWorld::finds(
            "moves/keeps-hold",
            "a delta that was given up keeps its hold",
            DONE,
            writing(Some(GivenUpHolds)),
        ),
    ]
}
