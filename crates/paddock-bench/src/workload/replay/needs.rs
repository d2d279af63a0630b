//! Znodes that a log takes to be there before its first request.

use std::collections::HashSet;

use paddock_proto::{ErrorCode, parent_and_name};

use super::recorded::{RecordedCall, RecordedSession};
use super::rows::RecordedRow;
use super::spelling::Op;

#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Parents first.
    pub(super) setup: Vec<String>,
    /// Znodes that were found or created so far.
    known: HashSet<String>,
    /// The paths of sequential creates, without their digits.
    sequential: HashSet<String>,
}

const OK: i32 = 0;
const SEQUENCE_DIGITS: usize = 10;

impl Needs {
    /// Everything is below `root`, which comes first.
    pub(super) fn of(sessions: &[RecordedSession], root: &str) -> Needs {
        let mut calls = Vec::new();
        for session in sessions {
            // By time or, without one, as they stand in the file; but the requests of a session never change places.
            let mut latest = None;
            for call in &session.calls {
                latest = latest.max(Some((call.time, call.line)));
                calls.push((latest, call));
            }
        }
        calls.sort_by_key(|(at, _)| *at);
        let mut needs = Needs::default();
        needs.setup.push(root.to_owned());
        needs.known.insert(root.to_owned());
        for (_, call) in calls {
            needs.learn(call);
        }
        needs
    }

    fn learn(&mut self, call: &RecordedCall) {
        let applied = call.error.is_none_or(|error| error == OK);
        let single = call.rows.len() == 1;
        for row in &call.rows {
            let error = match row.error {
                Some(error) => error,
                None if single || applied => call.error.unwrap_or(OK),
                // ClickHouse's log does not say which operation failed, or what the others would have come to.
                None => return,
            };
            self.learn_row(row, error, applied);
            // What stands behind the operation that failed was not tried.
            if !applied && error != OK {
                return;
            }
        }
    }

    fn learn_row(&mut self, row: &RecordedRow, error: i32, applied: bool) {
        let (bad_version, exists) = (ErrorCode::BadVersion.code(), ErrorCode::NodeExists.code());
        match row.op {
            Op::Create if error == OK => self.learn_create(row, applied),
            Op::Create if error == exists => self.need(&row.path),
            Op::Create | Op::Sync | Op::Multi | Op::MultiRead | Op::LeftOut => {}
            _ if error == OK || error == bad_version => self.need(&row.path),
            Op::Remove
            | Op::Exists
            | Op::Get
            | Op::Set
            | Op::GetAcl
            | Op::SimpleList
            | Op::List
            | Op::Check => {}
        }
    }

    fn learn_create(&mut self, row: &RecordedRow, applied: bool) {
        if let Some((parent, _)) = parent_and_name(&row.path) {
            self.need(parent);
        }
        if applied && row.sequential {
            self.sequential.insert(row.path.clone());
        } else if applied {
            self.known.insert(row.path.clone());
        }
    }

    /// The znode and all above it must be there by now.
    fn need(&mut self, path: &str) {
        let mut missing = Vec::new();
        let mut path = path;
        while let Some((parent, _)) = parent_and_name(path) {
            if self.known.contains(path) {
                break;
            }
            // The name was given during the recording; setup must not take it in advance.
            if self.is_numbered(path) {
                return;
            }
            missing.push(path.to_string());
            path = parent;
        }
        for path in missing.into_iter().rev() {
            self.known.insert(path.clone());
            self.setup.push(path);
        }
    }

    fn is_numbered(&self, path: &str) -> bool {
        let Some((prefix, digits)) = path.split_at_checked(path.len().saturating_sub(SEQUENCE_DIGITS)) else {
            return false;
        };
        digits.bytes().all(|byte| byte.is_ascii_digit()) && self.sequential.contains(prefix)
    }
}
