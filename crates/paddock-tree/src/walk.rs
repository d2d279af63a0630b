//! Znodes as they are stored, for those who write them into files of other forms or compare trees.

use paddock_proto::Acl;

use crate::store::{NodeId, Store, Znode, ZnodeKind};
use crate::{Facts, Tree};

/// One znode with all its facts. `cversion` counts the children that were ever created; a client sees another number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredZnode<'a> {
    pub data: Option<&'a [u8]>,
    pub acl: &'a [Acl],
    pub czxid: i64,
    pub mzxid: i64,
    pub pzxid: i64,
    pub ctime_ms: i64,
    pub mtime_ms: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    pub kind: ZnodeKind,
    pub children: u32,
}

impl<'a> StoredZnode<'a> {
    /// The facts with which a draft places such a znode.
    pub fn facts(&self) -> Facts<'a> {
        Facts {
            data: self.data,
            czxid: self.czxid,
            mzxid: self.mzxid,
            pzxid: self.pzxid,
            ctime_ms: self.ctime_ms,
            mtime_ms: self.mtime_ms,
            version: self.version,
            cversion: self.cversion,
            aversion: self.aversion,
            kind: self.kind,
        }
    }

    /// The znode as a value of its own.
    pub fn to_znode(&self) -> Znode {
        Znode {
            data: self.data.map(<[u8]>::to_vec),
            acl: self.acl.into(),
            kind: self.kind,
            czxid: self.czxid,
            mzxid: self.mzxid,
            pzxid: self.pzxid,
            ctime_ms: self.ctime_ms,
            mtime_ms: self.mtime_ms,
            version: self.version,
            children_created: self.cversion,
            aversion: self.aversion,
        }
    }
}

/// A walk over all znodes, each behind its parent and the children of one parent by their names' bytes.
#[derive(Debug)]
pub struct Znodes<'a> {
    store: &'a Store,
    /// Nodes to come, the next one last, each with the length of its parent's path.
    waiting: Vec<(NodeId, usize)>,
    path: String,
}

impl Tree {
    /// Every ACL in use, once.
    pub fn acls(&self) -> impl Iterator<Item = &[Acl]> {
        self.store.acls().map(|(_, list)| list)
    }

    /// Begins a walk over all znodes.
    pub fn znodes(&self) -> Znodes<'_> {
        Znodes::of(&self.store)
    }
}

impl Znodes<'_> {
    pub(crate) fn of(store: &Store) -> Znodes<'_> {
        Znodes { store, waiting: vec![(NodeId::ROOT, 0)], path: String::new() }
    }

    /// The next znode and its path.
    pub fn next_znode(&mut self) -> Option<(&str, StoredZnode<'_>)> {
        let (id, parent_len) = self.waiting.pop()?;
        self.path.truncate(parent_len);
        if id != NodeId::ROOT {
            let name =
                std::str::from_utf8(self.store.name(id)).expect("names were strings when they were stored");
            self.path.push('/');
            self.path.push_str(name);
        }
        let first = self.waiting.len();
        self.waiting.extend(self.store.children(id).map(|child| (child, self.path.len())));
        self.waiting[first..].sort_unstable_by(|a, b| self.store.name(b.0).cmp(self.store.name(a.0)));
        let path = if self.path.is_empty() { "/" } else { &self.path };
        Some((path, self.store.znode(id)))
    }
}

impl Store {
    pub(crate) fn znode(&self, id: NodeId) -> StoredZnode<'_> {
        let stat = self.stat(id);
        StoredZnode {
            data: self.data(id),
            acl: self.acl_list(id),
            czxid: stat.czxid.0,
            mzxid: stat.mzxid.0,
            pzxid: stat.pzxid.0,
            ctime_ms: stat.ctime_ms,
            mtime_ms: stat.mtime_ms,
            version: stat.version,
            cversion: self.cversion(id),
            aversion: stat.aversion,
            kind: self.kind(id),
            children: self.child_count(id),
        }
    }
}
