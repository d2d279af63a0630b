//! Tests of parts together.

use paddock_proto::jute::Writer;
use paddock_proto::{Acl, IdList, OpCode, SessionId, SessionSecret, Xid, Zxid, encode};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, ProvenIds, RequestId, Resumption};
use paddock_tree::{Command, FeatureLevel, REMOVED_AT_ONCE, Tree};

use crate::message::{
    Condition, ConfirmationLimits, Envelope, FoundOnDisk, Greeting, PeerMessage, Purpose, Ruling,
};
use crate::{
    Cluster, Effects, Founding, HardState, HeldState, Input, Membership, OwnState, Recovered, ReplicaOptions,
    Replicated, SingleGroup, WORK_AT_ONCE,
};

const NOW: Now = Now { monotonic_ms: 1000, wall_ms: 1_000_000 };

fn options(voters: Vec<u64>) -> ReplicaOptions {
    ReplicaOptions {
        member: 1,
        founding: Founding {
            membership: Membership::new(voters, vec![]),
            members: String::new(),
            by_majority: false,
            files_change_members: false,
        },
        tick_ms: 100,
        garbage_interval_ms: 60_000,
        garbage_max: 100,
        removed_at_once: REMOVED_AT_ONCE,
        work_at_once: WORK_AT_ONCE,
        entry_bytes_kept: 2000,
        group_count: 1,
        group_replicas: 0,
        split_points: Default::default(),
        linearizable_reads: false,
        stamps: false,
        lease_clock_bound_ms: None,
        secret: SessionSecret([7; SessionSecret::BYTES]),
        known_level: FeatureLevel::NONE,
        level_max: FeatureLevel::NONE,
        seed: 1,
        process: 1,
    }
}

fn alone(state: &Replicated) -> SingleGroup {
    let (membership, hard_state) = (Membership::default(), HardState::default());
    let mut recovered = Recovered::new((0, 0), membership, hard_state, vec![]);
    recovered.begin(1, 1, state.tree(), NOW);
    SingleGroup::new(options(vec![1]), recovered, state, NOW)
}

fn settle(replica: &mut SingleGroup, state: &mut Replicated) {
    let mut effects = Effects::default();
    let mut out = Outboxes::new(1);
    loop {
        replica.collect(NOW, &mut effects);
        if effects.is_empty() {
            return;
        }
        replica.apply(NOW, &mut effects, &mut OwnState(state, &mut out));
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
        Input::Client(ClientInput::Connect {
            conn: first,
            timeout_ms: 10_000,
            may_only_read: false,
            ids: ProvenIds::default(),
        }),
    );
    settle(&mut replica, &mut state);
    let session = state.tree().sessions().map(|(session, _)| session).next();
    let session = session.expect("it was just created");
    assert_eq!(replica.presence.sessions.conn(session), Some(first));

    replica.step(NOW, Input::Client(ClientInput::Disconnect { conn: first }));
    replica.step(
        NOW,
        Input::Client(ClientInput::Resume {
            conn: second,
            resumption: Resumption::keyed(session, 10_000),
            may_only_read: false,
        }),
    );
    settle(&mut replica, &mut state);
    assert_eq!(replica.presence.sessions.conn(session), Some(second));
    assert_eq!(replica.presence.gates.closed_forever().next(), None, "{:?}", replica.presence.gates);
}

/// Counts how often others have the state, which they must find within an entry, and notes the zxid and the number of ephemerals
/// that they find.
struct Yielding<'a> {
    own: OwnState<'a>,
    within: usize,
    found: Vec<(Zxid, usize)>,
}

impl HeldState for Yielding<'_> {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        self.own.parts()
    }

    fn yield_to_others(&mut self) {
        assert!(self.parts().0.is_within_entry(), "a snapshot must not begin here");
        self.within += 1;
        let tree = self.parts().0.tree();
        let found = (tree.zxid(), tree.ephemeral_count());
        self.found.push(found);
    }
}

