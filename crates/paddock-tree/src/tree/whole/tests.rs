//! States of a home group and another one, joined.

use paddock_proto::jute::Writer as _;
use paddock_proto::{CreateMode, IdList, OpCode, Stat, encode};

use super::*;
use crate::features::{FeatureLevel, RaisedLevel};
use crate::groups::GroupFounders;
use crate::session::Session;
use crate::{SLOTS, Znode};

const SESSION: SessionId = SessionId(7);
const NONE: SessionId = SessionId::NONE;
const QUOTA: &str = "/zookeeper/quota/a";

fn apply(tree: &mut Tree, session: SessionId, op: OpCode, body: &[u8]) {
    let mut bytes = Vec::new();
    Command::encode(session, 5, IdList::NONE, op, body, &mut bytes);
    tree.apply(&Command::decode(&bytes).unwrap().taken_by(1)).result.unwrap();
}

fn between(tree: &mut Tree, session: SessionId, command: GroupsCommand<'_>) {
    let mut body = Vec::new();
    command.encode(&mut body);
    apply(tree, session, GroupsCommand::OP, &body);
}

fn create(tree: &mut Tree, session: SessionId, path: &str, mode: CreateMode) {
    let mut body = Vec::new();
    encode::create_open(&mut body, path, Some(b"data"), mode);
    apply(tree, session, OpCode::Create, &body);
}

fn level(mut tree: Tree) -> Tree {
    tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
    tree
}

/// The home group with twenty children of the split point `/a`, two of them with one below, one ephemeral, and a quota for all.
fn home() -> Tree {
    let mut home = level(Tree::new());
    home.found_groups(2, GroupFounders { voters: vec![1], learners: vec![] });
    home.sessions.insert(SESSION, Session::new(1000, 1));
    for path in ["/a", "/b", QUOTA] {
        create(&mut home, NONE, path, CreateMode::Persistent);
    }
    for name in ["zookeeper_limits", "zookeeper_stats"] {
        create(&mut home, NONE, &format!("{QUOTA}/{name}"), CreateMode::Persistent);
    }
    between(&mut home, NONE, GroupsCommand::Split { path: "/a" });
    for number in 0..20 {
        create(&mut home, NONE, &format!("/a/n{number}"), CreateMode::Persistent);
    }
    for path in ["/a/n3/below", "/a/n3/below/more", "/a/n4/below"] {
        create(&mut home, NONE, path, CreateMode::Persistent);
    }
    create(&mut home, SESSION, "/a/mine", CreateMode::Ephemeral);
    let mut body = Vec::new();
    encode::path_and_version(&mut body, "/a/n5", -1);
    apply(&mut home, NONE, OpCode::Delete, &body);
    home
}

/// Both groups.
struct HomeAndOther {
    home: Tree,
    other: Tree,
}

impl HomeAndOther {
    /// The first `slots` slots have moved to the other group.
    fn new(slots: u16) -> HomeAndOther {
        let mut home = home();
        between(&mut home, NONE, GroupsCommand::Move { path: "/a", first: 0, last: slots - 1, group: 1 });
        let mut pair = HomeAndOther { home, other: level(Tree::new()) };
        pair.send();
        pair
    }

    fn send(&mut self) {
        self.other.receive_pending(&self.home, 1);
        assert_eq!(self.other.received_items(), self.home.last_item_to(1));
    }

    fn joined(self) -> Tree {
        let mut whole = WholeTree::begin(self.home);
        whole.add(&self.other);
        whole.finish()
    }
}

fn znodes(tree: &Tree) -> Vec<(String, Znode, Option<Stat>)> {
    let (mut all, mut znodes) = (Vec::new(), tree.znodes());
    while let Some((path, znode)) = znodes.next_znode() {
        all.push((path.to_owned(), znode.to_znode(), tree.stat(path)));
    }
    all
}

