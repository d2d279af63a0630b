//! Quotas where znodes lie in two groups.

use paddock_proto::jute::{Reader, Writer as _};
use paddock_proto::{CreateMode, GroupsCommand, IdList, OpCode, SessionId, encode};

use super::*;
use crate::features::RaisedLevel;
use crate::groups::GroupFounders;
use crate::pair_of_groups::{GroupPair, SESSION, apply, between, create, name, put_end, put_operation};
use crate::{Command, MultiEnd, SLOTS};

fn create_with(tree: &mut Tree, path: &str, data: &[u8]) {
    let mut body = Vec::new();
    encode::create_open(&mut body, path, Some(data), CreateMode::Persistent);
    apply(tree, SESSION, OpCode::Create, &body).unwrap();
}

/// A write of a member that enforces quotas.
fn create_enforced(tree: &mut Tree, path: &str) -> Result<(), ErrorCode> {
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    encode::create_open(&mut body, path, None, CreateMode::Persistent);
    Command::encode(SESSION, 5, IdList::NONE, OpCode::Create, &body, &mut bytes);
    Command::enforce_quotas(IdList::NONE, &mut bytes);
    tree.apply(&Command::decode(&bytes).unwrap().taken_by(1)).result.map(drop)
}

/// Sets a quota in the home group, as `setquota` does.
fn set_quota(home: &mut Tree, subject: &str, limits: &str) {
    let quota = format!("{QUOTA}{subject}");
    let ends: Vec<usize> = quota.match_indices('/').map(|(slash, _)| slash).skip(3).collect();
    for path in ends.iter().map(|end| &quota[..*end]).chain([quota.as_str()]) {
        if home.stat(path).is_none() {
            create_with(home, path, b"");
        }
    }
    create_with(home, &format!("{quota}/{LIMITS}"), limits.as_bytes());
    create_with(home, &format!("{quota}/{STATS}"), b"count=0,bytes=0");
}

fn remove(home: &mut Tree, path: &str) {
    let mut body = Vec::new();
    encode::path_and_version(&mut body, path, -1);
    apply(home, SESSION, OpCode::Delete, &body).unwrap();
}

fn counted(tree: &Tree, subject: &str) -> Option<(i64, i64)> {
    tree.counted_for(&format!("{QUOTA}{subject}/{STATS}"))
}

impl GroupPair {
    /// All slots come home.
    fn bring_home(&mut self) {
        let back = GroupsCommand::Move { path: "/p", first: 0, last: SLOTS / 2 - 1, group: 0 };
        between(&mut self.home, SessionId::NONE, back);
        self.send();
        for portion in 0.. {
            let Some(given) = self.other.given_portion("/p", 0, portion) else { break };
            let (is_last, above, znodes) = (given.is_last, given.above, given.znodes.to_vec());
            let given =
                GroupsCommand::Given { path: "/p", first: 0, portion, is_last, above, znodes: &znodes };
            between(&mut self.home, SessionId::NONE, given);
        }
        self.send();
    }
}

#[test]
fn limits_of_a_znode_count_in_its_group() {
    let (mut pair, there) = (GroupPair::new(), name(true, 0));
    create(&mut pair.other, &there).unwrap();
    create(&mut pair.other, &format!("{there}/before")).unwrap();
    set_quota(&mut pair.home, &there, "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3");
    pair.send();
    assert_eq!((counted(&pair.home, &there), counted(&pair.other, &there)), (Some((0, 0)), Some((2, 0))));
    assert_eq!(create_enforced(&mut pair.other, &format!("{there}/third")), Ok(()));
    assert_eq!(create_enforced(&mut pair.other, &format!("{there}/fourth")), Err(ErrorCode::QuotaExceeded));
    assert_eq!(create(&mut pair.other, &format!("{there}/fourth")), Ok(()), "its member enforces none");

    // Other limits count from then on, and none when they are gone.
    let mut body = Vec::new();
    let path = format!("{QUOTA}{there}/{LIMITS}");
    encode::set_data(&mut body, &path, Some(b"count=-1,bytes=-1=;countHardLimit=5"), -1);
    apply(&mut pair.home, SESSION, OpCode::SetData, &body).unwrap();
    pair.send();
    assert_eq!(create_enforced(&mut pair.other, &format!("{there}/fifth")), Ok(()));
    assert_eq!(create_enforced(&mut pair.other, &format!("{there}/sixth")), Err(ErrorCode::QuotaExceeded));
    let before = pair.other.node_count();
    remove(&mut pair.home, &path);
    pair.send();
    assert_eq!(create_enforced(&mut pair.other, &format!("{there}/sixth")), Ok(()));
    assert_eq!(counted(&pair.other, &there), None);
    // Nothing is left but `/zookeeper/quota` itself, which is always there.
    let quota_znodes = 2 + there.matches('/').count();
    assert_eq!(pair.other.node_count(), before + 1 - quota_znodes);
}

