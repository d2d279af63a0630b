//! Gates of connections: a request behind a change of members waits at its gate until the change is answered.
//!
//! The change is one request that takes several entries. Requests behind it must not be carried out between them: they
//! would see the state before it, and be answered with an earlier zxid. Watch events go on meanwhile, each before anything
//! that is newer.
//!
//! A session that goes on over another connection of this member leaves the former one behind a gate that never opens: a request
//! that came over that, and has not found its place in the log, must not come after those that the session makes from now on.

use std::collections::BTreeMap;

use paddock_proto::OpCode;
use paddock_state::{ClientInput, ConnId, QueuedRead};

use crate::Input;

#[derive(Debug)]
enum Gate {
    Closed(Vec<Input>),
    /// Until the connection ends, as it is about to: its session goes on over this one.
    Forever(ConnId),
}

#[derive(Debug, Default)]
pub(crate) struct Gates {
    gates: BTreeMap<ConnId, Gate>,
    /// Connections whose change was answered.
    open: Vec<ConnId>,
}

impl Gates {
    /// Keeps an input that has to wait, drops one that came too late, and gives any other one back.
    pub(crate) fn pass(&mut self, input: Input) -> Option<Input> {
        let conn = match &input {
            Input::Client(ClientInput::Write { conn, op: OpCode::Reconfig, .. })
                if !self.gates.contains_key(conn) =>
            {
                self.gates.insert(*conn, Gate::Closed(Vec::new()));
                return Some(input);
            }
            Input::Client(ClientInput::Write { conn, .. }) => *conn,
            Input::Client(ClientInput::Read(QueuedRead { client, .. })) => client.conn,
            Input::Client(ClientInput::Disconnect { conn }) => {
                self.forget(*conn);
                return Some(input);
            }
            _ => return Some(input),
        };
        match self.gates.get_mut(&conn) {
            None => Some(input),
            Some(Gate::Forever(_)) => None,
            Some(Gate::Closed(waiting)) => {
                waiting.push(input);
                None
            }
        }
    }

    /// The connection has its answer.
    pub(crate) fn open(&mut self, conn: ConnId) {
        if self.gates.contains_key(&conn) {
            self.open.push(conn);
        }
    }

    /// The session of the connection goes on over another one.
    pub(crate) fn close_forever(&mut self, conn: ConnId, successor: ConnId) {
        self.gates.insert(conn, Gate::Forever(successor));
    }

    /// The connection whose session was to go on over `successor`.
    pub(crate) fn predecessor(&self, successor: ConnId) -> Option<ConnId> {
        let is_it = |gate: &Gate| matches!(gate, Gate::Forever(by) if *by == successor);
        self.gates.iter().find(|(_, gate)| is_it(gate)).map(|(conn, _)| *conn)
    }

    /// Connections whose sessions go on, or were to go on, over others. The member closes each when its session has moved;
    /// if that is abandoned, they have to be closed all the same, because nothing that they send is taken any more.
    pub(crate) fn closed_forever(&self) -> impl Iterator<Item = ConnId> {
        self.gates.iter().filter(|(_, gate)| matches!(gate, Gate::Forever(_))).map(|(conn, _)| *conn)
    }

    pub(crate) fn forget(&mut self, conn: ConnId) {
        self.gates.remove(&conn);
    }

    /// Takes the inputs that need not wait any more, in the order in which they came.
    pub(crate) fn take_free(&mut self) -> Vec<Input> {
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

#[cfg(test)]
mod tests {
    use paddock_proto::Xid;
    use paddock_state::RequestId;

    use super::*;

    fn conn(number: u64) -> ConnId {
        ConnId::new(0, number)
    }

    fn write(number: u64, op: OpCode) -> Input {
        Input::Client(ClientInput::Write {
            conn: conn(number),
            request: RequestId::first(Xid(1)),
            op,
            command: bytes::Bytes::new(),
        })
    }

    #[test]
    fn requests_wait_behind_a_change_of_members_until_it_is_answered() {
        let mut gates = Gates::default();
        assert!(gates.pass(write(1, OpCode::Reconfig)).is_some());
        assert!(gates.pass(write(1, OpCode::Create)).is_none());
        assert!(gates.pass(write(2, OpCode::Create)).is_some(), "another connection goes on");
        assert_eq!(gates.take_free().len(), 0);
        gates.open(conn(1));
        assert_eq!(gates.take_free().len(), 1);
        assert!(gates.pass(write(1, OpCode::Create)).is_some());
    }

    #[test]
    fn a_connection_that_its_session_has_left_is_behind_a_gate_that_never_opens() {
        let mut gates = Gates::default();
        gates.close_forever(conn(1), conn(2));
        assert!(gates.pass(write(1, OpCode::Create)).is_none());
        gates.open(conn(1));
        assert_eq!(gates.take_free().len(), 0);
        assert_eq!(gates.closed_forever().collect::<Vec<_>>(), [conn(1)]);
        assert_eq!((gates.predecessor(conn(2)), gates.predecessor(conn(1))), (Some(conn(1)), None));
        assert!(gates.pass(Input::Client(ClientInput::Disconnect { conn: conn(1) })).is_some());
        assert_eq!(gates.closed_forever().count(), 0);
    }
}
