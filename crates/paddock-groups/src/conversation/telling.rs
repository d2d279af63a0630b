//! Events and answers on their way to a client, in the one order of what they tell.

use std::collections::BTreeSet;

use paddock_proto::{ErrorCode, EventKind, Read, Request, WatchEvent, Zxid};
use paddock_state::QueuedRead;
use paddock_tree::{MultiEnd, MultiOutcome};

use super::{Conversation, Freshness, RequestStage, RoutedRequest, UnheardEvent, What, event_in, watch_here};
use crate::answer::{RoutedAnswer, set_zxid};
use crate::moment::OrderMoment;
use crate::place::watched_list;
use crate::turn::{HostQuestion, Turn};

impl Conversation {
    /// True if all of these groups have reached a stamp.
    pub(super) fn are_at(&self, groups: &BTreeSet<u32>, stamp: Zxid, turn: &mut Turn<'_, '_>) -> bool {
        // All of them are asked at once.
        groups.iter().filter(|group| !turn.is_at(**group, stamp)).count() == 0
    }

    /// Groups from which something may come that the client has to be told of: it watches there, or has watched, and the event has not left.
    pub(super) fn awaited(&self) -> BTreeSet<u32> {
        let pending = self.events.keys().map(|(moment, _)| moment.group);
        self.watched.iter().copied().chain(pending).collect()
    }

    /// The event of a watch on the children of a split point was told by the group that was first here. Its moment is that of the first change in any group. A watch that stays is
    /// told of each change at its own moment, and so is one beside it that tells once.
    pub(super) fn look_at_lists(&mut self, turn: &Turn<'_, '_>) {
        let is_pending = |path: &str| self.events.values().any(|event| point_of(event) == Some(path));
        self.list_changes.retain(|(_, path)| is_pending(path));
        let (mut earlier, mut looked_at) = (Vec::new(), BTreeSet::new());
        let watches = turn.groups.home().state.watches();
        for (key, event) in &self.events {
            let Some(point) = point_of(event).filter(|point| turn.spread_since.contains_key(*point)) else {
                continue;
            };
            if !looked_at.insert(point) || watches.stays_at(self.conn, point) {
                continue;
            }
            let Some(as_of) = self.lists.get(point).or(turn.spread_since.get(point)) else { continue };
            let changes = turn.groups.numbers().filter_map(|group| {
                let change = turn.groups.get(group)?.tree().first_child_change(point, *as_of)?;
                Some(OrderMoment::of_child_change(group, change))
            });
            let of_hosts =
                self.list_changes.iter().filter(|(_, path)| path == point).map(|(moment, _)| *moment);
            let first = changes.chain(of_hosts).min();
            earlier.extend(first.filter(|first| *first < key.0).map(|first| (*key, first)));
        }
        for (key, first) in earlier {
            let event = self.events.remove(&key);
            self.events.extend(event.map(|event| ((first, key.1), event)));
        }
    }

    /// Takes events that were held back while parts of an answer were gathered.
    pub(super) fn hear_held(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        if self.held_events.is_empty() || self.is_about_to_watch() {
            return false;
        }
        for event in std::mem::take(&mut self.held_events) {
            let group = event.moment.group;
            if let Some(path) = self.take_held_event(event, &turn.groups) {
                turn.ask(group, HostQuestion::Unwatch { conn: self.conn, path });
            }
        }
        self.look_at_lists(turn);
        true
    }

    /// Takes events that the client may hear of since it has shown another identity, or may not. They wait until the home group has come to their places, and no longer: later events would
    /// overtake them.
    pub(super) fn hear_unheard(&mut self, turn: &Turn<'_, '_>) {
        let home = turn.groups.home();
        let zxid = home.tree().zxid();
        let due: Vec<_> = self.unheard.extract_if(.., |event| event.moment.place <= zxid).collect();
        for UnheardEvent { moment, frame, readers } in due {
            if home.state.watches().may_hear(self.conn, &readers) {
                self.take_event_at(moment, frame);
            }
        }
    }

    fn is_about_to_watch(&self) -> bool {
        match self.requests.front().map(|front| &front.stage) {
            Some(RequestStage::Gathering { .. }) => true,
            Some(RequestStage::Answered { answer, .. }) => answer.sets_watch_in.is_some(),
            _ => false,
        }
    }

