//! Watches that a client brings along from an earlier connection.

use paddock_proto::{
    Acl, AddWatchMode, CreateMode, GroupsCommand, Id, IdList, Perms, WatchEvent, WatcherKind, encode,
};
use paddock_tree::{FeatureLevel, GroupFounders, RaisedLevel, SLOTS, Tree};

use super::*;
use crate::{ConnId, Parcel, RequestId, Slot};

/// Zxid of a client that has seen everything.
const ALL: Zxid = Zxid(1000);
/// Length of the header in front of an event.
const HEADER_BYTES: usize = 16;

/// A state with `/open` and `/secret`, which `owner` alone may read, each with a child and new data.
fn state() -> State {
    let mut state = State::new(Tree::new());
    let owners = [Acl { perms: Perms::ALL, id: owner() }];
    for (path, acl) in [("/open", &[Acl::open()][..]), ("/secret", &owners)] {
        apply(&mut state, OpCode::Create, |out| {
            encode::create(out, path, None, acl, CreateMode::Persistent);
        });
        apply(&mut state, OpCode::Create, |out| {
            encode::create(out, &format!("{path}/child"), None, acl, CreateMode::Persistent);
        });
        apply(&mut state, OpCode::SetData, |out| encode::set_data(out, path, Some(b"new"), -1));
    }
    state
}

fn owner() -> Id {
    Id::new("digest", "owner:hash")
}

fn apply(state: &mut State, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
    let (mut bytes, mut command) = (Vec::new(), Vec::new());
    body(&mut bytes);
    let ids = IdList::encode(&[owner()]);
    let ids = IdList::decode(&mut paddock_proto::jute::Reader::new(&ids)).unwrap();
    Command::encode(SessionId::NONE, 1_700_000_000_000, ids, op, &bytes, &mut command);
    let outcome = state.apply(&Command::decode(&command).unwrap(), &mut Outboxes::new(1));
    assert!(outcome.result.is_ok(), "{op:?}: {:?}", outcome.result);
}

fn client(number: u64, ids: &[Id]) -> Client {
    Client::new(ConnId::new(0, number), SessionId(7), ids)
}

/// Kinds and paths of the events that a client is told at once.
fn told(state: &State, client: &Client, asked: &SetWatches<'_>) -> Vec<(EventKind, String)> {
    let mut out = Vec::new();
    state.set_watches(client, asked, &mut out);
    let mut events = Vec::new();
    let mut rest = &out[..];
    while let Some((frame, len)) = frame::split(rest, i32::MAX).unwrap() {
        let event = WatchEvent::decode(Zxid::NONE, &frame[HEADER_BYTES..]).unwrap();
        events.push((event.kind, event.path.to_owned()));
        rest = &rest[len..];
    }
    events
}

/// All three lists about one path.
fn asked(path: &str, relative_zxid: Zxid) -> SetWatches<'_> {
    SetWatches {
        relative_zxid,
        data: vec![path],
        exist: vec![path],
        child: vec![path],
        ..SetWatches::default()
    }
}

#[test]
fn a_client_is_told_what_it_missed_of_what_it_may_read() {
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    let state = state();
    for (number, path) in ["/open", "/secret"].into_iter().enumerate() {
        let event = |kind| (kind, path.to_owned());
        let owner = client(number as u64, &[owner()]);
        let old = told(&state, &owner, &asked(path, Zxid(0)));
        assert_eq!(old, [event(NodeDataChanged), event(NodeCreated), event(NodeChildrenChanged)]);
        assert_eq!(told(&state, &owner, &asked(path, ALL)), [event(NodeCreated)]);
    }
    let gone = told(&state, &client(9, &[]), &asked("/none", Zxid(0)));
    assert_eq!(gone, [(NodeDeleted, "/none".to_owned()), (NodeDeleted, "/none".to_owned())]);
}

/// Neither an event nor a watch that is there or not tells where the zxids of the znode lie.
#[test]
fn a_client_learns_no_zxid_of_a_znode_that_it_may_not_read() {
    let state = state();
    let newest = state.tree().zxid().0;
    for relative in 0..=newest + 1 {
        let stranger = client(relative as u64, &[Id::new("digest", "stranger:hash")]);
        assert_eq!(told(&state, &stranger, &asked("/secret", Zxid(relative))), [], "as of {relative}");
        for kind in [WatcherKind::Data, WatcherKind::Children] {
            let is_set = state.watches.lock().contains(stranger.conn, "/secret", kind);
            assert!(is_set, "{kind:?} as of {relative}");
        }
    }
}

