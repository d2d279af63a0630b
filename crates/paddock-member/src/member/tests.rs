//! A member alone on a disk in memory: whatever fails, what was acknowledged is there again.

use std::cell::{RefCell, RefMut};
use std::path::Path;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{AclList, ErrorCode, IdList, MemberNumber, OpCode, ReplyHeader, SessionId, Xid};
use paddock_replica::{HeldState, SoughtMembers};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, Parcel, ProvenIds, RequestId};
use paddock_storage::disk::DiskFault;
use paddock_storage::{MemDisk, SnapshotError};
use paddock_tree::Command;

use super::*;
use crate::{SnapshotOrder, SnapshotWalk, StateLock, Taken};

mod ends;
mod first_disk;
mod groups;
mod oversized;
mod routing;
mod snapshots;
mod torn_round;
mod within_entry;

fn conn() -> ConnId {
    ConnId::new(0, 1)
}

struct Locked(RefCell<Replicated>);

impl StateLock for Locked {
    fn write<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T {
        change(&mut self.0.borrow_mut())
    }
}

/// A process whose snapshot is walked when the test says so.
struct TestShell {
    now: Now,
    state: Locked,
    outboxes: Outboxes,
    walk: Option<SnapshotWalk>,
    /// Orders of snapshots are kept here until another thread than the engine's has the state.
    keeps_orders: bool,
    order: Option<SnapshotOrder>,
    /// Times that an order was refused, as it was not the time.
    refused_orders: usize,
    finished: Option<Result<Taken, SnapshotError>>,
    session: Option<SessionId>,
    /// Replies and events that came, if they are kept.
    kept: Option<Vec<Vec<u8>>>,
    replies: usize,
    refusals: usize,
    closed: usize,
    /// There are others, who hear what is sent if the test hands it to them.
    has_others: bool,
    sent: Vec<(MemberNumber, Vec<u8>)>,
}

impl TestShell {
    fn new(state: Replicated, now: Now) -> TestShell {
        let (state, outboxes) = (Locked(RefCell::new(state)), Outboxes::new(1));
        TestShell {
            now,
            state,
            outboxes,
            walk: None,
            keeps_orders: false,
            order: None,
            refused_orders: 0,
            finished: None,
            session: None,
            kept: None,
            replies: 0,
            refusals: 0,
            closed: 0,
            has_others: false,
            sent: Vec::new(),
        }
    }

    fn walk(&mut self) {
        if let Some(order) = self.order.take() {
            self.walk = Some(order.begin(&self.state, &self.now).expect("no entry is being applied"));
        } else if let Some(mut walk) = self.walk.take() {
            if walk.step(&self.state) {
                self.walk = Some(walk);
            } else {
                self.finished = Some(walk.finish(&self.state, &self.now));
            }
        }
    }
}

/// The state in the engine's hands. While others have it, a snapshot that was ordered wants to begin.
struct LockedState<'a> {
    lock: &'a Locked,
    state: Option<RefMut<'a, Replicated>>,
    outboxes: &'a mut Outboxes,
    now: Now,
    order: &'a mut Option<SnapshotOrder>,
    refused_orders: &'a mut usize,
    walk: &'a mut Option<SnapshotWalk>,
}

impl HeldState for LockedState<'_> {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        (self.state.as_mut().expect("the engine has the state"), self.outboxes)
    }

    fn yield_to_others(&mut self) {
        self.state = None;
        match self.order.take().map(|order| order.begin(self.lock, &self.now)) {
            Some(Ok(walk)) => *self.walk = Some(walk),
            Some(Err(early)) => {
                *self.order = Some(early);
                *self.refused_orders += 1;
            }
            None => {}
        }
        self.state = Some(self.lock.0.borrow_mut());
    }
}

impl Clock for TestShell {
    fn now(&self) -> Now {
        self.now
    }
}

impl Shell for TestShell {
    fn send(&mut self, to: MemberNumber, message: Vec<u8>) {
        assert!(self.has_others, "a member alone talks to member {to}");
        self.sent.push((to, message));
    }