    /// The answer to a read leaves, whose watch a group's host has set: from here on it counts. Returns a refusal if there may be no more watches.
    fn begin_watch(&mut self, group: u32, turn: &Turn<'_, '_>) -> Result<(), ErrorCode> {
        let Some(RoutedRequest {
            what: What::Read(read), stage: RequestStage::Answered { answer, .. }, ..
        }) = self.requests.front()
        else {
            return Ok(());
        };
        // An event of the host's watch that has come already is that of this watch, too.
        let is_told = |(moment, event): (&OrderMoment, &Vec<u8>)| {
            moment.group == group && event_in(event).is_some_and(|event| is_watched_by(read, &event))
        };
        if self.events.iter().any(|((moment, _), event)| is_told((moment, event))) {
            return Ok(());
        }
        watch_here(read, answer.error, &turn.groups)
    }

    fn front_answer(&self) -> Option<&RoutedAnswer> {
        match self.requests.front().map(|front| &front.stage) {
            Some(RequestStage::Answered { answer, .. }) => Some(answer),
            _ => None,
        }
    }

    /// True if the next event is of a watch that the client has by the oldest request alone, whose answer has not left. Hosts see to that themselves.
    fn is_of_unanswered_watch(&self, turn: &Turn<'_, '_>) -> bool {
        let Some(RoutedRequest { what: What::Read(read), watched_before: Some(before), .. }) =
            self.requests.front()
        else {
            return false;
        };
        let Some(((moment, number), event)) = self.events.first_key_value() else { return false };
        let is_later = *number > before.events_taken && turn.groups.get(moment.group).is_some();
        let is_new =
            |event: &WatchEvent<'_>| !before.kinds.contains(&event.kind) && is_watched_by(read, event);
        is_later && event_in(event).is_some_and(|event| is_new(&event))
    }

    /// Moments of the writes behind the oldest request that are carried out. Its answer cannot come after any of them.
    fn of_later_writes(&self) -> impl Iterator<Item = OrderMoment> {
        let moment_of = |asked: &RoutedRequest| match &asked.stage {
            RequestStage::Answered { answer, .. } => Some(answer.moment),
            _ => None,
        };
        self.requests.iter().skip(1).filter_map(moment_of).filter(|moment| moment.is_of_change())
    }

    /// True if the answer to the oldest request leaves before an event of this moment: it comes first, or that to a later write does.
    fn is_answered_before(&self, at: OrderMoment) -> bool {
        self.front_answer().is_some_and(|answer| answer.moment < at)
            || self.of_later_writes().any(|moment| moment <= at)
    }

    /// Sends the next event, if it is its turn.
    pub(super) fn send_event(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let Some((at, _)) = self.events.keys().next().copied() else { return false };
        if self.is_answered_before(at) {
            return false;
        }
        if self.is_of_unanswered_watch(turn) {
            // The client has not been told that it watches: it is read again, and watches from there on.
            self.events.pop_first();
            self.events_sent += 1;
            return true;
        }
        // A write that is under way, or whose answer waits, may yet have an earlier moment: an item that comes behind it in its group can move it forward.
        let of_writes = self.requests.iter().filter_map(|asked| match &asked.stage {
            RequestStage::UnderWay { group } => Some(*group),
            RequestStage::Answered { answer, .. } if answer.moment.is_of_change() => {
                Some(answer.moment.group)
            }
            _ => None,
        });
        let mut groups: BTreeSet<u32> = self.awaited().into_iter().chain(of_writes).collect();
        let is_earlier = |asked: &RoutedRequest| matches!(asked.stage, RequestStage::Relayed { decided } if decided < at.place);
        if self.requests.iter().any(is_earlier) {
            // Its answer goes first.
            return false;
        }
        if let Some(RoutedRequest { stage: RequestStage::Deciding { multi }, .. }) = self.requests.front() {
            groups.insert(0);
            let decided = turn.groups.multi_outcome(0, self.session);
            let is_answered =
                |decided: &&MultiOutcome| decided.multi == *multi && !matches!(decided.end, MultiEnd::Busy);
            if decided.filter(is_answered).is_some_and(|decided| OrderMoment::of_multi(decided.zxid) < at) {
                // Its answer goes first, and waits for the other groups.
                return false;
            }
        }
        if !self.are_at(&groups, at.place, turn) {
            return false;
        }
        let Some((_, mut event)) = self.events.pop_first() else { return false };
        self.event_place = self.event_place.max(at.place);
        // The event tells its place: what has a larger one is yet to come. A client that watched nothing may have been told a stamp behind it.
        let zxid = self.tell(at.place);
        set_zxid(&mut event, zxid);
        if let Some(point) = point_of(&event) {
            self.lists.remove(point);
        }
        self.shown.note(at.group, at.place);
        self.events_sent += 1;
        turn.out.event_bytes(self.conn, &event);
        true
    }

