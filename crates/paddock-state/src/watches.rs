//! The watch table of one member. Watches are local: they are never replicated or saved.
//!
//! The tree reports each `Change`; this table turns it into events for this member's connections. For each path and
//! connection it keeps two sets of modes, as ZooKeeper keeps two tables: one for the znode itself (exists, getData,
//! addWatch) and one for its children (getChildren, addWatch).
//! Many watches are removed in slices (`Watches::sweep`), and no table stops to grow (`gradual.rs`): the state's lock is held
//! meanwhile, and one client can have millions.
//! Invariant: a one-shot watch is removed in the same step that emits its event, and a connection gets at most one
//! event for each change of each path.

mod gradual;
mod limits;
mod path;
mod statistics;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use paddock_proto::{
    AddWatchMode, EventKind, Perms, SessionId, WatchEvent, WatcherKind, Zxid, parent_and_name,
};
use paddock_tree::{Change, allows};

use crate::{Client, ConnId, Outboxes};
use gradual::{GradualTable, Hashed};
use limits::Limited;
pub use limits::{RefusedWatches, WatchLimits};
use path::{DataWatchers, PathWatches};
pub use statistics::{FiredWatches, WatchStatistics};
pub use table::WatchTable;

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

/// Modes in which one connection watches one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interest {
    data: Modes,
    children: Modes,
}

impl Interest {
    fn is_empty(self) -> bool {
        self.data.is_empty() && self.children.is_empty()
    }

    fn with(self, other: Interest) -> Interest {
        Interest { data: self.data.with(other.data), children: self.children.with(other.children) }
    }

    fn without(self, other: Interest) -> Interest {
        Interest { data: self.data.without(other.data), children: self.children.without(other.children) }
    }

    fn has(self, other: Interest) -> bool {
        self.data.has(other.data) || self.children.has(other.children)
    }
}

/// Counts for the four-letter word `wchs`: watches on znodes, not those on children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchSummary {
    pub connections: usize,
    pub paths: usize,
    pub watches: usize,
}

/// Watches on znodes and on children, counted as ZooKeeper counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    data: usize,
    children: usize,
    recursive: usize,
}

impl Counts {
    fn change(&mut self, before: Interest, after: Interest) {
        let recursive = |interest: Interest| usize::from(interest.data.has(Modes::RECURSIVE));
        let data = |interest: Interest| usize::from(!interest.data.is_empty());
        let children = |interest: Interest| usize::from(!interest.children.is_empty());
        self.recursive = self.recursive + recursive(after) - recursive(before);
        self.data = self.data + data(after) - data(before);
        self.children = self.children + children(after) - children(before);
    }

    fn subtract(&mut self, other: Counts) {
        self.data -= other.data;
        self.children -= other.children;
        self.recursive -= other.recursive;
    }
}

/// A path that a connection watches.
#[derive(Debug)]
struct Watched {
    hash: u64,
    path: Arc<str>,
}

impl Hashed for Watched {
    fn hash(&self) -> u64 {
        self.hash
    }
}

#[derive(Debug)]
struct Watcher {
    hash: u64,
    client: Client,
    paths: GradualTable<Watched>,
    counts: Counts,
    /// Number of znodes that no other connection watches.
    alone_at: usize,
}

impl Hashed for Watcher {
    fn hash(&self) -> u64 {
        self.hash
    }
}

#[derive(Debug, Default)]
pub(crate) struct Watches {
    hasher: RandomState,
    by_path: GradualTable<PathWatches>,
    /// The connections that are there.
    by_conn: GradualTable<Watcher>,
    /// Connections that have shown more than they were made with. A request that waits comes with what was shown before it.
    identified: HashMap<ConnId, Client>,
    /// Paths of connections that are gone, from which they have not been removed yet. They count nowhere.
    gone: BTreeMap<ConnId, GradualTable<Watched>>,
    /// Number of these paths, each counted for each connection.
    gone_paths: usize,
    /// Paths that were watched since some of those were removed.
    came_since_sweep: usize,
    limited: Limited,
    /// While none is recursive, there is no look at a change's ancestors.
    counts: Counts,
    /// Connections that watch znodes.
    data_conns: usize,
    /// Paths whose znodes are watched. One that several connections watched that are all gone counts until it has been
    /// removed from the list of all but one.
    data_paths: usize,
    statistics: WatchStatistics,
}

impl Watches {
    /// Removed at a time from the paths of connections that are gone.
    const SWEPT_MIN: usize = GradualTable::<Watched>::SHARD_LEN / 2;

    /// Watches a znode's data. Returns false if there may be no more watches.
    pub(crate) fn add_data(&mut self, client: &Client, path: &str) -> bool {
        self.add_new(client, path, Interest { data: Modes::STANDARD, ..Interest::default() })
    }

