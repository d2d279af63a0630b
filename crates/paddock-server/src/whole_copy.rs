//! A snapshot of all groups of this member as one tree, while znodes are spread over them. It is made by a thread of its own, from the member's files; the engine is
//! only asked to let the groups go on, and its states are looked at for moments.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paddock_member::{GroupHandle, WholeCopy, WholeCopyError, remove_whole_copy};
use paddock_os::threads::try_spawn;
use paddock_proto::Zxid;
use paddock_storage::{Disk, LiveLogError, OsDisk, SnapshotError};
use paddock_tls::with_causes;
use paddock_tree::Tree;

use crate::engine::{MemberHandle, step_back};
use crate::operator::Operator;
use crate::shared::Shared;

/// Time in which all groups have to come to a point of their order.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at how far they have come.
const POLL: Duration = Duration::from_millis(2);
/// Pause before the log is looked at again that is not on this member's disk yet.
const DISK_PAUSE: Duration = Duration::from_millis(50);
/// Time after which a group that has not come so far is asked again: what asked it may be lost with its leader.
const ASKED_AGAIN: Duration = Duration::from_secs(1);
/// Number of points that are tried. A snapshot may be taken, and log let go, between the choice of a point and the copy.
const ATTEMPTS: usize = 5;

/// A snapshot that has all znodes.
#[derive(Debug)]
pub(crate) struct WholeSnapshot {
    /// The file, which may have no name any more.
    pub(crate) file: File,
    pub(crate) zxid: i64,
}

/// Reason for which there is no snapshot with all znodes. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum WholeSnapshotError {
    /// No snapshot of the one group came about; the log of the process has the reason.
    #[error("the snapshot failed, or took longer than ten minutes")]
    Own,
    /// The process is no member, or ends.
    #[error("this process is no member that runs")]
    NoMember,
    /// A group lacks what others have, and did not get it.
    #[error(
        "{} has not come as far as the others within 10 seconds: it has no quorum, or this member is behind",
        if *group == 0 { "the home group".to_owned() } else { format!("Raft group {group}") }
    )]
    Behind {
        /// Number of the group; 0 for the home group.
        group: u32,
    },
    /// The files of the member could not be read, or went too fast.
    #[error("the groups' files could not be copied: {0}")]
    Copy(String),
    /// The operating system has no thread for the copy.
    #[error("the system has no thread for the copy")]
    NoThread,
}

impl From<WholeCopyError> for WholeSnapshotError {
    fn from(error: WholeCopyError) -> WholeSnapshotError {
        WholeSnapshotError::Copy(with_causes(&error))
    }
}

impl From<SnapshotError> for WholeSnapshotError {
    fn from(error: SnapshotError) -> WholeSnapshotError {
        WholeSnapshotError::Copy(with_causes(&error))
    }
}

impl Operator {
    /// True if znodes lie in several groups: a snapshot of the home group has a part of them.
    pub(crate) fn are_znodes_spread(&self) -> bool {
        !self.shared.state.read().tree().has_all_znodes()
    }

    /// Takes a snapshot that has all znodes, and waits for it: one of the member's own, or one of all groups together while znodes are spread over them.
    pub(crate) fn take_whole_snapshot(&self) -> Result<WholeSnapshot, WholeSnapshotError> {
        if !self.are_znodes_spread() {
            let taken = self.take_snapshot().ok_or(WholeSnapshotError::Own)?;
            let file = File::open(&taken.path).map_err(|_| WholeSnapshotError::Own)?;
            // Else they may have been before the snapshot began.
            if !self.are_znodes_spread() {
                return Ok(WholeSnapshot { file, zxid: taken.zxid });
            }
        }
        self.take_of_all_groups()
    }

    /// One is taken at a time.
    fn take_of_all_groups(&self) -> Result<WholeSnapshot, WholeSnapshotError> {
        let member = self.member().ok_or(WholeSnapshotError::NoMember)?;
        let shared = self.shared.clone();
        let thread = try_spawn("whole-snapshot", move || {
            step_back();
            let _one_at_a_time = shared.whole_snapshots.lock();
            take(&shared, &member)
        });
        let thread = thread.map_err(|_| WholeSnapshotError::NoThread)?;
        thread.join().expect("the thread of a copy does not panic")
    }
}