    /// Sends the answer to the oldest request, if there is one and it is its turn.
    pub(super) fn send_answer(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let (events_sent, event_place) = (self.events_sent, self.event_place);
        if self.is_out_of_order() {
            return false;
        }
        let mut groups = self.awaited();
        let Some(front) = self.requests.front_mut() else { return false };
        let RequestStage::Answered { answer, freshness } = &mut front.stage else { return false };
        let is_fresh = match *freshness {
            Freshness::Forever => true,
            Freshness::UntilEvent(events) => events == events_sent,
            Freshness::UpTo(stamp) => stamp >= event_place,
        };
        if !is_fresh {
            // An event has left since this was read.
            front.stage = RequestStage::Waiting;
            return true;
        }
        let moment = answer.moment;
        if answer.binds_all {
            groups.extend(turn.groups.numbers());
        } else if !groups.is_empty() && moment.is_of_change() {
            // A decision that comes behind it in its group moves it forward, and is known once the group has come so far.
            groups.insert(moment.group);
        }
        let stamp = answer.zxid;
        let event_at = self.events.keys().next().map(|(at, _)| *at);
        if event_at.is_some_and(|at| !self.is_answered_before(at)) || !self.are_at(&groups, stamp, turn) {
            return false;
        }
        let place = self.of_later_writes().map(|later| later.place).fold(moment.place, Zxid::min);
        let sets_watch_in = self.front_answer().and_then(|answer| answer.sets_watch_in);
        if let Some(Err(refused)) = sets_watch_in.map(|group| self.begin_watch(group, turn)) {
            self.refuse(refused, turn);
        }
        let Some(RoutedRequest { request, stage: RequestStage::Answered { mut answer, .. }, .. }) =
            self.requests.pop_front()
        else {
            return false;
        };
        // Of what stands behind it up to its own stamp the client is yet to be told, here or elsewhere.
        self.told = self.told.max(if groups.is_empty() { stamp } else { place });
        answer.set_zxid(self.told);
        turn.out.reply(self.conn, request.slot, |out| out.extend_from_slice(&answer.bytes));
        if let Some((place, event)) = answer.event {
            // An earlier watch of the client may have told it already.
            let is_told = self.events.values().any(|told| point_of(told) == point_of(&event));
            if !is_told {
                self.take_event(0, place, event);
            }
        }
        true
    }
}

/// True if an event is one of the watch that a read sets.
fn is_watched_by(read: &QueuedRead, event: &WatchEvent<'_>) -> bool {
    let is_list = event.kind == EventKind::NodeChildrenChanged;
    match Request::decode(read.op, &read.body, read.client.dialect) {
        Ok(Request::Read(Read::Exists { path, .. } | Read::GetData { path, .. })) => {
            path == event.path && !is_list
        }
        Ok(Request::Read(list)) => {
            watched_list(&list) == Some(event.path) && (is_list || event.kind == EventKind::NodeDeleted)
        }
        // A watch that stays is set whatever was told.
        _ => false,
    }
}

/// The znode that a read is to watch.
pub(super) fn watched_path(read: &QueuedRead) -> Option<&str> {
    match Request::decode(read.op, &read.body, read.client.dialect) {
        Ok(Request::Read(Read::Exists { path, watch: true } | Read::GetData { path, watch: true })) => {
            Some(path)
        }
        Ok(Request::Read(list)) => watched_list(&list),
        _ => None,
    }
}

/// The znode whose children an event tells of.
pub(super) fn point_of(event: &[u8]) -> Option<&str> {
    let event = event_in(event)?;
    (event.kind == EventKind::NodeChildrenChanged).then_some(event.path)
}
