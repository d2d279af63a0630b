//! Random commands, tried out on one tree and installed in another: both are as if the commands had been carried out.

use paddock_model::{Call, Wish, dump};
use paddock_proto::{EventKind, SessionId, Zxid};
use paddock_tree::{Changes, Command, InstallError, Tree, Znode, ZnodeKind};
use proptest::prelude::*;

use crate::random::{calls, config};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_write_that_was_tried_out_leaves_nothing_behind(calls in calls(60)) {
        let mut tree = Tree::new();
        for call in calls {
            let before = (tree.digest(), tree.data_bytes(), dump(&tree));
            let tried = with_command(&call, |command| {
                tree.try_out(std::slice::from_ref(&command), |tree, outcomes, _| (format!("{:?}", outcomes[0]), tree.digest()))
            });
            prop_assert_eq!((tree.digest(), tree.data_bytes(), dump(&tree)), before, "{:?}", call);
            let applied = with_command(&call, |command| format!("{:?}", tree.apply(&command)));
            prop_assert_eq!(tried, (applied, tree.digest()), "{:?}", call);
        }
    }

    #[test]
    fn what_was_tried_out_can_be_installed(calls in calls(60)) {
        let (mut tree, mut copy) = (Tree::new(), Tree::new());
        for call in calls.into_iter().map(without_moves).filter(|call| !is_of_the_ensemble(&call.wish)) {
            let znodes = touched(&mut tree, &call);
            let applied = with_command(&call, |command| events(&tree.apply(&command).changes));
            let installed = install(&tree, &mut copy, &znodes);
            prop_assert_eq!(dump(&tree), dump(&copy), "{:?}", call);
            prop_assert_eq!(tree.digest(), copy.digest(), "{:?}", call);
            // The operations of a multi may undo each other; the znodes show only what is left.
            if !deletes_what_it_wrote(&applied) {
                prop_assert_eq!(once(applied), installed, "{:?}", call);
            }
        }
    }
}

/// Moves of sessions are not counted where what was tried out is installed.
fn without_moves(mut call: Call) -> Call {
    if let Wish::ResumeSession { moves, .. } = &mut call.wish {
        *moves = None;
    }
    call
}

#[test]
fn commands_tried_out_together_see_each_other() {
    let mut tree = Tree::new();
    let begin = Call {
        session: SessionId(1),
        member: 1,
        time_ms: 5,
        ids: vec![],
        enforces_quotas: false,
        wish: session(),
    };
    let create = Call { wish: create("/a-", 2), ..begin.clone() };
    let bytes = [begin.encode(), create.encode(), create.encode()];
    let commands: Vec<Command<'_>> =
        bytes.iter().map(|bytes| Command::decode(bytes).unwrap().taken_by(1)).collect();
    let touched = tree.try_out(&commands, |_, outcomes, touched| {
        assert_eq!(outcomes.iter().map(|outcome| outcome.zxid.0).collect::<Vec<_>>(), [1, 2, 3]);
        touched.into_iter().collect::<Vec<_>>()
    });
    assert_eq!(touched, ["/", "/a-0000000000", "/a-0000000001"]);
    assert_eq!((tree.zxid(), tree.session_count(), tree.node_count()), (Zxid(0), 0, 5));
}

#[test]
fn what_makes_no_tree_is_refused() {
    let znode = |kind| Znode {
        data: None,
        acl: [paddock_proto::Acl::open()].into(),
        kind,
        czxid: 7,
        mzxid: 7,
        pzxid: 7,
        ctime_ms: 0,
        mtime_ms: 0,
        version: 0,
        children_created: 0,
        aversion: 0,
    };
    let check = |znodes: &[(&str, Option<Znode>)], expected: InstallError| {
        assert_eq!(Tree::new().install(Zxid(7), znodes), Err(expected));
    };
    let (plain, owner) = (znode(ZnodeKind::Persistent), SessionId(3));
    check(&[("/a/b", Some(plain.clone()))], InstallError::Parent("/a/b".into()));
    check(&[("a", Some(plain.clone()))], InstallError::Path("a".into()));
    check(&[("/zookeeper", None)], InstallError::Removal("/zookeeper".into()));
    let unknown = InstallError::UnknownOwner { path: "/a".into(), session: owner };
    check(&[("/a", Some(znode(ZnodeKind::Ephemeral(owner))))], unknown);

    let mut tree = Tree::new();
    tree.install_session(owner, 1000, 0);
    let ephemeral = [("/a", Some(znode(ZnodeKind::Ephemeral(owner))))];
    tree.install(Zxid(7), &ephemeral).unwrap();
    assert!(!tree.uninstall_session(owner));
    let below = [("/a/b", Some(plain.clone()))];
    assert_eq!(tree.install(Zxid(8), &below), Err(InstallError::Parent("/a/b".into())));
    let other_kind = [("/a", Some(plain))];
    assert_eq!(tree.install(Zxid(8), &other_kind), Err(InstallError::Kind("/a".into())));
    let late = InstallError::OutOfOrder { revision: Zxid(6), zxid: Zxid(7) };
    assert_eq!(tree.install(Zxid(6), &[]), Err(late));
}

