//! One state of all groups, from what a directory has of each: the states are taken at one point of the order of all groups, and joined.
//!
//! The files of a member that is stopped end at another place for each group. A group's files tell of a contradiction only by items: those that the home group
//! has decided on and the group has not applied, or the other way round. Without one, all that there is counts. The reasons are on
//! `docs/decisions/0126-a-copy-of-all-groups.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use paddock_proto::{GroupsCommand, MemberNumber, Write, Zxid};
use paddock_replica::{EntryPart, LogEntry, apply_offline, apply_while, tell_unapplied};
use paddock_state::Now;
use paddock_storage::snapshot::SnapshotFile;
use paddock_storage::{Disk, GroupNumber, Index};
use paddock_tree::{Command, FeatureLevel, Tree, WholeTree};

use crate::config::HOME;
use crate::entry_span::{EntrySpan, for_each_entry};
use crate::offline::OfflineError;
use crate::recovery::{self, RecoveryError};

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
    /// True if the group's state lacks nothing that stands before this point.
    pub(crate) fn is_reached_by(&self, state: &Tree) -> bool {
        state.zxid() >= self.stamp && state.received_items() >= self.last_item
    }

    /// True if the group's state may have something that stands behind this point.
    pub(crate) fn is_passed_by(&self, state: &Tree) -> bool {
        state.zxid() > self.stamp || state.received_items() > self.last_item
    }
}

/// A point of the order of all groups in the log of one of them, which is looked at before it is applied up to there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutInLog {
    cut: GroupCut,
    /// Number of the last item before the point that changes znodes: all that stands in front of it in the log stands before the point.
    last_change: u64,
}

impl CutInLog {
    pub(crate) fn new(cut: GroupCut) -> CutInLog {
        CutInLog { cut, last_change: 0 }
    }

    /// Looks at an entry of the log.
    pub(crate) fn look_at(&mut self, entry: &LogEntry) {
        tell_unapplied(entry, &mut |part| {
            if let EntryPart::Command { command, .. } = part {
                self.look_at_command(command);
            }
        });
    }

    fn look_at_command(&mut self, command: &Command<'_>) {
        if let Ok(Write::BetweenGroups(GroupsCommand::Item { number, item, .. })) = &command.write
            && *number <= self.cut.last_item
            && item.changes_znodes()
        {
            self.last_change = self.last_change.max(*number);
        }
    }

    /// True if the group's next command stands before the point: its zxid does, or an item comes behind it that was decided on before and changes znodes.
    pub(crate) fn has(&self, state: &Tree, next: &Command<'_>) -> bool {
        let is_early = state.next_zxid() <= self.cut.stamp;
        match next.write {
            Ok(Write::BetweenGroups(GroupsCommand::Item { number, .. })) => {
                number <= self.last_change || number <= self.cut.last_item && is_early
            }
            _ => is_early || state.received_items() < self.last_change,
        }
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
    pub(crate) span: EntrySpan,
}

impl GroupFiles {
    /// True if there is nothing of the group: a replica that was let go leaves a log that says where the next one begins.
    fn are_empty(&self) -> bool {
        self.snapshot.is_none() && self.span.is_empty()
    }

    /// The last entry that the snapshot has.
    pub(crate) fn base_index(&self) -> Index {
        self.snapshot.as_ref().map_or(Index(0), |file| file.index)
    }

    /// State of the snapshot.
    fn base(&self, disk: &dyn Disk) -> Result<Tree, OfflineError> {
        match &self.snapshot {
            Some(file) => Ok(recovery::load(disk, file, &Now::default())?.0),
            None => Ok(Tree::new()),
        }
    }
}

/// Files of all groups of a member that is stopped.
#[derive(Clone, Debug)]
pub(crate) struct AllFiles<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) path: &'a Path,
    pub(crate) log_dir: &'a Path,
    pub(crate) groups: BTreeMap<GroupNumber, GroupFiles>,
    /// The member's number, if the directory says it.
    pub(crate) member: Option<MemberNumber>,
    /// The member has never been one of several. So whatever is in one group's log was written behind all that it depends on in those of others.
    pub(crate) is_alone: bool,
}

