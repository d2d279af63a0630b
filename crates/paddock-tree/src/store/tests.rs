//! Rows and slots that are taken are let go of: nothing outside can see one that is not used.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

use super::*;

#[derive(Clone, Debug)]
enum StoreStep {
    Create { parent: Index, data: Option<usize>, kind: ZnodeKind },
    Delete(Index),
    SetData(Index, Option<usize>),
    SetAcl(Index),
    Open,
    Commit,
    RollBack,
}

fn step() -> impl Strategy<Value = StoreStep> {
    let index = any::<Index>;
    let data = || prop::option::weighted(0.9, prop_oneof![3 => 0..300usize, 1 => 0..6000usize]);
    let kind = prop_oneof![4 => Just(ZnodeKind::Persistent), 1 => Just(ZnodeKind::Ephemeral(SessionId(7)))];
    prop_oneof![
        5 => (index(), data(), kind).prop_map(|(parent, data, kind)| StoreStep::Create { parent, data, kind }),
        3 => index().prop_map(StoreStep::Delete),
        4 => (index(), data()).prop_map(|(node, data)| StoreStep::SetData(node, data)),
        1 => index().prop_map(StoreStep::SetAcl),
        2 => Just(StoreStep::Open),
        1 => Just(StoreStep::Commit),
        2 => Just(StoreStep::RollBack),
    ]
}

/// The record of a root.
const RECORD: Record<'static> = Record {
    id: 0,
    parent: 0,
    acl: 0,
    name: "",
    data: None,
    czxid: 0,
    mzxid: 0,
    pzxid: 0,
    ctime_ms: 0,
    mtime_ms: 0,
    version: 0,
    cversion: 0,
    aversion: 0,
    kind: ZnodeKind::Persistent,
};

fn rooted() -> Store {
    let mut store = Store::empty();
    store.place(&RECORD, AclId::OPEN);
    assert!(store.weigh());
    store
}

/// Checks that the nodes have all that they need, and that nothing else is in use.
fn check(store: &Store) {
    let nodes: Vec<NodeId> = store.subtree(NodeId::ROOT).collect();
    assert_eq!((nodes.len(), store.nodes.in_use()), (store.node_count(), store.node_count()));
    let sides = nodes.iter().filter(|&&id| store.nodes[id.0].side != Default::default()).count();
    let (small, large) = store.sides.rows_in_use();
    assert_eq!(small + large, sides);
    assert_eq!(store.blobs.in_use(), nodes.len());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_left_behind(steps in prop::collection::vec(step(), 1..150)) {
        let mut store = rooted();
        for (step, n) in steps.into_iter().zip(1..) {
            let nodes: Vec<NodeId> = store.subtree(NodeId::ROOT).collect();
            let bytes = |len: usize| vec![b'd'; len];
            match step {
                StoreStep::Create { parent, data, kind } => {
                    let (parent, data) = (*parent.get(&nodes), data.map(bytes));
                    let path = format!("{}/{n}", store.path(parent).trim_end_matches('/'));
                    let acl = (n % 3 == 0).then(Vec::new);
                    let (data, zxid) = (data.as_deref(), Zxid(n));
                    store.create(NewNode { parent, path: &path, data, acl, kind, zxid, time_ms: n });
                }
                StoreStep::Delete(node) => {
                    let node = *node.get(&nodes);
                    if node != NodeId::ROOT && store.child_count(node) == 0 {
                        store.delete(node, &store.path(node), Zxid(n));
                    }
                }
                StoreStep::SetData(node, data) => {
                    store.set_data(*node.get(&nodes), data.map(bytes).as_deref(), Zxid(n), n);
                }
                StoreStep::SetAcl(node) => store.set_acl(*node.get(&nodes), None),
                StoreStep::Open => store.open_journal(),
                StoreStep::Commit if store.journal.is_open() => store.commit_journal(),
                StoreStep::RollBack if store.journal.is_open() => store.roll_back_journal(),
                StoreStep::Commit | StoreStep::RollBack => {}
            }
            if !store.journal.is_open() {
                check(&store);
            }
            let (digest, data_bytes) = (store.digest, store.data_bytes);
            prop_assert!(store.weigh());
            prop_assert_eq!((store.digest, store.data_bytes), (digest, data_bytes));
        }
    }
}