#[test]
fn znodes_count_where_they_are() {
    let mut pair = GroupPair::new();
    let paths = [name(false, 0), name(true, 0), name(true, 1)];
    set_quota(&mut pair.home, "/p", "count=-1,bytes=-1");
    pair.send();
    create_with(&mut pair.home, &paths[0], b"12345");
    create_with(&mut pair.other, &paths[1], b"123");
    create_with(&mut pair.other, &paths[2], b"1");
    create_with(&mut pair.other, &format!("{}/below", paths[2]), b"");
    assert_eq!(counted(&pair.home, "/p"), Some((2, 5)), "the split point itself is home's");
    assert_eq!(counted(&pair.other, "/p"), Some((3, 4)));
    pair.bring_home();
    assert_eq!((counted(&pair.home, "/p"), counted(&pair.other, "/p")), (Some((5, 9)), Some((0, 0))));
}

#[test]
fn what_there_was_before_counts() {
    let (mut pair, there) = (GroupPair::new(), name(true, 0));
    create_with(&mut pair.other, &there, b"1234");
    set_quota(&mut pair.home, "/p", "count=-1,bytes=-1");
    pair.send();
    assert_eq!(counted(&pair.other, "/p"), Some((1, 4)), "without the stub");
    // A group that comes later hears of all, and so do all with the first split point.
    pair.home.found_groups(3, GroupFounders { voters: vec![1], learners: vec![] });
    let stream = pair.home.streams().to_group(2).unwrap();
    let mut items =
        stream.behind(0).map(|(_, item)| StreamItem::decode(&mut Reader::new(&item.bytes)).unwrap());
    assert!(items.any(|item| matches!(item, StreamItem::Limits { path: "/p", limits: Some(_) })));

    let [mut home, mut other] = [Tree::new(), Tree::new()];
    for tree in [&mut home, &mut other] {
        tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
    }
    home.found_groups(2, GroupFounders { voters: vec![1], learners: vec![] });
    home.sessions.insert(SESSION, crate::session::Session::new(1000, 1));
    set_quota(&mut home, "/q", "count=-1,bytes=-1");
    between(&mut home, SessionId::NONE, GroupsCommand::Split { path: "/p" });
    other.receive_pending(&home, 1);
    assert_eq!(counted(&other, "/q"), Some((0, 0)));
    // Without a split point there is nothing to count, and nothing is told.
    between(&mut home, SessionId::NONE, GroupsCommand::Join { path: "/p" });
    other.receive_pending(&home, 1);
    assert_eq!((counted(&other, "/q"), other.node_count()), (None, Tree::new().node_count()));
}

#[test]
fn limits_count_for_multis_over_groups_and_for_what_home_relays() {
    let (mut pair, there, here) = (GroupPair::new(), name(true, 0), name(false, 0));
    set_quota(&mut pair.home, &there, "count=-1,bytes=-1=;countHardLimit=1");
    create(&mut pair.other, &there).unwrap();
    pair.send();
    let (above, other) = (format!("{there}/above"), name(true, 1));
    let mut request = Vec::new();
    for path in [&here, &above] {
        put_operation(OpCode::Create, &mut request);
        encode::create_open(&mut request, path, None, CreateMode::Persistent);
    }
    put_end(&mut request);
    let multi = pair.ask_for(&request);
    pair.send();
    let refused = MultiEnd::Failed { operation: 1, error: ErrorCode::QuotaExceeded };
    assert_eq!(*pair.end(multi), refused);
    assert_eq!(pair.home.stat(&here), None);

    pair.other.record_relayed_answers();
    for (path, enforces_quotas) in [(&above, true), (&above, false), (&other, true)] {
        let (mut create, mut body) = (Vec::new(), Vec::new());
        encode::create_open(&mut create, path, None, CreateMode::Persistent);
        GroupsCommand::Relay { op: OpCode::Create, request: &create, enforces_quotas }.encode(&mut body);
        apply(&mut pair.home, SESSION, GroupsCommand::OP, &body).unwrap();
    }
    pair.send();
    let answers = pair.other.take_relayed_answers().into_iter().map(|answer| answer.result.err());
    assert_eq!(answers.collect::<Vec<_>>(), [Some(ErrorCode::QuotaExceeded), None, None]);
}

