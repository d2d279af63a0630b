//! One state of all groups, from what a directory has of each: the states are taken at one point of the order of all groups, and joined.
//!
//! The files of a member that is stopped end at another place for each group. A group's files tell of a contradiction only by items: those that the home group
//! has decided on and the group has not applied, or the other way round. Without one, all that there is counts. The reasons are on
//! `docs/decisions/0126-a-copy-of-all-groups.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use paddock_proto::{GroupsCommand, MemberNumber, Write, Zxid};
use paddock_replica::{LogEntry, apply_offline, apply_while};
use paddock_state::Now;
use paddock_storage::snapshot::SnapshotFile;
use paddock_storage::{Disk, GroupNumber};
use paddock_tree::{Command, Tree, WholeTree};

use crate::config::HOME;
use crate::offline::OfflineError;
use crate::recovery;

/// A point of the order of all groups, as it lies in each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Zxid of the home group's state, behind a whole command.
    stamp: Zxid,
    /// Number of the last item that the home group has decided on by then, for each other group.
    items: BTreeMap<u32, u64>,
}

impl Cut {
    /// The point behind the home group's state.
    pub(crate) fn behind(home: &Tree) -> Cut {
        let items = home.streams().iter().map(|(group, stream)| (group, stream.last())).collect();
        Cut { stamp: home.zxid(), items }
    }

    /// The point as it lies in a group.
    pub(crate) fn in_group(&self, group: u32) -> GroupCut {
        let last_item = self.items.get(&group).copied().unwrap_or(0);
        GroupCut { group, stamp: self.stamp, last_item }
    }
}

/// A point of the order of all groups, as it lies in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupCut {
    /// Number of the group.
    pub group: u32,
    /// Zxid of the home group's state at the point.
    pub stamp: Zxid,
    /// Number of the last item that the home group has decided on by then for this group.
    pub last_item: u64,
}

impl GroupCut {
    /// True if the group's next command stands before this point: its zxid does, or an item comes behind it that was decided on before.
    pub(crate) fn has(&self, state: &Tree, next: &Command<'_>) -> bool {
        match next.write {
            Ok(Write::BetweenGroups(GroupsCommand::Item { number, .. })) => number <= self.last_item,
            _ => state.next_zxid() <= self.stamp || state.received_items() < self.last_item,
        }
    }

    /// True if the group's state lacks nothing that stands before this point.
    pub(crate) fn is_reached_by(&self, state: &Tree) -> bool {
        state.zxid() >= self.stamp && state.received_items() >= self.last_item
    }

    /// True if the group's state may have something that stands behind this point.
    pub(crate) fn is_passed_by(&self, state: &Tree) -> bool {
        state.zxid() > self.stamp || state.received_items() > self.last_item
    }
}

/// The state that was read from the directory of a stopped member.
#[derive(Debug)]
pub struct DirectoryState {
    pub tree: Tree,
    /// Present if the groups contradict each other at their ends, and the state is one before that.
    pub earlier: Option<EarlierState>,
}

/// Reason for which a state is not that of the ends of all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierState {
    /// The group that lacks what others have.
    pub behind: u32,
    /// Point of the order of all groups whose state it is.
    pub stamp: Zxid,
    /// Zxid of the newest transaction that any group has.
    pub newest: Zxid,
}

impl fmt::Display for EarlierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EarlierState { behind, stamp, newest } = self;
        let ms = (newest.0 >> Zxid::STAMP_COUNTER_BITS) - (stamp.0 >> Zxid::STAMP_COUNTER_BITS);
        let lacking = if *behind == HOME.0 {
            "the home group lacks decisions that other groups have applied".to_owned()
        } else {
            format!("Raft group {behind} has not applied what the home group has decided")
        };
        write!(
            f,
            "{lacking}: this is the state as of zxid {stamp}, and what was written in the last {ms} ms is left out"
        )
    }
}

/// The files of one group in a directory.
#[derive(Clone, Debug)]
pub(crate) struct GroupFiles {
    pub(crate) snapshot: Option<SnapshotFile>,
    /// Entries of the log behind the snapshot.
    pub(crate) entries: Vec<LogEntry>,
}

impl GroupFiles {
    /// True if there is nothing of the group: a replica that was let go leaves a log that says where the next one begins.
    fn are_empty(&self) -> bool {
        self.snapshot.is_none() && self.entries.is_empty()
    }

    /// State of the snapshot.
    fn base(&self, disk: &dyn Disk) -> Result<Tree, OfflineError> {
        match &self.snapshot {
            Some(file) => Ok(recovery::load(disk, file, &Now::default())?.0),
            None => Ok(Tree::new()),
        }
    }