#[test]
fn znodes_in_two_groups_are_what_they_were_in_one() {
    for slots in [1, SLOTS / 3, SLOTS] {
        let pair = HomeAndOther::new(slots);
        assert_eq!(pair.home.groups_with_znodes(), [1].into());
        let (at_home, elsewhere) = (pair.home.node_count(), pair.other.node_count());
        let joined = pair.joined();
        let mut one = home();
        one.count_all_quotas();
        assert_eq!(znodes(&joined), znodes(&one), "{slots} slots");
        // The other group's stub, and its quota.
        let beside = Tree::new().node_count() + 1 + 3;
        assert_eq!(joined.node_count() + beside, at_home + elsewhere, "none is there twice");
        assert!(joined.has_all_znodes() && !joined.are_znodes_spread() && joined.groups().count() == 1);
    }
}

#[test]
fn what_was_written_in_both_groups_counts_in_the_split_point() {
    let mut pair = HomeAndOther::new(SLOTS);
    between(&mut pair.home, SESSION, GroupsCommand::Attach { group: 1 });
    pair.send();
    pair.other.begin_entry(Zxid(1000));
    create(&mut pair.other, SESSION, "/a/later", CreateMode::Ephemeral);
    pair.home.begin_entry(Zxid(2000));
    create(&mut pair.home, NONE, "/a/s-", CreateMode::PersistentSequential);
    let mut joined = pair.joined();
    let stat = joined.stat("/a").unwrap();
    // 23 were created below it, and one is gone.
    assert_eq!((stat.num_children, stat.cversion, stat.pzxid), (22, 24, Zxid(2000)));
    assert_eq!(joined.zxid(), Zxid(2000));
    assert_eq!(joined.ephemerals_of(SESSION), ["/a/later", "/a/mine"]);
    let stats = joined.znode(&format!("{QUOTA}/zookeeper_stats")).unwrap().data.unwrap();
    assert_eq!(String::from_utf8(stats).unwrap(), "count=26,bytes=104");
    // The joined state is an ordinary one: the session ends with all that is its own.
    let mut body = Vec::new();
    body.put_i64(SESSION.0);
    apply(&mut joined, NONE, OpCode::ExpireSession, &body);
    assert_eq!((joined.ephemeral_count(), joined.stat("/a").unwrap().num_children), (0, 20));
}

#[test]
fn znodes_on_their_way_to_the_home_group_are_there_once() {
    for portions in 0..=1 {
        let mut pair = HomeAndOther::new(SLOTS);
        between(
            &mut pair.home,
            NONE,
            GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group: 0 },
        );
        pair.send();
        let given = pair.other.given_portion("/a", 0, 0).unwrap();
        let (above, is_last, znodes_given) = (given.above, given.is_last, given.znodes.to_vec());
        if portions == 1 {
            let znodes = &znodes_given;
            let given = GroupsCommand::Given { path: "/a", first: 0, portion: 0, is_last, above, znodes };
            between(&mut pair.home, NONE, given);
            pair.send();
        }
        let mut one = home();
        one.count_all_quotas();
        assert_eq!(znodes(&pair.joined()), znodes(&one), "{portions} portions");
    }
}

/// The other group has yet to hear that they were taken.
#[test]
fn znodes_that_the_home_group_has_taken_are_as_it_has_them() {
    let mut pair = HomeAndOther::new(SLOTS);
    between(&mut pair.home, NONE, GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group: 0 });
    pair.send();
    let given = pair.other.given_portion("/a", 0, 0).unwrap();
    let (above, is_last, znodes) = (given.above, given.is_last, given.znodes);
    let given = GroupsCommand::Given { path: "/a", first: 0, portion: 0, is_last, above, znodes };
    between(&mut pair.home, NONE, given);
    let mut body = Vec::new();
    encode::path_and_version(&mut body, "/a/n7", -1);
    apply(&mut pair.home, NONE, OpCode::Delete, &body);
    assert_eq!(pair.joined().stat("/a/n7"), None);
}

#[test]
fn an_ephemeral_of_a_session_that_has_ended_is_left_out() {
    let mut pair = HomeAndOther::new(SLOTS);
    let mut body = Vec::new();
    body.put_i64(SESSION.0);
    apply(&mut pair.home, NONE, OpCode::ExpireSession, &body);
    assert!(pair.home.is_ahead_of(1, pair.other.received_items()), "the other group has not heard of it");
    let joined = pair.joined();
    assert_eq!((joined.ephemeral_count(), joined.stat("/a/mine")), (0, None));
}
