use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::SessionId;
use proptest::prelude::*;

use super::*;
use crate::Parcel;

fn client(number: u64) -> Client {
    Client::new(ConnId::new(0, number), SessionId(1), &[])
}

fn path_of(number: u64) -> String {
    format!("/p{number:06}")
}

fn change(path: &str, kind: EventKind) -> Change<'_> {
    Change { kind, path: path.into(), readers: None }
}

/// The connections that are told of a change.
fn told(watches: &mut Watches, path: &str, kind: EventKind) -> Vec<ConnId> {
    let mut out = Outboxes::new(1);
    watches.fire(&change(path, kind), Zxid(1), &mut out);
    let (_, outbox) = out.iter_mut().next().expect("there is a worker");
    outbox
        .iter()
        .filter(|(_, parcel)| matches!(parcel, Parcel::Event(_) | Parcel::SharedEvent(_)))
        .map(|(conn, _)| conn)
        .collect()
}

fn summary(connections: usize, paths: usize, watches: usize) -> WatchSummary {
    WatchSummary { connections, paths, watches }
}

#[test]
fn a_watch_of_a_subtree_is_told_of_children_by_their_own_events() {
    let (client, mut watches) = (client(1), Watches::default());
    watches.add_mode(&client, "/a", AddWatchMode::PersistentRecursive);
    for kind in [EventKind::NodeCreated, EventKind::NodeDeleted, EventKind::NodeDataChanged] {
        assert!(watches.is_told_of(client.conn, "/a/b", kind), "{kind:?}");
    }
    assert!(!watches.is_told_of(client.conn, "/a/b", EventKind::NodeChildrenChanged));
    assert_eq!(told(&mut watches, "/a/b", EventKind::NodeChildrenChanged), []);
}

#[test]
fn watches_of_a_connection_that_is_gone_count_no_more_and_are_removed_in_slices() {
    const PATHS: u64 = 20_000;
    let (many, few) = (client(1), client(2));
    let mut watches = Watches::default();
    for number in 0..PATHS {
        watches.add_data(&many, &path_of(number));
    }
    watches.add_mode(&many, "/", AddWatchMode::PersistentRecursive);
    watches.add_data(&few, &path_of(7));
    watches.add_data(&few, &path_of(11));
    watches.add_children(&few, &path_of(11));
    assert_eq!(watches.summary(), summary(2, PATHS as usize + 1, PATHS as usize + 3));

    watches.drop_conn(many.conn);
    assert_eq!((watches.summary(), watches.len()), (summary(1, 2, 2), 3));
    assert_eq!((watches.counts.recursive, watches.gone_paths()), (0, PATHS as usize + 1));
    assert_eq!(told(&mut watches, &path_of(8), EventKind::NodeCreated), []);
    assert_eq!(told(&mut watches, &path_of(7), EventKind::NodeCreated), [few.conn]);
    let mut left = watches.by_path.len();
    while watches.sweep() {
        assert!(left - watches.by_path.len() < 1000, "{} at once", left - watches.by_path.len());
        left = watches.by_path.len();
        let gone = watches.gone.values().map(|number| watches.watchers.get(*number).paths.len());
        assert_eq!(watches.gone_paths(), gone.sum::<usize>());
        assert_eq!((watches.summary(), watches.len()), (summary(1, 1, 1), 2));
        let number = left as u64 % PATHS;
        let nobody = number != 7 && number != 11;
        assert!(!nobody || told(&mut watches, &path_of(number), EventKind::NodeDeleted).is_empty());
    }
    assert_eq!(watches.gone_paths(), 0);
    assert_eq!(watches.by_path.len(), 1, "the path of the other one is left");
    assert_eq!(told(&mut watches, &path_of(11), EventKind::NodeDeleted), [few.conn]);
    assert!(watches.by_path.is_empty() && watches.by_conn.is_empty() && watches.gone.is_empty());
    assert_eq!((watches.paths.len(), watches.watchers.len()), (0, 0));
}

