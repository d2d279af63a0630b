//! A router between a home group and one more, whose replicas come as far as a test lets them.

use bytes::Bytes;
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    CreateMode, ErrorCode, GroupsCommand, IdList, OpCode, ReplyHeader, StreamItem, Xid, encode, frame,
};
use paddock_state::{Client, QueuedRead, RequestId, State};
use paddock_tree::{FeatureLevel, GroupFounders, RaisedLevel, SLOTS, Tree};

use super::super::*;
use crate::carrier::Carrier;
use crate::hosting::Hosting;

pub(super) const SESSION: SessionId = SessionId(7);
pub(super) const ORIGIN: Origin = Origin { member: 1, incarnation: 1 };
pub(super) const HOST: Origin = Origin { member: 2, incarnation: 1 };

/// Bytes of a reply in front of its body: the length of the frame, xid, zxid and error.
const REPLY_HEADER: usize = 4 + 4 + 8 + 4;

pub(super) struct RoutedPair {
    pub(super) home: State,
    pub(super) other: State,
    carrier: Carrier,
    pub(super) router: Router,
    /// Another member, which can be the host of the other group and has the same states.
    hosting: Hosting,
    /// The member has no replica of the other group.
    is_away: bool,
    pub(super) conn: ConnId,
    asked: Slot,
    out: Outboxes,
    /// Body of the last answer.
    pub(super) answered: Vec<u8>,
    /// Zxid in its header.
    pub(super) answered_zxid: Zxid,
    /// Orders of the last turn.
    pub(super) orders: Vec<Order>,
    /// Orders of the host's last turn.
    host_orders: Vec<Order>,
    /// Letters of the router to the host wait.
    pub(super) is_cut_off: bool,
}

impl RoutedPair {
    /// The split points `/a` and `/b`. All slots of `/b` are in the other group.
    pub(super) fn new() -> RoutedPair {
        let tree = || {
            let mut tree = Tree::new();
            tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
            tree
        };
        let (mut home, mut other) = (State::new(tree()), State::new(tree()));
        home.tree_mut().found_groups_with(2, GroupFounders::default(), 1);
        other.share_watches(home.watches());
        other.tree_mut().record_relayed_answers();
        let router = Router::new(1, false, (ORIGIN, 0));
        let (conn, asked) = (ConnId::new(0, 1), Slot::default());
        let (out, answered, orders) = (Outboxes::new(1), Vec::new(), Vec::new());
        let carrier = Carrier::default();
        let (hosting, is_away) = (Hosting::default(), false);
        let mut pair = RoutedPair {
            home,
            other,
            carrier,
            router,
            hosting,
            is_away,
            conn,
            asked,
            out,
            answered,
            answered_zxid: Zxid(0),
            orders,
            host_orders: Vec::new(),
            is_cut_off: false,
        };
        pair.write(0, 1, SESSION, OpCode::CreateSession, &1000_i32.to_be_bytes());
        pair.create(0, 2, "/a");
        pair.create(0, 3, "/b");
        pair.between(0, 4, &GroupsCommand::Split { path: "/a" });
        pair.between(0, 5, &GroupsCommand::Split { path: "/b" });
        let told = pair.home.tree().zxid();
        pair.give("/b", 6);
        pair.router.begin_spread(told);
        pair.work();
        pair
    }

    /// The member has no replica of the other group from now on, or has one.
    pub(super) fn place(&mut self, is_away: bool) {
        self.is_away = is_away;
        self.router.look_for_hosts();
    }

    /// Moves all slots of a split point to the other group: an entry with this floor decides that. The other group comes as far.
    pub(super) fn give(&mut self, path: &str, floor: i64) {
        self.between(0, floor, &GroupsCommand::Move { path, first: 0, last: SLOTS - 1, group: 1 });
        self.send_items(floor + 1);
    }

    /// Moves all slots of a split point back to the home group, likewise.
    pub(super) fn take_back(&mut self, path: &str, floor: i64) {
        self.between(0, floor, &GroupsCommand::Move { path, first: 0, last: SLOTS - 1, group: 0 });
        self.send_items(floor + 1);
        let given = self.other.tree().given_portion(path, 0, 0).unwrap();
        let (znodes, above, is_last) = (given.znodes.to_vec(), given.above, given.is_last);
        let given = GroupsCommand::Given { path, first: 0, portion: 0, is_last, above, znodes: &znodes };
        self.between(0, floor + 2, &given);
        self.send_items(floor + 3);
    }

