//! Znodes that go to another group with their slots.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Acl, AclList, DecodeError, EventKind, SessionId, StreamItem, Zxid, encode, split_name};

use super::{Circumstances, Tree};
use crate::between_groups::GivenZnodes;
use crate::features::FeatureLevel;
use crate::outcome::{Change, Changes};
use crate::split_points::{LeavingSlots, slot_of};
use crate::store::{NewNode, NodeId, Znode, ZnodeKind, is_world};

/// Bytes of znodes above which the next ones are an item of their own.
const ITEM_BYTES: usize = 256 << 10;

impl Tree {
    /// Moves slots of one group to another. Those of the home group go at once; another group is told to give them, and they go when all of them are here.
    pub(super) fn move_slots(&mut self, at: &Circumstances<'_>, path: &str, slots: (u16, u16), group: u32) {
        let is_ephemeral = |node| matches!(self.store.kind(node), ZnodeKind::Ephemeral(_));
        if group >= self.groups.count() || self.store.find(path).is_some_and(is_ephemeral) {
            return;
        }
        let Some(from) = self.between_groups.split_points.begin_move(path, slots, group) else { return };
        self.between_groups.multis.spoil(|_| true);
        if from > 0 {
            let (first, last) = slots;
            let item = StreamItem::Leave { path, first, last };
            return self.between_groups.streams.push(from, at.zxid, &item);
        }
        self.between_groups.acl_zxid = at.zxid.0;
        let znodes = self.take_out(path, slots.0..=slots.1);
        self.bring(path, slots, group, znodes);
    }

    /// Slots are another group's from now on, and these znodes go there.
    fn bring(&mut self, path: &str, (first, last): (u16, u16), group: u32, znodes: Vec<Vec<u8>>) {
        self.between_groups.split_points.assign(path, (first, last), group, self.zxid.0);
        if group == 0 {
            return znodes.iter().for_each(|znodes| self.put_in(znodes));
        }
        let owners: BTreeSet<SessionId> = znodes
            .iter()
            .flat_map(|znodes| all_znodes(znodes))
            .filter_map(|(_, znode)| znode.owner())
            .collect();
        owners.into_iter().for_each(|session| self.attach(session, group));
        let zxid = self.zxid;
        let mut push = |item: StreamItem<'_>| self.between_groups.streams.push(group, zxid, &item);
        push(StreamItem::Slots { path, first, last });
        znodes.iter().for_each(|znodes| push(StreamItem::Znodes { znodes }));
    }

    /// Another group gives the znodes of slots away, as the home group has told it.
    pub(super) fn give_away(&mut self, zxid: Zxid, path: &str, (first, last): (u16, u16)) {
        if let Some(slots) = self.between_groups.own_slots.get_mut(path) {
            slots.assign(first, last, 0);
        }
        let mut portions = self.take_out(path, first..=last);
        if portions.is_empty() {
            portions.push(Vec::new());
        }
        let given = GivenZnodes { path: path.to_owned(), first, zxid: zxid.0, portions };
        self.between_groups.given.push(given);
    }

