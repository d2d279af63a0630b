//! Writes of one session that go to several groups, one behind the other: the home group relays them, so that they are under way together.
//!
//! A write that is handed to its own group waits until those in other groups are answered. A relayed one has its place in the home group's log, as what home writes itself, and need not.
//! It takes a commit of the home group and one of its own, and so it is relayed where waiting would take more.

use paddock_proto::{GroupsCommand, ReplyHeader, Write, Xid, Zxid, frame};
use paddock_state::ClientInput;
use paddock_tree::{Command, FeatureLevel, RelayedAnswer, can_be_relayed, relay_command};

use super::{Conversation, Freshness, RequestStage, RoutedRequest, What, for_home};
use crate::answer::{LENGTH_BYTES, RoutedAnswer};
use crate::moment::OrderMoment;
use crate::place::RequestPlace;
use crate::turn::{Order, Turn};

/// Writes that are looked at before it is said that those to come are for one group.
const LOOKED_AT: usize = 16;

/// Bytes of a request above which it is not relayed: the home group would keep it, and all members log it once more.
const RELAYED_BYTES_MAX: usize = 64 << 10;

/// Changes from group to group among the writes to come from which on they are relayed. Each would cost a commit that waits for the one before.
const CHANGES_OF_GROUP: usize = 2;

impl Conversation {
    /// True while the home group has writes of this connection that it is to relay, or has relayed, and that are not answered.
    pub(crate) fn has_relays(&self) -> bool {
        self.relays > 0
    }

    /// True if a write may be handed to the home group, or relayed by it, behind what is under way: all of that has its place in the home group's log, or is answered.
    pub(super) fn may_follow_at_home(&self, at: usize) -> bool {
        self.requests.iter().take(at).all(|before| match &before.stage {
            RequestStage::UnderWay { group: 0 } => {
                before.over_groups.is_empty() && matches!(before.what, What::Write { .. })
            }
            RequestStage::Relayed { .. } => true,
            RequestStage::Answered { freshness, .. } => matches!(freshness, Freshness::Forever),
            _ => false,
        })
    }

    /// True if a write of another group than the home group is to be relayed: others of the session are, or those to come go from group to group.
    pub(super) fn is_to_be_relayed(&self, at: usize, group: u32, turn: &Turn<'_, '_>) -> bool {
        let groups = &turn.groups;
        group > 0
            && self.can_relay(at)
            && groups.home().tree().feature_level() >= FeatureLevel::RELAYS
            && groups.numbers().all(|group| groups.tells_answers(group))
            && self.may_follow_at_home(at)
            && (self.has_relays() || self.go_from_group_to_group(at, turn))
    }

    fn can_relay(&self, at: usize) -> bool {
        let What::Write { command, .. } = &self.requests[at].what else { return false };
        let Ok((op, body)) = Command::request(command) else { return false };
        body.len() <= RELAYED_BYTES_MAX && Write::decode(op, body).is_ok_and(|write| can_be_relayed(&write))
    }

    /// True if the writes from this one on, up to what has to wait for them anyway, go from group to group.
    fn go_from_group_to_group(&self, at: usize, turn: &Turn<'_, '_>) -> bool {
        let (mut last, mut changes) = (None, 0);
        for asked in self.requests.iter().skip(at).take(LOOKED_AT) {
            let What::Write { command, .. } = &asked.what else { break };
            let RequestPlace::One { group, .. } = RequestPlace::of_write(&turn.groups, command) else {
                break;
            };
            changes += usize::from(last.is_some_and(|last| last != group));
            last = Some(group);
            if changes >= CHANGES_OF_GROUP {
                return true;
            }
        }
        false
    }

    /// Has the home group relay a write to its group, if the session may write there. Where too much waits for the group already, it waits here.
    pub(super) fn hand_to_relay(&mut self, at: usize, group: u32, turn: &mut Turn<'_, '_>) -> bool {
        let has_room = turn.groups.home().tree().has_room_for(group);
        if !has_room || !self.may_write(0, turn) || !turn.takes_write(0, self.shown.of_others(0)) {
            return false;
        }
        let asked = &mut self.requests[at];
        let What::Write { op, command } = &asked.what else { unreachable!("only writes are relayed") };
        let (ids, body, enforces_quotas) = for_home(command, &turn.groups);
        let command = relay_command(self.session, ids, (*op, body), enforces_quotas);
        let (request, op) = (asked.request, GroupsCommand::OP);
        let input = ClientInput::Write { conn: self.conn, request, op, command: command.into() };
        asked.is_relayed = true;
        asked.stage = RequestStage::UnderWay { group: 0 };
        self.relays += 1;
        turn.orders.push(Order::Hand { group: 0, session: self.session, needs: Zxid(0), input });
        true
    }

    /// The home group has answered a request that it is to relay.
    pub(super) fn take_word_of_home(&mut self, at: usize, answer: RoutedAnswer) {
        let decided = answer.zxid;
        if answer.error.is_some() {
            self.shown.note(0, decided);
            self.end_relay(at, answer);
            return;
        }
        self.requests[at].stage = RequestStage::Relayed { decided };
        // The group's replica here may be ahead of the home group's.
        if let Some((group, early)) = self.early_answers.remove(&decided) {
            self.take_relayed(group, early);
        }
    }

    /// A group has carried out a write that was relayed to it, if it is one of this connection.
    pub(crate) fn take_relayed(&mut self, group: u32, answer: RelayedAnswer) {
        if answer.session != self.session {
            return;
        }
        let is_it = |asked: &RoutedRequest| matches!(asked.stage, RequestStage::Relayed { decided } if decided == answer.decided);
        let Some(at) = self.requests.iter().position(is_it) else {
            let is_awaited = |asked: &RoutedRequest| {
                asked.is_relayed && matches!(asked.stage, RequestStage::UnderWay { .. })
            };
            if self.requests.iter().any(is_awaited) {
                self.early_answers.insert(answer.decided, (group, answer));
            }
            return;
        };
        let mut routed = RoutedAnswer::new(reply(self.requests[at].request.xid, &answer));
        routed.moment = OrderMoment::of_decision(group, answer.zxid, answer.decided);
        self.shown.note(group, answer.zxid);
        self.end_relay(at, routed);
    }

    fn end_relay(&mut self, at: usize, answer: RoutedAnswer) {
        self.requests[at].stage = RequestStage::Answered { answer, freshness: Freshness::Forever };
        self.let_relay_go();
    }

    /// A request is not relayed any more, or has been.
    pub(super) fn let_relay_go(&mut self) {
        self.relays -= 1;
        if self.relays == 0 {
            self.early_answers.clear();
        }
    }
}

/// The reply to a relayed write: a whole frame.
fn reply(xid: Xid, answer: &RelayedAnswer) -> Vec<u8> {
    let body_bytes = answer.result.as_ref().map_or(0, Vec::len);
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + ReplyHeader::BYTES + body_bytes);
    frame::write(&mut bytes, |out| {
        let error = answer.result.as_ref().err().copied();
        ReplyHeader { xid, zxid: answer.zxid, error }.encode(out);
        answer.result.iter().for_each(|body: &Vec<u8>| out.extend_from_slice(body));
    });
    bytes
}
