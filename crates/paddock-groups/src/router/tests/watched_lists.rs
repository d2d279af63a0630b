//! Lists of split points that are watched, and reads of two groups.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    Acl, CreateMode, GroupsCommand, Id, OpCode, Perms, SessionId, SetWatches, Stat, Xid, Zxid, encode,
};
use paddock_state::Client;
use paddock_tree::Guess;

use super::kept_watches::hosted_elsewhere;
use super::routed_pair::{RoutedPair, SESSION, ToldClient};

impl RoutedPair {
    fn unwatch(&mut self, path: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        // Its watches of all kinds.
        body.put_i32(3);
        self.ask(OpCode::RemoveWatches, body);
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

pub(super) fn watched_list(path: &str) -> Vec<u8> {
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

/// A read waits for the home group, its watch fires, and an event of another watch lets it be read again: that shows what the first watch would tell.
#[test]
fn an_event_of_a_watch_that_the_client_does_not_have_yet_is_not_told() {
    let set = |pair: &mut RoutedPair, group, floor, path| {
        let mut body = Vec::new();
        encode::set_data(&mut body, path, Some(b"new"), -1);
        pair.write(group, floor, SessionId::NONE, OpCode::SetData, &body);
    };
    let cases = [(None, None), (Some(OpCode::Exists), Some(31)), (Some(OpCode::GetChildren), Some(30))];
    for ((before, told), is_at_once) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let mut pair = RoutedPair::new();
        pair.create(1, 20, "/b/x");
        pair.create(0, 21, "/h");
        pair.create(1, 22, "/b/y");
        pair.ask(OpCode::Exists, watched_list("/h"));
        before.into_iter().for_each(|op| pair.ask(op, watched_list("/b/x")));
        // Its Stat shows the child, of which no watch of its data tells.
        pair.create(1, 30, "/b/x/child");
        pair.hand_in(OpCode::GetData, watched_list("/b/x"));
        assert_eq!(pair.work(), []);
        set(&mut pair, 1, 31, "/b/x");
        set(&mut pair, 0, 26, "/h");
        if !is_at_once {
            assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(26)))]);
        }
        pair.create(0, 40, "/j");
        pair.create(1, 40, "/b/z");
        let events = is_at_once.then_some(26).into_iter().chain(told);
        let events = events.map(|zxid| ToldClient::Event(Some(Zxid(zxid))));
        assert_eq!(pair.work(), events.chain([ToldClient::Answer]).collect::<Vec<_>>());
        set(&mut pair, 1, 50, "/b/x");
        pair.create(0, 51, "/k");
        assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(50)))]);
    }
}

/// The event of a watch that the client has waits for the home group, when the client asks for the znode again.
#[test]
fn an_event_that_waits_is_told_in_front_of_a_later_read() {
    let mut pair = RoutedPair::new();
    pair.create(1, 20, "/b/x");
    pair.create(0, 21, "/h");
    pair.create(1, 22, "/b/y");
    pair.ask(OpCode::Exists, watched_list("/h"));
    pair.ask(OpCode::GetData, watched_list("/b/x"));
    let mut body = Vec::new();
    encode::set_data(&mut body, "/b/x", Some(b"new"), -1);
    pair.write(1, 31, SessionId::NONE, OpCode::SetData, &body);
    pair.hand_in(OpCode::GetData, watched_list("/b/x"));
    assert_eq!(pair.work(), []);
    pair.create(0, 40, "/j");
    pair.create(1, 40, "/b/z");
    assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(31))), ToldClient::Answer]);
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

/// A client watched before znodes were spread, and has asked for nothing since. What has not changed of late is shown before the event.
#[test]
fn nothing_is_told_of_a_zxid_before_the_events_up_to_there() {
    let mut pair = RoutedPair::new();
    pair.create(0, 12, "/c");
    pair.create(1, 13, "/b/x");
    pair.work();
    let client = Client::new(pair.conn, SESSION, &[]);
    pair.home.answer(&client, Xid(1), OpCode::Exists, &watched_list("/h"), Guess::NONE, &mut Vec::new());
    pair.create(0, 30, "/h");
    pair.hand_in(OpCode::Exists, unwatched("/c"));
    let told = pair.work();
    assert!(
        told == [ToldClient::Answer] && pair.answered_zxid < Zxid(30),
        "{told:?} {:?}",
        pair.answered_zxid
    );
    pair.create(1, 31, "/b/y");
    assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(30)))]);
}

