//! A note of an outcome, which needs neither the command nor the tree: for those who are told later what became of a command.

use paddock_proto::{ErrorCode, EventKind, MultiResult, Write, WriteReply, Zxid};

use crate::{Command, Outcome};

/// Outcome of a command, as far as the command does not say it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeNote {
    /// The transaction that the command was.
    pub zxid: Zxid,
    /// The error for which it was refused.
    pub error: Option<ErrorCode>,
    /// The operation of a multi for which that was refused, counted from 1; 0 otherwise.
    pub failed_operation: u32,
    /// Paths that creates made, where they are others than those that were asked for: those of sequential znodes.
    pub created: Box<[Box<str>]>,
    /// Ephemerals that went with their session.
    pub removed: Box<[Box<str>]>,
}

impl OutcomeNote {
    /// Notes the outcome of a command.
    pub fn of(command: &Command<'_>, outcome: &Outcome<'_>) -> OutcomeNote {
        let mut note = OutcomeNote {
            zxid: outcome.zxid,
            error: outcome.result.as_ref().err().copied(),
            failed_operation: 0,
            created: Box::default(),
            removed: Box::default(),
        };
        match (&command.write, &outcome.result) {
            (Ok(Write::Multi(writes)), Ok(WriteReply::Multi(results))) => note.multi(writes, results),
            (Ok(write), Ok(reply)) => {
                if let Some(path) = created_elsewhere(write, reply) {
                    note.created = Box::new([path.into()]);
                }
                if matches!(write, Write::CloseSession | Write::ExpireSession { .. }) {
                    let is_removed = |change: &&crate::Change<'_>| change.kind == EventKind::NodeDeleted;
                    note.removed = outcome
                        .changes
                        .iter()
                        .filter(is_removed)
                        .map(|change| change.path.as_ref().into())
                        .collect();
                }
            }
            _ => {}
        }
        note
    }

    fn multi(&mut self, writes: &[Write<'_>], results: &[MultiResult<'_>]) {
        let failed = results.iter().zip(1..).find_map(|(result, place)| match result {
            MultiResult::Failed(Some(error)) => Some((*error, place)),
            _ => None,
        });
        if let Some((error, place)) = failed {
            (self.error, self.failed_operation) = (Some(error), place);
        }
        let made = writes.iter().zip(results).filter_map(|(write, result)| match result {
            MultiResult::Done(_, reply) => created_elsewhere(write, reply),
            MultiResult::Failed(_) => None,
        });
        self.created = made.map(Into::into).collect();
    }

    /// Bytes that the note takes in memory, about.
    pub fn bytes(&self) -> usize {
        let of_paths =
            |paths: &[Box<str>]| paths.iter().map(|path| path.len() + size_of::<Box<str>>()).sum::<usize>();
        size_of::<OutcomeNote>() + of_paths(&self.created) + of_paths(&self.removed)
    }

    /// The outcome in a word: `ok`, the paths that creates made, or the error.
    pub fn in_words(&self) -> String {
        match (&self.error, self.failed_operation) {
            (Some(error), 0) => format!("{error:?}"),
            (Some(error), place) => format!("{error:?} of operation {place}"),
            (None, _) => {
                let paths = self.created.iter().chain(&self.removed);
                std::iter::once("ok").chain(paths.map(AsRef::as_ref)).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

fn created_elsewhere<'a>(write: &Write<'_>, reply: &'a WriteReply<'_>) -> Option<&'a str> {
    match (write, reply) {
        (Write::Create(create), WriteReply::Created { path } | WriteReply::CreatedWithStat { path, .. })
            if create.path != path.as_ref() =>
        {
            Some(path)
        }
        _ => None,
    }
}
