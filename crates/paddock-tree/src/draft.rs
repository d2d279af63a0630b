//! A tree put together from the outside, znode by znode: for a state that another system has written down.
//!
//! Nothing here takes a zxid, fires a watch or asks an ACL. What a draft becomes is a tree like every other: `finish` sees to
//! the system znodes, to ephemerals without a session and to the statistics of quotas.

use std::collections::BTreeMap;

use paddock_proto::{Acl, MemberNumber, SessionId, Stat, Zxid, parent_and_name, validate_path};

use crate::between_groups::BetweenGroups;
use crate::features::RaisedLevel;
use crate::groups::FoundedGroups;
use crate::hosts::Hosts;
use crate::origins::Origins;
use crate::quota_overruns::QuotaOverruns;
use crate::recent_children::RecentChildren;
use crate::session::Session;
use crate::store::{AclId, NodeId, Record, Store, Znode, ZnodeKind};
use crate::tree::{CONFIG, QUOTA, SYSTEM_PATHS, system_node};
use crate::{StoredZnode, Tree, Znodes};

/// Reason for which a znode cannot be put where it was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    #[error("its path is not valid")]
    Path,
    #[error("its parent is missing")]
    NoParent,
    #[error("it is there already")]
    Exists,
    #[error("its parent is ephemeral")]
    EphemeralParent,
    #[error("it is one of the system's and cannot be ephemeral")]
    System,
}

/// A znode of a draft, until the next one is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftNode(NodeId);

/// An ACL that a draft holds.
#[derive(Clone, Copy, Debug)]
pub struct DraftAcl(AclId);

/// Facts of a znode about to be placed: those of `StoredZnode` that do not follow from others.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub data: Option<&'a [u8]>,
    pub czxid: i64,
    pub mzxid: i64,
    pub pzxid: i64,
    pub ctime_ms: i64,
    pub mtime_ms: i64,
    pub version: i32,
    /// Number of children that were ever created.
    pub cversion: i32,
    pub aversion: i32,
    pub kind: ZnodeKind,
}

impl<'a> Facts<'a> {
    /// Facts of a znode that a transaction creates, at a time in milliseconds.
    pub fn of_new(data: Option<&'a [u8]>, kind: ZnodeKind, zxid: i64, time_ms: i64) -> Facts<'a> {
        Facts {
            data,
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: time_ms,
            mtime_ms: time_ms,
            version: 0,
            cversion: 0,
            aversion: 0,
            kind,
        }
    }
}

impl Znode {
    /// The facts with which a draft places the znode.
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            data: self.data.as_deref(),
            czxid: self.czxid,
            mzxid: self.mzxid,
            pzxid: self.pzxid,
            ctime_ms: self.ctime_ms,
            mtime_ms: self.mtime_ms,
            version: self.version,
            cversion: self.children_created,
            aversion: self.aversion,
            kind: self.kind,
        }
    }
}

/// Repairs that `Draft::finish` made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Ephemerals that were removed because their sessions had ended.
    pub orphans: Vec<String>,
    /// True if `/zookeeper/config` was missing, as before ZooKeeper 3.5.
    pub added_config: bool,
}

/// Invariant: every znode but the root has a parent that is not ephemeral, and a valid path.
#[derive(Debug)]
pub struct Draft {
    store: Store,
    sessions: BTreeMap<SessionId, i32>,
    held: Vec<AclId>,
    /// The parent that was asked for last, which is most often the next one, too.
    last_parent: Option<(String, NodeId)>,
}

impl Default for Draft {
    fn default() -> Draft {
        Draft::new()
    }
}

impl Draft {
    /// A root without children.
    pub fn new() -> Draft {
        let mut store = Store::empty();
        store.place(&system_node(""), AclId::OPEN);
        Draft { store, sessions: BTreeMap::new(), held: Vec::new(), last_parent: None }
    }

    /// The znodes of a server that has not served yet.
    pub fn of_new_server() -> Draft {
        let mut draft = Draft::new();
        draft.add_system_nodes(&mut Repairs::default());
        draft
    }

    pub fn find(&self, path: &str) -> Option<DraftNode> {
        self.store.find(path).map(DraftNode)
    }

    /// The ACL, to be given to any number of znodes.
    pub fn hold_acl(&mut self, list: Vec<Acl>) -> DraftAcl {
        let acl = self.store.hold_acl(list);
        self.held.push(acl);
        DraftAcl(acl)
    }

