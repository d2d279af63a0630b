//! Waiting for groups to come to a point, and for their log to be on this member's disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use paddock_member::{RunningFiles, WholeCopyError};
use paddock_proto::Zxid;
use paddock_storage::{LiveLogError, OsDisk};

use super::WholeSnapshotError;
use crate::engine::MemberHandle;
use crate::shared::Shared;

/// Time in which all groups have to come to a point of their order.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at how far they have come.
const POLL: Duration = Duration::from_millis(2);
/// Pause before the log is looked at again that is not on this member's disk yet.
const DISK_PAUSE: Duration = Duration::from_millis(50);
/// Time after which a group that has not come so far is asked again: what asked it may be lost with its leader.
const ASKED_AGAIN: Duration = Duration::from_secs(1);

/// The files of this member.
pub(super) fn files_of(shared: &Shared) -> RunningFiles {
    let (data_dir, log_dir) = (shared.config.data_dir.clone(), shared.config.log_dir());
    RunningFiles { disk: Arc::new(OsDisk), data_dir, log_dir }
}

/// Reads what others have committed, which may come to this member's disk a little later.
pub(super) fn read_patiently<T>(read: impl Fn() -> Result<T, WholeCopyError>) -> Result<T, WholeCopyError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = read();
        let is_late = matches!(found, Err(WholeCopyError::Log(LiveLogError::NotYet { .. })));
        if !is_late || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(DISK_PAUSE);
    }
}

/// Groups that are asked to go on.
pub(super) struct AskedGroups<'a> {
    member: &'a MemberHandle,
    deadline: Instant,
    /// Time at which they were asked last.
    last: Option<Instant>,
}

impl AskedGroups<'_> {
    pub(super) fn new(member: &MemberHandle) -> AskedGroups<'_> {
        AskedGroups { member, deadline: Instant::now() + PATIENCE, last: None }
    }

    /// Others are to be asked now.
    pub(super) fn begin_anew(&mut self) {
        self.last = None;
    }

    /// Asks groups for a zxid, unless they were asked of late, and lets a moment pass.
    pub(super) fn wait(
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
