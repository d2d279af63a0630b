//! The state of a ClickHouse Keeper: a draft of a tree, and what Keeper counts in another way than ZooKeeper.
//!
//! Keeper keeps the next number of a sequential child and the number that clients see as `cversion` apart, and counts the second for
//! every change of a child's data, too. A draft has one number for both. It is the first of them here, and the difference that the second
//! has to what follows from it is kept beside the draft.

use std::collections::HashMap;

use paddock_proto::{Id, SessionId, Zxid};
use paddock_tree::{COMPUTED, Draft, DraftNode, StoredZnode, Znode, ZnodeKind};

use super::digest::{Counters, digest_of};
use crate::error::Problem;

#[derive(Debug)]
pub(super) struct KeeperState {
    pub(super) draft: Draft,
    pub(super) zxid: Zxid,
    /// Id of the next session: Keeper counts them.
    pub(super) next_session: i64,
    /// Identities that sessions have shown.
    pub(super) identities: HashMap<SessionId, Vec<Id>>,
    /// By how much `cversion` is above what follows from the children that were created and those that are there, if it is.
    surplus: HashMap<String, i32>,
    /// True if `/keeper`, which the draft leaves out, counts as a child of the root.
    pub(super) has_keeper: bool,
    /// Sum of the digests of all znodes, and its version, once it was asked for.
    sum: Option<(u8, u64)>,
    /// Znodes as they were, while a change may have to be taken back.
    saved: Option<Saved>,
}

#[derive(Debug)]
struct Saved {
    sum: Option<(u8, u64)>,
    /// In the order of the changes; `None` for a znode that was not there.
    znodes: Vec<(String, Option<SavedZnode>)>,
}

#[derive(Debug)]
struct SavedZnode {
    znode: Znode,
    surplus: i32,
}

impl KeeperState {
    pub(super) fn new() -> KeeperState {
        KeeperState {
            draft: Draft::new(),
            zxid: Zxid(0),
            next_session: 1,
            identities: HashMap::new(),
            surplus: HashMap::new(),
            has_keeper: false,
            sum: None,
            saved: None,
        }
    }

    /// Keeper has `/keeper` from its start on.
    pub(super) fn add_keeper(&mut self) {
        if !self.has_keeper {
            self.has_keeper = true;
            self.forget_digest();
        }
    }

    /// Numbers of a znode as Keeper counts them.
    pub(super) fn counters(&self, path: &str, znode: &StoredZnode<'_>) -> Counters {
        let surplus = self.surplus.get(path).copied().unwrap_or(0);
        let children = znode.children as i32;
        let extra = i32::from(path == "/" && self.has_keeper);
        let cversion = plain_cversion(znode.cversion, children).wrapping_add(surplus);
        Counters { cversion, children: children.wrapping_add(extra) }
    }

    /// Notes what a snapshot says of a znode's `cversion`.
    pub(super) fn set_cversion(&mut self, path: &str, created: i32, counters: Counters) {
        let surplus = counters.cversion.wrapping_sub(plain_cversion(created, counters.children));
        self.put_surplus(path, surplus);
    }

    fn put_surplus(&mut self, path: &str, surplus: i32) {
        if surplus == 0 {
            self.surplus.remove(path);
        } else if let Some(known) = self.surplus.get_mut(path) {
            *known = surplus;
        } else {
            self.surplus.insert(path.to_owned(), surplus);
        }
    }

    /// Counts a change of a child's data.
    pub(super) fn raise_surplus(&mut self, path: &str) {
        let surplus = self.surplus.get(path).copied().unwrap_or(0);
        self.put_surplus(path, surplus.wrapping_add(1));
    }

    /// Digest of all znodes, in this version.
    pub(super) fn digest(&mut self, version: u8) -> u64 {
        if let Some((_, sum)) = self.sum.filter(|(known, _)| *known == version) {
            return sum;
        }
        let mut sum = if self.has_keeper { digest_of_keeper(version) } else { 0 };
        let mut znodes = self.draft.znodes();
        while let Some((path, znode)) = znodes.next_znode() {
            sum = sum.wrapping_add(digest_of(version, path, &znode, self.counters(path, &znode)));
        }
        self.sum = Some((version, sum));
        sum
    }

    /// The digest is computed anew when it is asked for.
    pub(super) fn forget_digest(&mut self) {
        self.sum = None;
    }

    /// Changes what is at a path, so that the digest stays right and the change can be taken back.
    pub(super) fn change<T>(&mut self, path: &str, make: impl FnOnce(&mut KeeperState) -> T) -> T {
        self.save(path);
        let before = self.digest_at(path);
        let made = make(self);
        let after = self.digest_at(path);
        if let Some((_, sum)) = &mut self.sum {
            *sum = sum.wrapping_sub(before).wrapping_add(after);
        }
        made
    }

