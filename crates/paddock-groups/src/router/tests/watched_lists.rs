//! A router between a home group and one more, whose replicas come as far as a test lets them.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    Acl, CreateMode, GroupsCommand, IdList, OpCode, SetWatches, Stat, StreamItem, Xid, encode,
};
use paddock_state::{Client, QueuedRead, RequestId, State};
use paddock_tree::{FeatureLevel, GroupFounders, RaisedLevel, SLOTS, Tree};

use super::super::*;

const SESSION: SessionId = SessionId(7);
const ORIGIN: Origin = Origin { member: 1, incarnation: 1 };

/// Bytes of a reply in front of its body: the length of the frame, xid, zxid and error.
const REPLY_HEADER: usize = 4 + 4 + 8 + 4;

struct RoutedPair {
    home: State,
    other: State,
    router: Router,
    conn: ConnId,
    asked: Slot,
    out: Outboxes,
    /// Body of the last answer.
    answered: Vec<u8>,
}

impl RoutedPair {
    /// The split points `/a` and `/b`. All slots of `/b` are in the other group.
    fn new() -> RoutedPair {
        let tree = || {
            let mut tree = Tree::new();
            tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
            tree
        };
        let (mut home, mut other) = (State::new(tree()), State::new(tree()));
        home.tree_mut().found_groups(2, GroupFounders::default());
        other.share_watches(home.watches());
        let router = Router::new(1, false, (ORIGIN, 0));
        let (conn, asked) = (ConnId::new(0, 1), Slot::default());
        let mut pair =
            RoutedPair { home, other, router, conn, asked, out: Outboxes::new(1), answered: Vec::new() };
        pair.write(0, 1, SESSION, OpCode::CreateSession, &1000_i32.to_be_bytes());
        pair.create(0, 2, "/a");
        pair.create(0, 3, "/b");
        pair.between(0, 4, &GroupsCommand::Split { path: "/a" });
        pair.between(0, 5, &GroupsCommand::Split { path: "/b" });
        pair.give("/b", 6);
        pair.router.begin_spread();
        pair.work();
        pair
    }

    /// Moves all slots of a split point to the other group: an entry with this floor decides that. The other group comes as far.
    fn give(&mut self, path: &str, floor: i64) {
        self.between(0, floor, &GroupsCommand::Move { path, first: 0, last: SLOTS - 1, group: 1 });
        self.send_items(floor + 1);
    }

    /// Moves all slots of a split point back to the home group, likewise.
    fn take_back(&mut self, path: &str, floor: i64) {
        self.between(0, floor, &GroupsCommand::Move { path, first: 0, last: SLOTS - 1, group: 0 });
        self.send_items(floor + 1);
        let given = self.other.tree().given_portion(path, 0, 0).unwrap();
        let (znodes, above, is_last) = (given.znodes.to_vec(), given.above, given.is_last);
        let given = GroupsCommand::Given { path, first: 0, portion: 0, is_last, above, znodes: &znodes };
        self.between(0, floor + 2, &given);
        self.send_items(floor + 3);
    }

    /// The other group applies what the home group has for it.
    fn send_items(&mut self, floor: i64) {
        let stream = self.home.tree().streams().to_group(1).cloned().unwrap();
        for (number, item) in stream.behind(self.other.tree().received_items()) {
            let decided = item.decided;
            let item = StreamItem::decode(&mut Reader::new(&item.bytes)).unwrap();
            self.between(1, floor, &GroupsCommand::Item { number, decided, item });
        }
    }

    /// A group carries out a write, in an entry with this floor, and its answers and events come to the router.
    fn write(&mut self, group: u32, floor: i64, session: SessionId, op: OpCode, body: &[u8]) {
        let (mut bytes, mut mail) = (Vec::new(), Outboxes::new(1));
        Command::encode(session, 5, IdList::NONE, op, body, &mut bytes);
        let state = if group == 0 { &mut self.home } else { &mut self.other };
        state.tree_mut().begin_entry(Zxid(floor));
        state.apply(&Command::decode(&bytes).unwrap().taken_by(1), &mut mail).result.unwrap();
        let items = state.tree_mut().take_applied_items();
        self.router.take_mail(group, &mut mail, &items, self.home.tree().zxid(), 2);
    }

    fn between(&mut self, group: u32, floor: i64, command: &GroupsCommand<'_>) {
        let mut body = Vec::new();
        command.encode(&mut body);
        self.write(group, floor, SessionId::NONE, GroupsCommand::OP, &body);
    }

    fn create(&mut self, group: u32, floor: i64, path: &str) {
        let mut body = Vec::new();
        encode::create_open(&mut body, path, None, CreateMode::Persistent);
        self.write(group, floor, SessionId::NONE, OpCode::Create, &body);
    }

    /// The client asks for something that changes nothing, and is answered.
    fn ask(&mut self, op: OpCode, body: Vec<u8>) {
        self.hand_in(op, body);
        assert!(matches!(self.work()[..], [ToldClient::Answer]));
    }

    fn hand_in(&mut self, op: OpCode, body: Vec<u8>) {
        let request = RequestId { xid: Xid(1), slot: self.asked };
        self.asked = self.asked.next();
        let read = QueuedRead::new(Client::new(self.conn, SESSION, &[]), request, op, body);
        assert!(self.router.take(ClientInput::Read(read)).is_none());
    }

