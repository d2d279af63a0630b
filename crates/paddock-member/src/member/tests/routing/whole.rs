//! The directory of a member whose znodes are spread over groups, read as one tree.

use std::path::Path;

use super::*;
use crate::config::HOME;
use crate::offline::{OfflineError, group_files, make_directory, read_directory, read_whole_snapshot};
use crate::running_whole::{
    GroupCopy, RunningFiles, WholeCopy, WholeCopyError, copy_path, read_copy, remove_copies, remove_copy,
};
use crate::whole::{AllFiles, DirectoryState};

/// No snapshot is taken by itself: the log has everything.
fn without_snapshots() -> Config {
    let mut config = config();
    (config.settings.snapshot_writes, config.settings.snapshot_log_bytes) = (u64::MAX, u64::MAX);
    config
}

impl Spread {
    /// Zxid of the newest transaction in any group.
    fn newest(&self) -> Zxid {
        let home = self.stage.shell.state.0.borrow().tree().zxid();
        self.stage.member.group_handles().iter().map(|handle| handle.zxid()).fold(home, Zxid::max)
    }

    fn running_files(&self) -> RunningFiles {
        let data_dir = config().data_dir;
        RunningFiles { disk: Arc::new(self.disk.clone()), log_dir: data_dir.join("log"), data_dir }
    }
}

fn files(disk: &MemDisk) -> AllFiles<'_> {
    let (path, log_dir) = (Path::new("/data"), Path::new("/data/log"));
    let groups = group_files(disk, path, log_dir).unwrap();
    AllFiles { disk, path, log_dir, groups, member: Some(1), is_alone: false }
}

fn join(files: &AllFiles<'_>) -> Result<DirectoryState, OfflineError> {
    files.join(files.end(HOME)?)
}

/// Takes the last entry of a group away.
fn pop(files: &mut AllFiles<'_>, group: GroupNumber) {
    let span = &mut files.groups.get_mut(&group).unwrap().span;
    let last = span.last().expect("there is more than the snapshot");
    span.cut(last.0);
}

/// Takes the last entries of a group away, until its state has no such znode.
fn shorten(files: &mut AllFiles<'_>, group: u32, path: &str) {
    while files.end(GroupNumber(group)).unwrap().stat(path).is_some() {
        pop(files, GroupNumber(group));
    }
}

fn has(state: &DirectoryState, paths: &[String; 2]) -> [bool; 2] {
    paths.each_ref().map(|path| state.tree.stat(path).is_some())
}

/// Children of the split point in the home group and in group 1.
fn pair(suffix: &str) -> [String; 2] {
    let part = SLOTS / GROUPS as u16;
    let in_group = |name: &String, group: u32| u32::from(slot_of(name).unwrap() / part) == group;
    let names = |group| (0..).map(|number| format!("{suffix}{number}")).find(|name| in_group(name, group));
    [0, 1].map(|group| format!("{POINT}/{}", names(group).unwrap()))
}

#[test]
fn the_files_of_all_groups_are_one_tree_that_a_member_with_one_group_takes() {
    let mut spread = Spread::start();
    spread.spread();
    spread.create_all();
    spread.ask_get(POINT, false);
    let stat = Stat::decode(&mut Reader::new(&spread.reply().body[8..])).unwrap();
    // Some are on their way from one group to another.
    spread.begin_move(SLOTS / 4, SLOTS / 2 - 1, 0);
    let Spread { stage, disk, .. } = spread;
    let data_dir = config().data_dir;
    drop(stage);
    disk.kill();
    let mut state = read_directory(&disk, &data_dir, None).unwrap();
    assert_eq!(state.earlier, None);
    assert_eq!(state.tree.stat(POINT), Some(stat));
    let is_there = |name: &String| state.tree.znode(&format!("{POINT}/{name}/alive")).is_some();
    assert!(names().iter().all(is_there));
    assert!(state.tree.has_all_znodes());

    state.tree.leave_ensemble();
    let other: Arc<dyn Disk> = Arc::new(MemDisk::new(2));
    make_directory(&other, &data_dir, 1, &mut state.tree).unwrap();
    let read = read_directory(other.as_ref(), &data_dir, None).unwrap();
    assert_eq!((read.tree.digest(), read.tree.ephemeral_count()), (state.tree.digest(), 40));
}