    /// The ACL that everybody may do everything.
    pub fn open_acl(&self) -> DraftAcl {
        DraftAcl(AclId::OPEN)
    }

    /// Places a znode. That of its parent stays as it is.
    pub fn place(&mut self, path: &str, facts: &Facts<'_>, acl: DraftAcl) -> Result<DraftNode, DraftError> {
        if path == "/" {
            self.store.put_root(&record("", facts), acl.0);
            return Ok(DraftNode(NodeId::ROOT));
        }
        if SYSTEM_PATHS.contains(&path) && matches!(facts.kind, ZnodeKind::Ephemeral(_)) {
            return Err(DraftError::System);
        }
        let (parent, name) = self.parent_of(path)?;
        if self.store.child(parent, name).is_some() {
            return Err(DraftError::Exists);
        }
        Ok(DraftNode(self.store.graft(parent, &record(name, facts), acl.0)))
    }

    /// Places a znode with an ACL of its own.
    pub fn place_with(
        &mut self,
        path: &str,
        facts: &Facts<'_>,
        acl: Vec<Acl>,
    ) -> Result<DraftNode, DraftError> {
        let acl = self.store.hold_acl(acl);
        let placed = self.place(path, facts, DraftAcl(acl));
        self.store.release_acl(acl);
        placed
    }

