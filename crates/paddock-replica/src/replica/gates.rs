//! What a connection asks for behind a change of members waits at this gate until that is answered.
//!
//! The change is one request that takes several entries. What is asked behind it must not be carried out between them: it
//! would see what was before, and be answered with an earlier zxid. Watch events go on meanwhile, each before anything
//! that is newer.
//!
//! A session that goes on over another connection of this member leaves the former one behind a gate that never opens: what
//! came over that, and has not found its place in the log, must not come after what the session asks for from now on.

use std::collections::BTreeMap;

use paddock_proto::OpCode;

use super::Local;
use crate::{ConnId, Input};

#[derive(Debug)]
enum Gate {
    Closed(Vec<Input>),
    /// Until the connection ends, as it is about to.
    Forever,
}

#[derive(Debug, Default)]
pub(super) struct Gates {
    gates: BTreeMap<ConnId, Gate>,
    /// Those whose change was answered.
    open: Vec<ConnId>,
}

impl Gates {
    /// Keeps an input that has to wait, drops one that came too late, and gives any other one back.
    pub(super) fn pass(&mut self, input: Input) -> Option<Input> {
        let conn = match &input {
            Input::Write { conn, op: OpCode::Reconfig, .. } if !self.gates.contains_key(conn) => {
                self.gates.insert(*conn, Gate::Closed(Vec::new()));
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
        match self.gates.get_mut(&conn) {
            None => Some(input),
            Some(Gate::Forever) => None,
            Some(Gate::Closed(waiting)) => {
                waiting.push(input);
                None
            }
        }
    }

    /// The connection has its answer.
    pub(super) fn open(&mut self, conn: ConnId) {
        if self.gates.contains_key(&conn) {
            self.open.push(conn);
        }
    }

    /// The session of the connection goes on over another one.
    pub(super) fn close_forever(&mut self, conn: ConnId) {
        self.gates.insert(conn, Gate::Forever);
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        self.gates.remove(&conn);
    }

    /// What need not wait any more, in the order in which it came.
    pub(super) fn take_free(&mut self) -> Vec<Input> {
        let mut free = Vec::new();
        for conn in std::mem::take(&mut self.open) {
            if let Some(Gate::Closed(waiting)) = self.gates.get_mut(&conn) {
                free.append(waiting);
                self.forget(conn);
            }
        }
        free
    }
}
