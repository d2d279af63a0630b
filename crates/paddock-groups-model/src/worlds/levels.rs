//! World: sessions read and write in home and two groups, while what home decides reaches each group late.
//!
//! A decision is one entry of home's, and an item in each group that it concerns: the end of a session with ephemerals there, or a slot
//! that moves. A session may meet any replicas. It waits until a replica lacks nothing up to what other groups have shown to it.

mod rules;
mod state;
mod steps;

use stateright::{Model, Property};

use super::level_logs::LevelRule;
use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{Levels, LevelsChangeKind, LevelsMistake, LevelsRequest, decision, set, write};
use state::{LevelsState, LevelsStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix";
const ENDS: &str = "all that began ends";

impl Model for Levels {
    type State = LevelsState;
    type Action = LevelsStep;

    fn init_states(&self) -> Vec<LevelsState> {
        vec![LevelsState::default()]
    }

    fn actions(&self, state: &LevelsState, actions: &mut Vec<LevelsStep>) {
        if !state.order.has_circle() && !state.is_done(self) {
            state.actions(self, actions);
        }
    }

    fn next_state(&self, last: &LevelsState, action: LevelsStep) -> Option<LevelsState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &LevelsState| !state.order.has_circle()),
            Property::always(ENDS, |model: &Self, state: &LevelsState| {
                state.is_done(model) || state.order.has_circle() || !is_terminal(model, state)
            }),
            Property::sometimes("all is answered", |model: &Self, state: &LevelsState| state.is_done(model)),
        ]
    }
}

