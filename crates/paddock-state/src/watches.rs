//! The watch table of one member. Watches are local: they are never replicated or saved.
//!
//! The tree reports each `Change`; this table turns it into events for this member's connections. For each path and
//! connection it keeps two sets of modes, as ZooKeeper keeps two tables: one for the znode itself (exists, getData,
//! addWatch) and one for its children (getChildren, addWatch).
//! Paths and connections have numbers, and know each other by sets of them (`number_set.rs`): twenty million watches of ten thousand connections
//! take a few bytes each.
//! Many watches are removed in slices (`Watches::sweep`), and no table stops to grow (`gradual.rs`, `slots.rs`): the state's lock is held
//! meanwhile, and one client can have millions.
//! Invariant: a one-shot watch is removed in the same step that emits its event, and a connection gets at most one
//! event for each change of each path.

mod gradual;
pub mod guest_event;
mod limits;
mod number_set;
mod path;
mod restore;
mod slots;
mod statistics;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use paddock_proto::{
    Acl, AddWatchMode, EventKind, Perms, SessionId, WatchEvent, WatcherKind, Zxid, parent_and_name,
};
use paddock_tree::{Change, allows};

use crate::{Client, ConnId, Outboxes};
use gradual::{GradualTable, Hashed};
use limits::Limited;
pub use limits::{RefusedWatches, WatchLimits};
use number_set::NumberSet;
use path::{DataWatchers, PathWatches};
pub use restore::ZnodeMarks;
use slots::Slots;
pub use statistics::{FiredWatches, WatchStatistics};
pub use table::{WatchTable, Woken};

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

/// The number of an entry, with the hash of what it is found by.
#[derive(Debug)]
struct Numbered {
    hash: u64,
    number: u32,
}

impl Hashed for Numbered {
    fn hash(&self) -> u64 {
        self.hash
    }
}

#[derive(Debug)]
struct Watcher {
    client: Client,
    /// True if its connection is gone. Its watches have not been removed yet, and count nowhere.
    is_gone: bool,
    paths: NumberSet,
    counts: Counts,
    /// Number of znodes that no other connection watches.
    alone_at: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Watches {
    hasher: RandomState,
    paths: Slots<PathWatches>,
    by_path: GradualTable<Numbered>,
    watchers: Slots<Watcher>,
    /// The watchers whose connections are there.
    by_conn: GradualTable<Numbered>,
    /// Connections that have shown more than they were made with. A request that waits comes with what was shown before it.
    identified: HashMap<ConnId, Client>,
    /// The watchers whose connections are gone, and that have not been removed from all their paths yet.
    gone: BTreeMap<ConnId, u32>,
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
    const SWEPT_MIN: usize = 200;

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
        self.interest(conn, path).is_some_and(|own| own.with(interest) == own)
    }

    fn interest(&self, conn: ConnId, path: &str) -> Option<Interest> {
        let (watcher, path) = (self.watcher_of(conn)?, self.path_of(path)?);
        Some(self.paths.get(path).interest(watcher))
    }