    pub(crate) fn add_children(&mut self, client: &Client, path: &str) -> bool {
        self.add_new(client, path, Interest { children: Modes::STANDARD, ..Interest::default() })
    }

    pub(crate) fn add_mode(&mut self, client: &Client, path: &str, mode: AddWatchMode) -> bool {
        self.add_new(client, path, interest_of(mode))
    }

    /// Watches a path anew that the client watched over an earlier connection. Returns false if there may be no more watches.
    pub(crate) fn restore(&mut self, client: &Client, path: &str, kind: WatcherKind) -> bool {
        self.may_add(client.conn) && self.add(client, path, meant_by(kind))
    }

    fn add_new(&mut self, client: &Client, path: &str, interest: Interest) -> bool {
        let may_add = !self.limited.is_refusing_all() && self.may_add(client.conn);
        if !may_add && !self.has_already(client.conn, path, interest) {
            self.limited.refused(client.conn);
            return false;
        }
        self.add(client, path, interest)
    }

    fn has_already(&self, conn: ConnId, path: &str, interest: Interest) -> bool {
        self.at(path).map(|watches| watches.interest(conn)).is_some_and(|own| own.with(interest) == own)
    }

    /// True if the limits allow a connection another watch.
    fn may_add(&self, conn: ConnId) -> bool {
        let own = || self.watcher(conn).map_or(0, |watcher| watcher.counts.data + watcher.counts.children);
        self.limited.may_add(self.len(), own)
    }

    pub(crate) fn set_limits(&mut self, limits: WatchLimits) {
        self.limited.set_limits(limits);
    }

    pub(crate) fn refuse_all(&mut self, is_refusing: bool) {
        self.limited.refuse_all(is_refusing);
    }

    pub(crate) fn close_for_want_of_watches(&mut self, conn: ConnId) {
        self.limited.close(conn);
    }

    pub(crate) fn take_refused(&mut self) -> Option<RefusedWatches> {
        self.limited.take_refused()
    }

    fn add(&mut self, client: &Client, path: &str, interest: Interest) -> bool {
        let conn = client.conn;
        if self.gone.contains_key(&conn) {
            // Its session goes on over another connection, and it is about to be closed.
            return true;
        }
        let hash = self.hasher.hash_one(path);
        let make = || PathWatches::new(hash, path);
        let watches = self.by_path.get_or_insert(hash, |watches| &**watches.path() == path, make);
        let (before, data_watchers) = (watches.interest(conn), watches.data_watchers());
        let after = before.with(interest);
        if after == before {
            return true;
        }
        watches.set(conn, after);
        let path = watches.path().clone();
        let watcher = self.watcher_or_new(client);
        if before.is_empty() {
            watcher.paths.get_or_insert(
                hash,
                |watched| watched.path == path,
                || Watched { hash, path: path.clone() },
            );
        }
        self.count(conn, before, after);
        if before.data.is_empty() && !after.data.is_empty() {
            self.data_watcher_came(conn, data_watchers);
        }
        if before.is_empty() {
            self.make_room();
        }
        true
    }

    /// Removes two paths that connections have left behind for each that is watched anew, some hundred at a time: clients that set watches and
    /// leave, again and again, must not be faster than the removal.
    fn make_room(&mut self) {
        self.came_since_sweep += 1;
        if self.came_since_sweep >= Watches::SWEPT_MIN / 2 {
            self.came_since_sweep = 0;
            self.sweep();
        }
    }

    /// Connections that watch, and their sessions: those of one slice; `None` behind the last one.
    pub(crate) fn watchers(&self, slice: usize) -> Option<Vec<(ConnId, SessionId)>> {
        let entries = self.by_conn.entries(slice)?;
        Some(entries.map(|watcher| (watcher.client.conn, watcher.client.session)).collect())
    }

    /// Paths whose znodes are watched, not only their children, and by which connections: those of one slice; `None` behind the
    /// last one. Connections that are gone may be among them.
    pub(crate) fn watched_paths(&self, slice: usize) -> Option<Vec<(Arc<str>, Vec<ConnId>)>> {
        let entries =
            self.by_path.entries(slice)?.filter(|watches| watches.data_watchers() != DataWatchers::None);
        let watched =
            |watches: &PathWatches| (watches.path().clone(), watches.conns(|one| !one.data.is_empty()));
        Some(entries.map(watched).collect())
    }