/// The worlds of levels.
pub(super) fn worlds() -> Vec<ModelWorld> {
    use LevelsChangeKind::{Acl, Delete};
    use LevelsMistake::*;
    use LevelsRequest::{Look, Read, Sync, Write};
    let base = Levels {
        mistake: None,
        clocks: [0, 0, 0],
        znodes: vec![0, 1, 2],
        changes: vec![decision(&[0, 1, 2]), set(1), set(2)],
        programs: [vec![Look, Look, Look], vec![Look, Write(1)], vec![Write(2)]],
        moves: 0,
    };
    let one = |mistake| Levels { mistake, ..base.clone() };
    // A group that is behind the clock of home.
    let slow = |mistake| Levels {
        mistake,
        clocks: [3, 0, 2],
        znodes: vec![0, 1, 2, 1],
        changes: vec![decision(&[0, 1, 2]), set(3), set(2)],
        ..base.clone()
    };
    let two = |mistake| Levels {
        mistake,
        changes: vec![decision(&[1, 2]), decision(&[0, 1]), set(2), set(1)],
        programs: [vec![Look, Look, Look], vec![Look, Write(2)], vec![Write(3)]],
        ..base.clone()
    };
    let writers = |mistake| Levels {
        mistake,
        changes: vec![decision(&[1, 2]), set(1), set(2), set(0)],
        programs: [vec![Look, Look], vec![Look, Write(1), Write(2)], vec![Look, Write(3)]],
        ..base.clone()
    };
    let moving = |mistake| Levels {
        mistake,
        moves: 1,
        programs: [vec![Look, Look, Look], vec![Write(1), Write(2)], vec![]],
        ..base.clone()
    };
    let answers = |mistake| Levels {
        mistake,
        changes: vec![write(Delete, 1), write(Acl, 1), set(2)],
        programs: [vec![Look, Look, Look], vec![Write(2), Write(0)], vec![Look, Write(1)]],
        ..base.clone()
    };
    // Home relays a session's writes to one group after the other.
    let relays = |mistake| Levels {
        mistake,
        clocks: [1, 0, 2],
        changes: vec![decision(&[1]), decision(&[2]), set(1), set(2)],
        programs: [vec![Look, Look, Look], vec![Write(0), Write(1), Look], vec![Look, Write(2), Write(3)]],
        ..base.clone()
    };
    // A group without writes.
    let idle = |mistake| Levels {
        mistake,
        changes: vec![set(1)],
        programs: [vec![Read(1), Read(2)], vec![Write(0)], vec![]],
        ..base.clone()
    };
    let syncing = |mistake| Levels {
        mistake,
        changes: vec![decision(&[1, 2]), set(2)],
        programs: [vec![Write(0)], vec![Write(1)], vec![Sync, Read(1), Read(2)]],
        ..base.clone()
    };
    vec![
        ModelWorld::holds(
            "levels",
            "home decides for both groups, a session looks anywhere, one looks and writes, one writes",
            one(None),
        ),
        ModelWorld::holds(
            "levels/clocks",
            "the same, with home's clock ahead of those of the groups",
            slow(None),
        ),
        ModelWorld::holds("levels/two", "two decisions of home's for different groups", two(None)),
        ModelWorld::holds(
            "levels/writers",
            "sessions look, and write to one group after the other",
            writers(None),
        ),
        ModelWorld::holds(
            "levels/relays",
            "home relays writes of a session to one group after the other, before the first has them",
            relays(None),
        ),
        ModelWorld::holds("levels/moves", "sessions move once to members that lag", moving(None)),
        ModelWorld::holds("levels/answers", "a znode is deleted, and its parent's ACL set", answers(None)),
        ModelWorld::holds(
            "levels/all",
            "two decisions, groups whose clocks differ, sessions that look, write and move",
            Levels { clocks: [2, 0, 3], moves: 1, ..two(None) },
        )
        .large(),
        ModelWorld::holds("levels/sync", "a session syncs behind what others were told", syncing(None)),
        ModelWorld::holds(
            "levels/own-waits",
            "no mistake: a group waits for its own stamps, too",
            one(Some(OwnGroupWaits)),
        ),
        ModelWorld::holds(
            "levels/entry-shows",
            "no mistake: the change of an item shows the stamp of its entry, not that of the decision",
            slow(Some(ItemShowsEntry)),
        ),
        ModelWorld::holds(
            "levels/last-item",
            "no mistake: home forgets what was acknowledged, and a replica that lacks it has the level of its last item",
            two(Some(Level(LevelRule::LastItem))),
        ),
        ModelWorld::finds(
            "levels/read-waits-not",
            "a read waits for nothing that other groups have shown",
            ONE_ORDER,
            one(Some(ReadDoesNotWait)),
        ),
        ModelWorld::finds(
            "levels/write-waits-not",
            "a write is handed to its group whatever other groups have shown",
            ONE_ORDER,
            writers(Some(WriteDoesNotWait)),
        ),
        ModelWorld::finds(
            "levels/write-below",
            "a write is stamped by its group's log alone, and may be below what other groups have shown",
            ONE_ORDER,
            writers(Some(WriteStampedByLog)),
        ),
        ModelWorld::finds(
            "levels/without-home",
            "a group's level may be above that of home's replica on the same member",
            ONE_ORDER,
            one(Some(Level(LevelRule::WithoutHome))),
        ),
        ModelWorld::finds(
            "levels/without-items",
            "an item that is not applied does not lower a level",
            ONE_ORDER,
            one(Some(Level(LevelRule::WithoutItems))),
        ),
        ModelWorld::finds(
            "levels/relayed-without-items",
            "the same, of writes that home relays",
            ONE_ORDER,
            relays(Some(Level(LevelRule::WithoutItems))),
        ),
        ModelWorld::finds(
            "levels/at-decision",
            "a level may be the stamp of a decision whose item is not applied",
            ONE_ORDER,
            one(Some(Level(LevelRule::AtDecision))),
        ),
        ModelWorld::finds(
            "levels/acknowledged",
            "home forgets the stamps of decisions that the group has acknowledged, applied here or not",
            ONE_ORDER,
            one(Some(Level(LevelRule::WithoutAcknowledged))),
        ),
        ModelWorld::finds(
            "levels/item-below",
            "an entry with an item is stamped by its group's log alone, and may be below the decision",
            ONE_ORDER,
            slow(Some(ItemStampedBelow)),
        ),
        ModelWorld::finds(
            "levels/one-stamp",
            "a session carries its largest stamp and the group that showed it, which waits for no other",
            ONE_ORDER,
            two(Some(OneStampAndGroup)),
        ),
        ModelWorld::finds(
            "levels/claim-own",
            "after a move the client's stamp counts as shown by the group that it looked at last",
            ONE_ORDER,
            moving(Some(ClaimIsOwn)),
        ),
        ModelWorld::finds(
            "levels/own-not-applied",
            "a replica need not have what its own group has shown",
            ONE_ORDER,
            one(Some(OwnGroupNotApplied)),
        ),
        ModelWorld::finds(
            "levels/missing",
            "an answer about a missing znode shows no stamp",
            ONE_ORDER,
            answers(Some(MissingShowsNothing)),
        ),
        ModelWorld::finds(
            "levels/acl",
            "the change of an ACL shows no stamp",
            ONE_ORDER,
            answers(Some(AclShowsNothing)),
        ),
        ModelWorld::finds(
            "levels/sync-one",
            "a sync asks the group of its path only",
            ONE_ORDER,
            syncing(Some(SyncOfOneGroup)),
        ),
        ModelWorld::finds(
            "levels/idle",
            "an idle group that is asked logs nothing",
            ENDS,
            idle(Some(NoEmptyEntries)),
        ),
        ModelWorld::finds(
            "levels/idle-home",
            "an idle home that is asked logs nothing",
            ENDS,
            one(Some(NoEmptyEntriesAtHome)),
        ),
    ]
}
