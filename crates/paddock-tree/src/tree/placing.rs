//! Znodes of several groups: which of them this state has, what was shown of them, and which of them came and went of late.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use paddock_proto::{CreateMode, ErrorCode, GroupsCommand, Read, SessionId, Write, Zxid, parent_and_name};

use super::Tree;
use crate::between_groups::{BetweenGroups, OWN};
use crate::recent_children::ChildChange;
use crate::split_points::{ancestor_in, slot_of};
use crate::store::NodeId;
use crate::write_paths::for_each_path;
use crate::{Changes, Command};

/// Outcome of a command about a znode of another group, or of a session that has not gone on since: nothing of it was carried out, and its member
/// sends it again. No client is shown it.
pub const MISPLACED: ErrorCode = ErrorCode::RuntimeInconsistency;

/// Children of a znode as of an earlier moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildrenAsOf {
    pub names: BTreeSet<String>,
    /// Number of children that were ever created there.
    pub created: i32,
    /// The last change of children until then.
    pub pzxid: Zxid,
    /// The first change of children since.
    pub next_change: Option<Zxid>,
}

impl Tree {
    /// True if a command may be about a znode of another group.
    #[inline]
    pub fn are_znodes_spread(&self) -> bool {
        self.are_znodes_spread
    }

    /// True if no znode of the ensemble lies in another group's state.
    pub fn has_all_znodes(&self) -> bool {
        !self.split_points().are_spread() && self.between_groups.own_slots.is_empty()
    }

    /// True if a command of the session met a znode of another group, and it has not gone on since.
    pub fn is_stalled(&self, session: SessionId) -> bool {
        self.between_groups.stalled.contains(&session)
    }

    /// Refuses a command about a znode of another group, and from then on all of its session.
    pub(super) fn check_places(&mut self, session: SessionId, write: &Write<'_>) -> Result<(), ErrorCode> {
        if matches!(write, Write::BetweenGroups(GroupsCommand::Multi { .. } | GroupsCommand::Relay { .. })) {
            let is_stalled = self.between_groups.stalled.contains(&session);
            return if is_stalled { Err(MISPLACED) } else { Ok(()) };
        }
        if matches!(write, Write::BetweenGroups(_)) {
            return Ok(());
        }
        if session == SessionId::NONE {
            return if self.meets_held(write) { Err(MISPLACED) } else { self.check_spread(write) };
        }
        let mut are_here = !self.between_groups.stalled.contains(&session);
        for_each_path(write, &mut |path| are_here &= self.has_place_of(path));
        if !are_here || self.meets_held(write) {
            self.between_groups.stalled.insert(session);
            return Err(MISPLACED);
        }
        self.check_spread(write)
    }

    /// Refuses what the znode of a split point with slots elsewhere cannot be: gone, or ephemeral. There may be children in other groups.
    pub(crate) fn check_spread(&self, write: &Write<'_>) -> Result<(), ErrorCode> {
        if self.removes_spread(write) {
            return Err(ErrorCode::NotEmpty);
        }
        if self.makes_spread_ephemeral(write) { Err(ErrorCode::BadArguments) } else { Ok(()) }
    }

    /// True if a write touches what a part of a multi holds here.
    pub(crate) fn meets_held(&self, write: &Write<'_>) -> bool {
        let BetweenGroups { multis, own_slots, .. } = &self.between_groups;
        let is_stub = |path: &str| own_slots.contains_key(path);
        multis.held.values().any(|part| part.touched.are_met_by(write, is_stub))
    }

    /// True if a command will be refused because of where its znodes are.
    pub(crate) fn is_misplaced(&self, command: &Command<'_>) -> bool {
        let Ok(write) = &command.write else { return false };
        let mut are_here = !self.between_groups.stalled.contains(&command.session);
        for_each_path(write, &mut |path| are_here &= self.has_place_of(path));
        !are_here || self.meets_held(write) || self.check_spread(write).is_err()
    }

    /// True if a write removes a split point with slots elsewhere: there may be children in them.
    fn removes_spread(&self, write: &Write<'_>) -> bool {
        match write {
            Write::RemoveRecursive { path, .. }
            | Write::Delete { path, .. }
            | Write::TryRemove { path, .. }
            | Write::DeleteContainer { path } => self.split_points().are_spread_below(path),
            Write::Multi(writes) => writes.iter().any(|write| self.removes_spread(write)),
            _ => false,
        }
    }

    /// True if a write makes the znode of a split point with slots elsewhere, and as an ephemeral one.
    fn makes_spread_ephemeral(&self, write: &Write<'_>) -> bool {
        match write {
            Write::Create(create) => {
                let is_ephemeral = create.mode().is_some_and(CreateMode::is_ephemeral);
                is_ephemeral
                    && self.split_points().get(create.path).is_some_and(|point| !point.slots().is_home())
            }
            Write::Multi(writes) => writes.iter().any(|write| self.makes_spread_ephemeral(write)),
            _ => false,
        }
    }

    /// True for the znode of a split point with slots elsewhere, or one above it.
    pub(crate) fn is_spread_below(&self, node: NodeId) -> bool {
        self.are_znodes_spread && self.split_points().are_spread_below(&self.store.path(node))
    }

    /// True if this group is the one that a path belongs to.
    pub fn has_place_of(&self, path: &str) -> bool {
        let own = &self.between_groups.own_slots;
        if own.is_empty() {
            return self.split_points().group_of(path) == 0;
        }
        ancestor_in(own, path)
            .is_some_and(|(slots, name)| slot_of(name).is_some_and(|slot| slots.group(slot) == OWN))
    }