    /// The other group applies what the home group has for it.
    pub(super) fn send_items(&mut self, floor: i64) {
        let stream = self.home.tree().streams().to_group(1).cloned().unwrap();
        for (number, item) in stream.behind(self.other.tree().received_items()) {
            let decided = item.decided;
            let item = StreamItem::decode(&mut Reader::new(&item.bytes)).unwrap();
            self.between(1, floor, &GroupsCommand::Item { number, decided, item });
        }
    }

    /// A group carries out a write, in an entry with this floor, and its answers and events come to the router.
    pub(super) fn write(&mut self, group: u32, floor: i64, session: SessionId, op: OpCode, body: &[u8]) {
        self.write_by(ORIGIN.member, (group, floor), session, (op, body));
    }

    /// As [`RoutedPair::write`], with a member that has taken the write.
    pub(super) fn write_by(
        &mut self,
        member: MemberNumber,
        (group, floor): (u32, i64),
        session: SessionId,
        (op, body): (OpCode, &[u8]),
    ) {
        let (mut bytes, mut mail) = (Vec::new(), Outboxes::new(1));
        Command::encode(session, 5, IdList::NONE, op, body, &mut bytes);
        let state = if group == 0 { &mut self.home } else { &mut self.other };
        state.tree_mut().begin_entry(Zxid(floor));
        state.apply(&Command::decode(&bytes).unwrap().taken_by(member), &mut mail).result.unwrap();
        let (items, answers) =
            (state.tree_mut().take_applied_items(), state.tree_mut().take_relayed_answers());
        if group > 0 {
            self.hosting.take_mail((group, state.tree()), &mut mail, (&items, &answers));
        }
        if group == 0 {
            self.hosting.follow_home();
        }
        let answers = if self.is_away { Vec::new() } else { answers };
        self.router.take_mail(group, &mut mail, (&items, answers), self.home.tree().zxid(), 2);
    }

    /// The home group carries out the writes that it was handed in the last turn, in an entry with this floor. Returns its answers.
    pub(super) fn carry_out_at_home(&mut self, floor: i64) -> Outboxes {
        self.carry_out(0, floor)
    }

    /// Likewise the other group, whose answers come to the router.
    pub(super) fn carry_out_in_other(&mut self, floor: i64) {
        let mut mail = self.carry_out(1, floor);
        self.router.take_mail(1, &mut mail, (&[], vec![]), self.home.tree().zxid(), 2);
    }

    fn carry_out(&mut self, group: u32, floor: i64) -> Outboxes {
        let state = if group == 0 { &mut self.home } else { &mut self.other };
        state.tree_mut().begin_entry(Zxid(floor));
        let mut mail = Outboxes::new(1);
        for order in std::mem::take(&mut self.orders) {
            let Order::Hand { group: of, input: ClientInput::Write { conn, request, command, .. }, .. } =
                order
            else {
                continue;
            };
            if of != group {
                continue;
            }
            let command = Command::decode(&command).unwrap().taken_by(ORIGIN.member);
            let outcome = state.apply(&command, &mut mail);
            mail.reply(conn, request.slot, |out| {
                frame::write(out, |out| {
                    let error = outcome.result.as_ref().err().copied();
                    ReplyHeader { xid: request.xid, zxid: outcome.zxid, error }.encode(out);
                    outcome.result.iter().for_each(|reply| reply.encode(out));
                });
            });
        }
        mail
    }

    /// The other group cannot write: it refuses the writes that it was handed in the last turn, at this zxid.
    pub(super) fn refuse_in_other(&mut self, zxid: Zxid) {
        let mut mail = Outboxes::new(1);
        for order in std::mem::take(&mut self.orders) {
            if let Order::Hand { group: 1, input: ClientInput::Write { conn, request, .. }, .. } = order {
                let header = ReplyHeader { xid: request.xid, zxid, error: Some(ErrorCode::NotReadOnly) };
                mail.reply(conn, request.slot, |out| frame::write(out, |out| header.encode(out)));
            }
        }
        self.router.take_mail(1, &mut mail, (&[], vec![]), self.home.tree().zxid(), 2);
    }

    /// True if the host has a write of the client handed to the other group, as a part of this batch.
    pub(super) fn hands_over_at_host(&mut self, batch: u64) -> bool {
        let is_write =
            |order: &Order| matches!(order, Order::HandFor { input: ClientInput::Write { .. }, .. });
        let hands_over = self.host_orders.iter().any(is_write);
        if hands_over {
            self.hosting.handed(ORIGIN.member, 1, (HOST, batch));
        }
        hands_over
    }

    /// Another state takes the place of the other group's at its host.
    pub(super) fn replace_host_state(&mut self) {
        self.hosting.begin_anew(1);
    }

