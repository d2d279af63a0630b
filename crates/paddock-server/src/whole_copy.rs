//! A snapshot of all groups as one tree, while znodes are spread over them. It is made by a thread of its own, from the member's files; the engine is only asked to let
//! the groups go on, and its states are looked at for moments. Groups that this member does not have are copied by others, which send their copies.

mod fetching;
mod making;
mod waiting;

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use paddock_member::{GroupHandle, RunningFiles, WholeCopy, WholeCopyError, remove_copy};
use paddock_os::threads::try_spawn;
use paddock_proto::{MemberNumber, Zxid};
use paddock_storage::SnapshotError;
use paddock_tls::with_causes;
use paddock_tree::Tree;

use self::fetching::{FetchError, Fetching};
use self::waiting::{AskedGroups, PATIENCE, files_of, read_patiently};
use crate::copy_exchange::{CopyAnswer, CopyMessage, PieceQuestion};
use crate::engine::{MemberHandle, step_back};
use crate::operator::Operator;
use crate::shared::Shared;

pub(crate) use self::making::take_copy_message;

/// Number of points that are tried. A snapshot may be taken, and log let go, between the choice of a point and the copy, and a member that was asked for a
/// group may end.
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
    /// The member does not have the group, and those that have it did not give it.
    #[error("Raft group {group}, which is on other members, could not be had: {reason}")]
    Away {
        /// Number of the group.
        group: u32,
        /// Reason for which the last attempt has failed.
        reason: String,
    },
    /// The files of the member could not be read, or went too fast.
    #[error("the groups' files could not be copied: {0}")]
    Copy(String),
    /// The operating system has no thread for the copy.
    #[error("the system has no thread for the copy")]
    NoThread,
}

impl WholeSnapshotError {
    /// True if it is of no use to try again.
    fn is_final(&self) -> bool {
        !matches!(self, WholeSnapshotError::Copy(_) | WholeSnapshotError::Away { .. })
    }
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
    let (files, started) = (files_of(shared), Instant::now());
    let (mut attempt, mut at_least) = (0, Zxid(0));
    let (copy, mut tree) = loop {
        match try_once(shared, member, &files, (attempt, at_least)) {
            Ok(found) => break found,
            Err(FailedAttempt { error, passed }) if attempt + 1 < ATTEMPTS && !error.is_final() => {
                tracing::debug!(error = with_causes(&error), "copy of all groups is tried again");
                (attempt, at_least) = (attempt + 1, passed.map_or(at_least, |at| at.max(at_least)));
            }
            Err(FailedAttempt { error, .. }) => return Err(error),
        }
    };
    let file = open_nameless(&files, &copy.write(&files, &mut tree)?)?;
    let (zxid, znodes) = (tree.zxid().0, tree.node_count());
    let seconds = format!("{:.2}", started.elapsed().as_secs_f64());
    tracing::info!(zxid = %tree.zxid(), znodes, seconds, "copied all groups as one tree");
    Ok(WholeSnapshot { file, zxid })
}

/// Opens a copy, and takes its name away: it is gone when it is closed, however this process ends.
fn open_nameless(files: &RunningFiles, path: &Path) -> Result<File, WholeSnapshotError> {
    let opened = File::open(path);
    remove_copy(files.disk.as_ref(), path)?;
    opened.map_err(|error| WholeSnapshotError::Copy(error.to_string()))
}

/// Reason for which an attempt has failed.
struct FailedAttempt {
    error: WholeSnapshotError,
    /// Zxid of a snapshot that is behind the point.
    passed: Option<Zxid>,
}

impl<E: Into<WholeSnapshotError>> From<E> for FailedAttempt {
    fn from(error: E) -> FailedAttempt {
        FailedAttempt { error: error.into(), passed: None }
    }
}

/// Copies all groups at a point with at least this zxid. With each attempt other members are asked for the groups that this one does not have.
fn try_once(
    shared: &Shared,
    member: &MemberHandle,
    files: &RunningFiles,
    (attempt, at_least): (usize, Zxid),
) -> Result<(WholeCopy, Tree), FailedAttempt> {
    let places = member.group_places(PATIENCE).ok_or(WholeSnapshotError::NoMember)?;
    let mut asked = AskedGroups::new(member);
    let mut copy = begin_behind_all(shared, &places.handles, at_least, &mut asked)?;
    let mut fetching = Vec::new();
    for cut in copy.away() {
        let hosts = places.hosts.get(&cut.group).filter(|hosts| !hosts.is_empty());
        let no_host = || WholeSnapshotError::Away {
            group: cut.group,
            reason: "no member that has it is there".to_owned(),
        };
        let hosts = hosts.ok_or_else(no_host)?;
        fetching.push((cut.group, Fetching::begin(shared, member, hosts[attempt % hosts.len()], *cut)));
    }
    asked.begin_anew();
    loop {
        let awaited = copy.await_groups();
        if awaited.is_empty() {
            break;
        }
        asked.wait(awaited, copy.stamp())?;
    }
    let mut whole = read_patiently(|| copy.read(files))?;
    for (group, fetching) in fetching {
        let found = fetching.finish(files).map_err(|error| FailedAttempt {
            passed: if let FetchError::Passed(at) = error { Some(at) } else { None },
            error: error.into_whole(group),
        });
        whole.add(&found?);
    }
    Ok((copy, whole.finish()))
}

/// Chooses a point behind all that any group of this member has: the snapshots that there are have to stand before it.
fn begin_behind_all(
    shared: &Shared,
    handles: &[GroupHandle],
    at_least: Zxid,
    asked: &mut AskedGroups<'_>,
) -> Result<WholeCopy, WholeSnapshotError> {
    let home = shared.state.read().tree().zxid();
    let newest = handles.iter().map(GroupHandle::zxid).fold(home.max(at_least), Zxid::max);
    loop {
        let found = {
            let state = shared.state.read();
            (state.tree().zxid() >= newest).then(|| WholeCopy::begin(&state, handles)).flatten()
        };
        match found {
            Some(copy) => return Ok(copy),
            None => asked.wait([0], newest)?,
        }
    }
}

/// Asks a member for a piece of a copy.
fn ask(member: &MemberHandle, host: MemberNumber, question: PieceQuestion) {
    member.send(host, &CopyMessage::Question(question).encode());
}

/// Answers a member that asks for a copy.
fn send(member: &MemberHandle, to: MemberNumber, copy: u64, answer: CopyAnswer) {
    member.send(to, &CopyMessage::Answer { copy, answer }.encode());
}