    /// Removes a znode without children. Its parent has to be changed around that.
    pub(super) fn remove(&mut self, path: &str) {
        self.change(path, |state| {
            let node = state.draft.find(path).expect("the caller has found it");
            state.draft.remove(node);
            state.surplus.remove(path);
        });
    }

    /// Removes a znode and all below it, of which these are the paths, each behind its parent's.
    pub(super) fn remove_subtree(&mut self, paths: &[String]) {
        for path in paths.iter().rev() {
            self.save(path);
        }
        let gone = paths.iter().fold(0u64, |gone, path| gone.wrapping_add(self.digest_at(path)));
        if let Some((_, sum)) = &mut self.sum {
            *sum = sum.wrapping_sub(gone);
        }
        let top = self.draft.find(&paths[0]).expect("the caller has found it");
        self.draft.remove(top);
        for path in paths {
            self.surplus.remove(path);
        }
    }

    fn digest_at(&self, path: &str) -> u64 {
        let Some((version, _)) = self.sum else { return 0 };
        let Some(node) = self.draft.find(path) else { return 0 };
        let znode = self.draft.znode(node);
        digest_of(version, path, &znode, self.counters(path, &znode))
    }

    /// From now on changes can be taken back.
    pub(super) fn begin(&mut self) {
        self.saved = Some(Saved { sum: self.sum, znodes: Vec::new() });
    }

    /// The changes stay.
    pub(super) fn keep(&mut self) {
        self.saved = None;
    }

    /// Takes all changes since `begin` back.
    pub(super) fn take_back(&mut self) {
        let Some(saved) = self.saved.take() else { return };
        for (path, before) in saved.znodes.into_iter().rev() {
            match before {
                Some(before) => self.restore(&path, &before),
                None => {
                    if let Some(node) = self.draft.find(&path) {
                        self.draft.remove(node);
                        self.surplus.remove(&path);
                    }
                }
            }
        }
        self.sum = saved.sum;
    }

    fn save(&mut self, path: &str) {
        if self.saved.is_none() {
            return;
        }
        let before = self.draft.find(path).map(|node| self.saved_znode(path, node));
        let saved = self.saved.as_mut().expect("it was there");
        saved.znodes.push((path.to_owned(), before));
    }

    fn saved_znode(&self, path: &str, node: DraftNode) -> SavedZnode {
        let surplus = self.surplus.get(path).copied().unwrap_or(0);
        SavedZnode { znode: self.draft.znode(node).to_znode(), surplus }
    }

    fn restore(&mut self, path: &str, SavedZnode { znode, surplus }: &SavedZnode) {
        let acl = znode.acl.to_vec();
        if let Some(node) = self.draft.find(path) {
            self.draft.set_data(node, znode.data.as_deref(), znode.version, znode.mzxid, znode.mtime_ms);
            self.draft.set_acl(node, acl, znode.aversion);
            self.draft.set_cversion(node, znode.children_created);
            self.draft.set_pzxid(node, znode.pzxid);
        } else {
            let placed = self.draft.place_with(path, &znode.facts(), acl);
            assert!(placed.is_ok(), "it was there, and so was its parent");
        }
        self.put_surplus(path, *surplus);
    }

    /// Raises counters until no `cversion` is below what Keeper showed; returns how many.
    pub(super) fn raise_counters(&mut self) -> Result<u64, Problem> {
        let mut raised = 0;
        for (path, surplus) in std::mem::take(&mut self.surplus) {
            let Some(node) = self.draft.find(&path).filter(|_| surplus > 0) else { continue };
            let wanted = i64::from(self.draft.cversion(node)) + (i64::from(surplus) + 1) / 2;
            self.draft.set_cversion(node, counter(&path, wanted)?);
            raised += 1;
        }
        Ok(raised)
    }
}

/// The number of children that were ever created, if it is one that clients can be told.
pub(super) fn counter(path: &str, value: i64) -> Result<i32, Problem> {
    i32::try_from(value)
        .ok()
        .filter(|value| *value >= 0)
        .ok_or_else(|| Problem::Counter { path: path.to_owned(), value })
}

/// True for `/keeper` and all below it.
pub(super) fn is_computed(path: &str) -> bool {
    path.strip_prefix(COMPUTED).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn plain_cversion(created: i32, children: i32) -> i32 {
    created.wrapping_mul(2).wrapping_sub(children)
}

/// The znode has no data, and numbers that are all zero.
fn digest_of_keeper(version: u8) -> u64 {
    let znode = StoredZnode {
        data: None,
        acl: &[],
        czxid: 0,
        mzxid: 0,
        pzxid: 0,
        ctime_ms: 0,
        mtime_ms: 0,
        version: 0,
        cversion: 0,
        aversion: 0,
        kind: ZnodeKind::Persistent,
        children: 0,
    };
    digest_of(version, COMPUTED, &znode, Counters { cversion: 0, children: 0 })
}