    /// State behind all that there is.
    pub(crate) fn end(&self, disk: &dyn Disk) -> Result<Tree, OfflineError> {
        let mut tree = self.base(disk)?;
        self.entries.iter().for_each(|entry| apply_offline(&mut tree, entry));
        Ok(tree)
    }

    /// State behind the commands for as long as `has` says so of the next one.
    fn until(&self, mut tree: Tree, has: &mut dyn FnMut(&Tree, &Command<'_>) -> bool) -> Tree {
        let _ = self.entries.iter().all(|entry| apply_while(&mut tree, entry, has));
        tree
    }
}

/// Files of all groups of a member that is stopped.
#[derive(Clone, Debug)]
pub(crate) struct AllFiles<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) path: &'a Path,
    pub(crate) groups: BTreeMap<GroupNumber, GroupFiles>,
    /// The member's number, if the directory says it.
    pub(crate) member: Option<MemberNumber>,
    /// The member has never been one of several. So whatever is in one group's log was written behind all that it depends on in those of others.
    pub(crate) is_alone: bool,
}

impl AllFiles<'_> {
    /// Joins the states of all groups with that of the home group, which is behind its end.
    pub(crate) fn join(&self, home: Tree) -> Result<DirectoryState, OfflineError> {
        let mut others = Vec::new();
        for group in home.groups_with_znodes() {
            // What is there of a group that is placed on others is old.
            if self.member.is_some_and(|member| !home.serves(group, member)) {
                return Err(self.no_such(group));
            }
            let mut tree = self.group(group)?.end(self.disk)?;
            if self.is_alone {
                tree.receive_pending(&home, group);
            }
            others.push((group, tree));
        }
        if let Some(behind) = group_behind(&home, &others) {
            let newest = others.iter().map(|(_, tree)| tree.zxid()).fold(home.zxid(), Zxid::max);
            let received = others.iter().map(|(group, tree)| (*group, tree.received_items())).collect();
            drop((home, others));
            return self.join_earlier(behind, newest, &received);
        }
        let mut whole = WholeTree::begin(home);
        others.iter().for_each(|(_, tree)| whole.add(tree));
        Ok(DirectoryState { tree: whole.finish(), earlier: None })
    }

    fn group(&self, group: u32) -> Result<&GroupFiles, OfflineError> {
        let files = self.groups.get(&GroupNumber(group)).filter(|files| !files.are_empty());
        files.ok_or_else(|| self.no_such(group))
    }

    fn no_such(&self, group: u32) -> OfflineError {
        OfflineError::NoSuchGroup { path: self.path.to_owned(), group }
    }

    /// Joins the states of all groups as of the last point up to which no group lacks anything.
    fn join_earlier(
        &self,
        behind: u32,
        newest: Zxid,
        received: &BTreeMap<u32, u64>,
    ) -> Result<DirectoryState, OfflineError> {
        let too_new = |group| {
            let (behind, snapshot_of) = (name_of(behind), name_of(group));
            OfflineError::Apart { path: self.path.to_owned(), behind, snapshot_of }
        };
        let files = self.group(HOME.0)?;
        let is_whole =
            |home: &Tree| received.iter().all(|(group, number)| !home.is_ahead_of(*group, *number));
        let mut stamp = None;
        let end = files.until(files.base(self.disk)?, &mut |home, _| {
            stamp = if is_whole(home) { Some(home.zxid()) } else { return false };
            true
        });
        let stamp = if is_whole(&end) { Some(end.zxid()) } else { stamp };
        drop(end);
        let stamp = stamp.ok_or_else(|| too_new(HOME.0))?;
        let home = files.until(files.base(self.disk)?, &mut |home, _| home.next_zxid() <= stamp);
        let (cut, groups) = (Cut::behind(&home), home.groups_with_znodes());
        let mut whole = WholeTree::begin(home);
        for group in groups {
            let (files, cut) = (self.group(group)?, cut.in_group(group));
            let base = files.base(self.disk)?;
            if cut.is_passed_by(&base) {
                return Err(too_new(group));
            }
            whole.add(&files.until(base, &mut |tree, command| cut.has(tree, command)));
        }
        Ok(DirectoryState {
            tree: whole.finish(),
            earlier: Some(EarlierState { behind, stamp: cut.stamp, newest }),
        })
    }
}

fn name_of(group: u32) -> String {
    if group == HOME.0 { "the home group".to_owned() } else { format!("Raft group {group}") }
}

/// A group that lacks what others have; `None` if there is no sign of one.
fn group_behind(home: &Tree, others: &[(u32, Tree)]) -> Option<u32> {
    let lagging = others.iter().find(|(group, tree)| home.is_ahead_of(*group, tree.received_items()));
    let is_home = others.iter().any(|(group, tree)| tree.received_items() > home.last_item_to(*group));
    lagging.map(|(group, _)| *group).or(is_home.then_some(HOME.0))
}
