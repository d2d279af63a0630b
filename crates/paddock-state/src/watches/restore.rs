//! Watches of a client that has come back: they are set again, or what they missed is told at once.

use paddock_proto::{EventKind, Perms, SetWatches, WatchEvent, WatcherKind, Zxid};
use paddock_tree::{Tree, allows};

use crate::{Client, WatchTable};

/// Marks by which a watch knows if it has missed something: zxids of a znode, and whether the client may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZnodeMarks {
    pub mzxid: Zxid,
    pub pzxid: Zxid,
    pub may_read: bool,
}

impl ZnodeMarks {
    /// The marks of a znode for a client; `None` if it is not there.
    pub fn of(tree: &Tree, path: &str, client: &Client) -> Option<ZnodeMarks> {
        let stat = tree.stat(path)?;
        let may_read = tree.acl(path).is_some_and(|acl| allows(acl, Perms::READ, client.ids()));
        Some(ZnodeMarks { mzxid: stat.mzxid, pzxid: stat.pzxid, may_read })
    }
}

impl WatchTable {
    /// Sets watches again, as [`crate::State::set_watches`] says, of znodes with these marks.
    pub fn restore(
        &self,
        client: &Client,
        asked: &SetWatches<'_>,
        marks: impl Fn(&str) -> Option<ZnodeMarks>,
        out: &mut Vec<u8>,
    ) {
        let mut watches = self.lock();
        let mut all_set = true;
        let mut tell = |kind, path| WatchEvent { kind, path, zxid: Zxid::NONE }.encode(out);
        for path in &asked.data {
            match marks(path) {
                None => tell(EventKind::NodeDeleted, path),
                Some(znode) if znode.mzxid > asked.relative_zxid && znode.may_read => {
                    tell(EventKind::NodeDataChanged, path);
                }
                Some(_) => all_set &= watches.restore(client, path, WatcherKind::Data),
            }
        }
        for path in &asked.exist {
            match marks(path) {
                Some(znode) if znode.may_read => tell(EventKind::NodeCreated, path),
                _ => all_set &= watches.restore(client, path, WatcherKind::Data),
            }
        }
        for path in &asked.child {
            match marks(path) {
                None => tell(EventKind::NodeDeleted, path),
                Some(znode) if znode.pzxid > asked.relative_zxid && znode.may_read => {
                    tell(EventKind::NodeChildrenChanged, path);
                }
                Some(_) => all_set &= watches.restore(client, path, WatcherKind::Children),
            }
        }
        for path in &asked.persistent {
            all_set &= watches.restore(client, path, WatcherKind::Persistent);
        }
        for path in &asked.persistent_recursive {
            all_set &= watches.restore(client, path, WatcherKind::PersistentRecursive);
        }
        if !all_set {
            watches.close_for_want_of_watches(client.conn);
        }
    }
}