    /// Lets the router work. Returns what the client is told.
    fn work(&mut self) -> Vec<ToldClient> {
        let (home, other) = (self.home.tree().zxid(), self.other.tree().zxid());
        let view = |state, level| Some(GroupView { state, level, origin: ORIGIN });
        let views = [view(&self.home, home), view(&self.other, home.min(other))];
        self.router.work(&views, &HostChoice::new(), &mut self.out);
        let mut told = Vec::new();
        for (_, outbox) in self.out.iter_mut() {
            told.extend(outbox.iter().map(|(_, parcel)| match parcel {
                Parcel::Reply(_, bytes) => {
                    self.answered = bytes[REPLY_HEADER..].to_vec();
                    ToldClient::Answer
                }
                Parcel::Event(bytes) | Parcel::SharedEvent(bytes) => ToldClient::Event(event_stamp(bytes)),
                other => panic!("{other:?}"),
            }));
            outbox.clear();
        }
        told
    }

    /// The other group's change of the list is applied before an earlier one of the home group.
    fn change_list(&mut self) {
        self.create(1, 40, "/a/y");
        self.create(0, 30, "/a/n-0000000001");
        assert_eq!(self.work(), [ToldClient::Event(Some(Zxid(30)))]);
        // The client watches no more.
        self.create(0, 50, "/a/n-0000000002");
        assert_eq!(self.work(), []);
    }
}

#[derive(Debug, PartialEq)]
enum ToldClient {
    Answer,
    Event(Option<Zxid>),
}

fn watched_list(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, path, true);
    body
}

fn unwatched(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, path, false);
    body
}

#[test]
fn a_list_changes_at_its_first_change_in_any_group() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.change_list();
}

#[test]
fn likewise_a_list_that_is_watched_again() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    let (none, relative_zxid) = (Vec::new, pair.home.tree().zxid());
    let (data, exist, persistent, persistent_recursive) = (none(), none(), none(), none());
    let child = vec!["/a"];
    let watches = SetWatches { relative_zxid, data, exist, child, persistent, persistent_recursive };
    let mut body = Vec::new();
    encode::set_watches(&mut body, &watches);
    pair.ask(OpCode::SetWatches, body);
    pair.change_list();
}

#[test]
fn likewise_a_list_that_was_watched_before_its_slots_moved() {
    let mut pair = RoutedPair::new();
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.give("/a", 10);
    pair.work();
    pair.change_list();
}

#[test]
fn likewise_a_list_that_was_watched_before_it_was_a_split_point() {
    let mut pair = RoutedPair::new();
    pair.between(0, 7, &GroupsCommand::Join { path: "/a" });
    pair.work();
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.between(0, 8, &GroupsCommand::Split { path: "/a" });
    pair.give("/a", 10);
    pair.work();
    pair.change_list();
}

/// A replica may lack what stands before a write that another group has applied: the other half of a multi, for one.
#[test]
fn a_read_of_two_groups_shows_one_moment() {
    let mut pair = RoutedPair::new();
    // A connection of which nothing was heard before may have been shown all that is here.
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.create(0, 30, "/h");
    let mut body = Vec::new();
    for path in ["/h", "/b/x"] {
        encode::multi_operation(&mut body, OpCode::GetData);
        encode::path_and_watch(&mut body, path, false);
    }
    encode::multi_end(&mut body);
    pair.hand_in(OpCode::MultiRead, body.clone());
    assert_eq!(pair.work(), [], "the other group may lack what stands before 30");
    pair.create(1, 20, "/b/x");
    pair.create(1, 40, "/b/y");
    assert_eq!(pair.work(), [ToldClient::Answer]);
    let shown = pair.answered.clone();
    pair.ask(OpCode::MultiRead, body);
    assert_eq!(shown, pair.answered, "both znodes are shown");
}

/// The list was watched while its children were in two groups, and that watch is gone.
#[test]
fn a_list_that_is_in_one_group_again_changes_when_it_does() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    let mut unwatch = Vec::new();
    unwatch.put_string("/a");
    // Its watches of all kinds.
    unwatch.put_i32(3);
    pair.ask(OpCode::RemoveWatches, unwatch);
    pair.create(0, 15, "/a/n-0000000001");
    pair.take_back("/a", 20);
    assert_eq!(pair.work(), []);
    pair.between(0, 30, &GroupsCommand::Join { path: "/a" });
    pair.create(1, 32, "/b/x");
    assert_eq!(pair.work(), []);
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.create(0, 50, "/a/n-0000000002");
    pair.create(1, 55, "/b/z");
    assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(50)))]);
}

/// A Stat has the version of the ACL, whose changes leave no zxid in it.
#[test]
fn a_list_is_not_shown_with_a_later_acl() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    pair.ask(OpCode::Exists, unwatched("/a"));
    pair.create(0, 29, "/a/n-0000000001");
    pair.create(0, 30, "/a/n-0000000002");
    let mut set = Vec::new();
    set.put_string("/a");
    encode::put_acl(&mut set, &[Acl::open()]);
    set.put_i32(-1);
    pair.write(0, 40, SessionId::NONE, OpCode::SetAcl, &set);
    pair.hand_in(OpCode::Exists, unwatched("/a"));
    assert_eq!(pair.work(), [], "the list as of what the other group lacks nothing of is older than the ACL");
    pair.create(1, 50, "/b/x");
    assert_eq!(pair.work(), [ToldClient::Answer]);
    let stat = Stat::decode(&mut Reader::new(&pair.answered)).unwrap();
    assert_eq!((stat.aversion, stat.num_children), (1, 2));
}
