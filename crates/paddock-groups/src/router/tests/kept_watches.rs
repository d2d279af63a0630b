//! Watches that stay when they have told something, and watches whose znodes do not move when others do.

use paddock_proto::{
    Acl, AddWatchMode, CreateMode, GroupsCommand, Id, OpCode, Perms, SessionId, SetWatches, Zxid, encode,
};
use paddock_state::{Client, WatchTable};
use paddock_tree::SLOTS;

use super::placement::hosted;
use super::routed_pair::{RoutedPair, SESSION, ToldClient};
use super::watched_lists::watched_list;

fn add_watch(pair: &mut RoutedPair, path: &str, mode: AddWatchMode) {
    let mut body = Vec::new();
    encode::path_and_version(&mut body, path, encode::add_watch_mode(mode));
    pair.hand_in(OpCode::AddWatch, body);
}

/// A pair whose member has a host for the other group, and a watch table of its own.
pub(super) fn hosted_elsewhere() -> RoutedPair {
    let mut pair = hosted();
    pair.other.share_watches(&WatchTable::default());
    pair
}

/// Lets router and host work until the client is told something.
fn await_told(pair: &mut RoutedPair) -> Vec<ToldClient> {
    (0..6).map(|_| pair.work()).find(|told| !told.is_empty()).unwrap_or_default()
}

fn event(zxid: i64) -> ToldClient {
    ToldClient::Event(Some(Zxid(zxid)))
}

#[test]
fn each_change_of_a_list_is_told_at_its_own_moment_by_a_watch_that_stays() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    add_watch(&mut pair, "/a", AddWatchMode::Persistent);
    assert_eq!(pair.work(), [ToldClient::Answer]);
    pair.create(0, 30, "/a/n-0000000001");
    pair.create(1, 40, "/a/y");
    pair.create(0, 50, "/a/n-0000000002");
    pair.create(1, 60, "/b/z");
    assert_eq!(pair.work(), [event(30), event(40), event(50)]);
}

#[test]
fn a_list_whose_change_was_told_when_its_watch_was_set_again_is_watched_no_more() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    pair.create(0, 30, "/a/n-0000000001");
    pair.create(1, 31, "/b/y");
    let mut body = Vec::new();
    encode::set_watches(&mut body, &SetWatches { child: vec!["/a"], ..SetWatches::default() });
    pair.ask(OpCode::SetWatches, body);
    pair.create(0, 40, "/a/n-0000000002");
    pair.create(1, 41, "/b/z");
    assert_eq!(pair.work(), []);
    add_watch(&mut pair, "/a", AddWatchMode::Persistent);
    assert_eq!(pair.work(), [ToldClient::Answer]);
    pair.create(0, 50, "/a/n-0000000003");
    pair.create(1, 51, "/b/w");
    assert_eq!(pair.work(), [event(50)], "and not at the moment of an earlier change");
}

#[test]
fn a_list_whose_change_was_told_is_not_the_one_of_a_watch_that_stays() {
    let mut pair = RoutedPair::new();
    pair.give("/a", 10);
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, "/a", false);
    pair.ask(OpCode::Exists, body);
    // The other group has not come as far.
    pair.create(0, 30, "/a/n-0000000001");
    let mut body = Vec::new();
    let again = SetWatches { child: vec!["/a"], persistent: vec!["/a"], ..SetWatches::default() };
    encode::set_watches(&mut body, &again);
    pair.ask(OpCode::SetWatches2, body);
    pair.create(0, 50, "/a/n-0000000002");
    pair.create(1, 51, "/b/w");
    assert_eq!(pair.work(), [event(50)], "and not at the moment of the change that was told");
}

#[test]
fn the_hosts_of_groups_that_are_not_here_tell_watches_that_stay() {
    // One of a znode of the other group is set by the host as any read is carried out.
    for (path, mode, ways) in [
        ("/", AddWatchMode::PersistentRecursive, &[false, true][..]),
        ("/b", AddWatchMode::PersistentRecursive, &[false, true]),
        ("/b/x", AddWatchMode::PersistentRecursive, &[true]),
        ("/b", AddWatchMode::Persistent, &[false, true]),
        ("/b/x", AddWatchMode::Persistent, &[true]),
    ] {
        for is_set_again in ways {
            let mut pair = hosted_elsewhere();
            if *is_set_again {
                let (mut body, mut again) = (Vec::new(), SetWatches::default());
                match mode {
                    AddWatchMode::Persistent => again.persistent.push(path),
                    AddWatchMode::PersistentRecursive => again.persistent_recursive.push(path),
                }
                encode::set_watches(&mut body, &again);
                pair.hand_in(OpCode::SetWatches2, body);
            } else {
                add_watch(&mut pair, path, mode);
            }
            assert_eq!(await_told(&mut pair), [ToldClient::Answer], "{path} {mode:?}");
            pair.create(1, 90, "/b/x");
            pair.create(0, 91, "/h2");
            let told = await_told(&mut pair);
            assert!(told.contains(&event(90)), "{path} {mode:?}, set again: {is_set_again}: {told:?}");
        }
    }
}

#[test]
fn an_event_whose_identity_is_shown_late_is_told_in_front_of_a_later_one() {
    let mut pair = hosted_elsewhere();
    add_watch(&mut pair, "/", AddWatchMode::PersistentRecursive);
    assert_eq!(await_told(&mut pair), [ToldClient::Answer]);
    let reader = Id::new("digest", "ada:secret");
    let (mut body, acl) = (Vec::new(), [Acl { perms: Perms::ALL, id: reader.clone() }]);
    encode::create(&mut body, "/b/x", None, &acl, CreateMode::Persistent);
    pair.write(1, 95, SessionId::NONE, OpCode::Create, &body);
    assert_eq!(await_told(&mut pair), []);
    // The decision comes first, and its item behind the znode.
    pair.between(0, 85, &GroupsCommand::Split { path: "/h" });
    pair.create(0, 88, "/h2");
    pair.send_items(96);
    pair.home.watches().identify(&Client::new(pair.conn, SESSION, &[reader]));
    assert_eq!(await_told(&mut pair), [event(85), event(88)]);
}

#[test]
fn a_connection_that_watches_nothing_of_what_moves_stays() {
    for (watched, is_closed) in [("/h", false), ("/a/y", true), ("/a", true), ("/", true), ("/b", false)] {
        let mut pair = hosted_elsewhere();
        pair.hand_in(OpCode::GetChildren, watched_list("/b"));
        await_told(&mut pair);
        let mut body = Vec::new();
        encode::path_and_watch(&mut body, watched, true);
        pair.hand_in(OpCode::Exists, body);
        assert_eq!(await_told(&mut pair), [ToldClient::Answer], "{watched}");
        pair.between(0, 95, &GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group: 1 });
        pair.send_items(96);
        let told: &[ToldClient] = if is_closed { &[ToldClient::Close] } else { &[] };
        assert_eq!(await_told(&mut pair), told, "{watched}");
    }
}