    /// The router hears what the home group has answered.
    pub(super) fn hear_home(&mut self, mut mail: Outboxes) {
        self.router.take_mail(0, &mut mail, (&[], vec![]), self.home.tree().zxid(), 2);
    }

    pub(super) fn between(&mut self, group: u32, floor: i64, command: &GroupsCommand<'_>) {
        let mut body = Vec::new();
        command.encode(&mut body);
        self.write(group, floor, SessionId::NONE, GroupsCommand::OP, &body);
    }

    pub(super) fn create(&mut self, group: u32, floor: i64, path: &str) {
        let mut body = Vec::new();
        encode::create_open(&mut body, path, None, CreateMode::Persistent);
        self.write(group, floor, SessionId::NONE, OpCode::Create, &body);
    }

    /// The client asks for something that changes nothing, and is answered.
    pub(super) fn ask(&mut self, op: OpCode, body: Vec<u8>) {
        self.hand_in(op, body);
        assert!(matches!(self.work()[..], [ToldClient::Answer]));
    }

    /// The client asks for a sync, and both groups say how far they have come.
    pub(super) fn sync(&mut self) {
        let mut path = Vec::new();
        path.put_string("/");
        let slot = self.asked;
        self.hand_in(OpCode::Sync, path);
        self.work();
        for group in 0..2 {
            let (zxid, mut mail) = (self.home.tree().zxid(), Outboxes::new(1));
            mail.reply(self.conn, slot, |out| {
                frame::write(out, |out| ReplyHeader { xid: Xid(1), zxid, error: None }.encode(out));
            });
            self.router.take_mail(group, &mut mail, (&[], vec![]), zxid, 2);
        }
    }

    fn next_request(&mut self) -> RequestId {
        let request = RequestId { xid: Xid(1), slot: self.asked };
        self.asked = self.asked.next();
        request
    }

    /// The client asks for a write.
    pub(super) fn hand_in_write(&mut self, op: OpCode, body: &[u8]) {
        let mut command = Vec::new();
        Command::encode(SESSION, 5, IdList::NONE, op, body, &mut command);
        self.hand_in_command(op, command.into());
    }

    pub(super) fn hand_in_command(&mut self, op: OpCode, command: Bytes) {
        let request = self.next_request();
        assert!(self.router.take(ClientInput::Write { conn: self.conn, request, op, command }).is_none());
    }

    pub(super) fn hand_in(&mut self, op: OpCode, body: Vec<u8>) {
        let request = self.next_request();
        let read = QueuedRead::new(Client::new(self.conn, SESSION, &[]), request, op, body);
        assert!(self.router.take(ClientInput::Read(read)).is_none());
    }

    /// A tick passes at both members.
    pub(super) fn tick(&mut self) {
        self.router.tick();
        self.hosting.tick();
    }

    /// Lets the router work. Returns what the client is told.
    pub(super) fn work(&mut self) -> Vec<ToldClient> {
        self.carrier.follow_home(self.home.tree());
        self.carrier.follow_group(1, self.other.tree());
        let settled = self.carrier.settled(1, self.home.tree().zxid());
        let view = |state, settled, origin| Some(GroupView { state, settled, origin });
        let views = |origin| [view(&self.home, Zxid(i64::MAX), origin), view(&self.other, settled, origin)];
        let mut own = views(ORIGIN);
        if self.is_away {
            own[1] = None;
        }
        self.orders = self.router.work(&own, &|_| vec![HOST.member], Zxid(0), &mut self.out);
        let frames = if self.is_cut_off { Vec::new() } else { self.router.frames() };
        for (_, group, frame) in frames {
            self.hosting.take_frame(ORIGIN.member, group, &frame).unwrap();
        }
        self.host_orders = self.hosting.work(&views(HOST), HOST.member, Zxid(0));
        for (_, group, frame) in self.hosting.frames() {
            self.router.take_frame(HOST.member, group, &frame);
        }
        let mut told = Vec::new();
        for (_, outbox) in self.out.iter_mut() {
            told.extend(outbox.iter().map(|(_, parcel)| match parcel {
                Parcel::Reply(_, bytes) => {
                    self.answered = bytes[REPLY_HEADER..].to_vec();
                    self.answered_zxid = zxid_of(bytes).unwrap();
                    ToldClient::Answer
                }
                Parcel::Event(bytes) | Parcel::SharedEvent(bytes) => ToldClient::Event(event_stamp(bytes)),
                Parcel::Close => ToldClient::Close,
                other => panic!("{other:?}"),
            }));
            outbox.clear();
        }
        told
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum ToldClient {
    Answer,
    Event(Option<Zxid>),
    Close,
}