    fn refuse(&mut self, peer: MemberNumber, _: u64) {
        panic!("a member alone has heard of member {peer}");
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Replicated, &mut Outboxes) -> T) -> T {
        let result = change(&mut self.state.0.borrow_mut(), &mut self.outboxes);
        for (_, outbox) in self.outboxes.iter_mut() {
            for (_, parcel) in outbox.iter() {
                if let (Some(kept), Parcel::Reply(_, bytes) | Parcel::Event(bytes)) = (&mut self.kept, parcel)
                {
                    kept.push(bytes.to_vec());
                    continue;
                }
                match parcel {
                    Parcel::Connected(connected, _) => self.session = Some(connected.session),
                    Parcel::Reply(_, reply) if is_refusal(reply) => self.refusals += 1,
                    Parcel::Reply(..) => self.replies += 1,
                    Parcel::Close => self.closed += 1,
                    other => panic!("{other:?} without a reason"),
                }
            }
            outbox.clear();
        }
        result
    }

    fn apply(&mut self, apply: &mut dyn FnMut(&mut dyn HeldState)) {
        let TestShell { now, state: lock, outboxes, walk, order, refused_orders, .. } = self;
        let (now, state) = (*now, Some(lock.0.borrow_mut()));
        apply(&mut LockedState { lock, state, outboxes, now, order, refused_orders, walk });
        self.change(|_, _| {});
    }

    fn members_changed(&mut self) {}

    fn seek_members(&mut self, _: SoughtMembers) {}

    fn raise_alarm(&mut self, member: MemberNumber) {
        panic!("a member alone differs from member {member}");
    }

    fn begin_snapshot(&mut self, order: SnapshotOrder) {
        self.order = Some(order);
        if !self.keeps_orders {
            self.walk();
        }
    }

    fn finished_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.finished.take()
    }

    fn await_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        while self.order.is_some() || self.walk.is_some() {
            self.walk();
        }
        self.finished.take()
    }
}

fn is_refusal(reply: &[u8]) -> bool {
    let header = ReplyHeader::decode(&mut Reader::new(&reply[4..])).expect("a reply has a header");
    header.error == Some(ErrorCode::NotReadOnly)
}

/// A member with its process.
struct Stage {
    member: Member,
    shell: TestShell,
    created: usize,
}

impl Stage {
    fn start(disk: &MemDisk) -> Result<Stage, MemberError> {
        Stage::start_as(disk, Config::small())
    }

    fn start_as(disk: &MemDisk, config: Config) -> Result<Stage, MemberError> {
        let now = Now { monotonic_ms: 1, wall_ms: 1 };
        let (member, state) = Member::recover(Arc::new(disk.clone()), config, &now)?;
        let mut stage = Stage { member, shell: TestShell::new(state, now), created: 0 };
        stage.settle()?;
        stage.member.take(
            &stage.shell,
            [Input::Client(ClientInput::Connect {
                conn: conn(),
                timeout_ms: 60_000,
                may_only_read: false,
                ids: ProvenIds::default(),
            })],
        );
        stage.settle()?;
        Ok(stage)
    }

    fn settle(&mut self) -> Result<(), MemberError> {
        loop {
            match self.member.work(&mut self.shell)? {
                Work::Done => {}
                Work::Nothing => return Ok(()),
                Work::Shortage => self.shell.now.monotonic_ms += 1000,
            }
        }
    }

    /// Asks for the next znode.
    fn create(&mut self) {
        self.create_for(IdList::NONE);
    }

    /// Creates for a client with these identities.
    fn create_for(&mut self, ids: IdList<'_>) {
        let (mut body, mut command) = (Vec::new(), Vec::new());
        body.put_string(&path(self.created));
        body.put_string("some data, so that the log grows");
        body.extend_from_slice(AclList::OPEN.wire());
        body.put_i32(0);
        let session = self.shell.session.expect("connected at the start");
        let op = OpCode::Create;
        Command::encode(session, 0, ids, op, &body, &mut command);
        self.member.take(
            &self.shell,
            [Input::Client(ClientInput::Write {
                conn: conn(),
                request: RequestId::first(Xid(1)),
                op,
                command: command.into(),
            })],
        );
        self.created += 1;
    }

    /// Time passes, and the helpers get their turn.
    fn pass_time(&mut self) -> Result<(), MemberError> {
        self.shell.now.monotonic_ms += Member::TICK_MS;
        self.shell.walk();
        match self.member.housekeeper().run() {
            Err(error) if error.is_passing() => {}
            result => drop(result?),
        }
        self.member.tick(&mut self.shell)?;
        self.settle()
    }

    fn live(&mut self, creates: usize) -> Result<(), MemberError> {
        for _ in 0..creates {
            self.create();
            self.settle()?;
            self.pass_time()?;
        }
        Ok(())
    }

    fn has(&self, number: usize) -> bool {
        self.shell.state.0.borrow().tree().stat(&path(number)).is_some()
    }
}

fn path(number: usize) -> String {
    format!("/{number}")
}

#[test]
fn whatever_fails_what_was_acknowledged_is_there_again() {
    for fault in [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename] {
        let mut faults = 0;
        loop {
            let disk = MemDisk::new(faults);
            let mut stage = Stage::start(&disk).unwrap();
            disk.fail_after(fault, faults);
            let result = stage.live(40);
            disk.clear_faults();
            let acknowledged = stage.shell.replies;
            drop(stage);
            disk.crash();

            let again =
                Stage::start(&disk).unwrap_or_else(|error| panic!("{fault:?} after {faults}: {error}"));
            let lost: Vec<usize> = (0..acknowledged).filter(|&number| !again.has(number)).collect();
            assert!(lost.is_empty(), "{fault:?} after {faults}: {lost:?} of {acknowledged}");
            faults += 1;
            if result.is_ok() && acknowledged == 40 && faults > 100 {
                break;
            }
        }
    }
}