fn session() -> Wish {
    Wish::CreateSession { timeout_ms: 1000 }
}

fn create(path: &str, flags: i32) -> Wish {
    let acl = vec![paddock_proto::Acl::open()];
    Wish::Create { op: paddock_proto::OpCode::Create, path: path.into(), data: None, acl, flags, ttl_ms: 0 }
}

fn with_command<T>(call: &Call, with: impl FnOnce(Command<'_>) -> T) -> T {
    let bytes = call.encode();
    with(Command::decode(&bytes).expect("a command comes back as encoded").taken_by(call.member))
}

fn touched(tree: &mut Tree, call: &Call) -> Vec<(String, Option<Znode>)> {
    let znodes = |tree: &Tree, path: String| {
        let znode = tree.znode(&path);
        (path, znode)
    };
    with_command(call, |command| {
        tree.try_out(&[command], |tree, _, touched| {
            touched.into_iter().map(|path| znodes(tree, path)).collect()
        })
    })
}

/// Installs znodes, and the sessions as `tree` has them. Gives the events in their order by path.
fn install(tree: &Tree, copy: &mut Tree, znodes: &[(String, Option<Znode>)]) -> Vec<(EventKind, String)> {
    let sessions = (1..=3).map(SessionId);
    for id in sessions.clone() {
        if let (Some(timeout_ms), Some(owner)) = (tree.session_timeout_ms(id), tree.session_owner(id)) {
            let proven = tree.session_identity(id).cloned();
            copy.install_own_session(id, timeout_ms, owner, tree.is_session_keyed(id), proven);
        }
    }
    let znodes: Vec<_> = znodes.iter().map(|(path, znode)| (path.as_str(), znode.clone())).collect();
    let changes = events(&copy.install(tree.zxid(), &znodes).expect("the znodes make a tree"));
    for id in sessions.filter(|id| tree.session_timeout_ms(*id).is_none()) {
        assert!(copy.uninstall_session(id), "its znodes went first");
    }
    changes
}

fn events(changes: &Changes<'_>) -> Vec<(EventKind, String)> {
    let mut events: Vec<_> = changes.iter().map(|change| (change.kind, change.path.to_string())).collect();
    events.sort_by_key(|(kind, path)| (path.clone(), format!("{kind:?}")));
    events
}

/// True if a znode is deleted that was also created or set.
fn deletes_what_it_wrote(events: &[(EventKind, String)]) -> bool {
    let is_deleted =
        |path: &str| events.iter().any(|(kind, of)| *kind == EventKind::NodeDeleted && of == path);
    let writes = [EventKind::NodeCreated, EventKind::NodeDataChanged];
    events.iter().any(|(kind, path)| writes.contains(kind) && is_deleted(path))
}

/// Sorted events, each once: a multi that sets a znode twice has one for both.
fn once(mut events: Vec<(EventKind, String)>) -> Vec<(EventKind, String)> {
    events.dedup();
    events
}

#[test]
fn a_multi_that_writes_a_znode_twice_tells_both() {
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged};
    let (mut tree, mut copy) = (Tree::new(), Tree::new());
    let mut told = |wish: Wish| {
        let call =
            Call { session: SessionId(1), member: 1, time_ms: 5, ids: vec![], enforces_quotas: false, wish };
        let znodes = touched(&mut tree, &call);
        with_command(&call, |command| assert_eq!(tree.apply(&command).result.err(), None));
        let told = install(&tree, &mut copy, &znodes);
        told.into_iter().map(|(kind, path)| format!("{kind:?} {path}")).collect::<Vec<_>>()
    };
    told(session());
    let set = Wish::SetData { path: "/a".into(), data: Some(vec![1]), version: 0 };
    let event = |kind: EventKind, path: &str| format!("{kind:?} {path}");
    assert_eq!(
        told(Wish::Multi(vec![create("/a", 0), set])),
        [event(NodeChildrenChanged, "/"), event(NodeCreated, "/a"), event(NodeDataChanged, "/a")]
    );
    let delete = Wish::Delete { path: "/a/b".into(), version: -1 };
    assert_eq!(told(Wish::Multi(vec![create("/a/b", 0), delete])), [event(NodeChildrenChanged, "/a")]);
}

fn is_of_the_ensemble(wish: &Wish) -> bool {
    matches!(
        wish,
        Wish::FoundEnsemble { .. }
            | Wish::Reconfig { .. }
            | Wish::SettleReconfig { .. }
            | Wish::SetSecret { .. }
            | Wish::BetweenGroups { .. }
    )
}
