//! Lists that are kept as they go over the wire, beside those of a tree that keeps none.

use paddock_proto::jute::Reader;
use paddock_proto::{ChildFilter, CreateMode, IdList, OpCode, Read, SessionId, encode};
use paddock_tree::{Asker, Command, Copied, ListCopy, Tree};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Znodes whose children come and go.
const PARENTS: u8 = 4;

#[derive(Clone, Debug)]
enum Step {
    Create(u8, u8),
    Delete(u8, u8),
    /// Creates and deletes some children, and is taken back.
    Fail(u8, Vec<(bool, u8)>),
    /// A znode goes with all its children, and another takes its place.
    Replace(u8),
    /// The list is asked for this often, in one step or in portions.
    List(u8, u8, Option<u8>),
    /// A portion of a list is copied, or a copy begun.
    Copy(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (parent, name) = (0..PARENTS, 0..40u8);
    let operations = prop::collection::vec((any::<bool>(), name.clone()), 1..6);
    prop_oneof![
        12 => (parent.clone(), name.clone()).prop_map(|(parent, name)| Step::Create(parent, name)),
        4 => (parent.clone(), name).prop_map(|(parent, name)| Step::Delete(parent, name)),
        2 => (parent.clone(), operations).prop_map(|(parent, operations)| Step::Fail(parent, operations)),
        1 => parent.clone().prop_map(Step::Replace),
        8 => (parent.clone(), 1..4u8, prop::option::of(1..9u8))
            .prop_map(|(parent, times, portion)| Step::List(parent, times, portion)),
        4 => parent.prop_map(Step::Copy),
    ]
}

/// Names that differ in length, some of them by much: lists of few children have buckets, too.
fn child(parent: u8, name: u8) -> String {
    let length = if name.is_multiple_of(7) { 4000 } else { usize::from(name) + 1 };
    format!("/p{parent}/{name}{}", "x".repeat(length))
}

fn run(tree: &mut Tree, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
    let (mut bytes, mut command) = (Vec::new(), Vec::new());
    body(&mut bytes);
    Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, op, &bytes, &mut command);
    tree.apply(&Command::decode(&command).expect("it was encoded"));
}

fn create(out: &mut Vec<u8>, path: &str) {
    encode::create_open(out, path, None, CreateMode::Persistent);
}

fn change(tree: &mut Tree, step: &Step) {
    match step {
        Step::Create(parent, name) => run(tree, OpCode::Create, |out| create(out, &child(*parent, *name))),
        Step::Delete(parent, name) => {
            run(tree, OpCode::Delete, |out| encode::path_and_version(out, &child(*parent, *name), -1));
        }
        Step::Fail(parent, operations) => run(tree, OpCode::Multi, |out| {
            for (is_create, name) in operations {
                let path = child(*parent, *name);
                if *is_create {
                    encode::multi_operation(out, OpCode::Create);
                    create(out, &path);
                } else {
                    encode::multi_operation(out, OpCode::Delete);
                    encode::path_and_version(out, &path, -1);
                }
            }
            encode::multi_operation(out, OpCode::Delete);
            encode::path_and_version(out, "/no-such-znode", -1);
            encode::multi_end(out);
        }),
        Step::Replace(parent) => {
            (0..40).for_each(|name| change(tree, &Step::Delete(*parent, name)));
            let path = format!("/p{parent}");
            run(tree, OpCode::Delete, |out| encode::path_and_version(out, &path, -1));
            run(tree, OpCode::Create, |out| create(out, &path));
        }
        Step::List(..) | Step::Copy(_) => {}
    }
}