#[test]
fn who_sets_watches_and_leaves_again_and_again_does_not_outrun_the_removal() {
    const PATHS: u64 = 10_000;
    let mut watches = Watches::default();
    for round in 0..5 {
        let client = client(round);
        for number in 0..PATHS {
            watches.add_data(&client, &path_of(number));
        }
        assert_eq!(watches.gone_paths(), 0, "those of the round before");
        watches.drop_conn(client.conn);
    }
}

/// Its session goes on over another connection, and it does not know yet.
#[test]
fn what_a_connection_still_asks_for_that_was_dropped_harms_nobody() {
    let (gone, there) = (client(1), client(2));
    let mut watches = Watches::default();
    watches.add_data(&gone, "/a");
    watches.add_data(&there, "/a");
    watches.drop_conn(gone.conn);
    watches.add_data(&gone, "/b");
    assert!(!watches.remove(gone.conn, "/a", WatcherKind::Any), "it has no watches any more");
    assert_eq!(watches.summary(), summary(1, 1, 1));
    watches.drop_conn(gone.conn);
    assert!(!watches.sweep());
    assert_eq!(watches.summary(), summary(1, 1, 1));
    assert_eq!(told(&mut watches, "/a", EventKind::NodeDataChanged), [there.conn]);
}

#[derive(Clone, Debug)]
enum WatchStep {
    Add { conn: u64, path: u64, interest: Interest },
    Remove { conn: u64, path: u64, kind: WatcherKind },
    Fire { path: u64, kind: EventKind },
    Drop { conn: u64 },
    Sweep,
}

fn steps() -> impl Strategy<Value = Vec<WatchStep>> {
    let (conn, path) = (0..4u64, 0..4u64);
    let interests = [
        Interest { data: Modes::STANDARD, children: Modes::default() },
        Interest { data: Modes::default(), children: Modes::STANDARD },
        interest_of(AddWatchMode::Persistent),
        interest_of(AddWatchMode::PersistentRecursive),
    ];
    let kinds = [WatcherKind::Children, WatcherKind::Data, WatcherKind::Any, WatcherKind::Persistent];
    let events = [EventKind::NodeCreated, EventKind::NodeDeleted, EventKind::NodeChildrenChanged];
    let step = prop_oneof![
        6 => (conn.clone(), path.clone(), prop::sample::select(interests.to_vec()))
            .prop_map(|(conn, path, interest)| WatchStep::Add { conn, path, interest }),
        2 => (conn.clone(), path.clone(), prop::sample::select(kinds.to_vec()))
            .prop_map(|(conn, path, kind)| WatchStep::Remove { conn, path, kind }),
        3 => (path, prop::sample::select(events.to_vec())).prop_map(|(path, kind)| WatchStep::Fire { path, kind }),
        2 => conn.prop_map(|conn| WatchStep::Drop { conn }),
        1 => Just(WatchStep::Sweep),
    ];
    prop::collection::vec(step, 0..60)
}

/// The table of watches as simply as it can be said. A connection that ends is followed by another one.
#[derive(Default)]
struct Model {
    interests: BTreeMap<(ConnId, String), Interest>,
    /// Watches of connections that are gone, until they are swept.
    gone: BTreeMap<(ConnId, String), Interest>,
    successors: BTreeMap<u64, u64>,
}

impl Model {
    fn client(&self, number: u64) -> Client {
        client(number + 4 * self.successors.get(&number).copied().unwrap_or_default())
    }

    fn reduce(interests: &mut BTreeMap<(ConnId, String), Interest>, path: &str, fewer: Interest) {
        interests.iter_mut().filter(|((_, at), _)| at == path).for_each(|(_, i)| *i = i.without(fewer));
        interests.retain(|_, interest| !interest.is_empty());
    }

