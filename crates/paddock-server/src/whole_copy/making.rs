//! Copies of groups that this member makes for others.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use paddock_member::{GroupCopy, GroupCut, WholeCopyError};
use paddock_os::threads::try_spawn;
use paddock_proto::MemberNumber;

use super::waiting::{AskedGroups, PATIENCE, files_of, read_patiently};
use super::{WholeSnapshotError, open_nameless, send};
use crate::config::PIECE_BYTES;
use crate::copy_exchange::{CopyAnswer, CopyMessage, PieceQuestion, QuestionTaken};
use crate::engine::{MemberHandle, step_back};
use crate::shared::Shared;

/// Time for which a copy that is ready is kept: the asker may read its own groups first.
const KEPT: Duration = Duration::from_secs(600);
/// Time for which the last piece is there to be asked for again.
const LAST_KEPT: Duration = Duration::from_secs(10);
/// Pause between two looks whether the member is about to stop.
const LOOK: Duration = Duration::from_millis(500);

/// A message about copies has come from another member.
pub(crate) fn take_copy_message(
    shared: &Arc<Shared>,
    member: &MemberHandle,
    from: MemberNumber,
    bytes: &[u8],
) {
    match CopyMessage::decode(bytes) {
        Ok(CopyMessage::Answer { copy, answer }) => shared.copy_exchange.take_answer(from, copy, answer),
        Ok(CopyMessage::Question(question)) => {
            let asker = Asker { from, question };
            match shared.copy_exchange.take_question(from, &question) {
                QuestionTaken::Begin(offsets) => begin(shared, member, asker, offsets),
                QuestionTaken::UnderWay => send(member, from, question.copy, CopyAnswer::Working),
                QuestionTaken::Refused => {
                    let reason = "it makes too many copies already".to_owned();
                    send(member, from, question.copy, CopyAnswer::Failed { reason });
                }
            }
        }
        Err(error) => tracing::warn!(from, %error, "message of another member about a copy cannot be read"),
    }
}

/// A member that asks for a copy, and its first question.
#[derive(Clone, Copy, Debug)]
struct Asker {
    from: MemberNumber,
    question: PieceQuestion,
}

fn begin(shared: &Arc<Shared>, member: &MemberHandle, asker: Asker, offsets: Receiver<u64>) {
    let Asker { from, question } = asker;
    let (of_thread, handle) = (shared.clone(), member.clone());
    let thread = try_spawn("group-copy", move || {
        step_back();
        let answer = |answer| send(&handle, from, question.copy, answer);
        match make(&of_thread, &handle, question.cut) {
            Ok(file) => serve(&of_thread, &file, question.offset, &offsets, &answer),
            Err(MakingError::Copy(WholeCopyError::Passed { at, .. })) => answer(CopyAnswer::Passed { at }),
            Err(error) => answer(CopyAnswer::Failed { reason: error.to_string() }),
        }
        of_thread.copy_exchange.end_making(from, question.cut.group, question.copy);
    });
    if let Err(error) = thread {
        shared.copy_exchange.end_making(from, question.cut.group, question.copy);
        send(
            member,
            from,
            question.copy,
            CopyAnswer::Failed { reason: format!("no thread for the copy: {error}") },
        );
    }
}

/// Reason for which a copy was not made.
#[derive(Debug, thiserror::Error)]
enum MakingError {
    #[error("it has no replica that serves")]
    NoReplica,
    #[error(transparent)]
    Whole(#[from] WholeSnapshotError),
    #[error(transparent)]
    Copy(#[from] WholeCopyError),
}

/// Makes the copy of a group at a point. The file has no name any more.
fn make(shared: &Shared, member: &MemberHandle, cut: GroupCut) -> Result<File, MakingError> {
    let started = Instant::now();
    let places = member.group_places(PATIENCE).ok_or(MakingError::NoReplica)?;
    let handle = places.handles.into_iter().find(|handle| handle.number() == cut.group);
    let mut copy = GroupCopy::begin(cut, handle.ok_or(MakingError::NoReplica)?);
    let mut asked = AskedGroups::new(member);
    while !copy.is_reached() {
        asked.wait([cut.group], cut.stamp)?;
    }
    // One state is read into memory at a time.
    let _one_at_a_time = shared.group_copies.lock();
    let files = files_of(shared);
    let mut tree = read_patiently(|| copy.read(&files))?;
    let path = copy.write(&files, &mut tree).map_err(WholeCopyError::from)?;
    let file = open_nameless(&files, &path)?;
    let (group, znodes) = (cut.group, tree.node_count());
    let seconds = format!("{:.2}", started.elapsed().as_secs_f64());
    tracing::info!(group, zxid = %tree.zxid(), znodes, seconds, "copied a group for another member");
    Ok(file)
}

/// Sends the pieces that are asked for, until the last one was there for a while.
fn serve(shared: &Shared, file: &File, first: u64, offsets: &Receiver<u64>, answer: &dyn Fn(CopyAnswer)) {
    let mut offset = first;
    loop {
        match piece(file, offset) {
            Ok((bytes, is_last)) => {
                answer(CopyAnswer::Piece { offset, is_last, bytes });
                let until = Instant::now() + if is_last { LAST_KEPT } else { KEPT };
                match next(shared, offsets, until) {
                    Some(next) => offset = next,
                    None => return,
                }
            }
            Err(error) => return answer(CopyAnswer::Failed { reason: error.to_string() }),
        }
    }
}

/// The next offset that is asked for; `None` if none is, or if the member stops.
fn next(shared: &Shared, offsets: &Receiver<u64>, until: Instant) -> Option<u64> {
    loop {
        match offsets.recv_timeout(LOOK) {
            Ok(offset) => return Some(offset),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                if Instant::now() >= until || shared.life.is_stopping() {
                    return None;
                }
            }
        }
    }
}

/// A piece of the file, and whether it is the last one.
fn piece(file: &File, offset: u64) -> std::io::Result<(Vec<u8>, bool)> {
    let left = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; left.min(PIECE_BYTES) as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok((bytes, left <= PIECE_BYTES))
}
