//! The worlds of watches and levels, and those with a mistake.

use super::rules::{CHILDREN, LevelWatches, LevelWatchesMistake, decision, set};
use super::{FIRES, ONE_ORDER};
use crate::world::ModelWorld;

/// The worlds of watches and levels.
pub(in crate::worlds) fn worlds() -> Vec<ModelWorld> {
    use LevelWatchesMistake::*;
    let base = LevelWatches {
        mistake: None,
        changes: Vec::new(),
        own: None,
        listed: vec![],
        reads: vec![0, 1],
        watched: vec![0, 1],
        requests: 3,
        moves: 0,
        observer_reads: 0,
    };
    // A writer changes home behind its change of a group, and home decides for that group.
    let one = |mistake| LevelWatches {
        mistake,
        changes: vec![set(1, None), set(0, Some(0)), decision(&[0, 1])],
        ..base.clone()
    };
    let moving = |mistake| LevelWatches {
        moves: 1,
        requests: 2,
        changes: vec![set(1, None), decision(&[0, 1])],
        ..one(mistake)
    };
    let both = |mistake| LevelWatches {
        mistake,
        changes: vec![set(1, None), set(2, Some(0)), decision(&[1, 2])],
        reads: vec![1, 2],
        watched: vec![1, 2],
        ..base.clone()
    };
    let own = |mistake| LevelWatches {
        mistake,
        changes: vec![set(1, None), decision(&[0, 1])],
        own: Some(0),
        requests: 2,
        ..base.clone()
    };
    let own_moves = |mistake| LevelWatches { moves: 1, ..own(mistake) };
    let own_two = |mistake| LevelWatches {
        changes: vec![set(1, None), set(2, None), decision(&[1, 2])],
        reads: vec![2],
        watched: vec![2],
        ..own(mistake)
    };
    let own_child = |mistake| LevelWatches {
        changes: vec![set(1, None), set(2, None), decision(&[0, 1])],
        listed: vec![1, 2],
        reads: vec![CHILDREN, 0],
        watched: vec![CHILDREN, 0],
        moves: 0,
        ..own_moves(mistake)
    };
    let own_beside = |mistake| LevelWatches {
        changes: vec![set(1, None), set(1, None), set(2, Some(1))],
        reads: vec![1, 2],
        watched: vec![2],
        ..own(mistake)
    };
    let children = |mistake| LevelWatches {
        mistake,
        changes: vec![set(1, None), set(2, None), decision(&[1])],
        listed: vec![1, 2],
        reads: vec![CHILDREN, 0, 1],
        watched: vec![CHILDREN],
        requests: 2,
        ..base.clone()
    };
    let children_moves = |mistake| LevelWatches { moves: 1, reads: vec![CHILDREN, 1], ..children(mistake) };
    let observed = |mistake| LevelWatches {
        mistake,
        changes: vec![set(1, None), set(2, None), decision(&[1])],
        own: Some(0),
        reads: vec![2],
        watched: vec![2],
        requests: 1,
        observer_reads: 2,
        ..base.clone()
    };
    vec![
        ModelWorld::holds(
            "level-watches",
            "watches at home and in a group, a writer of both, a decision for both",
            one(None),
        )
        .large(),
        ModelWorld::holds("level-watches/both", "watches in two groups, and a decision for both", both(None))
            .large(),
        ModelWorld::holds("level-watches/moves", "the session moves once, with setWatches", moving(None))
            .large(),
        ModelWorld::holds("level-watches/own", "the session writes what a decision changes", own(None)),
        ModelWorld::holds("level-watches/own-moves", "the same, and it moves once", own_moves(None)).large(),
        ModelWorld::holds(
            "level-watches/own-two",
            "the decision is for two groups, and another one writes in one of them",
            own_two(None),
        )
        .large(),
        ModelWorld::holds(
            "level-watches/own-child",
            "it creates a child, and watches the children and home",
            own_child(None),
        )
        .large(),
        ModelWorld::holds(
            "level-watches/own-beside",
            "it writes beside a writer that it watches",
            own_beside(None),
        ),
        ModelWorld::holds(
            "level-watches/children",
            "a watch on the children of a split point in two groups, of which one has an item to come",
            children(None),
        ),
        ModelWorld::holds(
            "level-watches/children-moves",
            "the same, and the session moves once",
            children_moves(None),
        ),
        ModelWorld::holds(
            "level-watches/observed",
            "the session writes, and another one looks on",
            observed(None),
        )
        .large(),
        ModelWorld::holds(
            "level-watches/again-if-older",
            "no mistake: an answer is read again only if its replica was at less than the event's place",
            both(Some(AgainIfOlder)),
        )
        .large(),
        ModelWorld::finds(
            "level-watches/not-pulled",
            "an item that is applied leaves earlier events where their stamps are",
            ONE_ORDER,
            both(Some(EventsNotPulled)),
        ),
        ModelWorld::finds(
            "level-watches/write-not-awaited",
            "an event leaves without waiting for the group of a write under way",
            ONE_ORDER,
            own_beside(Some(WriteNotAwaited)),
        ),
        ModelWorld::finds(
            "level-watches/fired-not-awaited",
            "a group whose watch has fired is not waited for, though the event has not left",
            ONE_ORDER,
            both(Some(FiredNotAwaited)),
        ),
        ModelWorld::finds(
            "level-watches/overtakes-own",
            "an event goes in front of the reply of an own write that is before it",
            ONE_ORDER,
            own(Some(EventOvertakesOwn)),
        ),
        ModelWorld::finds(
            "level-watches/own-by-stamp",
            "the reply of an own write leaves behind the events up to its stamp",
            ONE_ORDER,
            own(Some(OwnByStamp)),
        ),
        ModelWorld::finds(
            "level-watches/own-stamp",
            "the reply of an own write that was pulled forward carries its stamp",
            FIRES,
            own_moves(Some(OwnCarriesStamp)),
        ),
        ModelWorld::finds(
            "level-watches/event-stamp",
            "an event that was pulled forward shows its stamp, which the reply of an own write then carries",
            FIRES,
            own_moves(Some(EventsShowStamp)),
        )
        .large(),
        ModelWorld::finds(
            "level-watches/no-spare",
            "a decision's place is the stamp that its change at home has",
            FIRES,
            own_moves(Some(NoSpareStamp)),
        ),
        ModelWorld::finds(
            "level-watches/not-again",
            "an answer is not read again though an event goes in front of it",
            ONE_ORDER,
            one(Some(NotReadAgain)),
        ),
        ModelWorld::finds(
            "level-watches/ties",
            "events in one place leave in any order",
            ONE_ORDER,
            both(Some(TiesInAnyOrder)),
        ),
        ModelWorld::finds(
            "level-watches/first-change",
            "the event of a watch on children keeps the change that was applied first",
            ONE_ORDER,
            children(Some(KeepsFirstChange)),
        ),
        ModelWorld::finds(
            "level-watches/lists-applied",
            "a list takes of each group what is applied",
            ONE_ORDER,
            children(Some(ListsApplied)),
        ),
        ModelWorld::finds(
            "level-watches/lists-by-stamp",
            "a list takes what has stamps up to its own, not what has places",
            ONE_ORDER,
            children(Some(ListsByStamp)),
        ),
        ModelWorld::finds(
            "level-watches/replies",
            "a reply does not wait for the groups with watches",
            ONE_ORDER,
            one(Some(RepliesNotGated)),
        ),
        ModelWorld::finds(
            "level-watches/events",
            "an event does not wait for the groups with watches",
            ONE_ORDER,
            one(Some(EventsNotGated)),
        ),
        ModelWorld::finds(
            "level-watches/events-show",
            "a read waits for nothing that an event has shown",
            ONE_ORDER,
            one(Some(EventsShowNothing)),
        ),
        ModelWorld::finds(
            "level-watches/set-watches",
            "setWatches compares no stamps",
            FIRES,
            moving(Some(SetWatchesFiresNothing)),
        ),
        ModelWorld::finds(
            "level-watches/move-waits-not",
            "a member takes a session before it is at what the client saw",
            ONE_ORDER,
            moving(Some(MoveDoesNotWait)),
        ),
    ]
}
