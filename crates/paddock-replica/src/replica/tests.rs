//! Tests of parts together.

use paddock_tree::Tree;

use crate::message::{Condition, Envelope, FoundOnDisk, Greeting, PeerMessage, Purpose, Ruling};
use crate::{
    Cluster, Effects, Founding, HardState, Input, Membership, Recovered, Replica, ReplicaOptions, Replicated,
};
use paddock_state::{ClientInput, ConnId, Now, Outboxes};

const NOW: Now = Now { monotonic_ms: 1000, wall_ms: 1_000_000 };

fn options(voters: Vec<u64>) -> ReplicaOptions {
    ReplicaOptions {
        member: 1,
        founding: Founding { membership: Membership::new(voters, vec![]), members: String::new() },
        tick_ms: 100,
        garbage_interval_ms: 60_000,
        garbage_max: 100,
        entry_bytes_kept: 2000,
        linearizable_reads: false,
        lease_clock_bound_ms: None,
        seed: 1,
        process: 1,
    }
}

fn alone(state: &Replicated) -> Replica {
    let (membership, hard_state) = (Membership::default(), HardState::default());
    let mut recovered = Recovered::new((0, 0), membership, hard_state, vec![]);
    recovered.begin(1, state.tree(), NOW);
    Replica::new(options(vec![1]), recovered, state, NOW)
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
    assert_eq!(replica.sessions.conn(session), Some(first));

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
    assert_eq!(replica.sessions.conn(session), Some(second));
    assert_eq!(replica.gates.closed_forever().next(), None, "{:?}", replica.gates);
}

#[test]
fn an_answer_to_another_process_with_the_same_number_admits_nobody() {
    let membership = Membership::new(vec![1, 2, 3], vec![]);
    let state = Replicated::new(Tree::new(), (1, 1), membership.clone());
    let hard_state = HardState { term: 2, ..HardState::default() };
    let mut recovered = Recovered::new((1, 1), membership.clone(), hard_state, vec![]);
    recovered.cluster = Cluster::Known(7);
    recovered.begin(1, state.tree(), NOW);
    let mut replica = Replica::new(options(vec![1, 2, 3]), recovered, &state, NOW);
    let mut hear = |asker| {
        let greeting = Greeting {
            condition: Condition::Established,
            purpose: Purpose::Answer { asker },
            term: 2,
            membership: membership.clone(),
            addresses: None,
            leader: Some(2),
            found: FoundOnDisk::default(),
            ruling: Some(Ruling::Admitted),
        };
        let mut bytes = PeerMessage::Greeting(greeting).encode();
        Envelope { cluster: Cluster::Known(7), process: 9 }.seal(&mut bytes);
        replica.step(NOW, Input::Peer { from: 2, bytes });
        replica.joining.awaits_admission()
    };
    assert!(hear(2), "this member's process is 1");
    assert!(!hear(1));
}