    /// True if slots of a split point are this group's, which is not the home group.
    pub fn has_slots(&self, path: &str, mut slots: RangeInclusive<u16>) -> bool {
        let own = self.between_groups.own_slots.get(path);
        own.is_some_and(|own| slots.all(|slot| own.group(slot) == OWN))
    }

    /// Number of slots of a split point that are this group's, which is not the home group.
    pub fn slot_count(&self, path: &str) -> usize {
        self.between_groups.own_slots.get(path).map_or(0, |own| own.count(OWN))
    }

    /// True if all znodes that a read is about are this group's.
    pub fn has_places_of(&self, read: &Read<'_>) -> bool {
        match read {
            Read::Exists { path, .. }
            | Read::GetData { path, .. }
            | Read::GetAcl { path }
            | Read::GetChildren { path, .. }
            | Read::GetChildren2 { path, .. }
            | Read::FilteredList { path, .. }
            | Read::FilteredListWithStatsAndData { path, .. } => {
                let point = self.split_points().get(path);
                self.has_place_of(path) && point.is_none_or(|point| point.slots().is_home())
            }
            Read::GetAllChildrenNumber { path } | Read::ListRecursive { path, .. } => {
                self.has_place_of(path) && !self.split_points().are_spread_below(path)
            }
            Read::MultiRead(reads) => reads.iter().all(|read| self.has_places_of(read)),
            Read::GetEphemerals { .. } => false,
        }
    }

    /// The largest zxid in what a read shows.
    pub fn shown_by(&self, read: &Read<'_>) -> Zxid {
        let shown = match read {
            Read::Exists { path, .. }
            | Read::GetData { path, .. }
            | Read::GetAcl { path }
            | Read::GetChildren { path, .. }
            | Read::GetChildren2 { path, .. } => self.shown_of(path),
            Read::FilteredList { path, .. } | Read::FilteredListWithStatsAndData { path, .. } => {
                let node = self.store.find(path);
                let children = node.into_iter().flat_map(|node| self.store.children(node));
                children.map(|child| self.newest_of(child)).max().unwrap_or_default().max(self.shown_of(path))
            }
            Read::MultiRead(reads) => reads.iter().map(|read| self.shown_by(read)).max().unwrap_or_default(),
            Read::GetEphemerals { .. } | Read::GetAllChildrenNumber { .. } | Read::ListRecursive { .. } => {
                self.zxid
            }
        };
        shown.max(Zxid(self.between_groups.acl_zxid))
    }

    /// Zxid of the last transaction of which what a Stat says of a znode itself, and not of its children, shows anything. `None` if there is none.
    pub fn shown_without_children(&self, path: &str) -> Option<Zxid> {
        let stat = self.store.stat(self.store.find(path)?);
        Some(stat.czxid.max(stat.mzxid).max(Zxid(self.between_groups.acl_zxid)))
    }

    /// Newest zxid of a znode; of one that is missing that of the last change of the children of the nearest ancestor.
    fn shown_of(&self, path: &str) -> Zxid {
        if let Some(node) = self.store.find(path) {
            return self.newest_of(node);
        }
        let mut below = path;
        while let Some((parent, _)) = parent_and_name(below) {
            if let Some(node) = self.store.find(parent) {
                return self.store.stat(node).pzxid;
            }
            below = parent;
        }
        self.zxid
    }

    fn newest_of(&self, node: NodeId) -> Zxid {
        let stat = self.store.stat(node);
        stat.czxid.max(stat.mzxid).max(stat.pzxid)
    }

    /// Children of a split point, or of its stub, as of a zxid that this state has passed; `None` if what came and went since is not known any more.
    pub fn children_as_of(&self, point: &str, zxid: Zxid) -> Option<ChildrenAsOf> {
        let Some(node) = self.store.find(point) else { return Some(ChildrenAsOf::default()) };
        let stat = self.store.stat(node);
        let created = self.store.cversion(node);
        let name = |child| String::from_utf8_lossy(self.store.name(child)).into_owned();
        let names: BTreeSet<String> = self.store.children(node).map(name).collect();
        let mut found = ChildrenAsOf { names, created, pzxid: stat.pzxid, next_change: None };
        if stat.pzxid <= zxid {
            return Some(found);
        }
        if !self.recent_children.reach_back_to(zxid) {
            return None;
        }
        for (name, has_come, changed) in self.recent_children.behind(point, zxid) {
            if has_come {
                found.names.remove(name);
                found.created = found.created.wrapping_sub(1);
            } else {
                found.names.insert(name.to_owned());
            }
            found.next_change = Some(changed);
        }
        found.pzxid = self.recent_children.last_until(point, zxid).unwrap_or(stat.czxid.min(zxid));
        Some(found)
    }

    /// The first change of a split point's children behind a zxid, as far as it is known.
    pub fn first_child_change(&self, point: &str, behind: Zxid) -> Option<ChildChange> {
        self.recent_children.first_behind(point, behind)
    }

    /// Notes which children of split points came and went.
    pub(crate) fn note_recent_children(&mut self, changes: &Changes<'_>) {
        if !self.are_znodes_spread {
            return;
        }
        let Tree { between_groups, recent_children, zxid, .. } = self;
        let is_point = |path: &str| {
            between_groups.own_slots.contains_key(path) || between_groups.split_points.get(path).is_some()
        };
        recent_children.note(*zxid, changes, is_point);
    }
}

#[cfg(test)]
mod tests;
