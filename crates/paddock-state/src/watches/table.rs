//! The watch table of a member, as its states, its sessions and its reports share it.
//!
//! The table is the member's and not a state's: whatever state applies a change fires into it, and a connection that ends is
//! forgotten once, however many states there are. Each call locks the table for itself, under the lock of the state if the caller
//! holds that; never the other way round.

use std::sync::Arc;

use paddock_proto::{Acl, AddWatchMode, EventKind, SessionId, WatcherKind, Zxid};
use paddock_tree::Change;
use parking_lot::{Mutex, MutexGuard};

use super::{RefusedWatches, WatchLimits, WatchStatistics, WatchSummary, Watches};
use crate::{Client, ConnId, Outboxes};

/// Effect of an event on the watches of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    NoWatch,
    /// The client is to be told.
    Told,
    /// The client may not read the znode, and hears nothing.
    Unheard,
}

/// Handle of a member's watch table. Clones are of the same table.
#[derive(Clone, Debug, Default)]
pub struct WatchTable(Arc<Mutex<Watches>>);

impl WatchTable {
    /// The table for several calls, between which it stays as it is.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Watches> {
        self.0.lock()
    }

    /// Tells watchers what a transaction has changed.
    #[inline]
    pub(crate) fn fire(&self, changes: &[Change<'_>], zxid: Zxid, out: &mut Outboxes) {
        if changes.is_empty() {
            return;
        }
        let mut watches = self.lock();
        changes.iter().for_each(|change| watches.fire(change, zxid, out));
    }

    /// A change was told to this member for one connection. A one-shot watch is removed, whether its client may hear of the change or not.
    pub fn wake(&self, conn: ConnId, kind: EventKind, path: &str, readers: Option<&[Acl]>) -> Woken {
        self.lock().wake(conn, kind, path, readers)
    }

    /// True if a connection has shown an identity that may read what has this ACL, as far as its watches know.
    pub fn may_hear(&self, conn: ConnId, readers: &[Acl]) -> bool {
        self.lock().may_hear(conn, readers)
    }

    /// Tells a connection of another member of all changes of a znode and its children, or of all below it, from now on. Returns false if there may be no more watches.
    pub fn watch_for_guest(&self, client: &Client, path: &str, mode: AddWatchMode) -> bool {
        self.lock().add_mode(client, path, mode)
    }

    /// True if a connection watches a znode or its children, in whatever mode.
    pub fn is_watched_by(&self, conn: ConnId, path: &str) -> bool {
        self.lock().is_watched_by(conn, path)
    }

    /// True if a connection is told of changes of this kind at a znode, by a watch there or by one of a subtree.
    pub fn is_told_of(&self, conn: ConnId, path: &str, kind: EventKind) -> bool {
        self.lock().is_told_of(conn, path, kind)
    }

    /// True if a connection is told of each change of a znode's children, and not only of the next one.
    pub fn stays_at(&self, conn: ConnId, path: &str) -> bool {
        self.lock().contains(conn, path, WatcherKind::Persistent)
    }

    /// True if a connection is told of the next change of a znode's children by a watch that tells it of no other one.
    pub fn watches_list_once(&self, conn: ConnId, path: &str) -> bool {
        self.lock().contains(conn, path, WatcherKind::Children)
    }

    /// A connection watches a znode and its children no more.
    pub fn unwatch(&self, conn: ConnId, path: &str) {
        self.lock().remove(conn, path, WatcherKind::Any);
    }

    /// Sets how many watches there may be.
    pub fn set_limits(&self, limits: WatchLimits) {
        self.lock().set_limits(limits);
    }

    /// While there is no memory for them, clients set no new watches.
    pub fn refuse_all(&self, is_refusing: bool) {
        self.lock().refuse_all(is_refusing);
    }

    /// Watches that were refused since this was asked last.
    pub fn take_refused(&self) -> Option<RefusedWatches> {
        self.lock().take_refused()
    }

    /// The client has shown another identity.
    pub fn identify(&self, client: &Client) {
        self.lock().identify(client);
    }

    /// Drops the watches of a connection that is gone, or whose session another connection has taken over.
    pub fn drop_conn(&self, conn: ConnId) {
        self.lock().drop_conn(conn);
    }

    /// Removes some of the watches of connections that are gone; true if there are more. To be called now and then, beside
    /// everything else, until there are none.
    pub fn sweep(&self) -> bool {
        self.lock().sweep()
    }

    /// Connections that watch, with their sessions, in slices that take some microseconds: 0, 1 and so on until `None`. A connection that comes
    /// meanwhile may be missing, and some may be listed twice.
    pub fn watchers(&self, slice: usize) -> Option<Vec<(ConnId, SessionId)>> {
        self.lock().watchers(slice)
    }

    /// Connections that watch paths which are meant, in whatever mode, in slices as of [`WatchTable::watchers`]. Connections that are gone may be among them.
    pub fn watchers_at(&self, slice: usize, is_meant: impl Fn(&str) -> bool) -> Option<Vec<ConnId>> {
        self.lock().watchers_at(slice, is_meant)
    }

    /// Paths whose znodes are watched, each with the connections that do, in slices as of [`WatchTable::watchers`]. Connections that are
    /// gone may be among them.
    pub fn paths(&self, slice: usize) -> Option<Vec<(Arc<str>, Vec<ConnId>)>> {
        self.lock().watched_paths(slice)
    }

    /// Numbers of the four-letter word `wchs`.
    pub fn summary(&self) -> WatchSummary {
        self.lock().summary()
    }

    /// Events told since the start, and connections that were forgotten.
    pub fn statistics(&self) -> WatchStatistics {
        self.lock().statistics()
    }

    /// Watches that take memory and count no more, because [`WatchTable::sweep`] has not removed them yet.
    pub fn unswept(&self) -> usize {
        self.lock().gone_paths()
    }

    /// True if a connection has watches, or had some.
    pub fn has_any(&self, conn: ConnId) -> bool {
        self.lock().knows(conn)
    }

    /// Number of watches, counted as ZooKeeper counts.
    pub fn count(&self) -> usize {
        self.lock().len()
    }
}
