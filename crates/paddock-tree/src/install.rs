//! Installing what a write came to elsewhere: znodes are put and removed as they are told, nothing is decided here.
//!
//! The bytes behind it come from another process, so all that the tree relies on is checked.

use std::borrow::Cow;
use std::collections::BTreeSet;

use paddock_proto::{
    ErrorCode, EventKind, Id, MemberNumber, SessionId, Zxid, parent_and_name, validate_path,
};

use crate::session::Session;
use crate::store::{NodeId, ZnodeKind};
use crate::tree::SYSTEM_PATHS;
use crate::{Changes, Tree, Znode};

/// Reason why a znode cannot be installed. The tree may hold a part of the revision: it is to be thrown away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    #[error("znode {0:?} has no valid path")]
    Path(String),
    #[error("znode {0} has no parent that may have children")]
    Parent(String),
    #[error("znode {path} belongs to the unknown session {session}")]
    UnknownOwner { path: String, session: SessionId },
    #[error("znode {0} is removed, and has children or belongs to every tree")]
    Removal(String),
    #[error("znode {0} became one of another kind")]
    Kind(String),
    #[error("revision {revision} comes after {zxid}")]
    OutOfOrder { revision: Zxid, zxid: Zxid },
}

/// Znodes of one revision by path: as they are now, or `None` for those that are gone.
pub type Installed<'a> = [(&'a str, Option<Znode>)];

/// Everything that one transaction has changed elsewhere, to be shown here.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedTransaction {
    pub zxid: Zxid,
    /// Session whose request it was, and the number that its sender gave it.
    pub asked: (SessionId, i32),
    /// Body of the reply to that request, or the error with which it was refused.
    pub answer: Result<Vec<u8>, ErrorCode>,
    /// Sessions that began, with their timeouts in milliseconds.
    pub began: Vec<(SessionId, i32)>,
    /// Znodes by path as they are now, or `None` for those that are gone. A parent is among them if its Stat may have changed.
    pub znodes: Vec<(String, Option<Znode>)>,
    pub ended: Vec<SessionId>,
}

/// Changes of one revision that watchers are told of.
#[derive(Debug, Default)]
struct Told<'a> {
    changes: Changes<'a>,
    /// Znodes of whose children is told.
    parents: BTreeSet<&'a str>,
}