/// The list was watched while its children were in two groups, and that watch is gone.
#[test]
fn a_list_that_is_in_one_group_again_changes_when_it_does() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.unwatch("/a");
    pair.create(0, 15, "/a/n-0000000001");
    pair.take_back("/a", 20);
    assert_eq!(pair.work(), []);
    pair.between(0, 30, &GroupsCommand::Join { path: "/a" });
    pair.send_items(31);
    pair.create(1, 32, "/b/x");
    assert_eq!(pair.work(), []);
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.create(0, 50, "/a/n-0000000002");
    pair.create(1, 55, "/b/z");
    assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(50)))]);
}

/// The list was watched as that of a split point whose children were all in the home group, and that watch is gone.
/// A client watches a list in both ways. Of the first change it is not told, because it may not read the znode yet: that uses the watch up that tells once, and the
/// other one goes on.
#[test]
fn a_watch_that_stays_tells_of_a_change_behind_one_that_another_watch_did_not_tell() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    let ann = Id { scheme: "digest".into(), id: "ann:secret".into() };
    let mut set = Vec::new();
    set.put_string("/a");
    let of_all = Acl { perms: Perms::CREATE, ..Acl::open() };
    encode::put_acl(&mut set, &[Acl { perms: Perms::ALL, id: ann.clone() }, of_all]);
    set.put_i32(-1);
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    let mut body = Vec::new();
    body.put_string("/a");
    body.put_i32(0);
    pair.ask(OpCode::AddWatch, body);
    pair.write(0, 20, SessionId::NONE, OpCode::SetAcl, &set);
    pair.send_items(21);
    pair.create(1, 30, "/a/y");
    pair.home.watches().identify(&Client::new(pair.conn, SESSION, &[ann]));
    pair.create(1, 40, "/a/z");
    pair.create(0, 50, "/j");
    assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(40)))]);
}

/// A host tells of a change behind the event of another group's, and then of the item by which that change comes first.
#[test]
fn a_list_changes_at_its_first_change_at_a_host() {
    let mut pair = hosted_elsewhere();
    pair.hand_in(OpCode::GetChildren, watched_list("/b"));
    assert!((0..6).any(|_| pair.work() == [ToldClient::Answer]));
    let (another, mut request, mut relay) = (SessionId(9), Vec::new(), Vec::new());
    encode::create_open(&mut request, "/b/z", None, CreateMode::Persistent);
    GroupsCommand::Relay { op: OpCode::Create, request: &request, enforces_quotas: false }.encode(&mut relay);
    pair.write(0, 89, another, OpCode::CreateSession, &1000_i32.to_be_bytes());
    pair.write(0, 90, another, GroupsCommand::OP, &relay);
    pair.create(0, 92, "/b/n-0000000001");
    pair.create(1, 95, "/b/x");
    assert_eq!((0..6).flat_map(|_| pair.work()).collect::<Vec<_>>(), []);
    pair.send_items(96);
    pair.create(0, 99, "/h2");
    let told: Vec<_> = (0..6).flat_map(|_| pair.work()).collect();
    assert_eq!(told, [ToldClient::Event(Some(Zxid(90)))]);
}

#[test]
fn a_list_that_is_no_split_point_any_more_changes_when_it_does() {
    let mut pair = RoutedPair::new();
    pair.ask(OpCode::GetChildren, watched_list("/a"));
    pair.unwatch("/a");
    pair.create(0, 30, "/a/n-0000000001");
    pair.between(0, 35, &GroupsCommand::Join { path: "/a" });
    pair.send_items(36);
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
    pair.send_items(50);
    assert_eq!(pair.work(), [ToldClient::Answer]);
    let stat = Stat::decode(&mut Reader::new(&pair.answered)).unwrap();
    assert_eq!((stat.aversion, stat.num_children), (1, 2));
}
