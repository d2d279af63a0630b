//! Stories of one member without sockets, files or clock: the test moves time and decides when the disk has written. Most are
//! scripts (`scripts/member/`).

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    Acl, Id, IdList, OpCode, Perms, ReplyHeader, SessionId, SessionSecret, WatchEvent, Xid, encode, frame,
};
use paddock_replica::{
    Effects, Founding, HardState, Input, LogEntry, Membership, OwnState, Recovered, ReplicaOptions,
    Replicated, SingleGroup, WORK_AT_ONCE,
};
use paddock_state::{
    Client, ClientInput, ConnId, Connected, Now, Outboxes, Parcel, ProvenIds, QueuedRead, RequestId,
    Resumption,
};
use paddock_tree::{Command, FeatureLevel, REMOVED_AT_ONCE, Tree};

#[path = "member/script.rs"]
mod script;
#[path = "shared/scripts.rs"]
mod scripts;

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

/// A member and what it left on its disk.
struct Member {
    replica: SingleGroup,
    state: Replicated,
    effects: Effects,
    out: Outboxes,
    now: Now,
    disk: Vec<LogEntry>,
    hard_state: HardState,
}

impl Member {
    fn start(disk: Vec<LogEntry>, hard_state: HardState) -> Member {
        let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let membership = Membership::default();
        let mut recovered = Recovered::new((0, 0), membership, hard_state, disk.clone());
        let now = Now { monotonic_ms: 1000, wall_ms: 5_000 };
        recovered.begin(1, 1, state.tree(), now);
        let hard_state = recovered.hard_state;
        let replica = SingleGroup::new(options(), recovered, &state, now);
        let (effects, out) = (Effects::default(), Outboxes::new(1));
        let mut member = Member { replica, state, effects, out, now, disk, hard_state };
        member.settle();
        member
    }

    fn step(&mut self, input: Input) {
        self.replica.step(self.now, input);
    }

    fn apply(&mut self) {
        let mut held = OwnState(&mut self.state, &mut self.out);
        self.replica.apply(self.now, &mut self.effects, &mut held);
    }

    /// Lets the disk write what it has to; false if there was nothing.
    fn persist(&mut self) -> bool {
        self.replica.collect(self.now, &mut self.effects);
        let Some(round) = self.effects.round.take() else { return false };
        self.hard_state = self.effects.hard_state.take().unwrap_or(self.hard_state);
        self.disk.append(&mut self.effects.entries);
        self.step(Input::Persisted { round });
        true
    }

    /// Carries out everything and tells what connections got.
    fn settle(&mut self) -> Vec<String> {
        loop {
            self.replica.collect(self.now, &mut self.effects);
            self.effects.sought_members = None;
            if self.effects.is_empty() {
                return self.story();
            }
            self.apply();
            self.persist();
        }
    }

    fn story(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (_, outbox) in self.out.iter_mut() {
            lines.extend(outbox.iter().flat_map(|(conn, parcel)| tell(conn, parcel)));
            outbox.clear();
        }
        lines
    }

    fn connect(&mut self, number: u64, timeout_ms: i32) -> Client {
        let conn = conn(number);
        self.step(Input::Client(ClientInput::Connect {
            conn,
            timeout_ms,
            may_only_read: false,
            ids: ProvenIds::default(),
        }));
        self.replica.collect(self.now, &mut self.effects);
        let mut session = None;
        while !self.effects.is_empty() {
            self.apply();
            self.persist();
            for (_, outbox) in self.out.iter_mut() {
                for (_, parcel) in outbox.iter() {
                    if let Parcel::Connected(Connected { session: given, .. }, _) = parcel {
                        session = Some(given);
                    }
                }
                outbox.clear();
            }
            self.replica.collect(self.now, &mut self.effects);
        }
        Client::new(conn, session.expect("a member alone gives everyone a session"), &[])
    }

    fn write(&mut self, client: &Client, xid: i32, op: OpCode, body: &[u8]) {
        let mut command = Vec::new();
        Command::encode(client.session, 0, IdList::NONE, op, body, &mut command);
        self.step(Input::Client(ClientInput::Write {
            conn: client.conn,
            request: RequestId::first(Xid(xid)),
            op,
            command: command.into(),
        }));
    }