    fn fire(&mut self, path: &str, kind: EventKind) -> Vec<ConnId> {
        let wakes = woken_by(kind);
        let is_told = |at: &str, interest: Interest| {
            if at == path {
                interest.has(wakes)
            } else {
                let is_above = path.starts_with(&format!("{at}/"));
                is_above && kind != EventKind::NodeChildrenChanged && interest.data.has(Modes::RECURSIVE)
            }
        };
        let told = self.interests.iter().filter(|((_, at), interest)| is_told(at, **interest));
        let told: BTreeSet<ConnId> = told.map(|((conn, _), _)| *conn).collect();
        let standard = |modes: Modes| if modes.is_empty() { modes } else { Modes::STANDARD };
        let fired = Interest { data: standard(wakes.data), children: standard(wakes.children) };
        Model::reduce(&mut self.interests, path, fired);
        Model::reduce(&mut self.gone, path, fired);
        Vec::from_iter(told)
    }

    fn summary(&self) -> WatchSummary {
        let data = |all: &BTreeMap<(ConnId, String), Interest>| {
            let all = all.iter().filter(|(_, interest)| !interest.data.is_empty());
            all.map(|(key, _)| key.clone()).collect::<Vec<(ConnId, String)>>()
        };
        let (there, gone) = (data(&self.interests), data(&self.gone));
        let mut paths: BTreeSet<&String> = there.iter().map(|(_, path)| path).collect();
        // An empty table is seen when all but one are removed.
        paths.extend(
            gone.iter()
                .map(|(_, path)| path)
                .filter(|path| gone.iter().filter(|(_, other)| other == *path).count() > 1),
        );
        let conns: BTreeSet<ConnId> = there.iter().map(|(conn, _)| *conn).collect();
        summary(conns.len(), paths.len(), there.len())
    }
}

proptest! {
    #[test]
    fn counts_and_events_are_those_of_the_model(steps in steps()) {
        let (mut watches, mut model) = (Watches::default(), Model::default());
        let paths = ["/a", "/a/b", "/a/b/c", "/d"];
        for step in steps {
            match step {
                WatchStep::Add { conn, path, interest } => {
                    let (client, path) = (model.client(conn), paths[path as usize]);
                    watches.add(&client, path, interest);
                    let known = model.interests.entry((client.conn, path.into())).or_default();
                    *known = known.with(interest);
                }
                WatchStep::Remove { conn, path, kind } => {
                    let (conn, path) = (model.client(conn).conn, paths[path as usize]);
                    let key = (conn, path.to_owned());
                    let known = model.interests.get(&key).copied().unwrap_or_default();
                    prop_assert_eq!(watches.remove(conn, path, kind), known.has(meant_by(kind)));
                    let after = known.without(meant_by(kind));
                    model.interests.insert(key, after);
                    model.interests.retain(|_, interest| !interest.is_empty());
                }
                WatchStep::Fire { path, kind } => {
                    let path = paths[path as usize];
                    prop_assert_eq!(told(&mut watches, path, kind), model.fire(path, kind));
                }
                WatchStep::Drop { conn } => {
                    let gone = model.client(conn).conn;
                    watches.drop_conn(gone);
                    let Model { interests, gone: ghosts, .. } = &mut model;
                    ghosts.extend(interests.extract_if(.., |(conn, _), _| *conn == gone));
                    *model.successors.entry(conn).or_default() += 1;
                }
                WatchStep::Sweep => {
                    prop_assert!(!watches.sweep());
                    model.gone.clear();
                }
            }
            prop_assert_eq!(watches.summary(), model.summary());
            let children = model.interests.values().filter(|interest| !interest.children.is_empty()).count();
            prop_assert_eq!(watches.len(), watches.summary().watches + children);
        }
    }
}