#[test]
fn others_have_the_state_between_the_commands_of_one_entry() {
    const SESSIONS: u64 = 1000;
    let mut state = Replicated::new(Tree::new(), (0, 0), Membership::default());
    let mut replica = alone(&state);
    settle(&mut replica, &mut state);
    for number in 0..SESSIONS {
        let conn = ConnId::new(0, number);
        replica.step(
            NOW,
            Input::Client(ClientInput::Connect {
                conn,
                timeout_ms: 10_000,
                may_only_read: false,
                ids: ProvenIds::default(),
            }),
        );
    }
    let (mut effects, mut out) = (Effects::default(), Outboxes::new(1));
    let mut within = 0;
    while state.tree().session_count() < SESSIONS as usize {
        replica.collect(NOW, &mut effects);
        let mut held = Yielding { own: OwnState(&mut state, &mut out), within: 0, found: Vec::new() };
        replica.apply(NOW, &mut effects, &mut held);
        within += held.within;
        assert!(!state.is_within_entry());
        (effects.entries, effects.hard_state) = (vec![], None);
        if let Some(round) = effects.round.take() {
            replica.step(NOW, Input::Persisted { round });
        }
    }
    assert!((2..10).contains(&within), "{within} times");
}

#[test]
fn others_have_the_state_while_a_session_with_many_ephemerals_ends() {
    let ephemerals = 3 * REMOVED_AT_ONCE + 7;
    let mut state = Replicated::new(Tree::new(), (0, 0), Membership::default());
    let mut replica = alone(&state);
    settle(&mut replica, &mut state);
    let conn = ConnId::new(0, 1);
    replica.step(
        NOW,
        Input::Client(ClientInput::Connect {
            conn,
            timeout_ms: 10_000,
            may_only_read: false,
            ids: ProvenIds::default(),
        }),
    );
    settle(&mut replica, &mut state);
    let session = state.tree().sessions().map(|(session, _)| session).next().expect("it was just created");
    for number in 0..ephemerals {
        let command = create_ephemeral(session, number);
        let command = Command::decode(&command).expect("it was just encoded").taken_by(1);
        assert!(state.tree_mut().apply(&command).result.is_ok());
    }

    let before = state.tree().zxid();
    let mut command = Vec::new();
    Command::encode(session, 0, IdList::NONE, OpCode::CloseSession, &[], &mut command);
    let close = ClientInput::Write {
        conn,
        request: RequestId::first(Xid(1)),
        op: OpCode::CloseSession,
        command: command.into(),
    };
    replica.step(NOW, Input::Client(close));
    let (mut effects, mut out) = (Effects::default(), Outboxes::new(1));
    let mut found = Vec::new();
    while state.tree().session_count() > 0 {
        replica.collect(NOW, &mut effects);
        let mut held =
            Yielding { own: OwnState(&mut state, &mut out), within: 0, found: std::mem::take(&mut found) };
        replica.apply(NOW, &mut effects, &mut held);
        found = held.found;
        (effects.entries, effects.hard_state) = (vec![], None);
        if let Some(round) = effects.round.take() {
            replica.step(NOW, Input::Persisted { round });
        }
    }
    let after = |portions: usize| (Zxid(before.0 + portions as i64), ephemerals - portions * REMOVED_AT_ONCE);
    found.dedup();
    assert_eq!(found, [after(0), after(1), after(2), after(3)]);
    assert_eq!((state.tree().zxid(), state.tree().ephemeral_count()), (Zxid(before.0 + 4), 0));
}

fn create_ephemeral(session: SessionId, number: usize) -> Vec<u8> {
    let (mut body, mut command) = (Vec::new(), Vec::new());
    body.put_string(&format!("/{number}"));
    body.put_buffer(None);
    encode::put_acl(&mut body, &[Acl::open()]);
    body.put_i32(1);
    Command::encode(session, 0, IdList::NONE, OpCode::Create, &body, &mut command);
    command
}

/// Member 1 of an ensemble of three that has been at entry 1, in term 2.
fn one_of_three() -> (SingleGroup, Membership) {
    let membership = Membership::new(vec![1, 2, 3], vec![]);
    let state = Replicated::new(Tree::new(), (1, 1), membership.clone());
    let hard_state = HardState { term: 2, ..HardState::default() };
    let mut recovered = Recovered::new((1, 1), membership.clone(), hard_state, vec![]);
    recovered.cluster = Cluster::Known(7);
    recovered.begin(1, 1, state.tree(), NOW);
    (SingleGroup::new(options(vec![1, 2, 3]), recovered, &state, NOW), membership)
}

fn hear(replica: &mut SingleGroup, message: &PeerMessage) {
    let mut bytes = message.encode();
    Envelope { cluster: Cluster::Known(7), process: 9 }.seal(&mut bytes);
    replica.step(NOW, Input::Peer { from: 2, bytes });
}