#[test]
fn a_decision_that_one_group_lacks_is_in_none() {
    let mut spread = Spread::start_as(without_snapshots());
    spread.spread();
    let (before, both) = (pair("before"), pair("both"));
    before.iter().for_each(|path| assert_eq!(spread.create(path).error, None));
    spread.ask(OpCode::Multi, multi(&both.each_ref().map(String::as_str), &[]), true);
    assert_eq!(spread.reply().error, None);
    let all = files(&spread.disk);
    let whole = join(&all).unwrap();
    assert_eq!((has(&whole, &before), has(&whole, &both), whole.earlier), ([true; 2], [true; 2], None));
    for group in [0, 1] {
        let mut lagging = all.clone();
        shorten(&mut lagging, group, &both[group as usize]);
        let state = join(&lagging).unwrap();
        assert_eq!((has(&state, &before), has(&state, &both)), ([true; 2], [false; 2]), "group {group}");
        let earlier = state.earlier.unwrap();
        assert_eq!((earlier.behind, earlier.stamp < earlier.newest), (group, true));
    }
}

/// An entry in the log of a member alone was written behind all that it depends on, so a group goes on with what was decided.
#[test]
fn a_group_of_a_member_alone_gets_what_was_decided_for_it() {
    let mut spread = Spread::start_as(without_snapshots());
    spread.spread();
    let both = pair("both");
    spread.ask(OpCode::Multi, multi(&both.each_ref().map(String::as_str), &[]), true);
    assert_eq!(spread.reply().error, None);
    let mut files = files(&spread.disk);
    shorten(&mut files, 1, &both[1]);
    let received = files.end(GroupNumber(1)).unwrap().received_items();
    let acknowledged = |files: &AllFiles<'_>| {
        let home = files.end(HOME).unwrap();
        home.streams().to_group(1).map_or(0, |stream| stream.acknowledged())
    };
    while acknowledged(&files) > received {
        pop(&mut files, HOME);
    }
    assert_eq!(has(&join(&files).unwrap(), &both), [false; 2]);
    files.is_alone = true;
    let state = join(&files).unwrap();
    assert_eq!((has(&state, &both), state.earlier), ([true; 2], None));
}

#[test]
fn a_group_that_has_left_the_member_is_missed() {
    let mut spread = Spread::start_as(without_snapshots());
    spread.spread();
    let mut all = files(&spread.disk);
    assert!(join(&all).is_ok());
    all.groups.get_mut(&GroupNumber(1)).unwrap().span.clear();
    assert_eq!(join(&all).unwrap_err().to_string(), "/data has no Raft group 1");
}

#[test]
fn groups_without_a_common_state_are_refused() {
    let mut spread = Spread::start_as(without_snapshots());
    spread.spread();
    let both = pair("both");
    let home = files(&spread.disk).groups.remove(&HOME).unwrap();
    spread.ask(OpCode::Multi, multi(&both.each_ref().map(String::as_str), &[]), true);
    assert_eq!(spread.reply().error, None);
    spread.stage.member.want_snapshot();
    (0..3 * GROUPS).for_each(|_| spread.settle());
    let mut all = files(&spread.disk);
    assert!(all.groups.values().all(|files| files.snapshot.is_some()));
    assert_eq!(has(&join(&all).unwrap(), &both), [true; 2]);
    all.groups.insert(HOME, home);
    let refused = join(&all).unwrap_err().to_string();
    assert!(
        refused.contains("the home group lacks what others have, and the newest snapshot of Raft group 1"),
        "{refused}"
    );
}

