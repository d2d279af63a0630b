//! What a connection asks for behind a change of members waits at this gate until that is answered.
//!
//! The change is one request that takes several entries. What is asked behind it must not be carried out between them: it
//! would see what was before, and be answered with an earlier zxid. Watch events go on meanwhile, each before anything
//! that is newer.

use std::collections::BTreeMap;

use paddock_proto::OpCode;

use super::Local;
use crate::{ConnId, Input};

#[derive(Debug, Default)]
pub(super) struct Gates {
    waiting: BTreeMap<ConnId, Vec<Input>>,
    /// Those whose change was answered.
    open: Vec<ConnId>,
}

impl Gates {
    /// Keeps an input that has to wait, and gives any other one back.
    pub(super) fn pass(&mut self, input: Input) -> Option<Input> {
        let conn = match &input {
            Input::Write { conn, op: OpCode::Reconfig, .. } if !self.waiting.contains_key(conn) => {
                self.waiting.insert(*conn, Vec::new());
                return Some(input);
            }
            Input::Write { conn, .. } => *conn,
            Input::Local(Local { client, .. }) => client.conn,
            Input::Disconnect { conn } => {
                self.forget(*conn);
                return Some(input);
            }
            _ => return Some(input),
        };
        match self.waiting.get_mut(&conn) {
            Some(waiting) => waiting.push(input),
            None => return Some(input),
        }
        None
    }

    /// The connection has its answer.
    pub(super) fn open(&mut self, conn: ConnId) {
        if self.waiting.contains_key(&conn) {
            self.open.push(conn);
        }
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        self.waiting.remove(&conn);
    }

    /// What need not wait any more, in the order in which it came.
    pub(super) fn take_free(&mut self) -> Vec<Input> {
        let open = std::mem::take(&mut self.open);
        open.into_iter().filter_map(|conn| self.waiting.remove(&conn)).flatten().collect()
    }
}
