//! A member that is talked to by whoever sends any bytes, without sockets and disk. For the fuzzer, and for replaying
//! what it found.

use paddock_proto::{ConnectRequest, Extensions, SessionId, Zxid, frame};
use paddock_replica::{
    Effects, Founding, HardState, Input, Membership, Recovered, Replica, ReplicaOptions, Replicated,
};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, Parcel, QueuedRead};
use paddock_tree::Tree;

use crate::Config;
use crate::connection::{Connection, Context, Refusal, Step};

const FRAME_BYTES_MAX: i32 = 1 << 20;

fn options() -> ReplicaOptions {
    ReplicaOptions {
        member: 1,
        founding: Founding { membership: Membership::new(vec![1], vec![]), members: String::new() },
        tick_ms: 100,
        garbage_interval_ms: 100,
        garbage_max: 10,
        entry_bytes_kept: 8 << 20,
        linearizable_reads: false,
        lease_clock_bound_ms: None,
        seed: 1,
        process: 1,
    }
}

/// Takes `data` as what a client sends: with an odd first byte from the greeting on, with an even one behind a good
/// greeting. Whatever it is, the member answers in whole frames and stays sound.
pub fn conversation(data: &[u8]) {
    let Some((&choice, mut bytes)) = data.split_first() else { return };
    let mut member = Member::new();
    if choice.is_multiple_of(2) {
        let mut greeting = Vec::new();
        good_greeting().encode(&mut greeting);
        member.take(&greeting[4..]);
    }
    while member.connection.takes_frames() {
        let Ok(Some((frame, len))) = frame::split(bytes, FRAME_BYTES_MAX) else { break };
        member.take(frame);
        bytes = &bytes[len..];
    }
    member.pass_time();
    member.check_replies();
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

struct Member {
    config: Config,
    connection: Connection,
    replica: Replica,
    state: Replicated,
    effects: Effects,
    out: Outboxes,
    now: Now,
    sent: Vec<u8>,
}

impl Member {
    fn new() -> Member {
        let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let membership = Membership::default();
        let hard_state = HardState::default();
        let mut recovered = Recovered::new((0, 0), membership, hard_state, vec![]);
        let now = Now { monotonic_ms: 1, wall_ms: 1 };
        recovered.begin(1, state.tree(), now);
        let mut member = Member {
            config: Config { frame_bytes_max: FRAME_BYTES_MAX, ..Config::new("nowhere") },
            connection: Connection::new(ConnId::new(0, 1), [127, 0, 0, 1].into()),
            replica: Replica::new(options(), recovered, &state, now),
            effects: Effects::default(),
            out: Outboxes::new(1),
            sent: Vec::new(),
            state,
            now,
        };
        member.settle();
        member
    }

    fn take(&mut self, frame: &[u8]) {
        let context = Context { config: &self.config, zxid: self.state.tree().zxid(), is_looking: false };
        match self.connection.on_frame(frame, &context) {
            Step::Hand(input) => self.replica.step(self.now, input),
            Step::Ask { xid, op, body } => {
                let client = self.connection.client().clone();
                self.replica.step(
                    self.now,
                    Input::Client(ClientInput::Read(QueuedRead { client, xid, op, body: body.to_vec() })),
                );
            }
            Step::Identify { .. } => self.state.state().identify(self.connection.client()),
            Step::Refuse(Refusal::Reply(header)) => frame::write(&mut self.sent, |out| header.encode(out)),
            Step::Ping | Step::Refuse(_) => {}
        }
        self.settle();
    }

    /// Long enough for the session to expire, whatever timeout it got, and for what is left behind to be removed.
    fn pass_time(&mut self) {
        for seconds in 1..=45 {
            self.now = Now { monotonic_ms: 1 + seconds * 1000, wall_ms: 1 + seconds as i64 * 1000 };
            self.replica.step(self.now, Input::Tick);
            self.settle();
        }
        assert!(self.state.tree().session_count() == 0, "a session outlived its client");
        assert!(self.state.tree().ephemeral_count() == 0, "an ephemeral outlived its session");
    }

    /// The disk writes at once.
    fn settle(&mut self) {
        loop {
            self.replica.collect(self.now, &mut self.effects);
            if self.effects.is_empty() {
                return;
            }
            self.replica.apply(self.now, &mut self.effects, &mut self.state, &mut self.out);
            if let Some(round) = self.effects.round.take() {
                self.effects.entries.clear();
                self.replica.step(self.now, Input::Persisted { round });
            }
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        for (_, outbox) in self.out.iter_mut() {
            for (_, parcel) in outbox.iter() {
                match parcel {
                    Parcel::Reply(bytes) | Parcel::Event(bytes) => self.sent.extend_from_slice(bytes),
                    Parcel::Connected { session, timeout_ms, read_only } => {
                        self.connection.on_connected(session, timeout_ms, read_only).encode(&mut self.sent);
                    }
                    Parcel::Expired => self.connection.on_expired().encode(&mut self.sent),
                    Parcel::Close => {}
                }
            }
            outbox.clear();
        }
    }

    fn check_replies(&self) {
        let mut rest = &self.sent[..];
        while !rest.is_empty() {
            let (_, len) = frame::split(rest, i32::MAX).expect("a good length").expect("a whole frame");
            rest = &rest[len..];
        }
    }
}
