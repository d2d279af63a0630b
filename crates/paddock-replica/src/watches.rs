//! The watch table of one member. Watches are local: they are never replicated or saved.
//!
//! The tree reports each `Change`; this table turns it into events for this member's connections. For each path and
//! connection it keeps two sets of modes, as ZooKeeper keeps two tables: one for the znode itself (exists, getData,
//! addWatch) and one for its children (getChildren, addWatch).
//! Invariant: a one-shot watch is removed in the same step that emits its event, and a connection gets at most one
//! event for each change of each path.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use paddock_proto::{AddWatchMode, EventKind, Perms, WatchEvent, WatcherKind, Zxid, parent_and_name};
use paddock_tree::{Change, allows};

use crate::{Client, ConnId, Outboxes};

/// A set of watch modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Modes(u8);

impl Modes {
    const STANDARD: Modes = Modes(1);
    const PERSISTENT: Modes = Modes(2);
    const RECURSIVE: Modes = Modes(4);
    const ALL: Modes = Modes(7);

    fn has(self, any_of: Modes) -> bool {
        self.0 & any_of.0 != 0
    }

    fn with(self, more: Modes) -> Modes {
        Modes(self.0 | more.0)
    }

    fn without(self, fewer: Modes) -> Modes {
        Modes(self.0 & !fewer.0)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What one connection watches at one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interest {
    data: Modes,
    children: Modes,
}

impl Interest {
    fn is_empty(self) -> bool {
        self.data.is_empty() && self.children.is_empty()
    }

    fn without(self, other: Interest) -> Interest {
        Interest { data: self.data.without(other.data), children: self.children.without(other.children) }
    }

    fn has(self, other: Interest) -> bool {
        self.data.has(other.data) || self.children.has(other.children)
    }
}

/// What the four-letter word `wchs` counts: watches on znodes, not those on children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchSummary {
    pub connections: usize,
    pub paths: usize,
    pub watches: usize,
}

#[derive(Debug)]
struct Watcher {
    client: Client,
    paths: HashSet<Arc<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct Watches {
    by_path: HashMap<Arc<str>, HashMap<ConnId, Interest>>,
    by_conn: HashMap<ConnId, Watcher>,
    /// How many interests are recursive: while there are none, nobody looks at a change's ancestors.
    recursive: usize,
    /// Watches on znodes and on children, counted as ZooKeeper counts.
    data_watches: usize,
    child_watches: usize,
}

impl Watches {
    pub(crate) fn add_data(&mut self, client: &Client, path: &str) {
        self.add(client, path, Interest { data: Modes::STANDARD, ..Interest::default() });
    }

    pub(crate) fn add_children(&mut self, client: &Client, path: &str) {
        self.add(client, path, Interest { children: Modes::STANDARD, ..Interest::default() });
    }

    pub(crate) fn add_mode(&mut self, client: &Client, path: &str, mode: AddWatchMode) {
        self.add(client, path, interest_of(mode));
    }

    fn add(&mut self, client: &Client, path: &str, interest: Interest) {
        let watcher = self
            .by_conn
            .entry(client.conn)
            .or_insert_with(|| Watcher { client: client.clone(), paths: HashSet::new() });
        let path = match watcher.paths.get(path) {
            Some(known) => known.clone(),
            None => {
                let path: Arc<str> =
                    self.by_path.get_key_value(path).map_or_else(|| path.into(), |(p, _)| p.clone());
                watcher.paths.insert(path.clone());
                path
            }
        };
        let before =
            self.by_path.get(&path).and_then(|conns| conns.get(&client.conn)).copied().unwrap_or_default();
        let after = Interest {
            data: before.data.with(interest.data),
            children: before.children.with(interest.children),
        };
        self.by_path.entry(path).or_default().insert(client.conn, after);
        self.count(before, after);
    }

    /// The connection has shown another identity: what it may be told can grow.
    pub(crate) fn identify(&mut self, client: &Client) {
        if let Some(watcher) = self.by_conn.get_mut(&client.conn) {
            watcher.client = client.clone();
        }
    }

    pub(crate) fn contains(&self, conn: ConnId, path: &str, kind: WatcherKind) -> bool {
        let interest = self.by_path.get(path).and_then(|conns| conns.get(&conn)).copied().unwrap_or_default();
        interest.has(meant_by(kind))
    }

    /// Removes what `kind` means; false if there was nothing.
    pub(crate) fn remove(&mut self, conn: ConnId, path: &str, kind: WatcherKind) -> bool {
        let found = self.contains(conn, path, kind);
        if found {
            self.reduce(conn, path, meant_by(kind));
        }
        found
    }

    /// Forgets all watches of a connection that is gone.
    pub(crate) fn drop_conn(&mut self, conn: ConnId) {
        let Some(watcher) = self.by_conn.get(&conn) else { return };
        let everything = Interest { data: Modes::ALL, children: Modes::ALL };
        for path in watcher.paths.clone() {
            self.reduce(conn, &path, everything);
        }
        assert!(!self.by_conn.contains_key(&conn), "a watcher without paths is removed with its last path");
    }

    fn reduce(&mut self, conn: ConnId, path: &str, fewer: Interest) {
        let Some(conns) = self.by_path.get_mut(path) else { return };
        let Entry::Occupied(mut entry) = conns.entry(conn) else { return };
        let before = *entry.get();
        let after = before.without(fewer);
        if after.is_empty() {
            entry.remove();
            let last = conns.is_empty();
            if last {
                self.by_path.remove(path);
            }
            let watcher = self.by_conn.get_mut(&conn).expect("whoever watches a path is a watcher");
            watcher.paths.remove(path);
            if watcher.paths.is_empty() {
                self.by_conn.remove(&conn);
            }
        } else {
            entry.insert(after);
        }
        self.count(before, after);
    }