/// The names that a list has, in order: a list on the wire is in no particular one.
fn names(list: &[u8]) -> Vec<String> {
    let mut reader = Reader::new(list);
    let mut names: Vec<String> =
        reader.strings().expect("it is a list").into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

fn at_once(tree: &Tree, path: &str, times: u8) -> Vec<String> {
    let mut out = Vec::new();
    // All ways to ask for all children share what is kept.
    let read = match times % 3 {
        0 => Read::GetChildren { path, watch: false },
        1 => Read::GetChildren2 { path, watch: false },
        _ => Read::FilteredList { path, filter: ChildFilter::All, watch: false },
    };
    tree.read(&read, &Asker::NOBODY, &mut out).expect("the parent is there");
    names(&out)
}

fn in_portions(tree: &Tree, path: &str, portion: u8) -> Option<Vec<String>> {
    let mut copy = tree.begin_list_copy(path, 3000, usize::MAX)?;
    while tree.copy_list(path, &mut copy, portion.into()) == Copied::Portion {}
    Some(names(&copy.into_list().to_bytes()))
}

fn tree(bytes_max: usize) -> Tree {
    let mut tree = Tree::new();
    tree.set_long_list(3);
    tree.set_prepared_list_bytes_max(bytes_max);
    (0..PARENTS).for_each(|parent| run(&mut tree, OpCode::Create, |out| create(out, &format!("/p{parent}"))));
    tree
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_list_that_is_kept_is_that_of_a_tree_that_keeps_none(
        steps in prop::collection::vec(step(), 50..250),
        bytes_max in prop_oneof![Just(1 << 20), 500..60_000usize],
    ) {
        let (mut keeping, mut plain) = (tree(bytes_max), tree(0));
        let mut copies: [Option<ListCopy>; PARENTS as usize] = Default::default();
        for step in &steps {
            change(&mut keeping, step);
            change(&mut plain, step);
            match *step {
                Step::List(parent, times, portion) => {
                    let path = format!("/p{parent}");
                    let expected = at_once(&plain, &path, 0);
                    for time in 0..times {
                        prop_assert_eq!(&at_once(&keeping, &path, time), &expected);
                        if let Some(portion) = portion
                            && let Some(list) = in_portions(&keeping, &path, portion)
                        {
                            prop_assert_eq!(list, expected.clone());
                        }
                    }
                }
                Step::Copy(parent) => {
                    let (path, copy) = (format!("/p{parent}"), &mut copies[usize::from(parent)]);
                    let Some(mut begun) = copy.take().or_else(|| keeping.begin_list_copy(&path, 200_000, usize::MAX)) else { continue };
                    match keeping.copy_list(&path, &mut begun, 5) {
                        Copied::Portion => *copy = Some(begun),
                        Copied::All => {
                            prop_assert_eq!(names(&begun.into_list().to_bytes()), at_once(&plain, &path, 0));
                        }
                        Copied::Outdated => {}
                    }
                }
                _ => {}
            }
            prop_assert!(keeping.prepared_list_bytes() <= bytes_max, "{} of {bytes_max}", keeping.prepared_list_bytes());
            prop_assert_eq!(plain.prepared_list_bytes(), 0);
        }
        prop_assert_eq!(keeping.digest(), plain.digest());
    }
}

fn filled(children: u8) -> Tree {
    let mut tree = tree(1 << 20);
    (0..children).for_each(|name| change(&mut tree, &Step::Create(0, name)));
    tree
}

#[test]
fn a_list_is_kept_when_it_is_asked_for_again_without_a_change_between() {
    let mut tree = filled(20);
    at_once(&tree, "/p0", 0);
    assert_eq!(tree.prepared_list_bytes(), 0, "a list that is asked for once costs nothing");
    change(&mut tree, &Step::Create(0, 30));
    at_once(&tree, "/p0", 0);
    assert_eq!(tree.prepared_list_bytes(), 0, "it has changed");
    at_once(&tree, "/p0", 0);
    let kept = tree.prepared_list_bytes();
    assert!(kept > 0);
    // A change is taken up, and does not end it.
    change(&mut tree, &Step::Delete(0, 3));
    change(&mut tree, &Step::Create(0, 31));
    assert_eq!(at_once(&tree, "/p0", 0).len(), 21);
    assert!(tree.prepared_list_bytes() > kept);
}

#[test]
fn changes_of_a_list_that_is_not_asked_for_any_more_end_it() {
    let mut tree = filled(20);
    (0..2).for_each(|_| drop(at_once(&tree, "/p0", 0)));
    let kept = tree.prepared_list_bytes();
    for _ in 0..200 {
        change(&mut tree, &Step::Create(0, 30));
        change(&mut tree, &Step::Delete(0, 30));
    }
    assert!(kept > 0 && tree.prepared_list_bytes() == 0);
    assert_eq!(at_once(&tree, "/p0", 0).len(), 20);
}

#[test]
fn a_short_list_is_not_kept() {
    let mut tree = filled(6);
    tree.set_long_list(Tree::LONG_LIST);
    (0..5).for_each(|_| drop(at_once(&tree, "/p0", 0)));
    assert_eq!(tree.prepared_list_bytes(), 0);
}

#[test]
fn lists_that_are_asked_for_displace_those_that_are_not() {
    let mut tree = tree(10_000);
    for parent in 0..PARENTS {
        // About 900 bytes each.
        (1..50)
            .filter(|name: &u8| !name.is_multiple_of(7))
            .for_each(|name| change(&mut tree, &Step::Create(parent, name)));
    }
    let held: Vec<usize> = (0..PARENTS)
        .map(|parent| {
            (0..2).for_each(|_| drop(at_once(&tree, &format!("/p{parent}"), 0)));
            tree.prepared_list_bytes()
        })
        .collect();
    assert!(held.is_sorted() && held[0] > 0, "{held:?}");
    tree.set_prepared_list_bytes_max(held[1]);
    assert!(tree.prepared_list_bytes() <= held[1] && tree.prepared_list_bytes() > 0);
    tree.set_prepared_list_bytes_max(0);
    assert_eq!(tree.prepared_list_bytes(), 0);
    (0..3).for_each(|_| drop(at_once(&tree, "/p0", 0)));
    assert_eq!(tree.prepared_list_bytes(), 0);
}

#[test]
fn changes_of_lists_that_are_kept_stay_within_the_limit() {
    let mut tree = tree(1 << 20);
    for parent in 0..2 {
        (1..40).for_each(|name| change(&mut tree, &Step::Create(parent, name)));
        (0..2).for_each(|_| drop(at_once(&tree, &format!("/p{parent}"), 0)));
    }
    let both = tree.prepared_list_bytes();
    tree.set_prepared_list_bytes_max(both);
    assert_eq!(tree.prepared_list_bytes(), both);
    change(&mut tree, &Step::Create(0, 40));
    let one = tree.prepared_list_bytes();
    assert!(one > 0 && one < both, "{one} of {both}: one of them has to go");
    assert_eq!(at_once(&tree, "/p0", 0).len(), 40);
}