    fn create(&mut self, client: &Client, xid: i32, path: &str, data: &str, flags: i32) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_string(data);
        body.extend_from_slice(paddock_proto::AclList::OPEN.wire());
        body.put_i32(flags);
        self.write(client, xid, OpCode::Create, &body);
    }

    fn set(&mut self, client: &Client, xid: i32, path: &str, data: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_string(data);
        body.put_i32(-1);
        self.write(client, xid, OpCode::SetData, &body);
    }

    fn get(&mut self, client: &Client, xid: i32, path: &str, watch: bool) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_bool(watch);
        let local = QueuedRead::new(client.clone(), RequestId::first(Xid(xid)), OpCode::GetData, body);
        self.step(Input::Client(ClientInput::Read(local)));
    }

    /// Lives until then.
    fn tick_at(&mut self, monotonic_ms: u64) -> Vec<String> {
        let mut told = Vec::new();
        while self.now.monotonic_ms + 1000 < monotonic_ms {
            told.extend(self.stand_still_until(self.now.monotonic_ms + 1000));
        }
        told.extend(self.stand_still_until(monotonic_ms));
        told
    }

    /// A tick, and none before it.
    fn stand_still_until(&mut self, monotonic_ms: u64) -> Vec<String> {
        self.now.monotonic_ms = monotonic_ms;
        self.step(Input::Tick);
        self.settle()
    }
}

fn conn(number: u64) -> ConnId {
    ConnId::new(0, number)
}

/// One line for each packet of a parcel.
fn tell(conn: ConnId, parcel: Parcel<'_>) -> Vec<String> {
    let who = (1..=9).find(|n| conn == self::conn(*n)).expect("tests use small numbers");
    match parcel {
        Parcel::Reply(_, mut bytes) | Parcel::Event(mut bytes) | Parcel::SharedEvent(mut bytes) => {
            let mut lines = Vec::new();
            while let Some((body, len)) = frame::split(bytes, i32::MAX).unwrap() {
                lines.push(format!("{who}: {}", tell_packet(body)));
                bytes = &bytes[len..];
            }
            lines
        }
        Parcel::Connected(Connected { timeout_ms, .. }, _) => {
            vec![format!("{who}: connected for {timeout_ms} ms")]
        }
        Parcel::Expired => vec![format!("{who}: expired")],
        Parcel::Close => vec![format!("{who}: close")],
    }
}

fn tell_packet(body: &[u8]) -> String {
    let mut reader = Reader::new(body);
    let header = ReplyHeader::decode(&mut reader).unwrap();
    if header.xid == Xid::NOTIFICATION {
        let event = WatchEvent::decode(header.zxid, reader.rest()).unwrap();
        return format!("{:?} {}", event.kind, event.path);
    }
    match header.error {
        Some(error) => format!("#{} {error:?}", header.xid.0),
        // The first field of a getData reply; of a create's, the path.
        None if reader.rest().len() > 4 => {
            let text = reader.buffer().ok().flatten().map(String::from_utf8_lossy).unwrap_or_default();
            format!("#{} {text:?}", header.xid.0)
        }
        None => format!("#{} ok", header.xid.0),
    }
}

/// A znode that only these may read is there, and then it is not.
fn create_and_delete_secretly(member: &mut Member, writer: &Client, path: &str, readers: Id) -> Vec<String> {
    let mut body = Vec::new();
    body.put_string(path);
    body.put_string("secret");
    let writers = Acl { perms: Perms(Perms::ALL.0 & !Perms::READ.0), id: Id::new("world", "anyone") };
    encode::put_acl(&mut body, &[Acl { perms: Perms::READ, id: readers }, writers]);
    body.put_i32(0);
    member.write(writer, 1, OpCode::Create, &body);
    let mut body = Vec::new();
    body.put_string(path);
    body.put_i32(-1);
    member.write(writer, 2, OpCode::Delete, &body);
    let story = member.settle();
    story.into_iter().filter(|line| line.starts_with("1: Node")).collect()
}

