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

use paddock_state::{ClientInput, ConnId, QueuedRead};

use crate::Input;

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

    /// Connections whose sessions go on, or were to go on, over others. The member closes each when its session has moved;
    /// if that is abandoned, they have to be closed all the same, because nothing that they send is taken any more.
    pub(super) fn closed_forever(&self) -> impl Iterator<Item = ConnId> {
        self.gates.iter().filter(|(_, gate)| matches!(gate, Gate::Forever)).map(|(conn, _)| *conn)
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

#[cfg(test)]
mod tests {
    use paddock_tree::Tree;

    use crate::{
        Effects, Founding, HardState, Input, Membership, Recovered, Replica, ReplicaOptions, Replicated,
    };
    use paddock_state::{ClientInput, ConnId, Now, Outboxes};

    const NOW: Now = Now { monotonic_ms: 1000, wall_ms: 1_000_000 };

    fn alone(state: &Replicated) -> Replica {
        let membership = Membership::new(vec![1], vec![]);
        let options = ReplicaOptions {
            member: 1,
            founding: Founding { membership, members: String::new() },
            tick_ms: 100,
            garbage_interval_ms: 60_000,
            garbage_max: 100,
            entry_bytes_kept: 2000,
            linearizable_reads: false,
            lease_clock_bound_ms: None,
            seed: 1,
            process: 1,
        };
        let (membership, hard_state) = (Membership::default(), HardState::default());
        let mut recovered = Recovered::new((0, 0), membership, hard_state, vec![]);
        recovered.begin(1, state.tree(), NOW);
        Replica::new(options, recovered, state, NOW)
    }

    fn settle(replica: &mut Replica, state: &mut Replicated) {
        let mut effects = Effects::default();
        let mut out = Outboxes::new(1);
        loop {
            replica.collect(NOW, &mut effects);
            if effects.is_empty() {
                return;
            }
            replica.apply(NOW, &mut effects, state, &mut out);
            (effects.entries, effects.hard_state) = (vec![], None);
            if let Some(round) = effects.round.take() {
                replica.step(NOW, Input::Persisted { round });
            }
        }
    }

    /// The end of the first connection waits for its turn, so the session still seems to be served there.
    #[test]
    fn no_gate_is_left_for_a_connection_that_was_gone_when_its_session_came_back() {
        let mut state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let mut replica = alone(&state);
        settle(&mut replica, &mut state);
        let (first, second) = (ConnId::new(0, 1), ConnId::new(0, 2));
        replica.step(
            NOW,
            Input::Client(ClientInput::Connect { conn: first, timeout_ms: 10_000, may_only_read: false }),
        );
        settle(&mut replica, &mut state);
        let session = state.tree().sessions().map(|(session, _)| session).next();
        let session = session.expect("it was just created");
        assert_eq!(replica.serving.conn(session), Some(first));

        replica.step(NOW, Input::Client(ClientInput::Disconnect { conn: first }));
        replica.step(
            NOW,
            Input::Client(ClientInput::Resume {
                conn: second,
                session,
                timeout_ms: 10_000,
                may_only_read: false,
            }),
        );
        settle(&mut replica, &mut state);
        assert_eq!(replica.serving.conn(session), Some(second));
        assert!(replica.gates.gates.is_empty(), "{:?}", replica.gates);
    }
}
