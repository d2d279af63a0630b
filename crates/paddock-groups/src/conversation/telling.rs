//! Events and answers on their way to a client, in the one order of what they tell.

use std::collections::BTreeSet;

use paddock_proto::{EventKind, ReplyHeader, WatchEvent, Zxid};

use super::{Conversation, RequestStage, RoutedRequest};
use crate::answer::{LENGTH_BYTES, set_zxid};
use crate::moment::OrderMoment;
use crate::turn::Turn;

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

    /// The event of a watch on the children of a split point was told by the group that was first here. Its moment is that of the first change in any group.
    pub(super) fn look_at_lists(&mut self, turn: &Turn<'_, '_>) {
        let mut earlier = Vec::new();
        for (key, event) in &self.events {
            let Some(point) = point_of(event) else { continue };
            let Some(as_of) = self.lists.get(point).or(turn.spread_since.get(point)) else { continue };
            let changes = turn.groups.numbers().filter_map(|group| {
                let zxid = turn.groups.get(group)?.tree().first_child_change(point, *as_of)?;
                Some(OrderMoment::of_change(group, zxid))
            });
            earlier.extend(changes.min().filter(|first| *first < key.0).map(|first| (*key, first)));
        }
        for (key, first) in earlier {
            if let Some(event) = self.events.remove(&key) {
                self.events.insert((first, key.1), event);
            }
        }
    }

    /// Sends the next event, if it is its turn.
    pub(super) fn send_event(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let Some((at, _)) = self.events.keys().next().copied() else { return false };
        // An answer of an earlier moment goes first.
        if let Some(RoutedRequest { stage: RequestStage::Answered { answer, .. }, .. }) =
            self.requests.front()
            && answer.moment < at
        {
            return false;
        }
        // A write that is under way may yet have an earlier moment.
        let under_way = self.requests.iter().filter_map(|asked| match asked.stage {
            RequestStage::UnderWay { group } => Some(group),
            _ => None,
        });
        let groups: BTreeSet<u32> = self.awaited().into_iter().chain(under_way).collect();
        if !self.are_at(&groups, at.place, turn) {
            return false;
        }
        let Some((_, mut event)) = self.events.pop_first() else { return false };
        // The event tells its place: what has a larger one is yet to come.
        set_zxid(&mut event, at.place);
        if let Some(point) = point_of(&event) {
            self.lists.remove(point);
        }
        self.shown.note(at.group, at.place);
        self.told = self.told.max(at.place);
        self.events_sent += 1;
        turn.out.event_bytes(self.conn, &event);
        true
    }

    /// Sends the answer to the oldest request, if there is one and it is its turn.
    pub(super) fn send_answer(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let events_sent = self.events_sent;
        if self.is_out_of_order() {
            return false;
        }
        let mut groups = self.awaited();
        let Some(front) = self.requests.front_mut() else { return false };
        let RequestStage::Answered { answer, again_after } = &mut front.stage else { return false };
        if again_after.is_some_and(|events| events != events_sent) {
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
        if self.events.keys().next().is_some_and(|(at, _)| *at <= moment)
            || !self.are_at(&groups, stamp, turn)
        {
            return false;
        }
        let Some(RoutedRequest { request, stage: RequestStage::Answered { mut answer, .. }, .. }) =
            self.requests.pop_front()
        else {
            return false;
        };
        // Of what stands behind it up to its own stamp the client is yet to be told, here or elsewhere.
        self.told = self.told.max(if groups.is_empty() { stamp } else { moment.place });
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

/// The znode whose children an event tells of.
fn point_of(event: &[u8]) -> Option<&str> {
    let body = event.get(LENGTH_BYTES + ReplyHeader::BYTES..)?;
    let event = WatchEvent::decode(Zxid(0), body).ok()?;
    (event.kind == EventKind::NodeChildrenChanged).then_some(event.path)
}