#[test]
fn events_go_by_the_identities_that_a_connection_has_shown_by_now() {
    let ann = || Id::new("digest", "ann:1");
    // The client shows its identity after its watch is set, or before that is carried out, as that waits behind a write.
    for (is_early, shown) in [(false, ann()), (true, ann()), (false, Id::new("digest", "bob:1"))] {
        let mut member = Member::start(vec![], HardState::default());
        let (watcher, writer) = (member.connect(1, 1000), member.connect(2, 1000));
        let mut body = Vec::new();
        body.put_string("/secret");
        body.put_i32(1);
        member.create(&watcher, 1, "/before", "", 0);
        let local = QueuedRead::new(watcher.clone(), RequestId::first(Xid(2)), OpCode::AddWatch, body);
        member.step(Input::Client(ClientInput::Read(local)));
        if !is_early {
            member.settle();
        }
        let is_ann = shown == ann();
        member.state.state().watches().identify(&Client::new(watcher.conn, watcher.session, &[shown]));
        member.settle();
        let told = create_and_delete_secretly(&mut member, &writer, "/secret", ann());
        let expected: &[&str] =
            if is_ann { &["1: NodeCreated /secret", "1: NodeDeleted /secret"] } else { &[] };
        assert_eq!(told, expected, "early: {is_early}");
        // Nothing of it stays behind the connection.
        member.step(Input::Client(ClientInput::Disconnect { conn: watcher.conn }));
        member.settle();
        assert_eq!(member.state.state().watches().count(), 0);
    }
}

#[test]
fn large_batches_become_several_entries() {
    let mut member = Member::start(vec![], HardState::default());
    let client = member.connect(1, 1000);
    let entries = member.disk.len();
    let data = "x".repeat(400 << 10);
    for xid in 1..=5 {
        member.create(&client, xid, &format!("/n{xid}"), &data, 0);
        member.get(&client, 100 + xid, &format!("/n{xid}"), false);
    }
    let story = member.settle();
    assert_eq!(story.len(), 10);
    assert!(
        story[0].starts_with("1: #1 ")
            && story[1].starts_with("1: #101 ")
            && story[9].starts_with("1: #105 ")
    );
    assert_eq!(member.disk.len() - entries, 3);
}

#[test]
fn a_service_session_is_not_a_clients() {
    // The id's top byte is the member's number, so 0 and small numbers are never given out.
    let mut member = Member::start(vec![], HardState::default());
    let client = member.connect(1, 1000);
    assert_eq!(client.session.0 >> 56, 1);
    assert_ne!(client.session, SessionId::NONE);
}

#[test]
fn no_session_that_only_reads_begins_when_the_mode_is_over() {
    let mut member = Member::start(vec![], HardState::default());
    let asks = |number| {
        let (timeout_ms, ids) = (4000, ProvenIds::default());
        Input::Client(ClientInput::Connect { conn: conn(number), timeout_ms, may_only_read: true, ids })
    };
    member.step(Input::DiskFull(true));
    member.settle();
    member.step(asks(1));
    assert_eq!(member.settle(), ["1: connected for 4000 ms"]);
    member.step(asks(2));
    member.step(Input::DiskFull(false));
    assert_eq!(member.settle(), ["1: close", "2: close"]);
}

#[test]
fn who_asks_for_too_much_behind_a_write_is_cut_off() {
    let mut member = Member::start(vec![], HardState::default());
    let (greedy, other) = (member.connect(1, 1000), member.connect(2, 1000));
    member.create(&greedy, 1, "/big", &"x".repeat(4 << 20), 0);
    for xid in 2..102 {
        member.get(&greedy, xid, "/big", false);
    }
    member.get(&other, 1, "/big", false);
    let story = member.settle();
    let replies = story.iter().filter(|line| line.starts_with("1: #")).count();
    assert!((10..30).contains(&replies), "{replies} replies of 4 MiB are held for one connection");
    assert!(story.contains(&"1: close".to_owned()));
    assert!(story.last().unwrap().starts_with("2: #1"), "the other one is answered");
}