    /// A portion of what another group has given away.
    pub fn given_portion(&self, path: &str, first: u16, portion: u32) -> Option<GivenPortion<'_>> {
        let given = self
            .between_groups
            .given
            .iter()
            .find(|given| (given.path.as_str(), given.first) == (path, first))?;
        let znodes = given.portions.get(portion as usize)?;
        let is_last = portion as usize + 1 == given.portions.len();
        Some(GivenPortion { znodes, is_last, above: Zxid(given.zxid) })
    }

    /// A portion of the znodes of slots that leave another group has come. With the last one the slots are where they go.
    pub(super) fn take_given(&mut self, path: &str, first: u16, portion: u32, given: GivenPortion<'_>) {
        let (knows_moves, zxid) = (self.raised.level >= FeatureLevel::HOSTS, self.zxid.0);
        let Tree { between_groups, sessions, .. } = self;
        let Some((since, leaving)) = between_groups.split_points.leaving_of(path) else { return };
        // A portion of an earlier move of the same slots may come once more, from a leader that has not heard that it was taken. It left before the map became
        // what it is; what leaves because of the present move leaves behind that.
        let is_late = knows_moves && given.above.0 <= since;
        if is_late || leaving.first != first || leaving.portions() != portion {
            return;
        }
        leaving.portions.push(given.znodes.to_vec());
        // Sessions that have ended meanwhile have no ephemerals any more: the group that gave them tells their watchers. It says by their pzxid when that was, or has yet to
        // hear of it.
        let stream = between_groups.streams.to_group(leaving.from);
        drop_ended(&mut leaving.portions, portion as usize, |owner, znode| {
            if sessions.contains_key(&owner) {
                return None;
            }
            let told = Some(znode.pzxid).filter(|pzxid| *pzxid != znode.czxid);
            told.or_else(|| Some(stream?.decided_end(owner)?.0)).or(Some(zxid))
        });
        if !given.is_last {
            return;
        }
        let LeavingSlots { last, from, to, portions, .. } = leaving.clone();
        self.between_groups.multis.spoil(|_| true);
        self.between_groups.acl_zxid = self.between_groups.acl_zxid.max(self.zxid.0);
        self.bring(path, (first, last), to, portions);
        self.between_groups.streams.push(from, self.zxid, &StreamItem::Taken { path, first });
    }

    /// A session ends, as decided at this zxid, whose ephemerals may be on their way from one group to another.
    pub(super) fn forget_leaving_ephemerals(&mut self, session: SessionId, decided: Zxid) {
        for leaving in self.between_groups.split_points.leaving_mut() {
            drop_ended(&mut leaving.portions, 0, |owner, _| (owner == session).then_some(decided.0));
        }
    }

    /// A session has ended, as decided at a zxid, and ephemerals of it were given away that the home group does not have yet, or has dropped: their watchers are told here. The home
    /// group drops those that it does not have yet, and learns by their pzxid when they went.
    pub(super) fn end_given_ephemerals(
        &mut self,
        session: SessionId,
        (zxid, decided): (Zxid, Zxid),
        changes: &mut Changes<'_>,
    ) {
        let mut changed_points = Vec::new();
        for given in &mut self.between_groups.given {
            for portion in &mut given.portions {
                *portion = rewritten(portion, |path, znode| {
                    if znode.owner() != Some(session) {
                        return true;
                    }
                    znode.pzxid = decided.0;
                    let readers = (!znode.acl.iter().any(is_world)).then(|| znode.acl.clone());
                    let parent = parent_of(path);
                    changed_points.extend((parent == given.path).then(|| parent.to_owned()));
                    let change = |kind, path: &str| Change {
                        kind,
                        path: path.to_owned().into(),
                        readers: readers.clone(),
                    };
                    changes.push(change(EventKind::NodeDeleted, path));
                    changes.push(change(EventKind::NodeChildrenChanged, parent));
                    true
                });
            }
        }
        for point in changed_points {
            if let Some(point) = self.store.find(&point) {
                self.store.set_child_counters(point, (self.store.cversion(point), zxid.0));
            }
        }
    }

    /// Takes the children of a split point that are in these slots out of the state, with all below them. Returns them in portions, encoded, parents before their children.
    /// No watch fires: the znodes are still there for clients.
    fn take_out(&mut self, path: &str, slots: RangeInclusive<u16>) -> Vec<Vec<u8>> {
        let mut portions = Vec::new();
        let Some(point) = self.store.find(path) else { return portions };
        let counters = (self.store.cversion(point), self.store.stat(point).pzxid.0);
        let goes = |child: &NodeId| {
            let name = std::str::from_utf8(self.store.name(*child)).expect("a name is part of a path");
            slot_of(name).is_some_and(|slot| slots.contains(&slot))
        };
        let mut children: Vec<NodeId> = self.store.children(point).filter(goes).collect();
        // Members have them in different orders.
        children.sort_by_cached_key(|child| self.store.name(*child).to_vec());
        let mut portion = Vec::new();
        for child in children {
            let mut paths: Vec<String> =
                self.store.subtree(child).map(|node| self.store.path(node)).collect();
            paths.sort_unstable();
            for path in &paths {
                let znode = self.znode(path).expect("it is in the subtree");
                put_znode(path, &znode, &mut portion);
                if portion.len() >= ITEM_BYTES {
                    portions.push(std::mem::take(&mut portion));
                }
            }
            for path in paths.iter().rev() {
                let node = self.store.find(path).expect("it is in the subtree");
                let bytes = self.store.data_len(node);
                self.store.delete(node, path, Zxid(0));
                self.quota_after_delete(path, bytes);
            }
        }
        self.store.set_child_counters(point, counters);
        portions.extend((!portion.is_empty()).then_some(portion));
        portions
    }

    /// Puts znodes into the state that were taken out of another group's.
    pub(super) fn put_in(&mut self, znodes: &[u8]) {
        all_znodes(znodes).for_each(|(path, znode)| self.put(path, &znode));
    }

    /// Puts a znode into the state as it was in another group's; one that is there, or has no parent, changes nothing.
    pub(super) fn put(&mut self, path: &str, znode: &Znode) {
        let parent = split_name(path).and_then(|(parent, _)| self.store.find(parent));
        let (Some(parent), None) = (parent, self.store.find(path)) else { return };
        self.create_as_it_was(parent, path, znode);
        // At a lower level others do not.
        if self.raised.level >= FeatureLevel::QUOTAS {
            self.quota_after_put(path, znode.data.as_ref().map_or(0, Vec::len));
        }
    }

    /// Creates a znode as it was elsewhere. Its parent says itself how many children it had.
    pub(crate) fn create_as_it_was(&mut self, parent: NodeId, path: &str, znode: &Znode) -> NodeId {
        let counters = (self.store.cversion(parent), self.store.stat(parent).pzxid.0);
        let new = NewNode {
            parent,
            path,
            data: znode.data.as_deref(),
            acl: Some(znode.acl.to_vec()),
            kind: znode.kind,
            zxid: Zxid(znode.czxid),
            time_ms: znode.ctime_ms,
        };
        let node = self.store.create(new);
        self.store.set_child_counters(parent, counters);
        self.store.rewrite(node, znode);
        node
    }
}

