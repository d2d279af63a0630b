//! A member that is sent any bytes, without sockets and disk. For the fuzzer, and for replaying
//! what it found.

mod clear_tickets;
mod tls_entry;

use std::cell::{Cell, RefCell};

use paddock_front::{Front, Host, WordAnswer};
use paddock_proto::jute::Writer;
use paddock_proto::{
    ConnectRequest, Dialect, Extensions, OpCode, RequestHeader, SessionId, SessionSecret, Xid, Zxid, frame,
};
use paddock_replica::{
    Effects, Founding, HardState, Input, Membership, OwnState, Recovered, ReplicaOptions, Replicated,
    SingleGroup, WORK_AT_ONCE,
};
use paddock_state::{ConnId, Now, Outbox, Outboxes, State};
use paddock_tree::{FeatureLevel, REMOVED_AT_ONCE, Tree};

use crate::{Config, SaslUsers};

pub use tls_entry::TlsEntry;

const FRAME_BYTES_MAX: i32 = 1 << 20;

fn options() -> ReplicaOptions {
    ReplicaOptions {
        member: 1,
        founding: Founding {
            membership: Membership::new(vec![1], vec![]),
            members: String::new(),
            by_majority: false,
            files_change_members: false,
        },
        tick_ms: 100,
        garbage_interval_ms: 100,
        garbage_max: 10,
        removed_at_once: REMOVED_AT_ONCE,
        work_at_once: WORK_AT_ONCE,
        entry_bytes_kept: 8 << 20,
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

/// Takes `data` as the bytes that a client sends: with an odd first byte from the greeting on, with an even one behind a good
/// greeting. From 128 on the client may speak any dialect. Whatever the bytes are, the member stays sound, and answers in whole
/// frames, as far as replies are not compressed.
pub fn conversation(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let dialect = if choice < 128 { Some(Dialect::ZooKeeper) } else { None };
    let mut member = FuzzedMember::new(dialect);
    if choice.is_multiple_of(2) {
        let mut greeting = Vec::new();
        good_greeting().encode(&mut greeting);
        member.take(&greeting);
    }
    // Pieces of other sizes than a client's frames, as a network makes them.
    for piece in bytes.chunks(usize::from(choice) + 1) {
        member.take(piece);
    }
    member.pass_time();
    if dialect.is_some() {
        member.check_replies();
    }
}

/// Takes the lines of `data` as tokens of SASL that one client sends. Whatever they are, the member stays sound and answers in whole frames,
/// each token of a connection that goes on with one.
pub fn sasl_tokens(data: &[u8]) {
    let mut member = FuzzedMember::new(Some(Dialect::ZooKeeper));
    let mut greeting = Vec::new();
    good_greeting().encode(&mut greeting);
    member.take(&greeting);
    for (number, token) in data.split(|byte| *byte == b'\n').enumerate() {
        let mut request = Vec::new();
        frame::write(&mut request, |out| {
            RequestHeader { xid: Xid(number as i32 + 1), op: OpCode::Sasl.code() }.encode(out);
            out.put_buffer(Some(token));
        });
        member.sent.clear();
        member.take(&request);
        let goes_on =
            member.front.condition(conn(), &member.around).is_some_and(|condition| !condition.is_closing);
        assert!(!goes_on || !member.sent.is_empty(), "a token has no answer");
        member.check_replies();
    }
    member.pass_time();
}

fn good_greeting() -> ConnectRequest<'static> {
    ConnectRequest {
        protocol_version: 0,
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(0),
        timeout_ms: 10_000,
        session: SessionId::NONE,
        password: Some(&[0; 16]),
        read_only: Some(false),
    }
}

/// The state and the engine's mail, as the front finds them.
struct Surroundings {
    state: RefCell<Replicated>,
    mail: RefCell<Outbox>,
    now: Cell<Now>,
}

impl Host for Surroundings {
    type StateGuard<'a> = std::cell::Ref<'a, State>;
    type Stats = ();
    type Span = ();

    fn now(&self) -> Now {
        self.now.get()
    }

    fn lock_state(&self) -> std::cell::Ref<'_, State> {
        std::cell::Ref::map(self.state.borrow(), Replicated::state)
    }

    fn take_mail(&self, mail: &mut Outbox) -> bool {
        std::mem::swap(&mut *self.mail.borrow_mut(), mail);
        !mail.is_empty()
    }

    fn confirmed_ms(&self) -> u64 {
        u64::MAX
    }

    fn is_looking(&self) -> bool {
        false
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn nonce(&self) -> u128 {
        // Fuzzed tokens can answer it.
        1
    }

    fn answer_word(&self, _: [u8; 4], _: &[u8]) -> Option<WordAnswer> {
        None
    }
}

fn conn() -> ConnId {
    ConnId::new(0, 1)
}

struct FuzzedMember {
    front: Front<Surroundings>,
    around: Surroundings,
    replica: SingleGroup,
    effects: Effects,
    out: Outboxes,
    sent: Vec<u8>,
}

impl FuzzedMember {
    fn new(dialect: Option<Dialect>) -> FuzzedMember {
        let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let mut recovered = Recovered::new((0, 0), Membership::default(), HardState::default(), vec![]);
        let now = Now { monotonic_ms: 1, wall_ms: 1 };
        recovered.begin(1, 1, state.tree(), now);
        let passwords = [("bob".to_owned(), "secret".to_owned())].into();
        let sasl = Some(SaslUsers { passwords, keeps_failed_clients: true, ..SaslUsers::default() });
        let config = Config { frame_bytes_max: FRAME_BYTES_MAX, dialect, sasl, ..Config::new("nowhere") };
        let mut member = FuzzedMember {
            front: Front::new(config.of_front(
                &std::sync::Arc::default(),
                Some(clear_tickets::kerberos()),
                None,
            )),
            replica: SingleGroup::new(options(), recovered, &state, now),
            around: Surroundings { state: state.into(), mail: RefCell::default(), now: now.into() },
            effects: Effects::default(),
            out: Outboxes::new(1),
            sent: Vec::new(),
        };
        member.front.accept(conn(), ([127, 0, 0, 1], 1).into(), ());
        member.settle();
        member
    }

    fn take(&mut self, bytes: &[u8]) {
        self.front.receive(conn(), bytes, self.around.now.get().monotonic_ms, &self.around);
        self.send();
        self.settle();
        while self.front.condition(conn(), &self.around).is_some_and(|it| it.takes_input && it.has_input) {
            let before = self.front.condition(conn(), &self.around);
            self.front.resume(conn(), self.around.now.get().monotonic_ms, &self.around);
            self.settle();
            let after = self.front.condition(conn(), &self.around);
            if after == before && !after.is_some_and(|after| after.has_more) {
                return;
            }
        }
    }

    /// Long enough for the session to expire, whatever timeout it got, and for what is left behind to be removed.
    fn pass_time(&mut self) {
        for seconds in 1..=45 {
            self.around.now.set(Now { monotonic_ms: 1 + seconds * 1000, wall_ms: 1 + seconds as i64 * 1000 });
            self.replica.step(self.around.now.get(), Input::Tick);
            self.settle();
        }
        let state = self.around.state.borrow();
        assert!(state.tree().session_count() == 0, "a session outlived its client");
        assert!(state.tree().ephemeral_count() == 0, "an ephemeral outlived its session");
    }

    /// Lets the engine work until there is nothing to do. The disk writes at once.
    fn settle(&mut self) {
        let now = self.around.now.get();
        for input in self.front.inputs().drain(..) {
            self.replica.step(now, Input::Client(input));
        }
        loop {
            self.replica.collect(now, &mut self.effects);
            if self.effects.is_empty() {
                return;
            }
            let mut state = self.around.state.borrow_mut();
            self.replica.apply(now, &mut self.effects, &mut OwnState(&mut state, &mut self.out));
            drop(state);
            if let Some(round) = self.effects.round.take() {
                self.effects.entries.clear();
                self.replica.step(now, Input::Persisted { round });
            }
            for (_, outbox) in self.out.iter_mut() {
                self.around.mail.borrow_mut().append(outbox);
            }
            self.front.deliver(&self.around);
            self.send();
        }
    }

    /// The network takes everything.
    fn send(&mut self) {
        let sent = &mut self.sent;
        let sending = self.front.send(conn(), |bytes| {
            sent.extend_from_slice(bytes);
            Ok::<_, std::convert::Infallible>(bytes.len())
        });
        let Ok(()) = sending;
    }

    fn check_replies(&self) {
        let mut rest = &self.sent[..];
        while !rest.is_empty() {
            let (_, len) = frame::split(rest, i32::MAX).expect("a good length").expect("a whole frame");
            rest = &rest[len..];
        }
    }
}