#[test]
fn a_confirmation_counts_for_its_process_in_its_term_once_all_ends_are_applied() {
    let (mut replica, _) = one_of_three();
    let limits = ConfirmationLimits { process: 1, term: 2, ended_through: 1 };
    let mut confirmed_ms = |report_ms: u64, limits: Option<ConfirmationLimits>| {
        let (number, _) = replica.presence.contact.report(report_ms);
        hear(&mut replica, &PeerMessage::Confirmed { number, limits });
        replica.presence.contact.confirmed_ms()
    };
    assert_eq!(confirmed_ms(2000, Some(limits)), 2000);
    let of_process_before = ConfirmationLimits { process: 5, ..limits };
    assert_eq!(confirmed_ms(3000, Some(of_process_before)), 2000);
    assert_eq!(confirmed_ms(4000, Some(ConfirmationLimits { term: 1, ..limits })), 2000);
    assert_eq!(confirmed_ms(5000, Some(ConfirmationLimits { ended_through: 2, ..limits })), 2000);
    assert_eq!(confirmed_ms(6000, None), 6000, "a leader of an earlier build");
}

#[test]
fn an_answer_to_another_process_with_the_same_number_admits_nobody() {
    let (mut replica, membership) = one_of_three();
    let mut awaits_after_answer_to = |asker| {
        let greeting = Greeting {
            condition: Condition::Established,
            purpose: Purpose::Answer { asker },
            term: 2,
            membership: membership.clone(),
            addresses: None,
            leader: Some(2),
            found: FoundOnDisk::default(),
            ruling: Some(Ruling::Admitted),
            applied: 0,
        };
        hear(&mut replica, &PeerMessage::Greeting(greeting));
        replica.group.joining.awaits_admission()
    };
    assert!(awaits_after_answer_to(2), "this member's process is 1");
    assert!(!awaits_after_answer_to(1));
}

/// A member that is told by a heartbeat that its disk is older than what it has acknowledged has sent batches by then, which may still
/// come into the log.
#[test]
fn a_start_that_has_sent_a_batch_gets_another_number_when_the_member_has_learned() {
    let mut state = Replicated::new(Tree::new(), (0, 0), Membership::default());
    let mut replica = alone(&state);
    settle(&mut replica, &mut state);
    let before = replica.group.requests.origin();
    replica.replica().number_this_start_anew();
    assert_eq!(replica.group.requests.origin(), before, "nothing was sent under it");
    let conn = ConnId::new(0, 1);
    replica.step(
        NOW,
        Input::Client(ClientInput::Connect {
            conn,
            timeout_ms: 10_000,
            may_only_read: false,
            ids: ProvenIds::default(),
        }),
    );
    replica.group.requests.close_batch();
    replica.replica().number_this_start_anew();
    assert!(
        replica.group.requests.origin().incarnation > before.incarnation,
        "its first batch may be under way"
    );
    assert!(replica.group.requests.unsent().is_empty());
}

/// Members 1 and 257, whose ids begin with the same byte, were started in the same millisecond, so to speak.
#[test]
fn a_client_gets_another_session_if_the_id_of_its_own_is_in_use() {
    let mut tree = Tree::new();
    let first = (1 << 56) | (NOW.wall_ms << 16);
    let others = [0, 1, 2].map(|at| SessionId(first + at));
    others.iter().for_each(|session| tree.install_session(*session, 20_000, 257));
    let mut state = Replicated::new(tree, (0, 0), Membership::default());
    let mut replica = alone(&state);
    settle(&mut replica, &mut state);
    let conns = [1, 2].map(|number| ConnId::new(0, number));
    for conn in conns {
        let connect = ClientInput::Connect {
            conn,
            timeout_ms: 10_000,
            may_only_read: false,
            ids: ProvenIds::default(),
        };
        replica.step(NOW, Input::Client(connect));
    }
    settle(&mut replica, &mut state);
    assert!(others.iter().all(|session| state.tree().session_owner(*session) == Some(257)));
    let own = state.tree().sessions().filter(|(session, _)| !others.contains(session));
    let mut served: Vec<_> = own.map(|(session, _)| replica.presence.sessions.conn(session)).collect();
    served.sort_unstable();
    assert_eq!(served, conns.map(Some));
}