#[test]
fn a_lack_of_descriptors_passes_and_loses_nothing() {
    let mut refusals = 0;
    for faults in 0..120 {
        let disk = MemDisk::new(faults);
        let mut stage = Stage::start(&disk).unwrap();
        let mut acknowledged = Vec::new();
        for number in 0..40 {
            if number % 8 == 0 {
                disk.fail_after(DiskFault::Descriptor, faults % 24);
            }
            let replies = stage.shell.replies;
            let lived = stage.live(1);
            lived.unwrap_or_else(|error| panic!("after {faults} others: {error}"));
            acknowledged.extend((stage.shell.replies > replies).then_some(number));
        }
        refusals += stage.shell.refusals + stage.shell.closed;
        assert!(acknowledged.len() >= 20, "after {faults} others: {acknowledged:?}");
        drop(stage);
        disk.clear_faults();
        disk.crash();
        let again = Stage::start(&disk).unwrap_or_else(|error| panic!("after {faults} others: {error}"));
        let lost: Vec<usize> = acknowledged.into_iter().filter(|&number| !again.has(number)).collect();
        assert!(lost.is_empty(), "after {faults} others: {lost:?}");
    }
    assert!(refusals > 0, "the log itself has lacked a descriptor");
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let disk = MemDisk::new(1);
    let mut stage = Stage::start(&disk).unwrap();
    disk.set_capacity(Some(disk.used_bytes()));
    while stage.shell.closed == 0 {
        stage.create();
        while !matches!(stage.member.work(&mut stage.shell).unwrap(), Work::Nothing | Work::Shortage) {}
    }
    let (replies, waited) = (stage.shell.replies, stage.created - 1);
    assert_eq!(replies, waited, "the write that found no room was answered");
    stage.create();
    while !matches!(stage.member.work(&mut stage.shell).unwrap(), Work::Shortage) {}
    assert_eq!((stage.shell.replies, stage.shell.refusals), (replies, 1));

    disk.set_capacity(None);
    stage.shell.now.monotonic_ms += 2000;
    stage.settle().unwrap();
    stage.create();
    stage.settle().unwrap();
    assert_eq!(stage.shell.replies, replies + 1);
    assert!(stage.has(waited), "what waited for room is carried out");
    assert!(!stage.has(waited + 1), "what was refused is not");
}

#[test]
fn no_session_id_is_given_twice_though_the_clock_goes_back() {
    let disk = MemDisk::new(1);
    let mut stage = Stage::start(&disk).unwrap();
    let first = stage.shell.session.expect("connected at the start");
    let mut command = Vec::new();
    let op = OpCode::CloseSession;
    Command::encode(first, 0, IdList::NONE, op, &[], &mut command);
    stage.member.take(
        &stage.shell,
        [Input::Client(ClientInput::Write {
            conn: conn(),
            request: RequestId::first(Xid(1)),
            op,
            command: command.into(),
        })],
    );
    stage.settle().unwrap();
    drop(stage);
    disk.crash();
    let again = Stage::start(&disk).unwrap();
    assert_ne!(again.shell.session, Some(first));
}

#[test]
fn snapshots_let_the_log_go() {
    let disk = MemDisk::new(1);
    let mut stage = Stage::start(&disk).unwrap();
    stage.live(200).unwrap();
    let first = stage.member.log.first_index(HOME);
    assert!(first > Some(Index(50)), "the log begins at {first:?}");
    let Stage { member, mut shell, .. } = stage;
    member.end(&mut shell).unwrap();
    let again = Stage::start(&disk).unwrap();
    assert!((0..200).all(|number| again.has(number)));
}

/// A volume that is not mounted, or a setting that names another directory.
#[test]
fn a_member_without_the_log_of_its_earlier_life_does_not_begin_anew() {
    let disk = MemDisk::new(1);
    let with_log_in = |dir: &str| Config { log_dir: Some(dir.into()), ..Config::small() };
    let mut stage = Stage::start_as(&disk, with_log_in("/mounted")).unwrap();
    stage.create();
    stage.settle().unwrap();
    drop(stage);
    disk.kill();
    let refused = Stage::start_as(&disk, with_log_in("/elsewhere")).map(drop).unwrap_err();
    let MemberError::Recovery(RecoveryError::LogMissing { log_dir, .. }) = &refused else {
        panic!("{refused}");
    };
    assert_eq!(log_dir, Path::new("/elsewhere/log"));
    let back = Stage::start_as(&disk, with_log_in("/mounted")).unwrap();
    assert!(back.has(0));
    drop(back);
    disk.kill();
    // What the message says.
    disk.remove(&Config::small().data_dir.join("identity")).unwrap();
    Stage::start_as(&disk, with_log_in("/elsewhere")).unwrap();
}