/// Checks the promise of decision 0015: a few sets cost no more than the row that they need, and none costs nothing.
#[test]
fn a_leaf_has_no_row_beside_it_until_it_is_set() {
    let mut store = rooted();
    let new = NewNode {
        parent: NodeId::ROOT,
        path: "/a",
        data: None,
        acl: Some(Vec::new()),
        kind: ZnodeKind::Persistent,
        zxid: Zxid(1),
        time_ms: 1,
    };
    let leaf = store.create(new);
    assert_eq!(store.sides.rows_in_use(), (0, 1), "the root has a child");
    store.set_data(leaf, Some(b"x"), Zxid(2), 2);
    store.set_data(leaf, Some(b"y"), Zxid(3), 3);
    assert_eq!(store.sides.rows_in_use(), (1, 1));
    store.set_acl(leaf, None);
    assert_eq!(store.sides.rows_in_use(), (0, 2));
    assert_eq!((store.version(leaf), store.mtime_ms(leaf), store.aversion(leaf)), (2, 3, 1));
}

fn leaf(store: &mut Store, path: &str) -> NodeId {
    let (parent, _) = path.rsplit_once('/').unwrap();
    let parent = store.find(parent).unwrap();
    let (zxid, kind) = (Zxid(1), ZnodeKind::Persistent);
    store.create(NewNode { parent, path, data: None, acl: None, kind, zxid, time_ms: 1 })
}

#[test]
fn no_guess_misleads() {
    let mut store = rooted();
    for path in ["/a", "/a/a", "/a/a/a", "/b", "/b/a", "/b/a/a", "/c"] {
        leaf(&mut store, path);
    }
    let gone = store.find("/b/a/a").unwrap();
    store.delete(gone, "/b/a/a", Zxid(2));
    let paths =
        ["", "/", "//", "/a", "/a/", "a", "/a/a", "/a/a/a", "/a/a/a/a", "/b/a", "/b/a/a", "/c", "/c/a", "/d"];
    for path in paths {
        let found = store.find(path);
        for guess in (0..store.nodes.slots() + 2).map(NodeId).chain([NodeId::NONE]) {
            assert_eq!(store.find_guessed(path, guess), found, "{path:?}, {guess:?}");
        }
    }
}

#[test]
fn looking_ahead_finds_nearly_all() {
    let mut store = rooted();
    for parent in 0..100 {
        leaf(&mut store, &format!("/{parent}"));
        for child in 0..10 {
            leaf(&mut store, &format!("/{parent}/{child}"));
        }
    }
    let paths: Vec<String> = store.subtree(NodeId::ROOT).skip(1).map(|id| store.path(id)).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let is_right = |(path, guess): &(&&str, NodeId)| store.find(path) == Some(*guess);
    assert!(paths.iter().zip(store.look_ahead(&paths)).filter(is_right).count() > 1090);
    let absent = ["/0/10", "/x", "/x/y", "", "0"];
    assert!(store.look_ahead(&absent).into_iter().filter_map(NodeId::some).count() <= 1);
}

#[test]
fn several_threads_build_the_same_store() {
    let built = |threads: usize| {
        let mut store = rooted();
        for number in 1..5000_u32 {
            let (parent, name) = (number.isqrt() % 100 * u32::from(number > 100), format!("n{number}"));
            let record = Record { id: number, parent, name: &name, data: Some(b"data"), ..RECORD };
            store.place(&record, AclId::OPEN);
            store.bind(NodeId(number), NodeId(parent));
        }
        store.fill_index_with(threads).unwrap();
        assert!(store.weigh_with(threads));
        store
    };
    let one = built(1);
    for threads in 1..=4 {
        let store = built(threads);
        assert_eq!((store.digest, store.data_bytes), (one.digest, one.data_bytes), "{threads} threads");
        for id in (1..5000).map(NodeId) {
            let found = store.child_of_hash(store.parent(id), store.name(id), store.hash(id));
            assert_eq!(found, Some(id), "{threads} threads");
        }
        check(&store);
        let mut doubled = built(threads);
        doubled.place(&Record { id: 5000, name: "n7", ..RECORD }, AclId::OPEN);
        doubled.bind(NodeId(5000), NodeId::ROOT);
        doubled.index = super::index::Index::new();
        assert_eq!(doubled.fill_index_with(threads), Err(NodeId(5000)), "{threads} threads");
    }
}

#[test]
fn a_ring_of_parents_is_found_by_any_number_of_threads() {
    for threads in 1..=3 {
        let mut store = rooted();
        for (id, parent) in [(1, 2), (2, 1)] {
            store.place(&Record { id, parent, name: "a", ..RECORD }, AclId::OPEN);
        }
        (1..=2).for_each(|id| store.bind(NodeId(id), NodeId(3 - id)));
        assert!(!store.weigh_with(threads), "{threads} threads");
    }
}
