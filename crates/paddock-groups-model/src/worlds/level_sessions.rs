//! World: a session attaches to groups, moves between members and their processes, and ends, while what its former owners sent is on its way.
//!
//! Home decides and tells each attached group by items. Commands say which process sends them, and carry no number: a process
//! takes a session back when it has nothing of it under way, and the new owner's writes wait for the items. An end is a decision without fences. What comes late from an ended session stands in front of
//! the end; no session that knows of the end looks before it is there.

mod rules;
mod state;
mod steps;

use stateright::{Model, Property};

use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{LevelSessions, LevelSessionsMistake, LevelSessionsRequest};
use state::{LevelSessionsState, LevelSessionsStep};

const ORDER: &str = "a session's requests take effect in its order, and none behind one that was refused";
const OWN_LOCK: &str = "a client that was told expired finds its locks gone";
const LEFT: &str = "an ended session leaves no ephemeral";

impl Model for LevelSessions {
    type State = LevelSessionsState;
    type Action = LevelSessionsStep;

    fn init_states(&self) -> Vec<LevelSessionsState> {
        vec![LevelSessionsState::first()]
    }

    fn actions(&self, state: &LevelSessionsState, actions: &mut Vec<LevelSessionsStep>) {
        state.actions(self, actions);
    }

    fn next_state(&self, last: &LevelSessionsState, action: LevelSessionsStep) -> Option<LevelSessionsState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ORDER, |_, state: &LevelSessionsState| !state.is_out_of_order),
            Property::always(OWN_LOCK, |_, state: &LevelSessionsState| !state.found_own_lock),
            Property::always(LEFT, |model: &Self, state: &LevelSessionsState| {
                !state.is_left_over() || state.is_broken() || !is_terminal(model, state)
            }),
            Property::sometimes("the program ends", |model: &Self, state: &LevelSessionsState| {
                state.took_effect.count_ones() as usize == model.program.len()
            }),
            Property::sometimes("the client is told expired", |_, state: &LevelSessionsState| state.told),
        ]
    }
}

/// The worlds of sessions without open parts.
pub(super) fn worlds() -> Vec<ModelWorld> {
    use LevelSessionsMistake::*;
    use LevelSessionsRequest::{CreateEphemeral, Sync, Write};
    let base = LevelSessions {
        mistake: None,
        program: vec![Write { group: 1 }, CreateEphemeral { group: 2 }, Write { group: 2 }],
        processes: vec![(1, 1), (2, 1), (1, 1)],
    };
    // The session comes back to the process in which its first requests are.
    let back = |mistake| LevelSessions { mistake, ..base.clone() };
    // The session comes back to the member, which has been started again.
    let again = |mistake| LevelSessions { processes: vec![(1, 1), (2, 1), (1, 2)], ..back(mistake) };
    let together = |mistake| LevelSessions {
        mistake,
        program: vec![Write { group: 1 }, Write { group: 1 }, Write { group: 0 }],
        ..base.clone()
    };
    let syncing = |mistake| LevelSessions {
        mistake,
        program: vec![Write { group: 1 }, Sync, Write { group: 0 }],
        processes: vec![(1, 1), (2, 1)],
    };
    vec![
        ModelWorld::holds(
            "level-sessions",
            "a session moves away and back to the same process, and ends",
            back(None),
        ),
        ModelWorld::holds(
            "level-sessions/again",
            "it comes back to another process of the member",
            again(None),
        ),
        ModelWorld::holds(
            "level-sessions/together",
            "two requests to one group are under way together, one to home follows",
            together(None),
        ),
        ModelWorld::holds("level-sessions/sync", "it syncs after a move", syncing(None)),
        ModelWorld::holds(
            "level-sessions/item-stalls",
            "no mistake: a process takes a session back at once, and an owner's item stalls it until the owner says to go on",
            together(Some(OwnerItemStalls)),
        ),
        ModelWorld::holds(
            "level-sessions/item-stalls-back",
            "the same, with requests to one group after the other",
            back(Some(OwnerItemStalls)),
        ),
        ModelWorld::finds(
            "level-sessions/attach-late",
            "a session attaches before its first ephemeral only",
            ORDER,
            back(Some(AttachesForEphemeralsOnly)),
        ),
        ModelWorld::finds(
            "level-sessions/attach-ended",
            "home attaches a session that has ended",
            OWN_LOCK,
            back(Some(AttachesAfterEnd)),
        ),
        ModelWorld::finds(
            "level-sessions/own-group",
            "a new owner's write waits for the item of its own group only",
            ORDER,
            back(Some(WriteWaitsForItsGroup)),
        ),
        ModelWorld::finds(
            "level-sessions/back-at-once",
            "a process takes a session back at once, and new writes wait for what it has under way",
            ORDER,
            back(Some(TakenBackAtOnce)),
        ),
        ModelWorld::finds(
            "level-sessions/together-at-once",
            "the same, with two requests to one group, of which the first is refused",
            ORDER,
            together(Some(TakenBackAtOnce)),
        ),
        ModelWorld::finds(
            "level-sessions/under-way",
            "a process takes a session back at once, and nothing waits for what it has under way",
            ORDER,
            back(Some(LeavesUnderWay)),
        ),
        ModelWorld::finds(
            "level-sessions/member",
            "a group takes what an earlier process of the owner's member has sent",
            ORDER,
            again(Some(OwnerIsMember)),
        ),
        ModelWorld::finds(
            "level-sessions/sync-waits-not",
            "a sync after a move waits for nothing",
            ORDER,
            syncing(Some(SyncWaitsNot)),
        ),
        ModelWorld::finds(
            "level-sessions/creation",
            "a new session is not shown the stamp of its creation",
            OWN_LOCK,
            back(Some(CreationShowsNothing)),
        ),
    ]
}
