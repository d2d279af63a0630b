//! World: a slot moves from home to a group, while clients write, read and list, and a session ends.
//!
//! The decision takes the slot out of home's state, and its item brings it to the group, with the owners of its ephemerals. Commands name no
//! version of the map: a group refuses one about a slot that it does not have, and all that its session has under way there until its member
//! says to go on. Two writers have one member, which learns the map at any time; a third session reads and lists at any replicas.

mod rules;
mod sessions;
mod state;

use stateright::{Model, Property};

use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{LevelSlots, LevelSlotsMistake};
use state::{LevelSlotsState, LevelSlotsStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix";
const LEFT: &str = "an ended session leaves no ephemeral";
const ONCE: &str = "a child is in a list once";
const DONE: &str = "what was sent is done in the end";

impl Model for LevelSlots {
    type State = LevelSlotsState;
    type Action = LevelSlotsStep;

    fn init_states(&self) -> Vec<LevelSlotsState> {
        vec![LevelSlotsState::first(self)]
    }

    fn actions(&self, state: &LevelSlotsState, actions: &mut Vec<LevelSlotsStep>) {
        if !state.is_broken() {
            state.actions(self, actions);
        }
    }

    fn next_state(&self, last: &LevelSlotsState, action: LevelSlotsStep) -> Option<LevelSlotsState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &LevelSlotsState| !state.order.has_circle()),
            Property::always(ONCE, |_, state: &LevelSlotsState| !state.listed_twice),
            Property::always(LEFT, |model: &Self, state: &LevelSlotsState| {
                !state.has_orphan() || state.is_broken() || !is_terminal(model, state)
            }),
            Property::always(DONE, |model: &Self, state: &LevelSlotsState| {
                state.is_done(model) || state.is_broken() || !is_terminal(model, state)
            }),
            Property::sometimes(
                "the slot moved and all was written",
                |model: &Self, state: &LevelSlotsState| state.moved().is_some() && state.is_done(model),
            ),
        ]
    }
}

/// The worlds of slots that move away from home.
pub(super) fn worlds() -> Vec<ModelWorld> {
    use LevelSlotsMistake::*;
    let writing = |mistake| LevelSlots {
        mistake,
        programs: [vec![true, false, true], vec![]],
        ephemeral: false,
        looks: 0,
    };
    let two = |mistake| LevelSlots { programs: [vec![true, false], vec![true, false]], ..writing(mistake) };
    let three = |mistake| LevelSlots { programs: [vec![true, false, false], vec![]], ..writing(mistake) };
    let looking = |mistake| LevelSlots { programs: [vec![true, true], vec![]], looks: 2, ..writing(mistake) };
    let beside = |mistake| LevelSlots { programs: [vec![true, false], vec![]], looks: 2, ..writing(mistake) };
    let ending = |mistake| LevelSlots {
        programs: [vec![true], vec![]],
        ephemeral: true,
        looks: 2,
        ..writing(mistake)
    };
    vec![
        ModelWorld::holds(
            "level-slots",
            "a slot moves while a session writes to it and beside it",
            writing(None),
        ),
        ModelWorld::holds("level-slots/two", "two sessions of one member write", two(None)),
        ModelWorld::holds("level-slots/reads", "another session reads and lists meanwhile", looking(None)),
        ModelWorld::holds("level-slots/beside", "the same, with a write to a slot that stays", beside(None)),
        ModelWorld::holds(
            "level-slots/ends",
            "a session with an ephemeral in the slot ends meanwhile",
            ending(None),
        ),
        ModelWorld::finds(
            "level-slots/no-stall",
            "home refuses commands about the slot only",
            ONE_ORDER,
            writing(Some(RefusalStallsNothing)),
        ),
        ModelWorld::finds(
            "level-slots/go-on-for-all",
            "a member's word to go on is for all its sessions",
            ONE_ORDER,
            two(Some(GoOnForAll)),
        ),
        ModelWorld::finds(
            "level-slots/go-on-overtakes",
            "a member says to go on while commands behind the refused one are under way",
            ONE_ORDER,
            three(Some(GoOnOvertakes)),
        ),
        ModelWorld::finds(
            "level-slots/refuses-nothing",
            "home takes commands about the slot after the move",
            ONE_ORDER,
            looking(Some(RefusesNothing)),
        ),
        ModelWorld::finds(
            "level-slots/target-early",
            "the group takes commands about the slot before it has it",
            ONE_ORDER,
            looking(Some(TargetTakesEarly)),
        ),
        ModelWorld::finds(
            "level-slots/copied-early",
            "the item has the slot as it was before the decision",
            ONE_ORDER,
            looking(Some(CopiedEarly)),
        ),
        ModelWorld::finds(
            "level-slots/owners",
            "owners of ephemerals are not attached with the slot",
            LEFT,
            ending(Some(OwnersNotAttached)),
        ),
        ModelWorld::finds(
            "level-slots/reads-map-of-now",
            "a read goes by the map of now to a replica that may not have the slot",
            ONE_ORDER,
            looking(Some(ReadsByMapOfNow)),
        ),
        ModelWorld::finds(
            "level-slots/lists-map-of-now",
            "a list goes by the map of now",
            ONE_ORDER,
            looking(Some(ListsByMapOfNow)),
        ),
        ModelWorld::finds(
            "level-slots/lists-replica",
            "a list takes the slot from each replica that has it",
            ONE_ORDER,
            looking(Some(ListsByReplica)),
        ),
        ModelWorld::finds(
            "level-slots/lists-applied",
            "a list takes of each group what it has applied",
            ONE_ORDER,
            beside(Some(ListsApplied)),
        ),
    ]
}
