//! Copies of groups that this member asks others for.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use paddock_member::{GroupCut, RunningFiles, copy_path, read_copy, remove_copy};
use paddock_proto::{MemberNumber, Zxid};
use paddock_tls::with_causes;
use paddock_tree::Tree;

use super::{WholeSnapshotError, ask};
use crate::copy_exchange::{CopyAnswer, PieceQuestion};
use crate::engine::MemberHandle;
use crate::shared::Shared;

/// Time after which a question without an answer is asked again.
const ASKED_AGAIN: Duration = Duration::from_secs(1);
/// Time after which a member that says nothing is given up.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Reason for which a copy was not had.
#[derive(Debug)]
pub(super) enum FetchError {
    /// A snapshot of the group has this zxid, which is behind the point.
    Passed(Zxid),
    Failed(String),
}

/// A copy that another member makes.
pub(super) struct Fetching<'a> {
    shared: &'a Shared,
    member: &'a MemberHandle,
    host: MemberNumber,
    question: PieceQuestion,
    answers: Receiver<CopyAnswer>,
}

impl<'a> Fetching<'a> {
    /// Asks a member to begin.
    pub(super) fn begin(
        shared: &'a Shared,
        member: &'a MemberHandle,
        host: MemberNumber,
        cut: GroupCut,
    ) -> Fetching<'a> {
        let (copy, answers) = shared.copy_exchange.begin_asking(host);
        let question = PieceQuestion { copy, cut, offset: 0 };
        ask(member, host, question);
        Fetching { shared, member, host, question, answers }
    }

    /// Fetches the copy, and reads it.
    pub(super) fn finish(mut self, files: &RunningFiles) -> Result<Tree, FetchError> {
        let group = self.question.cut.group;
        let path = copy_path(&files.data_dir, group);
        let read = self.fetch(&path).and_then(|()| {
            let read = read_copy(files.disk.as_ref(), path.clone(), group);
            read.map_err(|error| FetchError::Failed(with_causes(&error)))
        });
        let removed = remove_copy(files.disk.as_ref(), &path);
        removed.map_err(|error| FetchError::Failed(with_causes(&error)))?;
        read
    }

    fn fetch(&mut self, path: &Path) -> Result<(), FetchError> {
        let failed = |error: std::io::Error| FetchError::Failed(format!("{}: {error}", path.display()));
        let mut file = File::create(path).map_err(failed)?;
        loop {
            let (bytes, is_last) = self.next_piece()?;
            file.write_all(&bytes).map_err(failed)?;
            if is_last {
                return Ok(());
            }
            self.question.offset += bytes.len() as u64;
            ask(self.member, self.host, self.question);
        }
    }

    /// Waits for the piece that was asked for.
    fn next_piece(&self) -> Result<(Vec<u8>, bool), FetchError> {
        let mut heard = Instant::now();
        loop {
            match self.answers.recv_timeout(ASKED_AGAIN) {
                Ok(CopyAnswer::Piece { offset, is_last, bytes }) if offset == self.question.offset => {
                    return Ok((bytes, is_last));
                }
                Ok(CopyAnswer::Passed { at }) => return Err(FetchError::Passed(at)),
                Ok(CopyAnswer::Failed { reason }) => return Err(self.failed(&reason)),
                // A piece that was asked for twice comes twice.
                Ok(CopyAnswer::Working | CopyAnswer::Piece { .. }) => heard = Instant::now(),
                Err(RecvTimeoutError::Timeout) if heard.elapsed() < SILENCE_MAX => {
                    ask(self.member, self.host, self.question);
                }
                Err(_) => return Err(self.failed("it does not answer")),
            }
            if self.shared.life.is_stopping() {
                return Err(self.failed("this member stops"));
            }
        }
    }

    fn failed(&self, reason: &str) -> FetchError {
        FetchError::Failed(format!("member {}: {reason}", self.host))
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        self.shared.copy_exchange.end_asking(self.question.copy);
    }
}

impl FetchError {
    /// The error of a copy of all groups.
    pub(super) fn into_whole(self, group: u32) -> WholeSnapshotError {
        let reason = match self {
            FetchError::Passed(_) => "it has gone on meanwhile".to_owned(),
            FetchError::Failed(reason) => reason,
        };
        WholeSnapshotError::Away { group, reason }
    }
}