impl AllFiles<'_> {
    /// State of a group behind all that there is.
    pub(crate) fn end(&self, group: GroupNumber) -> Result<Tree, OfflineError> {
        let base = BTreeMap::from([(group, self.groups[&group].base(self.disk)?)]);
        Ok(self.ends(base)?.remove(&group).expect("it was put there"))
    }

    /// States of groups behind all that the log has of them. It is read once.
    fn ends(
        &self,
        mut trees: BTreeMap<GroupNumber, Tree>,
    ) -> Result<BTreeMap<GroupNumber, Tree>, OfflineError> {
        let (spans, mut failed) = (self.spans(trees.keys()), None);
        for_each_entry(self.disk, self.log_dir, &spans, &mut |group, entry| {
            let raised = entry.raised_level().map(|raised| raised.check(FeatureLevel::KNOWN));
            failed = failed.take().or(raised.and_then(Result::err));
            if let Some(tree) = trees.get_mut(&group).filter(|_| failed.is_none()) {
                apply_offline(tree, entry);
            }
        })?;
        failed.map_or(Ok(trees), |error| Err(RecoveryError::from(error).into()))
    }

    /// States of groups behind their commands for as long as `has` says so of a group's next one.
    fn until(
        &self,
        mut trees: BTreeMap<GroupNumber, Tree>,
        has: &mut dyn FnMut(GroupNumber, &Tree, &Command<'_>) -> bool,
    ) -> Result<BTreeMap<GroupNumber, Tree>, OfflineError> {
        let (spans, mut over) = (self.spans(trees.keys()), BTreeSet::new());
        for_each_entry(self.disk, self.log_dir, &spans, &mut |group, entry| {
            if let Some(tree) = trees.get_mut(&group).filter(|_| !over.contains(&group))
                && !apply_while(tree, entry, &mut |tree, command| has(group, tree, command))
            {
                over.insert(group);
            }
        })?;
        Ok(trees)
    }

    fn home_until(&self, has: &mut dyn FnMut(&Tree) -> bool) -> Result<Tree, OfflineError> {
        let base = BTreeMap::from([(HOME, self.group(HOME.0)?.base(self.disk)?)]);
        let mut found = self.until(base, &mut |_, home, _| has(home))?;
        Ok(found.remove(&HOME).expect("it was put there"))
    }

    fn spans<'g>(&self, groups: impl Iterator<Item = &'g GroupNumber>) -> BTreeMap<GroupNumber, &EntrySpan> {
        groups.filter_map(|group| Some((*group, &self.groups.get(group)?.span))).collect()
    }

    /// Joins the states of all groups with that of the home group, which is behind its end.
    pub(crate) fn join(&self, home: Tree) -> Result<DirectoryState, OfflineError> {
        let mut bases = BTreeMap::new();
        for group in home.groups_with_znodes() {
            // What is there of a group that is placed on others is old.
            if self.member.is_some_and(|member| !home.serves(group, member)) {
                return Err(self.no_such(group));
            }
            bases.insert(GroupNumber(group), self.group(group)?.base(self.disk)?);
        }
        let mut others = self.ends(bases)?;
        if self.is_alone {
            others.iter_mut().for_each(|(group, tree)| tree.receive_pending(&home, group.0));
        }
        if let Some(behind) = group_behind(&home, &others) {
            let newest = others.values().map(Tree::zxid).fold(home.zxid(), Zxid::max);
            let received = others.iter().map(|(group, tree)| (group.0, tree.received_items())).collect();
            drop((home, others));
            return self.join_earlier(behind, newest, &received);
        }
        let mut whole = WholeTree::begin(home);
        others.values().for_each(|tree| whole.add(tree));
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
        let is_whole =
            |home: &Tree| received.iter().all(|(group, number)| !home.is_ahead_of(*group, *number));
        let mut stamp = None;
        let end = self.home_until(&mut |home| {
            stamp = if is_whole(home) { Some(home.zxid()) } else { return false };
            true
        })?;
        let stamp = if is_whole(&end) { Some(end.zxid()) } else { stamp };
        drop(end);
        let stamp = stamp.ok_or_else(|| too_new(HOME.0))?;
        let home = self.home_until(&mut |home| home.next_zxid() <= stamp)?;
        let (cut, mut bases) = (Cut::behind(&home), BTreeMap::new());
        for group in home.groups_with_znodes() {
            let base = self.group(group)?.base(self.disk)?;
            if cut.in_group(group).is_passed_by(&base) {
                return Err(too_new(group));
            }
            bases.insert(GroupNumber(group), base);
        }
        let of_group = |group: &GroupNumber| (*group, CutInLog::new(cut.in_group(group.0)));
        let mut cuts: BTreeMap<GroupNumber, CutInLog> = bases.keys().map(of_group).collect();
        for_each_entry(self.disk, self.log_dir, &self.spans(bases.keys()), &mut |group, entry| {
            cuts.entry(group).and_modify(|cut| cut.look_at(entry));
        })?;
        let mut whole = WholeTree::begin(home);
        let others = self.until(bases, &mut |group, tree, command| cuts[&group].has(tree, command))?;
        others.values().for_each(|tree| whole.add(tree));
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
fn group_behind(home: &Tree, others: &BTreeMap<GroupNumber, Tree>) -> Option<u32> {
    let lagging = others.iter().find(|(group, tree)| home.is_ahead_of(group.0, tree.received_items()));
    let is_home = others.iter().any(|(group, tree)| tree.received_items() > home.last_item_to(group.0));
    lagging.map(|(group, _)| group.0).or(is_home.then_some(HOME.0))
}

#[cfg(test)]
mod tests {
    use paddock_proto::{IdList, OpCode, SessionId, StreamItem, encode};

    use super::*;

    fn item(number: u64, item: StreamItem<'_>) -> Vec<u8> {
        let item = GroupsCommand::Item { number, decided: Zxid(40), item };
        Command::between_groups(SessionId::NONE, IdList::NONE, &item)
    }

    /// A write behind the point in time comes before it in the order, if a decision of before does that changes znodes. The word that znodes were taken is none.
    #[test]
    fn only_items_that_change_znodes_bring_earlier_writes_in_front_of_a_point() {
        let (mut set, mut write, mut state) = (Vec::new(), Vec::new(), Tree::new());
        encode::set_data(&mut set, "/a", None, -1);
        Command::encode(SessionId::NONE, 5, IdList::NONE, OpCode::SetData, &set, &mut write);
        let taken = item(1, StreamItem::Taken { path: "/a", first: 0 });
        let [end, late] = [2, 3].map(|number| item(number, StreamItem::End { session: SessionId(7) }));
        let [write, taken, end, late] =
            [&write, &taken, &end, &late].map(|bytes| Command::decode(bytes).unwrap());
        let mut cut = CutInLog::new(GroupCut { group: 1, stamp: Zxid(50), last_item: 2 });
        cut.look_at_command(&taken);
        assert!(cut.has(&state, &write) && cut.has(&state, &taken), "their zxids are not above the stamp");
        state.begin_entry(Zxid(60));
        assert!(!cut.has(&state, &write) && !cut.has(&state, &taken));
        [&end, &late].into_iter().for_each(|item| cut.look_at_command(item));
        assert!(cut.has(&state, &write) && cut.has(&state, &taken) && cut.has(&state, &end));
        assert!(!cut.has(&state, &late));
    }
}