/// A portion of the znodes that a group has given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenPortion<'a> {
    pub znodes: &'a [u8],
    pub is_last: bool,
    /// Zxid with which they left their group.
    pub above: Zxid,
}

/// Znodes of a portion, with their paths.
fn all_znodes(portion: &[u8]) -> impl Iterator<Item = (&str, Znode)> {
    let mut reader = Reader::new(portion);
    std::iter::from_fn(move || {
        if reader.is_empty() {
            return None;
        }
        Some(read_znode(&mut reader).expect("a group has encoded them"))
    })
}

/// Drops the ephemerals of sessions that have ended from portions of znodes, the first of which that may have some is `first`. `ended` says at which zxid an owner has ended, if it
/// has: with that the parent changes.
fn drop_ended(portions: &mut [Vec<u8>], first: usize, ended: impl Fn(SessionId, &Znode) -> Option<i64>) {
    let mut parents: BTreeMap<String, i64> = BTreeMap::new();
    for portion in &mut portions[first..] {
        *portion = rewritten(portion, |path, znode| {
            let ended = znode.owner().and_then(|owner| ended(owner, znode));
            if let Some(zxid) = ended {
                let newest = parents.entry(parent_of(path).to_owned()).or_default();
                *newest = zxid.max(*newest);
            }
            ended.is_none()
        });
    }
    if parents.is_empty() {
        return;
    }
    for portion in portions {
        *portion = rewritten(portion, |path, znode| {
            znode.pzxid = znode.pzxid.max(parents.get(path).copied().unwrap_or_default());
            true
        });
    }
}

/// A portion with its znodes as `rewrite` leaves them. Those for which it returns false are left out.
fn rewritten(portion: &[u8], mut rewrite: impl FnMut(&str, &mut Znode) -> bool) -> Vec<u8> {
    let mut rewritten = Vec::with_capacity(portion.len());
    for (path, mut znode) in all_znodes(portion) {
        if rewrite(path, &mut znode) {
            put_znode(path, &znode, &mut rewritten);
        }
    }
    rewritten
}

/// The parent of a znode below a split point.
fn parent_of(path: &str) -> &str {
    split_name(path).expect("a path has a slash").0
}

fn put_znode(path: &str, znode: &Znode, out: &mut Vec<u8>) {
    out.put_string(path);
    out.put_buffer(znode.data.as_deref());
    encode::put_acl(out, &znode.acl);
    let (tag, value) = match znode.kind {
        ZnodeKind::Persistent => (0, 0),
        ZnodeKind::Ephemeral(session) => (1, session.0),
        ZnodeKind::Container => (2, 0),
        ZnodeKind::Ttl { ms } => (3, ms),
    };
    out.push(tag);
    for long in [value, znode.czxid, znode.mzxid, znode.pzxid, znode.ctime_ms, znode.mtime_ms] {
        out.put_i64(long);
    }
    for int in [znode.version, znode.children_created, znode.aversion] {
        out.put_i32(int);
    }
}

fn read_znode<'a>(r: &mut Reader<'a>) -> Result<(&'a str, Znode), DecodeError> {
    let (path, data) = (r.string()?, r.buffer()?.map(<[u8]>::to_vec));
    let acl: Vec<Acl> = AclList::decode(r)?.to_vec();
    let kind = match (r.u8()?, r.i64()?) {
        (0, _) => ZnodeKind::Persistent,
        (1, session) => ZnodeKind::Ephemeral(SessionId(session)),
        (2, _) => ZnodeKind::Container,
        (3, ms) => ZnodeKind::Ttl { ms },
        (tag, _) => return Err(DecodeError::UnknownValue { field: "znode kind", value: tag.into() }),
    };
    let znode = Znode {
        data,
        acl: acl.into(),
        kind,
        czxid: r.i64()?,
        mzxid: r.i64()?,
        pzxid: r.i64()?,
        ctime_ms: r.i64()?,
        mtime_ms: r.i64()?,
        version: r.i32()?,
        children_created: r.i32()?,
        aversion: r.i32()?,
    };
    Ok((path, znode))
}