    fn parent_of<'p>(&mut self, path: &'p str) -> Result<(NodeId, &'p str), DraftError> {
        validate_path(path).map_err(|_| DraftError::Path)?;
        let (parent_path, name) = parent_and_name(path).ok_or(DraftError::Path)?;
        let known = self.last_parent.as_ref().filter(|(known, _)| known == parent_path);
        let parent = match known {
            Some(&(_, parent)) => parent,
            None => {
                let parent = self.store.find(parent_path).ok_or(DraftError::NoParent)?;
                self.last_parent = Some((parent_path.to_owned(), parent));
                parent
            }
        };
        if self.store.is_ephemeral(parent) {
            return Err(DraftError::EphemeralParent);
        }
        Ok((parent, name))
    }

    /// Removes a znode and all below it.
    pub fn remove(&mut self, node: DraftNode) {
        self.last_parent = None;
        self.store.prune(node.0);
    }

    pub fn set_data(
        &mut self,
        node: DraftNode,
        data: Option<&[u8]>,
        version: i32,
        mzxid: i64,
        mtime_ms: i64,
    ) {
        self.store.put_content(node.0, data, version, mzxid, mtime_ms);
    }

    pub fn set_acl(&mut self, node: DraftNode, acl: Vec<Acl>, aversion: i32) {
        self.store.put_acl_list(node.0, acl, aversion);
    }

    /// Number of children that were ever created below a znode.
    pub fn cversion(&self, node: DraftNode) -> i32 {
        self.store.cversion(node.0)
    }

    pub fn set_cversion(&mut self, node: DraftNode, cversion: i32) {
        self.store.put_cversion(node.0, cversion);
    }

    pub fn pzxid(&self, node: DraftNode) -> i64 {
        self.store.pzxid(node.0)
    }

    pub fn set_pzxid(&mut self, node: DraftNode, pzxid: i64) {
        self.store.put_pzxid(node.0, pzxid);
    }

    pub fn node_count(&self) -> usize {
        self.store.node_count()
    }

    /// All facts of one znode.
    pub fn znode(&self, node: DraftNode) -> StoredZnode<'_> {
        self.store.znode(node.0)
    }

    /// The Stat of one znode, as clients see it.
    pub fn stat(&self, node: DraftNode) -> Stat {
        self.store.stat(node.0)
    }

    /// Paths of a znode and of all below it, each behind its parent.
    pub fn subtree(&self, top: DraftNode) -> impl Iterator<Item = String> {
        self.store.subtree(top.0).map(|id| self.store.path(id))
    }

    /// Begins a walk over all znodes as they are now.
    pub fn znodes(&self) -> Znodes<'_> {
        Znodes::of(&self.store)
    }

    pub fn begin_session(&mut self, session: SessionId, timeout_ms: i32) {
        self.sessions.insert(session, timeout_ms);
    }

    /// The session is no more; its ephemerals stay.
    pub fn end_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    pub fn has_session(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub fn session_ids(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.keys().copied()
    }

    /// Sessions with their timeouts in milliseconds, in the order of their ids.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = (SessionId, i32)> {
        self.sessions.iter().map(|(session, timeout_ms)| (*session, *timeout_ms))
    }

    /// Paths of the ephemerals of a session, in order.
    pub fn ephemerals_of(&self, session: SessionId) -> Vec<String> {
        let mut paths: Vec<String> =
            self.store.ephemerals_of(session).map(|id| self.store.path(id)).collect();
        paths.sort_unstable();
        paths
    }

    /// The tree as of a zxid, whose sessions `member` serves.
    pub fn finish(mut self, zxid: Zxid, member: MemberNumber) -> (Tree, Repairs) {
        let mut repairs = Repairs::default();
        self.remove_orphans(zxid, &mut repairs);
        self.add_system_nodes(&mut repairs);
        let Draft { mut store, sessions, held, .. } = self;
        held.into_iter().for_each(|acl| store.release_acl(acl));
        assert!(store.weigh(), "every znode of a draft is below its root");
        let quota = store.find(QUOTA).expect("the system znodes were added");
        let sessions =
            sessions.into_iter().map(|(id, timeout_ms)| (id, Session::new(timeout_ms, member))).collect();
        let mut tree = Tree {
            zxid,
            floor: Zxid(0),
            store,
            sessions,
            origins: Origins::default(),
            ensemble: None,
            secret: None,
            raised: RaisedLevel::default(),
            groups: FoundedGroups::default(),
            between_groups: BetweenGroups::default(),
            hosts: Hosts::default(),
            host_decisions: 0,
            is_among_groups: false,
            are_znodes_spread: false,
            recent_children: RecentChildren::default(),
            applied_items: Vec::new(),
            relayed_answers: None,
            changed_limits: Vec::new(),
            quota,
            overruns: QuotaOverruns::default(),
        };
        tree.count_all_quotas();
        (tree, repairs)
    }

    fn remove_orphans(&mut self, zxid: Zxid, repairs: &mut Repairs) {
        let owners = self.store.ephemerals().map(|(owner, _)| owner);
        let gone: Vec<SessionId> = owners.filter(|owner| !self.sessions.contains_key(owner)).collect();
        let orphans: Vec<String> = gone.into_iter().flat_map(|owner| self.ephemerals_of(owner)).collect();
        for path in orphans {
            let node = self.store.find(&path).expect("the path of a znode that is there");
            let parent = self.store.parent(node);
            self.remove(DraftNode(node));
            self.store.put_pzxid(parent, self.store.pzxid(parent).max(zxid.0));
            repairs.orphans.push(path);
        }
    }

    fn add_system_nodes(&mut self, repairs: &mut Repairs) {
        let fresh = Tree::new();
        repairs.added_config = self.find(CONFIG).is_none();
        let mut znodes = fresh.znodes();
        while let Some((path, znode)) = znodes.next_znode() {
            if self.find(path).is_none() {
                let facts = Facts {
                    data: znode.data,
                    czxid: 0,
                    mzxid: 0,
                    pzxid: 0,
                    ctime_ms: 0,
                    mtime_ms: 0,
                    version: 0,
                    cversion: 0,
                    aversion: znode.aversion,
                    kind: ZnodeKind::Persistent,
                };
                let placed = self.place_with(path, &facts, znode.acl.to_vec());
                assert!(placed.is_ok(), "the znodes above {path} were added");
            }
        }
    }
}