    fn count(&mut self, before: Interest, after: Interest) {
        let recursive = |interest: Interest| usize::from(interest.data.has(Modes::RECURSIVE));
        let data = |interest: Interest| usize::from(!interest.data.is_empty());
        let children = |interest: Interest| usize::from(!interest.children.is_empty());
        self.recursive = self.recursive + recursive(after) - recursive(before);
        self.data_watches = self.data_watches + data(after) - data(before);
        self.child_watches = self.child_watches + children(after) - children(before);
    }

    /// Tells whoever watches what `change` touched.
    pub(crate) fn fire(&mut self, change: &Change<'_>, zxid: Zxid, out: &mut Outboxes) {
        if self.by_path.is_empty() {
            return;
        }
        let at_path = self.fire_at(change);
        let above =
            if change.kind == EventKind::NodeChildrenChanged { vec![] } else { self.recursive_above(change) };
        let mut told = at_path;
        told.extend(above);
        told.sort_unstable();
        told.dedup();

        let event = WatchEvent { kind: change.kind, path: &change.path, zxid };
        for conn in told {
            let may_read = match (&change.readers, self.by_conn.get(&conn)) {
                (None, _) => true,
                (Some(acl), Some(watcher)) => allows(acl, Perms::READ, watcher.client.ids()),
                (Some(_), None) => unreachable!("watchers are dropped after the event, by forget_fired"),
            };
            if may_read {
                out.event(conn, event);
            }
        }
        self.forget_fired(change);
    }

    /// Who watches the very path, by the modes that this kind of change wakes.
    fn fire_at(&self, change: &Change<'_>) -> Vec<ConnId> {
        let wakes = woken_by(change.kind);
        let Some(conns) = self.by_path.get(&*change.path) else { return vec![] };
        conns.iter().filter(|(_, interest)| interest.has(wakes)).map(|(conn, _)| *conn).collect()
    }

    fn recursive_above(&self, change: &Change<'_>) -> Vec<ConnId> {
        if self.recursive == 0 {
            return vec![];
        }
        let ancestors =
            std::iter::successors(Some(&*change.path), |path| Some(parent_and_name(path)?.0)).skip(1);
        ancestors
            .filter_map(|path| self.by_path.get(path))
            .flatten()
            .filter(|(_, interest)| interest.data.has(Modes::RECURSIVE))
            .map(|(conn, _)| *conn)
            .collect()
    }

    /// Removes the one-shot watches that a change has woken.
    fn forget_fired(&mut self, change: &Change<'_>) {
        let wakes = woken_by(change.kind);
        let fired = Interest {
            data: if wakes.data.is_empty() { Modes::default() } else { Modes::STANDARD },
            children: if wakes.children.is_empty() { Modes::default() } else { Modes::STANDARD },
        };
        let Some(conns) = self.by_path.get(&*change.path) else { return };
        let woken: Vec<ConnId> = conns.iter().filter(|(_, i)| i.has(fired)).map(|(conn, _)| *conn).collect();
        for conn in woken {
            self.reduce(conn, &change.path, fired);
        }
    }

    pub(crate) fn summary(&self) -> WatchSummary {
        let on_znodes = |interest: &&Interest| !interest.data.is_empty();
        let paths = self.by_path.values().filter(|conns| conns.values().any(|i| on_znodes(&i))).count();
        let connections: HashSet<ConnId> = self
            .by_path
            .values()
            .flatten()
            .filter(|(_, interest)| on_znodes(interest))
            .map(|(conn, _)| *conn)
            .collect();
        WatchSummary { connections: connections.len(), paths, watches: self.data_watches }
    }

    /// All watches, as `mntr` counts them.
    pub(crate) fn len(&self) -> usize {
        self.data_watches + self.child_watches
    }
}

fn interest_of(mode: AddWatchMode) -> Interest {
    match mode {
        AddWatchMode::Persistent => Interest { data: Modes::PERSISTENT, children: Modes::PERSISTENT },
        // A recursive watch is told of children by their own events, so it does not watch the list of children.
        AddWatchMode::PersistentRecursive => Interest { data: Modes::RECURSIVE, children: Modes::default() },
    }
}

fn meant_by(kind: WatcherKind) -> Interest {
    match kind {
        WatcherKind::Children => Interest { data: Modes::default(), children: Modes::STANDARD },
        WatcherKind::Data => Interest { data: Modes::STANDARD, children: Modes::default() },
        WatcherKind::Any => Interest { data: Modes::ALL, children: Modes::ALL },
        WatcherKind::Persistent => interest_of(AddWatchMode::Persistent),
        WatcherKind::PersistentRecursive => interest_of(AddWatchMode::PersistentRecursive),
    }
}

/// Which of the two sets a change concerns: a deletion ends both.
fn woken_by(kind: EventKind) -> Interest {
    let none = Modes::default();
    match kind {
        EventKind::NodeCreated | EventKind::NodeDataChanged => Interest { data: Modes::ALL, children: none },
        EventKind::NodeDeleted => Interest { data: Modes::ALL, children: Modes::ALL },
        EventKind::NodeChildrenChanged => Interest { data: none, children: Modes::ALL },
    }
}
