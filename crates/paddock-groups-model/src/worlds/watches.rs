//! World: a session with watches in two groups, at a member that applies each at its own pace, and then at another member.
//!
//! Replies and events wait at the member until every group in which the session watches is at their stamp. The client is
//! told of each change that it watches before it sees that change, or what came after it, in any other way. Its `lastZxidSeen` is
//! what the last reply carried; notifications carry none, as in ZooKeeper, so a move counts what replies told.

mod rules;
mod serving;
mod session;
mod state;

use stateright::{Model, Property};

use super::terminal::is_terminal;
use crate::world::ModelWorld;
use rules::{Watches, WatchesChange, WatchesMistake, change};
use state::{WatchesState, WatchesStep};

const ONE_ORDER: &str = "one order of which every session sees a growing prefix, its watches before sight";
const ONCE: &str = "one event for one registration, behind its reply";
const FIRES: &str = "a change that is watched is told";

impl Model for Watches {
    type State = WatchesState;
    type Action = WatchesStep;

    fn init_states(&self) -> Vec<WatchesState> {
        vec![WatchesState::default()]
    }

    fn actions(&self, state: &WatchesState, actions: &mut Vec<WatchesStep>) {
        if !state.order.has_circle() && state.events_of_one <= 1 {
            state.actions(self, actions);
        }
    }

    fn next_state(&self, last: &WatchesState, action: WatchesStep) -> Option<WatchesState> {
        let mut state = last.clone();
        state.step(self, action)?;
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ORDER, |_, state: &WatchesState| !state.order.has_circle()),
            Property::always(ONCE, |_, state: &WatchesState| state.events_of_one <= 1),
            Property::always(FIRES, |model: &Self, state: &WatchesState| {
                !state.owes_event(model) || state.order.has_circle() || !is_terminal(model, state)
            }),
            Property::sometimes("an event is told", |_, state: &WatchesState| state.events_of_one > 0),
            Property::sometimes("all is answered", |model: &Self, state: &WatchesState| {
                state.is_answered(model)
            }),
        ]
    }
}