#[test]
fn quotas_count_in_all_groups_from_their_level_on() {
    let (mut pair, there) = (GroupPair::at_level(FeatureLevel::RELAYS), name(true, 0));
    create_with(&mut pair.home, &name(false, 0), b"1234");
    set_quota(&mut pair.home, "/p", "count=-1,bytes=-1=;countHardLimit=1");
    create(&mut pair.other, &there).unwrap();
    pair.send();
    assert_eq!((counted(&pair.home, "/p"), counted(&pair.other, "/p")), (Some((2, 4)), None));
    pair.bring_home();
    assert_eq!(counted(&pair.home, "/p"), Some((2, 4)), "as programs count that do not know the level");
    for tree in [&mut pair.other, &mut pair.home] {
        tree.raise_level(&RaisedLevel::known(FeatureLevel::QUOTAS));
    }
    pair.send();
    assert_eq!((counted(&pair.home, "/p"), counted(&pair.other, "/p")), (Some((3, 4)), Some((0, 0))));
}

/// A removal of more znodes than a transaction removes tells of each limit that goes.
#[test]
fn limits_that_go_with_a_whole_subtree_are_told() {
    for at_once in [1, 1000] {
        let (mut pair, there) = (GroupPair::new(), name(true, 0));
        set_quota(&mut pair.home, &there, "count=-1,bytes=-1=;countHardLimit=1");
        pair.send();
        assert_eq!(counted(&pair.other, &there), Some((0, 0)));
        let (mut body, mut bytes) = (Vec::new(), Vec::new());
        body.put_string(&format!("{QUOTA}/p"));
        body.put_i32(1000);
        Command::encode(SESSION, 5, IdList::NONE, OpCode::RemoveRecursive, &body, &mut bytes);
        let command = Command::decode(&bytes).unwrap().taken_by(1);
        if let Some(removal) = pair.home.long_removal(&command, at_once) {
            removal.run_alone(&mut pair.home).unwrap();
        }
        pair.home.apply(&command).result.unwrap();
        pair.send();
        assert_eq!(counted(&pair.other, &there), None, "{at_once} at once");
    }
}

/// A client may write what it likes there, as often as it likes.
#[test]
fn what_other_groups_are_told_of_limits_has_bounds() {
    let (mut pair, there) = (GroupPair::new(), name(true, 0));
    let path = format!("{QUOTA}{there}/{LIMITS}");
    let set = |home: &mut Tree, data: &str| {
        let (mut body, mut bytes) = (Vec::new(), Vec::new());
        encode::set_data(&mut body, &path, Some(data.as_bytes()), -1);
        Command::encode(SESSION, 5, IdList::NONE, OpCode::SetData, &body, &mut bytes);
        home.apply(&Command::decode(&bytes).unwrap().taken_by(1)).result.map(drop)
    };
    set_quota(&mut pair.home, &there, &"no limits ".repeat(10_000));
    assert_eq!(
        set(&mut pair.home, &format!("count=3,{}bytes=7=;countHardLimit=2", "x=1,".repeat(10_000))),
        Ok(())
    );
    let pending = |home: &Tree| home.streams().to_group(1).unwrap().pending_bytes();
    assert!(pending(&pair.home) < 1000);
    pair.send();
    assert_eq!(create_enforced(&mut pair.other, &there), Ok(()));
    assert_eq!(create_enforced(&mut pair.other, &format!("{there}/second")), Ok(()));
    assert_eq!(create_enforced(&mut pair.other, &format!("{there}/third")), Err(ErrorCode::QuotaExceeded));

    // Nothing is acknowledged.
    let refused = (0..200_000).find_map(|number| set(&mut pair.home, &format!("count={number}")).err());
    assert_eq!(refused, Some(ErrorCode::ThrottledOp));
    assert!(pending(&pair.home) < 5 << 20);
    let number = pair.home.last_item_to(1);
    between(&mut pair.home, SessionId::NONE, GroupsCommand::Acknowledge { group: 1, number });
    assert_eq!(set(&mut pair.home, "count=1"), Ok(()));
}