    fn watcher_or_new(&mut self, client: &Client) -> &mut Watcher {
        let hash = self.hasher.hash_one(client.conn);
        let client = self.identified.get(&client.conn).unwrap_or(client);
        let make = || Watcher {
            hash,
            client: client.clone(),
            paths: GradualTable::default(),
            counts: Counts::default(),
            alone_at: 0,
        };
        self.by_conn.get_or_insert(hash, |watcher| watcher.client.conn == client.conn, make)
    }

    fn watcher(&self, conn: ConnId) -> Option<&Watcher> {
        self.by_conn.get(self.hasher.hash_one(conn), |watcher| watcher.client.conn == conn)
    }

    fn watcher_mut(&mut self, conn: ConnId) -> Option<&mut Watcher> {
        self.by_conn.get_mut(self.hasher.hash_one(conn), |watcher| watcher.client.conn == conn)
    }

    fn at(&self, path: &str) -> Option<&PathWatches> {
        self.by_path.get(self.hasher.hash_one(path), |watches| &**watches.path() == path)
    }

    /// The connection has shown another identity: what it may be told can grow.
    pub(crate) fn identify(&mut self, client: &Client) {
        self.identified.insert(client.conn, client.clone());
        if let Some(watcher) = self.watcher_mut(client.conn) {
            watcher.client = client.clone();
        }
    }

    pub(crate) fn contains(&self, conn: ConnId, path: &str, kind: WatcherKind) -> bool {
        let is_there = self.watcher(conn).is_some();
        is_there && self.at(path).is_some_and(|watches| watches.interest(conn).has(meant_by(kind)))
    }

    /// Removes what `kind` means; false if there was nothing.
    pub(crate) fn remove(&mut self, conn: ConnId, path: &str, kind: WatcherKind) -> bool {
        let found = self.contains(conn, path, kind);
        if found {
            self.reduce(conn, self.hasher.hash_one(path), path, meant_by(kind));
        }
        found
    }

    /// The connection is gone: it is told nothing more, and its watches count no more. They are removed by [`Watches::sweep`],
    /// because there may be millions.
    pub(crate) fn drop_conn(&mut self, conn: ConnId) {
        self.identified.remove(&conn);
        let hash = self.hasher.hash_one(conn);
        if let Some(watcher) = self.by_conn.remove(hash, |watcher| watcher.client.conn == conn) {
            self.begin_to_forget(watcher);
        }
    }

    /// All connections are gone.
    pub(crate) fn drop_all(&mut self) {
        self.identified.clear();
        while !self.by_conn.is_empty() {
            self.by_conn.take_some().for_each(|watcher| self.begin_to_forget(watcher));
        }
    }

    fn begin_to_forget(&mut self, watcher: Watcher) {
        let Watcher { client, paths, counts, alone_at, .. } = watcher;
        self.counts.subtract(counts);
        self.data_conns -= usize::from(counts.data > 0);
        self.data_paths -= alone_at;
        self.statistics.gone_watchers += 1;
        self.gone_paths += paths.len();
        let before = self.gone.insert(client.conn, paths);
        assert!(before.is_none(), "who is gone watches nothing more");
    }

    /// Removes some watches of connections that are gone, a few hundred at a time. True if there are more.
    pub(crate) fn sweep(&mut self) -> bool {
        let everything = Interest { data: Modes::ALL, children: Modes::ALL };
        let mut swept = 0;
        while swept < Watches::SWEPT_MIN {
            let Some(mut gone) = self.gone.first_entry() else { return false };
            let (conn, some) = (*gone.key(), gone.get_mut().take_some());
            if gone.get().is_empty() {
                gone.remove();
                self.statistics.forgotten_watchers += 1;
            }
            for Watched { hash, path } in some {
                self.reduce(conn, hash, &path, everything);
                self.gone_paths -= 1;
                swept += 1;
            }
        }
        !self.gone.is_empty()
    }

    fn reduce(&mut self, conn: ConnId, hash: u64, path: &str, fewer: Interest) {
        let is_it = |watches: &PathWatches| &**watches.path() == path;
        let Some(watches) = self.by_path.get_mut(hash, is_it) else { return };
        let before = watches.interest(conn);
        let after = before.without(fewer);
        if after == before {
            return;
        }
        watches.set(conn, after);
        let data_watchers = watches.data_watchers();
        if watches.is_empty() {
            self.by_path.remove(hash, is_it);
        }
        if !before.data.is_empty() && after.data.is_empty() {
            self.data_watcher_left(conn, data_watchers);
        }
        self.count(conn, before, after);
        if after.is_empty() {
            self.forget_path(conn, hash, path);
        }
    }

    /// A connection watches nothing more at a path.
    fn forget_path(&mut self, conn: ConnId, hash: u64, path: &str) {
        let Some(watcher) = self.watcher_mut(conn) else { return };
        watcher.paths.remove(hash, |watched| &*watched.path == path);
        if watcher.paths.is_empty() {
            let hash = watcher.hash;
            self.by_conn.remove(hash, |watcher| watcher.client.conn == conn);
        }
    }

