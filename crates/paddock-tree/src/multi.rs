//! Several operations, all or none.

use std::borrow::Cow;

use paddock_proto::{ErrorCode, MultiResult, OpCode, Write, WriteReply};

use crate::create::as_in_multi;
use crate::outcome::Changes;
use crate::tree::{Circumstances, Tree};

impl Tree {
    /// All operations have the same zxid and time; each sees those before it. Failing is a reply too: it says which
    /// operation failed, and how.
    pub(crate) fn multi<'a>(
        &mut self,
        at: &Circumstances<'a>,
        writes: &[Write<'a>],
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        if writes.iter().any(|write| step(write).is_none()) {
            return Err(ErrorCode::MarshallingError);
        }
        let mut results = Vec::with_capacity(writes.len());
        self.store.open_journal();
        for (op, write) in writes.iter().filter_map(step) {
            if results.len() + 1 == writes.len() {
                self.store.rest_journal();
            }
            match self.carry_out(at, &write, changes) {
                Ok(reply) => results.push(MultiResult::Done(op, reply)),
                Err(error) => {
                    self.store.roll_back_journal();
                    changes.clear();
                    return Ok(WriteReply::Multi(failure(writes.len(), results.len(), error)));
                }
            }
        }
        self.store.commit_journal();
        Ok(WriteReply::Multi(results))
    }
}

/// The write as a multi means it, with the operation that its result names.
pub(crate) fn step<'w, 'a>(write: &'w Write<'a>) -> Option<(OpCode, Cow<'w, Write<'a>>)> {
    let op = match write {
        Write::Create(create) => {
            let create = as_in_multi(create)?;
            return Some((create.op, Cow::Owned(Write::Create(create))));
        }
        Write::Delete { .. } => OpCode::Delete,
        Write::SetData { .. } => OpCode::SetData,
        Write::Check { .. } => OpCode::Check,
        Write::CheckNotExists { .. } => OpCode::CheckNotExists,
        Write::CheckStat { .. } => OpCode::CheckStat,
        Write::TryRemove { .. } => OpCode::TryRemove,
        Write::RemoveRecursive { .. } => OpCode::RemoveRecursive,
        _ => return None,
    };
    Some((op, Cow::Borrowed(write)))
}

/// Operations before the one that failed had no fault of their own; those after it were not tried.
pub(crate) fn failure<'a>(operations: usize, failed: usize, error: ErrorCode) -> Vec<MultiResult<'a>> {
    let result = |n: usize| match n.cmp(&failed) {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Equal => Some(error),
        std::cmp::Ordering::Greater => Some(ErrorCode::RuntimeInconsistency),
    };
    (0..operations).map(|n| MultiResult::Failed(result(n))).collect()
}
