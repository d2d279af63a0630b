//! Revisions in which the keys were last written, as far as this front end has seen.
//!
//! Nearly every write of a znode leaves its revision in one of the znode's zxids, so only the others are remembered: those
//! of setACL and of quota statistics.

use std::collections::HashMap;

use paddock_proto::SessionId;
use paddock_tree::{Tree, Znode};

/// A key that a revision wrote, or deleted, as etcd's watch stream and its ranges tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEvent {
    pub key: Vec<u8>,
    /// `None` if it was deleted.
    pub value: Option<Vec<u8>>,
    /// Revision of the write or of the delete.
    pub mod_revision: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Revisions {
    /// Revisions of znodes whose zxids do not tell them.
    znodes: HashMap<Box<str>, i64>,
    sessions: HashMap<SessionId, i64>,
}

impl Revisions {
    /// 0 for a key that does not exist, as in etcd.
    pub(crate) fn of_znode(&self, tree: &Tree, path: &str) -> i64 {
        match self.znodes.get(path) {
            Some(&revision) => revision,
            None => tree.znode(path).map_or(0, |znode| told(&znode)),
        }
    }

    pub(crate) fn of_session(&self, session: SessionId) -> i64 {
        self.sessions.get(&session).copied().unwrap_or(0)
    }

    pub(crate) fn note_znode(&mut self, path: &str, znode: Option<&Znode>, revision: i64) {
        match znode {
            Some(znode) if told(znode) != revision => drop(self.znodes.insert(path.into(), revision)),
            _ => drop(self.znodes.remove(path)),
        }
    }

    pub(crate) fn note_session(&mut self, session: SessionId, revision: Option<i64>) {
        match revision {
            Some(revision) => self.sessions.insert(session, revision),
            None => self.sessions.remove(&session),
        };
    }
}

/// The revision that a znode's own fields tell.
fn told(znode: &Znode) -> i64 {
    znode.czxid.max(znode.mzxid).max(znode.pzxid)
}