    fn count(&mut self, conn: ConnId, before: Interest, after: Interest) {
        let Some(watcher) = self.watcher_mut(conn) else { return };
        let watched = watcher.counts.data > 0;
        watcher.counts.change(before, after);
        let watches = watcher.counts.data > 0;
        self.data_conns = self.data_conns + usize::from(watches) - usize::from(watched);
        self.counts.change(before, after);
    }

    /// A connection that is there watches a znode, which these watched until now.
    fn data_watcher_came(&mut self, conn: ConnId, others: DataWatchers) {
        match others {
            DataWatchers::None => {
                self.data_paths += 1;
                self.watcher_mut(conn).expect("it has just come").alone_at += 1;
            }
            DataWatchers::One(other) => match self.watcher_mut(other) {
                Some(other) => other.alone_at -= 1,
                None => self.data_paths += 1,
            },
            DataWatchers::Many => {}
        }
    }

    /// A connection does not watch a znode any more; these still do.
    fn data_watcher_left(&mut self, conn: ConnId, others: DataWatchers) {
        match others {
            DataWatchers::None => {
                if let Some(watcher) = self.watcher_mut(conn) {
                    watcher.alone_at -= 1;
                    self.data_paths -= 1;
                }
            }
            DataWatchers::One(other) => match self.watcher_mut(other) {
                Some(other) => other.alone_at += 1,
                None => self.data_paths -= 1,
            },
            DataWatchers::Many => {}
        }
    }

    /// Tells watchers what `change` touched.
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
        self.statistics.fired(change.kind, told.len());

        let mut mail = out.event(WatchEvent { kind: change.kind, path: &change.path, zxid });
        for conn in told {
            // Of who is gone there may be watches that have not been removed.
            let Some(watcher) = self.watcher(conn) else { continue };
            let readers = change.readers.as_ref();
            if readers.is_none_or(|acl| allows(acl, Perms::READ, watcher.client.ids())) {
                mail.tell(conn);
            }
        }
        self.forget_fired(change);
    }

    /// Connections that watch the very path, by the modes that this kind of change wakes.
    fn fire_at(&self, change: &Change<'_>) -> Vec<ConnId> {
        let wakes = woken_by(change.kind);
        let Some(watches) = self.at(&change.path) else { return vec![] };
        watches.conns(|interest| interest.has(wakes))
    }

    fn recursive_above(&self, change: &Change<'_>) -> Vec<ConnId> {
        if self.counts.recursive == 0 {
            return vec![];
        }
        let ancestors =
            std::iter::successors(Some(&*change.path), |path| Some(parent_and_name(path)?.0)).skip(1);
        ancestors
            .filter_map(|path| self.at(path))
            .flat_map(|watches| watches.conns(|interest| interest.data.has(Modes::RECURSIVE)))
            .collect()
    }

    /// Removes the one-shot watches that a change has woken.
    fn forget_fired(&mut self, change: &Change<'_>) {
        let wakes = woken_by(change.kind);
        let fired = Interest {
            data: if wakes.data.is_empty() { Modes::default() } else { Modes::STANDARD },
            children: if wakes.children.is_empty() { Modes::default() } else { Modes::STANDARD },
        };
        let hash = self.hasher.hash_one(&*change.path);
        let Some(watches) = self.at(&change.path) else { return };
        for conn in watches.conns(|interest| interest.has(fired)) {
            self.reduce(conn, hash, &change.path, fired);
        }
    }

    pub(crate) fn summary(&self) -> WatchSummary {
        WatchSummary { connections: self.data_conns, paths: self.data_paths, watches: self.counts.data }
    }

    pub(crate) fn statistics(&self) -> WatchStatistics {
        self.statistics
    }

    /// Paths of connections that are gone, from which they have not been removed yet: they take memory until they are.
    pub(crate) fn gone_paths(&self) -> usize {
        self.gone_paths
    }

    /// All watches, as `mntr` counts them.
    pub(crate) fn len(&self) -> usize {
        self.counts.data + self.counts.children
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

/// The one of the two sets that a change concerns: a deletion ends both.
fn woken_by(kind: EventKind) -> Interest {
    let none = Modes::default();
    match kind {
        EventKind::NodeCreated | EventKind::NodeDataChanged => Interest { data: Modes::ALL, children: none },
        EventKind::NodeDeleted => Interest { data: Modes::ALL, children: Modes::ALL },
        EventKind::NodeChildrenChanged => Interest { data: none, children: Modes::ALL },
    }
}
