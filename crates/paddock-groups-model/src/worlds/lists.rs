//! World: the children of a split point, which lie in two groups, are listed as of one moment.
//!
//! Plain writes, runs and multis change children in both groups; sessions list and read at any replicas. A list is a cut of the
//! one order: each change is in it or not by its place, which a released part shares with the other parts of its decision.

mod rules;
mod state;

use stateright::{Model, Property};

use crate::world::ModelWorld;
use rules::{Lists, ListsChange, ListsMistake};
use state::{ListsState, ListsStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix";

impl Model for Lists {
    type State = ListsState;
    type Action = ListsStep;

    fn init_states(&self) -> Vec<ListsState> {
        vec![ListsState::default()]
    }

    fn actions(&self, state: &ListsState, actions: &mut Vec<ListsStep>) {
        if !state.order.has_circle() {
            state.actions(self, actions);
        }
    }

    fn next_state(&self, last: &ListsState, action: ListsStep) -> Option<ListsState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &ListsState| !state.order.has_circle()),
            Property::sometimes("all is listed", |model: &Self, state: &ListsState| {
                state.is_all_listed(model)
            }),
        ]
    }
}

/// The worlds of lists.
pub(super) fn worlds() -> Vec<ModelWorld> {
    let write = |group, write, after| ListsChange { parts: vec![(group, write)], after };
    let staged = |parts: &[(usize, u8)]| ListsChange { parts: parts.to_vec(), after: None };
    let run = |mistake| Lists {
        mistake,
        groups: 2,
        changes: vec![staged(&[(0, 0), (1, 1), (0, 2)]), write(1, 3, None), write(0, 4, Some(1))],
        looks: vec![2, 1],
    };
    let multi = |mistake| Lists {
        mistake,
        groups: 2,
        changes: vec![staged(&[(0, 0), (1, 0)]), write(1, 1, None), write(0, 2, None)],
        looks: vec![2, 1],
    };
    let two = |mistake| Lists {
        mistake,
        groups: 2,
        changes: vec![staged(&[(0, 0), (1, 0)]), staged(&[(1, 1), (0, 1)])],
        looks: vec![2],
    };
    let behind = |mistake| Lists {
        mistake,
        groups: 2,
        changes: vec![staged(&[(0, 0), (1, 0)]), write(1, 1, None), write(1, 2, None)],
        looks: vec![2],
    };
    let home = |mistake| Lists {
        mistake,
        groups: 3,
        changes: vec![write(0, 0, None), write(1, 1, Some(0)), write(2, 2, Some(1))],
        looks: vec![2],
    };
    use ListsMistake::*;
    vec![
        ModelWorld::holds(
            "lists",
            "children of a split point in two groups, a run over both, two writes",
            run(None),
        ),
        ModelWorld::holds("lists/multi", "a multi over both groups, two writes", multi(None)).large(),
        ModelWorld::holds(
            "lists/behind",
            "a multi over both groups, two writes in one of them",
            behind(None),
        ),
        ModelWorld::holds("lists/two", "two multis over both groups", two(None)).large(),
        ModelWorld::holds(
            "lists/two-beside",
            "two multis over both groups, and a write",
            Lists {
                changes: [two(None).changes, vec![write(1, 2, None)]].concat(),
                looks: vec![1],
                ..two(None)
            },
        )
        .large(),
        ModelWorld::holds(
            "lists/raised",
            "cut by stamps that rise above each decision's last part",
            multi(Some(CutByRaisedStamp)),
        )
        .large(),
        ModelWorld::finds(
            "lists/newest",
            "a list takes of each group what its replica has applied",
            ONE_ORDER,
            multi(Some(NewestOfEach)),
        ),
        ModelWorld::finds(
            "lists/by-stamp",
            "a change is in a list by its stamp",
            ONE_ORDER,
            multi(Some(CutByStamp)),
        ),
        ModelWorld::finds("lists/run-by-stamp", "the same, with a run", ONE_ORDER, run(Some(CutByStamp))),
        ModelWorld::finds(
            "lists/below-seen",
            "a list may be of a stamp below what its session has seen",
            ONE_ORDER,
            run(Some(BelowSeen)),
        ),
        ModelWorld::holds("lists/home", "the split point itself changes behind its children", home(None)),
        ModelWorld::finds(
            "lists/below-own",
            "a list may be of a stamp below the split point's own change",
            ONE_ORDER,
            home(Some(BelowOwnChange)),
        ),
        ModelWorld::finds(
            "lists/reveals-nothing",
            "a list does not count as seen",
            ONE_ORDER,
            run(Some(RevealsNothing)),
        ),
        ModelWorld::finds(
            "lists/at-past-part",
            "a replica is at its last stamp though an older part is staged",
            ONE_ORDER,
            multi(Some(AtPastStagedPart)),
        ),
    ]
}
