//! World: a session attaches to groups, moves between members, and ends, while what its former owners sent is on its way.
//!
//! Home decides and tells each group by its numbered stream. Every message may arrive at any time, or never; items of a
//! stream arrive again and out of turn. The ephemerals go with the fence here: the world of ends shows how they go at one
//! point.

mod rules;
mod state;
mod steps;

use stateright::{Model, Property};

use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{Owners, OwnersMistake, OwnersRequest};
use state::{OwnersState, OwnersStep};

const ORDER: &str = "a session's requests take effect in its order";
const LATE: &str = "no write after its client was told expired";
const LEFT: &str = "an ended session leaves neither ephemerals nor staged parts";
const LOST: &str = "a run that was decided is in every group of it";

impl Model for Owners {
    type State = OwnersState;
    type Action = OwnersStep;

    fn init_states(&self) -> Vec<OwnersState> {
        vec![OwnersState::default()]
    }

    fn actions(&self, state: &OwnersState, actions: &mut Vec<OwnersStep>) {
        state.actions(self, actions);
    }

    fn next_state(&self, last: &OwnersState, action: OwnersStep) -> Option<OwnersState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ORDER, |_, state: &OwnersState| !state.is_out_of_order),
            Property::always(LATE, |_, state: &OwnersState| !state.wrote_after_told),
            Property::always(LEFT, |model: &Self, state: &OwnersState| {
                !state.is_left_over() || state.is_broken() || !is_terminal(model, state)
            }),
            Property::always(LOST, |model: &Self, state: &OwnersState| {
                !state.lacks_run() || state.is_broken() || !is_terminal(model, state)
            }),
            Property::sometimes("the program ends", |model: &Self, state: &OwnersState| {
                state.took_effect.count_ones() as usize == model.program.len()
            }),
            Property::sometimes("the client is told expired", |_, state: &OwnersState| state.told),
        ]
    }
}

/// The worlds of owners.
pub(super) fn worlds() -> Vec<ModelWorld> {
    use OwnersRequest::{CreateEphemeral, Run, Sync, Write};
    let model = |mistake, program: &[OwnersRequest], moves, detaches| Owners {
        mistake,
        program: program.to_vec(),
        moves,
        detaches,
    };
    let moving = |mistake| {
        model(mistake, &[Write { group: 0 }, CreateEphemeral { group: 1 }, Write { group: 1 }], 2, 0)
    };
    let running = |mistake| model(mistake, &[Run, Write { group: 1 }, Sync { group: 0 }], 1, 0);
    let detaching = |mistake| model(mistake, &[CreateEphemeral { group: 0 }, Write { group: 1 }], 1, 1);
    let syncing = |mistake| model(mistake, &[Write { group: 1 }, Sync { group: 0 }], 1, 0);
    vec![
        ModelWorld::holds(
            "owners/moves",
            "a session that writes to two groups has three owners and ends",
            moving(None),
        ),
        ModelWorld::holds("owners/runs", "its run is on its way when it moves or ends", running(None)),
        ModelWorld::holds(
            "owners/detaches",
            "it detaches from a group when it is idle there",
            detaching(None),
        ),
        ModelWorld::holds(
            "owners/all",
            "five requests, one of them a run, three moves and two detaches",
            model(
                None,
                &[
                    Write { group: 0 },
                    Run,
                    CreateEphemeral { group: 1 },
                    Write { group: 0 },
                    Sync { group: 1 },
                ],
                3,
                2,
            ),
        )
        .large(),
        ModelWorld::finds(
            "owners/attach-late",
            "a session attaches before its first ephemeral only",
            LATE,
            detaching(Some(OwnersMistake::AttachesForEphemeralsOnly)),
        ),
        ModelWorld::finds(
            "owners/attach-ended",
            "home attaches a session that has ended",
            LATE,
            moving(Some(OwnersMistake::AttachesAfterEnd)),
        ),
        ModelWorld::finds(
            "owners/process",
            "an owner is a member and its process",
            ORDER,
            moving(Some(OwnersMistake::OwnerIsProcess)),
        ),
        ModelWorld::finds(
            "owners/own-group",
            "a new owner's write waits for the item of its own group only",
            ORDER,
            moving(Some(OwnersMistake::WriteWaitsForItsGroup)),
        ),
        ModelWorld::finds(
            "owners/sync",
            "a sync after a move waits for one group only",
            ORDER,
            syncing(Some(OwnersMistake::SyncWaitsForItsGroup)),
        ),
        ModelWorld::finds(
            "owners/run-lives",
            "a new owner leaves the former one's undecided run",
            ORDER,
            running(Some(OwnersMistake::RunOutlivesOwner)),
        ),
        ModelWorld::finds(
            "owners/stages",
            "a group stages parts for former owners and ended sessions",
            LEFT,
            running(Some(OwnersMistake::FormerOwnerStages)),
        ),
        ModelWorld::finds(
            "owners/keeps-part",
            "a group that hears of a new owner keeps what is staged",
            LEFT,
            running(Some(OwnersMistake::ItemKeepsPart)),
        ),
        ModelWorld::finds(
            "owners/detach-forgets",
            "home forgets a group before it has heard of the detach",
            LATE,
            detaching(Some(OwnersMistake::DetachForgets)),
        ),
        ModelWorld::finds(
            "owners/detach-ephemeral",
            "a group lets go of a session with an ephemeral there",
            LEFT,
            detaching(Some(OwnersMistake::DetachLeavesEphemeral)),
        ),
        ModelWorld::finds(
            "owners/supersedes-release",
            "an item of a new owner replaces a release that was not sent yet",
            LOST,
            running(Some(OwnersMistake::SupersedesRelease)),
        ),
        ModelWorld::finds(
            "owners/item-twice",
            "an item that arrives again is applied again",
            ORDER,
            moving(Some(OwnersMistake::ItemTwice)),
        ),
        ModelWorld::finds(
            "owners/item-gap",
            "an item is applied before an earlier one has arrived",
            LOST,
            running(Some(OwnersMistake::ItemAfterGap)),
        ),
    ]
}