fn take(shared: &Shared, member: &MemberHandle) -> Result<WholeSnapshot, WholeSnapshotError> {
    let (disk, config): (Arc<dyn Disk>, _) = (Arc::new(OsDisk), &shared.config);
    let started = Instant::now();
    let mut attempts = ATTEMPTS;
    let (copy, mut tree) = loop {
        let copy = reach(shared, member)?;
        attempts -= 1;
        match read(&copy, shared, &disk) {
            Ok(tree) => break (copy, tree),
            Err(error) if attempts > 0 => tracing::debug!(%error, "copy of all groups is tried again"),
            Err(error) => return Err(error.into()),
        }
    };
    let written = copy.write(&disk, &config.data_dir, &mut tree);
    let opened = written
        .map_err(WholeSnapshotError::from)
        .and_then(|path| File::open(&path).map_err(|error| WholeSnapshotError::Copy(error.to_string())));
    remove_whole_copy(disk.as_ref(), &config.data_dir)?;
    let file = opened?;
    let (zxid, znodes) = (tree.zxid().0, tree.node_count());
    let seconds = format!("{:.2}", started.elapsed().as_secs_f64());
    tracing::info!(zxid = %tree.zxid(), znodes, seconds, "copied all groups as one tree");
    Ok(WholeSnapshot { file, zxid })
}

/// Reads the state at a point. What others have committed may come to this member's disk a little later.
fn read(copy: &WholeCopy, shared: &Shared, disk: &Arc<dyn Disk>) -> Result<Tree, WholeCopyError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let read = copy.read(disk, &shared.config.data_dir, &shared.config.log_dir());
        if !matches!(read, Err(WholeCopyError::Log(LiveLogError::NotYet { .. })))
            || Instant::now() >= deadline
        {
            return read;
        }
        std::thread::sleep(DISK_PAUSE);
    }
}

/// Chooses a point behind all that any group has, and waits until all groups have come to it.
fn reach(shared: &Shared, member: &MemberHandle) -> Result<WholeCopy, WholeSnapshotError> {
    let deadline = Instant::now() + PATIENCE;
    let handles = member.group_handles(PATIENCE).ok_or(WholeSnapshotError::NoMember)?;
    let mut asked = AskedGroups { member, deadline, last: None };
    let home = shared.state.read().tree().zxid();
    // The snapshots that there are have to stand before the point.
    let newest = handles.iter().map(GroupHandle::zxid).fold(home, Zxid::max);
    let mut copy = loop {
        let found = {
            let state = shared.state.read();
            (state.tree().zxid() >= newest).then(|| WholeCopy::begin(&state)).flatten()
        };
        match found {
            Some(copy) => break copy,
            None => asked.wait([0], newest)?,
        }
    };
    asked.last = None;
    loop {
        let awaited = copy.await_groups(&handles)?;
        if awaited.is_empty() {
            return Ok(copy);
        }
        asked.wait(awaited, copy.stamp())?;
    }
}

/// Groups that are asked to go on.
struct AskedGroups<'a> {
    member: &'a MemberHandle,
    deadline: Instant,
    /// Time at which they were asked last.
    last: Option<Instant>,
}

impl AskedGroups<'_> {
    /// Asks groups for a zxid, unless they were asked of late, and lets a moment pass.
    fn wait(
        &mut self,
        groups: impl IntoIterator<Item = u32>,
        at_least: Zxid,
    ) -> Result<(), WholeSnapshotError> {
        let now = Instant::now();
        let mut groups = groups.into_iter().peekable();
        if now >= self.deadline {
            let group = groups.peek().copied().unwrap_or(0);
            return Err(WholeSnapshotError::Behind { group });
        }
        if self.last.is_none_or(|last| now - last >= ASKED_AGAIN) {
            self.last = Some(now);
            groups.for_each(|group| self.member.mark(group, at_least));
        }
        std::thread::sleep(POLL);
        Ok(())
    }
}
