//! Instructions that a member alone takes for a hundred writes, from the request to the reply: one after the other, and
//! all in one batch. Nothing is written to a disk.
//!
//! `cargo xtask instructions` counts them; tests/README.md says what the figures depend on.

use gungraun::prelude::*;
use paddock_proto::{CreateMode, IdList, OpCode, SessionId, SessionSecret, Xid, encode};
use paddock_replica::{
    Effects, Founding, HardState, Input, Membership, OwnState, Recovered, ReplicaOptions, Replicated,
    SingleGroup, WORK_AT_ONCE,
};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, Parcel, ProvenIds, RequestId};
use paddock_tree::{Command, FeatureLevel, REMOVED_AT_ONCE, Tree};

const WRITES: usize = 100;
const DATA: [u8; 100] = [7; 100];
const PATH: &str = "/svc-0001";
const NOW: Now = Now { monotonic_ms: 1000, wall_ms: 1_700_000_000_000 };

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
        garbage_interval_ms: 60_000,
        garbage_max: 100,
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

/// A member whose disk has everything at once.
struct Member {
    replica: SingleGroup,
    state: Replicated,
    effects: Effects,
    out: Outboxes,
}

impl Member {
    fn start() -> Member {
        let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let (membership, hard_state) = (Membership::default(), HardState::default());
        let mut recovered = Recovered::new((0, 0), membership, hard_state, vec![]);
        recovered.begin(1, 1, state.tree(), NOW);
        let replica = SingleGroup::new(options(), recovered, &state, NOW);
        Member { replica, state, effects: Effects::default(), out: Outboxes::new(1) }
    }

    /// Carries out everything, as a shell does it in rounds.
    fn settle(&mut self) {
        loop {
            self.replica.collect(NOW, &mut self.effects);
            if self.effects.is_empty() {
                return;
            }
            let mut held = OwnState(&mut self.state, &mut self.out);
            self.replica.apply(NOW, &mut self.effects, &mut held);
            self.effects.entries.clear();
            self.effects.hard_state = None;
            if let Some(round) = self.effects.round.take() {
                self.replica.step(NOW, Input::Persisted { round });
            }
        }
    }

    /// Answers writes that come in batches.
    fn answer(&mut self, writes: Vec<Input>, batch: usize) {
        let mut writes = writes.into_iter().peekable();
        while writes.peek().is_some() {
            writes.by_ref().take(batch).for_each(|write| self.replica.step(NOW, write));
            self.settle();
            self.take_mail();
        }
    }

    /// Gives a new connection its session.
    fn connect(&mut self) -> SessionId {
        self.replica.step(
            NOW,
            Input::Client(ClientInput::Connect {
                conn: conn(),
                timeout_ms: 30_000,
                may_only_read: false,
                ids: ProvenIds::default(),
            }),
        );
        self.settle();
        let (_, outbox) = self.out.iter_mut().next().expect("there is a worker");
        let session = outbox.iter().find_map(|(_, parcel)| match parcel {
            Parcel::Connected(connected, _) => Some(connected.session),
            _ => None,
        });
        session.expect("a member alone gives everyone a session")
    }

    fn take_mail(&mut self) {
        self.out.iter_mut().for_each(|(_, outbox)| outbox.clear());
    }
}

fn conn() -> ConnId {
    ConnId::new(0, 1)
}

/// A write of a session, as a connection hands it over.
fn write(session: SessionId, op: OpCode) -> Input {
    let (mut body, mut command) = (Vec::new(), Vec::new());
    match op {
        OpCode::Create => encode::create_open(&mut body, PATH, Some(&DATA), CreateMode::Persistent),
        _ => encode::set_data(&mut body, PATH, Some(&DATA), -1),
    }
    Command::encode(session, 0, IdList::NONE, op, &body, &mut command);
    Input::Client(ClientInput::Write {
        conn: conn(),
        request: RequestId::first(Xid(1)),
        op,
        command: command.into(),
    })
}

/// A member with a znode, and writes to set its data; a hundred have been answered, so that buffers have grown.
fn member_and_writes() -> (Member, Vec<Input>) {
    let mut member = Member::start();
    member.settle();
    let session = member.connect();
    member.replica.step(NOW, write(session, OpCode::Create));
    let writes = || (0..WRITES).map(|_| write(session, OpCode::SetData)).collect::<Vec<_>>();
    member.answer(writes(), WRITES);
    let znode = member.state.tree().stat(PATH).expect("it was created");
    assert_eq!(znode.version as usize, WRITES, "every write was carried out");
    (member, writes())
}

#[library_benchmark]
#[bench::batches_of_1(member_and_writes(), 1)]
#[bench::batches_of_100(member_and_writes(), 100)]
fn set_data((mut member, writes): (Member, Vec<Input>), batch: usize) -> Member {
    member.answer(writes, batch);
    member
}

library_benchmark_group!(name = replica, benchmarks = set_data);

main!(library_benchmark_groups = replica);