fn record<'a>(name: &'a str, facts: &Facts<'a>) -> Record<'a> {
    let &Facts { data, czxid, mzxid, pzxid, ctime_ms, mtime_ms, version, cversion, aversion, kind } = facts;
    Record {
        id: 0,
        parent: 0,
        acl: 0,
        name,
        data,
        czxid,
        mzxid,
        pzxid,
        ctime_ms,
        mtime_ms,
        version,
        cversion,
        aversion,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::{Id, Perms};

    use super::*;
    use crate::TreeLoader;

    fn facts(kind: ZnodeKind) -> Facts<'static> {
        Facts {
            data: Some(b"data"),
            czxid: 5,
            mzxid: 6,
            pzxid: 7,
            ctime_ms: 50,
            mtime_ms: 60,
            version: 3,
            cversion: 9,
            aversion: 1,
            kind,
        }
    }

    /// The tree, when it has been saved and loaded again.
    fn saved(mut tree: Tree) -> Tree {
        let (mut scan, mut loader) = (tree.begin_snapshot(), TreeLoader::new());
        let mut more = true;
        while more {
            let mut block = Vec::new();
            more = tree.scan_snapshot(&mut scan, 2, &mut block);
            loader.block(&block).unwrap();
        }
        loader.finish().unwrap()
    }

    #[test]
    fn a_draft_becomes_a_tree_that_can_be_saved() {
        let mut draft = Draft::new();
        let secret = vec![Acl { perms: Perms::READ, id: Id::new("digest", "a:x") }];
        let acl = draft.hold_acl(secret.clone());
        draft.begin_session(SessionId(7), 4000);
        draft.place("/", &facts(ZnodeKind::Persistent), draft.open_acl()).unwrap();
        draft.place("/a", &facts(ZnodeKind::Container), acl).unwrap();
        draft.place("/a/e", &facts(ZnodeKind::Ephemeral(SessionId(7))), draft.open_acl()).unwrap();
        draft.place("/a/gone", &facts(ZnodeKind::Ephemeral(SessionId(8))), draft.open_acl()).unwrap();
        draft.place("/t", &facts(ZnodeKind::Ttl { ms: 9 }), draft.open_acl()).unwrap();
        draft.place("/t/x", &facts(ZnodeKind::Persistent), draft.open_acl()).unwrap();
        draft.place("/t/x/y", &facts(ZnodeKind::Persistent), draft.open_acl()).unwrap();
        draft.remove(draft.find("/t/x").unwrap());
        let (tree, repairs) = draft.finish(Zxid(100), 1);
        assert_eq!(repairs.orphans, ["/a/gone"]);
        assert!(repairs.added_config);

        let tree = saved(tree);
        let mut paths = Vec::new();
        let mut znodes = tree.znodes();
        while let Some((path, znode)) = znodes.next_znode() {
            paths.push(path.to_owned());
            if path == "/a" {
                assert_eq!((znode.acl, znode.pzxid, znode.cversion), (&secret[..], 100, 9));
            }
        }
        let system = ["/zookeeper", "/zookeeper/config", "/zookeeper/quota"];
        assert_eq!(paths, [&["/", "/a", "/a/e", "/t"], &system[..]].concat());
        assert_eq!(tree.session_timeout_ms(SessionId(7)), Some(4000));
        assert_eq!(tree.stat("/").unwrap().cversion, 18 - 3);
    }

    #[test]
    fn what_cannot_be_a_tree_is_refused() {
        let mut draft = Draft::new();
        let mut refusal = |path: &str, kind| {
            let open = draft.open_acl();
            draft.place(path, &facts(kind), open).err()
        };
        let ephemeral = ZnodeKind::Ephemeral(SessionId(7));
        assert_eq!(refusal("/e", ephemeral), None);
        assert_eq!(refusal("/e", ephemeral), Some(DraftError::Exists));
        assert_eq!(refusal("/e/x", ZnodeKind::Persistent), Some(DraftError::EphemeralParent));
        assert_eq!(refusal("/x/y", ZnodeKind::Persistent), Some(DraftError::NoParent));
        assert_eq!(refusal("/zookeeper", ephemeral), Some(DraftError::System));
        for path in ["", "x", "/x/", "/.", "//"] {
            assert_eq!(refusal(path, ZnodeKind::Persistent), Some(DraftError::Path), "{path}");
        }
    }

    #[test]
    fn statistics_of_quotas_are_counted_afresh() {
        let mut draft = Draft::new();
        for path in ["/zookeeper", "/zookeeper/quota", "/zookeeper/quota/a", "/a", "/a/b"] {
            draft.place(path, &facts(ZnodeKind::Persistent), draft.open_acl()).unwrap();
        }
        for name in ["zookeeper_limits", "zookeeper_stats"] {
            let path = format!("/zookeeper/quota/a/{name}");
            draft.place(&path, &facts(ZnodeKind::Persistent), draft.open_acl()).unwrap();
        }
        let (tree, _) = draft.finish(Zxid(100), 1);
        let tree = saved(tree);
        let mut znodes = tree.znodes();
        while let Some((path, znode)) = znodes.next_znode() {
            if path.ends_with("zookeeper_stats") {
                assert_eq!(znode.data, Some(&b"count=2,bytes=8"[..]));
                return;
            }
        }
        panic!("the statistics are not there");
    }
}