/// Connections that are told of events, when both children are changed, each in its own state.
fn told_by_both(states: &mut [State; 2]) -> Vec<Vec<ConnId>> {
    let told_by = |state: &mut State| {
        let mut out = Outboxes::new(1);
        let mut body = Vec::new();
        encode::set_data(&mut body, "/open/child", Some(b"newer"), -1);
        let (mut command, ids) = (Vec::new(), IdList::encode(&[]));
        let ids = IdList::decode(&mut paddock_proto::jute::Reader::new(&ids)).unwrap();
        Command::encode(SessionId::NONE, 1_700_000_000_000, ids, OpCode::SetData, &body, &mut command);
        assert!(state.apply(&Command::decode(&command).unwrap(), &mut out).result.is_ok());
        let (_, outbox) = out.iter_mut().next().expect("there is a worker");
        outbox.iter().map(|(conn, _)| conn).collect()
    };
    states.iter_mut().map(told_by).collect()
}

/// As in a member with two groups.
#[test]
fn two_states_of_a_member_tell_the_watchers_of_one_table() {
    let watches = WatchTable::default();
    let tree = || state().into_tree();
    let mut states = [State::of_member(tree(), watches.clone()), State::of_member(tree(), watches.clone())];
    let (first, second) = (client(1, &[]), client(2, &[]));
    assert!(watches.lock().add_mode(&first, "/open", AddWatchMode::PersistentRecursive));
    assert!(watches.lock().add_data(&second, "/open/child"));
    assert_eq!(
        told_by_both(&mut states),
        [vec![first.conn, second.conn], vec![first.conn]],
        "one watch fires once"
    );

    watches.drop_conn(first.conn);
    assert_eq!(told_by_both(&mut states), [vec![], vec![]]);
}

/// A home group has given a znode away, of which a client that has come back sets its watches again: the request is to be asked elsewhere, and no event tells that the znode is gone.
#[test]
fn watches_of_a_znode_that_has_left_are_not_set_again_here() {
    let mut tree = Tree::new();
    tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
    tree.found_groups(2, GroupFounders::default());
    let mut apply = |op: OpCode, body: &[u8]| {
        let mut bytes = Vec::new();
        Command::encode(SessionId::NONE, 5, IdList::NONE, op, body, &mut bytes);
        tree.apply(&Command::decode(&bytes).unwrap()).result.unwrap();
    };
    for path in ["/p", "/p/x", "/q"] {
        let mut body = Vec::new();
        encode::create_open(&mut body, path, None, CreateMode::Persistent);
        apply(OpCode::Create, &body);
    }
    let last = SLOTS - 1;
    for command in
        [GroupsCommand::Split { path: "/p" }, GroupsCommand::Move { path: "/p", first: 0, last, group: 1 }]
    {
        let mut body = Vec::new();
        command.encode(&mut body);
        apply(GroupsCommand::OP, &body);
    }
    let state = State::new(tree);
    let (conn, refused) = (ConnId::new(0, 1), MISPLACED.code().to_be_bytes());
    let is_refused = |lists: [&[&str]; 3]| {
        let mut body = 1_i64.to_be_bytes().to_vec();
        for list in lists {
            body.put_count(list.len());
            list.iter().for_each(|path| body.put_string(path));
        }
        let request = RequestId { xid: Xid(-8), slot: Slot::default() };
        let read = QueuedRead::new(Client::new(conn, SessionId(7), &[]), request, OpCode::SetWatches, body);
        let mut out = Outboxes::new(1);
        state.answer_queued(&read, &mut out);
        let ends_with = |(_, parcel): (ConnId, Parcel<'_>)| matches!(parcel, Parcel::Reply(_, bytes) if bytes.ends_with(&refused));
        out.iter_mut().any(|(_, outbox)| outbox.iter().any(ends_with))
    };
    assert!(!is_refused([&["/q"], &["/p"], &["/q"]]));
    assert!(is_refused([&["/p/x"], &[], &[]]) && is_refused([&[], &["/p/y"], &[]]));
    assert!(is_refused([&[], &[], &["/p/x"]]) && is_refused([&[], &[], &["/p"]]));
}