#[test]
fn a_copy_of_a_member_that_runs_has_what_stands_before_its_point_and_no_more() {
    let mut spread = Spread::start();
    spread.spread();
    spread.create_all();
    spread.stage.member.mark_group(0, Zxid(spread.newest().0 + 1));
    spread.settle();
    let handles = spread.stage.member.group_handles();
    let mut copy = WholeCopy::begin(&spread.stage.shell.state.0.borrow(), &handles).unwrap();
    let awaited = copy.await_groups();
    assert_eq!(awaited, [1, 2, 3].into(), "the home group has just gone on");
    spread.ask_get(POINT, false);
    let stat = Stat::decode(&mut Reader::new(&spread.reply().body[8..])).unwrap();
    awaited.iter().for_each(|group| spread.stage.member.mark_group(*group, copy.stamp()));
    spread.settle();
    // All groups go on before it is noted that they have come to the point.
    let (later, both) = (pair("later"), pair("both"));
    later.iter().for_each(|path| assert_eq!(spread.create(path).error, None));
    spread.ask(OpCode::Multi, multi(&both.each_ref().map(String::as_str), &[]), true);
    assert_eq!(spread.reply().error, None);
    assert!(copy.await_groups().is_empty());
    let files = spread.running_files();
    let mut tree = copy.read(&files).unwrap().finish();
    assert_eq!((tree.stat(POINT), tree.ephemeral_count()), (Some(stat), 40));
    assert!(later.iter().chain(&both).all(|path| tree.stat(path).is_none()));

    let path = copy.write(&files, &mut tree).unwrap();
    let RunningFiles { disk, data_dir, .. } = files;
    let read = read_whole_snapshot(disk.as_ref(), &path).unwrap();
    assert_eq!(read.digest(), tree.digest());
    remove_copies(disk.as_ref(), &data_dir).unwrap();
    assert!(!disk.list(&data_dir).unwrap().iter().any(|name| name.contains("snapshot-")));
    remove_copies(disk.as_ref(), &data_dir).unwrap();
}

#[test]
fn a_copy_is_refused_when_a_snapshot_is_behind_its_point() {
    let mut spread = Spread::start_as(without_snapshots());
    spread.spread();
    let handles = spread.stage.member.group_handles();
    let mut copy = WholeCopy::begin(&spread.stage.shell.state.0.borrow(), &handles).unwrap();
    for name in names() {
        assert_eq!(spread.create(&format!("{POINT}/{name}")).error, None);
    }
    spread.stage.member.want_snapshot();
    (0..3 * GROUPS).for_each(|_| spread.settle());
    assert!(copy.await_groups().is_empty());
    let refused = copy.read(&spread.running_files()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, WholeCopyError::Passed { group: 1, at } if at > copy.stamp()), "{refused}");
}

/// As members do that have one of the groups each.
#[test]
fn copies_of_single_groups_come_to_the_same_tree_as_one_of_all() {
    let mut spread = Spread::start();
    spread.spread();
    spread.create_all();
    spread.stage.member.mark_group(0, Zxid(spread.newest().0 + 1));
    spread.settle();
    let (handles, files) = (spread.stage.member.group_handles(), spread.running_files());
    let begin = |handles| WholeCopy::begin(&spread.stage.shell.state.0.borrow(), handles).unwrap();
    let (mut whole, mut without) = (begin(&handles), begin(&handles[1..]));
    let away = without.away().to_vec();
    assert_eq!((away.len(), away[0].group, whole.away().len()), (1, 1, 0));
    (1..GROUPS).for_each(|group| spread.stage.member.mark_group(group, whole.stamp()));
    spread.settle();
    assert!(whole.await_groups().is_empty() && without.await_groups().is_empty());
    let mut part = GroupCopy::begin(away[0], handles[0].clone());
    assert!(part.is_reached());
    let mut tree = part.read(&files).unwrap();
    let path = part.write(&files, &mut tree).unwrap();
    assert_eq!(path, copy_path(&files.data_dir, 1));

    let mut joined = without.read(&files).unwrap();
    joined.add(&read_copy(files.disk.as_ref(), path.clone(), 1).unwrap());
    let (joined, whole) = (joined.finish(), whole.read(&files).unwrap().finish());
    assert_eq!((joined.digest(), joined.node_count()), (whole.digest(), whole.node_count()));
    remove_copy(files.disk.as_ref(), &path).unwrap();
    assert!(read_copy(files.disk.as_ref(), path, 1).is_err());
}