#[test]
fn a_connection_is_told_once_however_often_it_watches() {
    let (mut watches, client) = (Watches::default(), client(1));
    watches.add_data(&client, "/a/b");
    watches.add_children(&client, "/a/b");
    for (path, mode) in [
        ("/a/b", AddWatchMode::Persistent),
        ("/a/b", AddWatchMode::PersistentRecursive),
        ("/a", AddWatchMode::PersistentRecursive),
        ("/", AddWatchMode::PersistentRecursive),
    ] {
        watches.add_mode(&client, path, mode);
    }
    assert_eq!(told(&mut watches, "/a/b", EventKind::NodeDeleted), [client.conn]);
    watches.drop_conn(client.conn);
    assert_eq!(told(&mut watches, "/a/b", EventKind::NodeDeleted), []);
}

#[test]
fn what_is_asked_for_once_is_told_once() {
    let all = [EventKind::NodeCreated, EventKind::NodeDataChanged, EventKind::NodeDeleted];
    for kind in all {
        let (mut watches, once, always) = (Watches::default(), client(1), client(2));
        watches.add_data(&once, "/a");
        watches.add_mode(&always, "/a", AddWatchMode::Persistent);
        assert_eq!(told(&mut watches, "/a", kind), [once.conn, always.conn], "{kind:?}");
        assert_eq!(told(&mut watches, "/a", kind), [always.conn], "{kind:?}");
    }
    let (mut watches, once) = (Watches::default(), client(1));
    watches.add_children(&once, "/a");
    assert_eq!(told(&mut watches, "/a", EventKind::NodeDataChanged), []);
    assert_eq!(told(&mut watches, "/a", EventKind::NodeChildrenChanged), [once.conn]);
    assert_eq!(told(&mut watches, "/a", EventKind::NodeChildrenChanged), []);
}

#[test]
fn what_is_forgotten_is_not_counted() {
    let (mut watches, client) = (Watches::default(), client(1));
    let recursive = AddWatchMode::PersistentRecursive;
    watches.add_data(&client, "/a");
    watches.add_mode(&client, "/a", recursive);
    watches.add_mode(&client, "/b", recursive);
    watches.add_mode(&client, "/b", AddWatchMode::Persistent);
    assert_eq!((watches.len(), watches.counts.recursive), (3, 2));
    assert!(watches.remove(client.conn, "/a", WatcherKind::PersistentRecursive));
    assert!(!watches.remove(client.conn, "/a", WatcherKind::PersistentRecursive));
    assert_eq!((watches.len(), watches.counts.recursive), (3, 1));
    watches.drop_conn(client.conn);
    assert_eq!((watches.len(), watches.counts.recursive, watches.summary().paths), (0, 0, 0));
}

#[test]
fn no_more_watches_are_set_than_there_may_be() {
    let (mut watches, first, second) = (Watches::default(), client(1), client(2));
    watches.set_limits(WatchLimits { per_connection_max: 2, max: 3 });
    assert!(watches.add_data(&first, "/a") && watches.add_children(&first, "/a"));
    assert!(!watches.add_data(&first, "/b"), "it has two");
    assert!(watches.add_data(&first, "/a"), "it has this one already");
    assert!(watches.add_data(&second, "/b"));
    assert!(!watches.restore(&second, "/c", WatcherKind::Data), "there are three");
    watches.close_for_want_of_watches(second.conn);
    let refused = watches.take_refused().expect("two were refused");
    assert_eq!((refused.count, refused.last, refused.to_close), (2, second.conn, vec![second.conn]));
    assert!(watches.take_refused().is_none());
    assert_eq!(told(&mut watches, "/a", EventKind::NodeDeleted), [first.conn]);
    assert!(watches.add_data(&second, "/c"), "there is room again");
}

#[test]
fn without_memory_old_watches_are_restored_and_new_ones_refused() {
    let (mut watches, client) = (Watches::default(), client(1));
    watches.refuse_all(true);
    assert!(!watches.add_data(&client, "/a"));
    assert!(watches.restore(&client, "/b", WatcherKind::PersistentRecursive));
    watches.refuse_all(false);
    assert!(watches.add_data(&client, "/a"));
    assert_eq!(watches.len(), 2);
}