    /// True if the limits allow a connection another watch.
    fn may_add(&self, conn: ConnId) -> bool {
        let own = || {
            let counts = self.watcher_of(conn).map(|watcher| self.watchers.get(watcher).counts);
            counts.map_or(0, |counts| counts.data + counts.children)
        };
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
        let path = self.path_or_new(path);
        let watcher = self.watcher_or_new(client);
        let watches = self.paths.get_mut(path);
        let (before, data_watchers) = (watches.interest(watcher), watches.data_watchers());
        let after = before.with(interest);
        if after == before {
            return true;
        }
        watches.set(watcher, after);
        if before.is_empty() {
            self.watchers.get_mut(watcher).paths.insert(path);
        }
        self.count(watcher, before, after);
        if before.data.is_empty() && !after.data.is_empty() {
            self.data_watcher_came(watcher, data_watchers);
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
        let entries = self.watchers.entries(slice)?.filter(|watcher| !watcher.is_gone);
        Some(entries.map(|watcher| (watcher.client.conn, watcher.client.session)).collect())
    }

    /// Connections that watch paths which are meant, or their children: those of one slice; `None` behind the last one. Connections that are gone may be among them.
    pub(crate) fn watchers_at(&self, slice: usize, is_meant: impl Fn(&str) -> bool) -> Option<Vec<ConnId>> {
        let any = Interest { data: Modes::ALL, children: Modes::ALL };
        let entries = self.paths.entries(slice)?.filter(|watches| is_meant(watches.path()));
        let watchers = entries.flat_map(|watches| watches.watchers(any));
        Some(watchers.map(|watcher| self.watchers.get(watcher).client.conn).collect())
    }

    /// Paths whose znodes are watched, not only their children, and by which connections: those of one slice; `None` behind the
    /// last one. Connections that are gone may be among them.
    pub(crate) fn watched_paths(&self, slice: usize) -> Option<Vec<(Arc<str>, Vec<ConnId>)>> {
        let any_data = Interest { data: Modes::ALL, ..Interest::default() };
        let entries =
            self.paths.entries(slice)?.filter(|watches| watches.data_watchers() != DataWatchers::None);
        let conn = |watcher| self.watchers.get(watcher).client.conn;
        let watched = |watches: &PathWatches| {
            (watches.path().into(), watches.watchers(any_data).into_iter().map(conn).collect())
        };
        Some(entries.map(watched).collect())
    }

    /// The number of the connection's watcher, which is a new one if it watches nothing yet.
    fn watcher_or_new(&mut self, client: &Client) -> u32 {
        let hash = self.hasher.hash_one(client.conn);
        if let Some(watcher) = self.watcher_at(hash, client.conn) {
            return watcher;
        }
        let client = self.identified.get(&client.conn).unwrap_or(client).clone();
        let (is_gone, paths, counts) = (false, NumberSet::default(), Counts::default());
        let number = self.watchers.insert(Watcher { client, is_gone, paths, counts, alone_at: 0 });
        self.by_conn.insert(Numbered { hash, number });
        number
    }

    /// The number of the connection's watcher, if it is there and watches anything.
    fn watcher_of(&self, conn: ConnId) -> Option<u32> {
        self.watcher_at(self.hasher.hash_one(conn), conn)
    }

    fn watcher_at(&self, hash: u64, conn: ConnId) -> Option<u32> {
        let is_it = |entry: &Numbered| self.watchers.get(entry.number).client.conn == conn;
        Some(self.by_conn.get(hash, is_it)?.number)
    }

    fn path_or_new(&mut self, path: &str) -> u32 {
        let hash = self.hasher.hash_one(path);
        if let Some(number) = self.path_at(hash, path) {
            return number;
        }
        let number = self.paths.insert(PathWatches::new(path));
        self.by_path.insert(Numbered { hash, number });
        number
    }

    /// The number of a path that is watched.
    fn path_of(&self, path: &str) -> Option<u32> {
        if self.by_path.is_empty() {
            return None;
        }
        self.path_at(self.hasher.hash_one(path), path)
    }

    fn path_at(&self, hash: u64, path: &str) -> Option<u32> {
        let is_it = |entry: &Numbered| self.paths.get(entry.number).path() == path;
        Some(self.by_path.get(hash, is_it)?.number)
    }

    /// The connection has shown another identity: what it may be told can grow.
    pub(crate) fn identify(&mut self, client: &Client) {
        self.identified.insert(client.conn, client.clone());
        if let Some(watcher) = self.watcher_of(client.conn) {
            self.watchers.get_mut(watcher).client = client.clone();
        }
    }

    /// True if the connection watches a znode or its children, in whatever mode.
    pub(crate) fn is_watched_by(&self, conn: ConnId, path: &str) -> bool {
        self.interest(conn, path).is_some_and(|interest| !interest.is_empty())
    }

    /// True if the connection is told of changes of this kind at a znode, by a watch there or by one of a subtree.
    pub(crate) fn is_told_of(&self, conn: ConnId, path: &str, kind: EventKind) -> bool {
        let has = |path: &str, wanted: Interest| {
            self.interest(conn, path).is_some_and(|interest| interest.has(wanted))
        };
        let mut above =
            path.char_indices().filter(|(_, char)| *char == '/').map(|(at, _)| &path[..at.max(1)]);
        // A watch of a subtree is told of children by their own events.
        let is_own = kind != EventKind::NodeChildrenChanged;
        has(path, woken_by(kind))
            || is_own && above.any(|above| has(above, interest_of(AddWatchMode::PersistentRecursive)))
    }

    pub(crate) fn contains(&self, conn: ConnId, path: &str, kind: WatcherKind) -> bool {
        self.interest(conn, path).is_some_and(|interest| interest.has(meant_by(kind)))
    }

    /// Removes what `kind` means; false if there was nothing.
    pub(crate) fn remove(&mut self, conn: ConnId, path: &str, kind: WatcherKind) -> bool {
        let (Some(watcher), Some(path)) = (self.watcher_of(conn), self.path_of(path)) else { return false };
        let found = self.paths.get(path).interest(watcher).has(meant_by(kind));
        if found {
            self.reduce(watcher, path, meant_by(kind));
        }
        found
    }

    /// True if the connection has watches, or had some.
    pub(crate) fn knows(&self, conn: ConnId) -> bool {
        self.watcher_at(self.hasher.hash_one(conn), conn).is_some()
    }

    /// The connection is gone: it is told nothing more, and its watches count no more. They are removed by [`Watches::sweep`],
    /// because there may be millions.
    pub(crate) fn drop_conn(&mut self, conn: ConnId) {
        self.identified.remove(&conn);
        if let Some(watcher) = self.watcher_of(conn) {
            self.leave(conn, watcher);
            self.begin_to_forget(watcher);
        }
    }

    /// All connections are gone.
    pub(crate) fn drop_all(&mut self) {
        self.identified.clear();
        while !self.by_conn.is_empty() {
            self.by_conn.take_some().for_each(|entry| self.begin_to_forget(entry.number));
        }
    }

    /// The watcher is not found by its connection any more.
    fn leave(&mut self, conn: ConnId, watcher: u32) {
        let left = self.by_conn.remove(self.hasher.hash_one(conn), |entry| entry.number == watcher);
        assert!(left.is_some(), "a watcher that is there is found by its connection");
    }

    fn begin_to_forget(&mut self, number: u32) {
        let watcher = self.watchers.get_mut(number);
        watcher.is_gone = true;
        let (conn, counts) = (watcher.client.conn, watcher.counts);
        self.counts.subtract(counts);
        self.data_conns -= usize::from(counts.data > 0);
        self.data_paths -= watcher.alone_at;
        self.statistics.gone_watchers += 1;
        self.gone_paths += watcher.paths.len();
        let before = self.gone.insert(conn, number);
        assert!(before.is_none(), "who is gone watches nothing more");
    }

    /// Removes some watches of connections that are gone, a few hundred at a time. True if there are more.
    pub(crate) fn sweep(&mut self) -> bool {
        let everything = Interest { data: Modes::ALL, children: Modes::ALL };
        let mut swept = 0;
        while swept < Watches::SWEPT_MIN {
            let Some((_, &number)) = self.gone.first_key_value() else { return false };
            let some = self.watchers.get(number).paths.some(Watches::SWEPT_MIN);
            swept += some.len();
            some.into_iter().for_each(|path| self.reduce(number, path, everything));
        }
        !self.gone.is_empty()
    }

    /// Takes some modes from a watcher of a path.
    fn reduce(&mut self, watcher: u32, path: u32, fewer: Interest) {
        let watches = self.paths.get_mut(path);
        let before = watches.interest(watcher);
        let after = before.without(fewer);
        if after == before {
            return;
        }
        watches.set(watcher, after);
        let data_watchers = watches.data_watchers();
        if watches.is_empty() {
            self.forget_path(path);
        }
        if !before.data.is_empty() && after.data.is_empty() {
            self.data_watcher_left(watcher, data_watchers);
        }
        self.count(watcher, before, after);
        if after.is_empty() {
            self.forget_watch(watcher, path);
        }
    }

    /// A path has no watchers any more.
    fn forget_path(&mut self, path: u32) {
        let watches = self.paths.remove(path);
        let hash = self.hasher.hash_one(watches.path());
        let left = self.by_path.remove(hash, |entry| entry.number == path);
        assert!(left.is_some(), "a path that is watched is found");
    }

    /// A watcher watches nothing more at a path.
    fn forget_watch(&mut self, number: u32, path: u32) {
        let watcher = self.watchers.get_mut(number);
        watcher.paths.remove(path);
        let (conn, is_gone, is_last) = (watcher.client.conn, watcher.is_gone, watcher.paths.is_empty());
        self.gone_paths -= usize::from(is_gone);
        if !is_last {
            return;
        }
        if is_gone {
            self.gone.remove(&conn);
            self.statistics.forgotten_watchers += 1;
        } else {
            self.leave(conn, number);
        }
        self.watchers.remove(number);
    }

    fn count(&mut self, watcher: u32, before: Interest, after: Interest) {
        let watcher = self.watchers.get_mut(watcher);
        if watcher.is_gone {
            return;
        }
        let watched = watcher.counts.data > 0;
        watcher.counts.change(before, after);
        let watches = watcher.counts.data > 0;
        self.data_conns = self.data_conns + usize::from(watches) - usize::from(watched);
        self.counts.change(before, after);
    }

    /// The watcher if its connection is there.
    fn present(&mut self, watcher: u32) -> Option<&mut Watcher> {
        let watcher = self.watchers.get_mut(watcher);
        (!watcher.is_gone).then_some(watcher)
    }

    /// A connection that is there watches a znode, which these watched until now.
    fn data_watcher_came(&mut self, watcher: u32, others: DataWatchers) {
        match others {
            DataWatchers::None => {
                self.data_paths += 1;
                self.watchers.get_mut(watcher).alone_at += 1;
            }
            DataWatchers::One(other) => match self.present(other) {
                Some(other) => other.alone_at -= 1,
                None => self.data_paths += 1,
            },
            DataWatchers::Many => {}
        }
    }

    /// A connection does not watch a znode any more; these still do.
    fn data_watcher_left(&mut self, watcher: u32, others: DataWatchers) {
        match others {
            DataWatchers::None => {
                if let Some(watcher) = self.present(watcher) {
                    watcher.alone_at -= 1;
                    self.data_paths -= 1;
                }
            }
            DataWatchers::One(other) => match self.present(other) {
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
        let path = self.path_of(&change.path);
        let wakes = woken_by(change.kind);
        let mut told = path.map_or_else(Vec::new, |path| self.paths.get(path).watchers(wakes));
        if change.kind != EventKind::NodeChildrenChanged {
            self.add_recursive_above(&change.path, &mut told);
        }
        // Of who is gone there may be watches that have not been removed.
        let there = told.iter().map(|watcher| self.watchers.get(*watcher)).filter(|watcher| !watcher.is_gone);
        let mut there: Vec<(ConnId, &Client)> =
            there.map(|watcher| (watcher.client.conn, &watcher.client)).collect();
        there.sort_unstable_by_key(|(conn, _)| *conn);
        there.dedup_by_key(|(conn, _)| *conn);
        self.statistics.fired(change.kind, there.len());

        let event = WatchEvent { kind: change.kind, path: &change.path, zxid };
        if there.iter().any(|(conn, _)| conn.is_of_guest()) {
            let bytes = guest_event::encode(event, change.readers.as_deref());
            let of_guests = there.extract_if(.., |(conn, _)| conn.is_of_guest());
            of_guests.for_each(|(conn, _)| out.event_bytes(conn, &bytes));
        }
        let mut mail = out.event(event);
        for (conn, client) in there {
            let readers = change.readers.as_ref();
            if readers.is_none_or(|acl| allows(acl, Perms::READ, client.ids())) {
                mail.tell(conn);
            }
        }
        if let Some(path) = path {
            self.forget_fired(path, wakes);
        }
    }

    /// Wakes one connection, as [`Watches::fire`] wakes all.
    pub(crate) fn wake(
        &mut self,
        conn: ConnId,
        kind: EventKind,
        path: &str,
        readers: Option<&[Acl]>,
    ) -> Woken {
        let Some(watcher) = self.watcher_of(conn) else { return Woken::NoWatch };
        let wakes = woken_by(kind);
        let own = self.path_of(path);
        let own = own.filter(|own| self.paths.get(*own).watchers(wakes).contains(&watcher));
        let mut above = Vec::new();
        if kind != EventKind::NodeChildrenChanged {
            self.add_recursive_above(path, &mut above);
        }
        if own.is_none() && !above.contains(&watcher) {
            return Woken::NoWatch;
        }
        self.statistics.fired(kind, 1);
        let client = &self.watchers.get(watcher).client;
        let may_hear = readers.is_none_or(|acl| allows(acl, Perms::READ, client.ids()));
        if let Some(own) = own {
            self.reduce(watcher, own, one_shot(wakes));
        }
        if may_hear { Woken::Told } else { Woken::Unheard }
    }

    /// True if a connection has shown an identity that may read what has this ACL.
    pub(crate) fn may_hear(&self, conn: ConnId, readers: &[Acl]) -> bool {
        let watcher = || self.watcher_of(conn).map(|watcher| &self.watchers.get(watcher).client);
        let client = self.identified.get(&conn).or_else(watcher);
        client.is_some_and(|client| allows(readers, Perms::READ, client.ids()))
    }

    /// Watchers of a whole tree that a change is in.
    fn add_recursive_above(&self, path: &str, told: &mut Vec<u32>) {
        if self.counts.recursive == 0 {
            return;
        }
        let recursive = Interest { data: Modes::RECURSIVE, ..Interest::default() };
        let ancestors = std::iter::successors(Some(path), |path| Some(parent_and_name(path)?.0)).skip(1);
        for path in ancestors.filter_map(|path| self.path_of(path)) {
            told.extend(self.paths.get(path).watchers(recursive));
        }
    }

    /// Removes the one-shot watches that a change has woken.
    fn forget_fired(&mut self, path: u32, wakes: Interest) {
        let fired = one_shot(wakes);
        for watcher in self.paths.get(path).watchers(fired) {
            self.reduce(watcher, path, fired);
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

/// The one-shot watches among these.
fn one_shot(wakes: Interest) -> Interest {
    let standard = |modes: Modes| if modes.is_empty() { modes } else { Modes::STANDARD };
    Interest { data: standard(wakes.data), children: standard(wakes.children) }
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