/// The worlds of watches and of what a reply's zxid is.
pub(super) fn worlds() -> Vec<ModelWorld> {
    let base = Watches {
        mistake: None,
        changes: Vec::new(),
        own: None,
        requests: 3,
        lists: false,
        moves: 0,
        observer_reads: 0,
    };
    // A writer changes A, then B; another one changes A beside it.
    let data = |mistake| Watches {
        mistake,
        changes: vec![change(0, None), change(1, Some(0)), change(0, None)],
        moves: 1,
        ..base.clone()
    };
    let both = |mistake| Watches {
        mistake,
        changes: vec![change(0, None), change(1, Some(0)), change(0, Some(1))],
        ..base.clone()
    };
    let multi = |mistake, moves| Watches {
        mistake,
        moves,
        changes: vec![WatchesChange { groups: (0, 1), after: None }, change(1, None)],
        ..base.clone()
    };
    let children = |mistake, moves| Watches {
        mistake,
        lists: true,
        moves,
        requests: 2,
        changes: vec![change(0, None), change(1, Some(0)), change(1, None)],
        ..base.clone()
    };
    let beside = |mistake| Watches {
        mistake,
        lists: true,
        moves: 1,
        requests: 2,
        changes: vec![WatchesChange { groups: (0, 1), after: None }, change(1, None), change(0, None)],
        ..base.clone()
    };
    let four = |mistake| Watches {
        moves: 0,
        changes: [beside(None).changes, vec![change(0, None)]].concat(),
        ..beside(mistake)
    };
    let behind = |mistake| Watches {
        changes: vec![WatchesChange { groups: (0, 1), after: None }, change(1, None), change(1, None)],
        ..multi(mistake, 0)
    };
    let own = |mistake| Watches {
        mistake,
        changes: vec![change(0, None), change(1, None)],
        own: Some(1),
        requests: 1,
        observer_reads: 2,
        ..base.clone()
    };
    use WatchesMistake::*;
    vec![
        ModelWorld::holds(
            "watches",
            "data watches in two groups, three changes, a move with setWatches",
            data(None),
        ),
        ModelWorld::holds("watches/chain", "three changes of one writer, in two groups in turn", both(None)),
        ModelWorld::holds(
            "watches/multi",
            "a multi over both groups changes what is watched",
            multi(None, 1),
        ),
        ModelWorld::holds(
            "watches/children",
            "a child watch on a split point over two groups, and a move",
            children(None, 1),
        ),
        ModelWorld::holds(
            "watches/lists",
            "a child watch on a split point, a multi over both groups, a write in each, and a move",
            beside(None),
        )
        .large(),
        ModelWorld::holds(
            "watches/lists-four",
            "the same with two writes in one group, and no move",
            four(None),
        )
        .large(),
        ModelWorld::holds(
            "watches/behind",
            "data watches, a multi over both groups, two writes in one of them",
            behind(None),
        )
        .large(),
        ModelWorld::holds("watches/own", "the session writes, and another one looks on", own(None)),
        ModelWorld::holds(
            "watches/overtakes",
            "an event may go in front of a reply with a smaller stamp, since that is read again",
            both(Some(EventOvertakesReply)),
        ),
        ModelWorld::finds(
            "watches/replies",
            "a reply does not wait for the groups with watches",
            ONE_ORDER,
            data(Some(RepliesNotGated)),
        ),
        ModelWorld::finds(
            "watches/events",
            "an event does not wait for the other groups with watches",
            ONE_ORDER,
            data(Some(EventsNotGated)),
        ),
        ModelWorld::finds(
            "watches/at-past-part",
            "a group is at its last stamp though an older part is staged",
            ONE_ORDER,
            multi(Some(AtPastStagedPart), 0),
        ),
        ModelWorld::finds(
            "watches/not-again",
            "an answer is not read again though the event in front of it is later than its replica was at",
            ONE_ORDER,
            multi(Some(AnswerStaysBehindEvent), 1),
        ),
        ModelWorld::finds(
            "watches/not-again-behind",
            "an answer that was read behind a part is not read again for an event behind the same part",
            ONCE,
            behind(Some(AnswerStaysBehindSamePart)),
        ),
        ModelWorld::finds(
            "watches/placed-by-stamp",
            "a change behind a staged part has the place of its stamp",
            ONE_ORDER,
            multi(Some(PlacedByStamp), 1),
        ),
        ModelWorld::finds(
            "watches/release-by-stamp",
            "each part that is released has the place of its own stamp",
            ONE_ORDER,
            multi(Some(ReleasePlacedByStamp), 1),
        ),
        ModelWorld::finds(
            "watches/ties",
            "events of two groups in one place leave in any order",
            ONE_ORDER,
            data(Some(TiesInAnyOrder)),
        ),
        ModelWorld::finds(
            "watches/first-stamp",
            "an event keeps the stamp of the change that was applied first",
            ONE_ORDER,
            children(Some(KeepsFirstStamp), 0),
        ),
        ModelWorld::finds(
            "watches/as-of-applied",
            "a list registers its watch as of what was applied, not as of h",
            ONE_ORDER,
            children(Some(RegistersAtApplied), 0),
        ),
        ModelWorld::finds(
            "watches/list-by-stamp",
            "a list is cut by stamps that rise above a decision's last part",
            ONCE,
            four(Some(ListByStamp)),
        ),
        ModelWorld::finds(
            "watches/table-per-group",
            "each group has a table of watches",
            ONCE,
            children(Some(TablePerGroup), 0),
        ),
        ModelWorld::finds(
            "watches/set-watches",
            "setWatches compares no stamps",
            FIRES,
            data(Some(SetWatchesFiresNothing)),
        ),
        ModelWorld::finds(
            "watches/zxid-of-answer",
            "a reply carries the stamp of its own answer",
            ONE_ORDER,
            data(Some(ZxidOfAnswer)),
        ),
        ModelWorld::finds(
            "watches/zxid-of-applied",
            "a reply carries the last stamp that was applied",
            ONE_ORDER,
            data(Some(ZxidOfApplied)),
        ),
        ModelWorld::finds(
            "watches/move-waits-not",
            "a member takes a session before it is at what the client saw",
            ONE_ORDER,
            data(Some(MoveDoesNotWait)),
        ),
        ModelWorld::finds(
            "watches/move-applied",
            "it takes it when it has applied that stamp, though an older part is staged",
            ONE_ORDER,
            multi(Some(MoveWaitsForApplied), 1),
        ),
        ModelWorld::finds(
            "watches/ack",
            "the acknowledgement of an own write waits for no other group",
            ONE_ORDER,
            own(Some(AckNotGated)),
        ),
    ]
}