impl Tree {
    /// Makes the znodes what one revision made them, and reports what watches may fire for.
    pub fn install<'a>(
        &mut self,
        revision: Zxid,
        znodes: &Installed<'a>,
    ) -> Result<Changes<'a>, InstallError> {
        if revision < self.zxid {
            return Err(InstallError::OutOfOrder { revision, zxid: self.zxid });
        }
        let mut told = Told::default();
        // Children go before their parents and come after them.
        let mut sorted: Vec<&(&'a str, Option<Znode>)> = znodes.iter().collect();
        sorted.sort_by_key(|(path, _)| *path);
        for (path, znode) in sorted.iter().rev() {
            if self.is_replaced(path, znode.as_ref()) {
                self.uninstall(revision, path, &mut told)?;
            }
        }
        let mut with_other_children = Vec::new();
        for (path, znode) in sorted {
            if let Some(znode) = znode
                && self.install_one(path, znode, &mut told)?
            {
                with_other_children.push(*path);
            }
        }
        // Children that came and went in one revision are not among the znodes.
        for path in with_other_children {
            let node = self.store.find(path).expect("the znode was installed");
            self.push_children_changed(path, node, &mut told);
        }
        self.zxid = revision;
        Ok(told.changes)
    }

    /// A session of ZooKeeper that began or moved. `member` is the one that serves it.
    pub fn install_session(&mut self, session: SessionId, timeout_ms: i32, member: MemberNumber) {
        self.install_own_session(session, timeout_ms, member, false, None);
    }

    /// Installs a session that may have a keyed password, and be bound to an identity.
    pub fn install_own_session(
        &mut self,
        session: SessionId,
        timeout_ms: i32,
        member: MemberNumber,
        is_keyed: bool,
        proven: Option<Id>,
    ) {
        let proven = proven.map(Box::new);
        self.sessions.insert(session, Session { is_keyed, proven, ..Session::new(timeout_ms, member) });
    }

    /// A session that ended; false, and nothing done, while it still owns znodes.
    #[must_use]
    pub fn uninstall_session(&mut self, session: SessionId) -> bool {
        let is_bare = self.store.ephemerals_of(session).next().is_none();
        if is_bare {
            self.sessions.remove(&session);
        }
        is_bare
    }

    /// True if the znode that is there goes, perhaps to make room for a new one.
    fn is_replaced(&self, path: &str, znode: Option<&Znode>) -> bool {
        let czxid = self.stat(path).map(|stat| stat.czxid.0);
        czxid.is_some() && czxid != znode.map(|znode| znode.czxid)
    }

    fn uninstall<'a>(
        &mut self,
        revision: Zxid,
        path: &'a str,
        told: &mut Told<'a>,
    ) -> Result<(), InstallError> {
        let node = self.store.find(path).expect("the znode is there");
        if self.store.child_count(node) > 0 || SYSTEM_PATHS.contains(&path) {
            return Err(InstallError::Removal(path.to_owned()));
        }
        let parent = self.store.parent(node);
        told.changes.push(self.change(EventKind::NodeDeleted, Cow::Borrowed(path), node));
        self.store.delete(node, path, revision);
        self.push_parent_changed(path, parent, told);
        Ok(())
    }

    /// Installs a znode; true if it was there, and children of it have come or gone.
    fn install_one<'a>(
        &mut self,
        path: &'a str,
        znode: &Znode,
        told: &mut Told<'a>,
    ) -> Result<bool, InstallError> {
        validate_path(path).map_err(|_| InstallError::Path(path.to_owned()))?;
        let Some(node) = self.store.find(path) else {
            self.install_new(path, znode, told)?;
            return Ok(false);
        };
        if self.store.kind(node) != znode.kind {
            return Err(InstallError::Kind(path.to_owned()));
        }
        let before = self.store.stat(node);
        self.store.rewrite(node, znode);
        if (before.mzxid.0, before.version) != (znode.mzxid, znode.version) {
            told.changes.push(self.change(EventKind::NodeDataChanged, Cow::Borrowed(path), node));
        }
        Ok(before.pzxid.0 != znode.pzxid)
    }

    fn install_new<'a>(
        &mut self,
        path: &'a str,
        znode: &Znode,
        told: &mut Told<'a>,
    ) -> Result<(), InstallError> {
        let parent = self.parent_to_be(path).ok_or_else(|| InstallError::Parent(path.to_owned()))?;
        match znode.kind {
            ZnodeKind::Ephemeral(session) if !self.sessions.contains_key(&session) => {
                return Err(InstallError::UnknownOwner { path: path.to_owned(), session });
            }
            _ => {}
        }
        let node = self.create_as_it_was(parent, path, znode);
        told.changes.push(self.change(EventKind::NodeCreated, Cow::Borrowed(path), node));
        self.push_parent_changed(path, parent, told);
        // The transaction that created it has set it, too: a create gives version 0.
        if znode.version != 0 {
            told.changes.push(self.change(EventKind::NodeDataChanged, Cow::Borrowed(path), node));
        }
        Ok(())
    }

    fn parent_to_be(&self, path: &str) -> Option<NodeId> {
        let (parent, _) = parent_and_name(path)?;
        self.store.find(parent).filter(|parent| !self.store.is_ephemeral(*parent))
    }

    fn push_parent_changed<'a>(&self, path: &'a str, parent: NodeId, told: &mut Told<'a>) {
        let (parent_path, _) = parent_and_name(path).expect("only the root has no parent");
        self.push_children_changed(parent_path, parent, told);
    }

    /// Tells of the children of a znode, once in a revision.
    fn push_children_changed<'a>(&self, path: &'a str, node: NodeId, told: &mut Told<'a>) {
        if told.parents.insert(path) {
            told.changes.push(self.change(EventKind::NodeChildrenChanged, Cow::Borrowed(path), node));
        }
    }
}
