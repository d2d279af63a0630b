//! The world of a seed: etcd, two front ends, and clients that create, delete, sync and move.

use std::collections::{BTreeMap, BTreeSet};

use paddock_chance::Chance;
use paddock_etcd::{
    Call, CallError, CallId, Effects, Engine, EngineOptions, Input, Keys, Limits, WatchMessage, WatchOrder,
};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Acl, IdList, OpCode, SessionId, Xid};
use paddock_state::{Client, ClientInput, ConnId, Now, Outboxes, Parcel, QueuedRead, State};
use paddock_tree::{Command, ZnodeKind};

use crate::etcd::{Etcd, Mistake};

const CLIENTS: usize = 4;
const TIMEOUT_MS: i32 = 6000;
/// Ticks of both front ends in the end: longer than sessions and their leases live.
const HEALING_TICKS: usize = 600;

struct Front {
    engine: Engine,
    state: State,
    out: Outboxes,
    calls: Vec<(CallId, Call)>,
    watch: Option<WatchOrder>,
}

#[derive(Default)]
struct TestClient {
    front: usize,
    conn: Option<ConnId>,
    session: Option<SessionId>,
    is_connected: bool,
    /// Requests under way, in their order: xid and number.
    waiting: Vec<(i32, u64)>,
    /// Number of the sequential znode that was created last in this session.
    last_name: String,
}

pub(crate) struct World {
    chance: Chance,
    etcd: Etcd,
    fronts: Vec<Front>,
    clients: Vec<TestClient>,
    now_ms: u64,
    next_front: u64,
    next_conn: u64,
    next_request: u64,
    has_faults: bool,
    /// Requests that were acknowledged, with the names that they got.
    acknowledged: BTreeMap<u64, String>,
}

impl World {
    pub(crate) fn new(seed: u64, mistake: Mistake) -> World {
        let mut world = World {
            chance: Chance::new(seed),
            etcd: Etcd::new(mistake),
            fronts: Vec::new(),
            clients: Vec::new(),
            now_ms: 10_000,
            next_front: 1,
            next_conn: 1,
            next_request: 1,
            has_faults: true,
            acknowledged: BTreeMap::new(),
        };
        world.fronts = (0..2).map(|_| world.new_front()).collect();
        world.clients =
            (0..CLIENTS).map(|at| TestClient { front: at % 2, ..TestClient::default() }).collect();
        world
    }

    fn new_front(&mut self) -> Front {
        self.next_front += 1;
        let options = EngineOptions {
            keys: Keys::new("/p"),
            front: self.next_front << 32,
            limits: Limits { operations_max: 24, ..Limits::default() },
            tick_ms: 2000,
            write_timeout_ms: 8000,
            stale_reads: false,
            garbage_interval_ms: 60_000,
            garbage_max: 10,
        };
        Front {
            engine: Engine::new(options, self.now()),
            state: State::default(),
            out: Outboxes::new(1),
            calls: Vec::new(),
            watch: None,
        }
    }

    fn now(&self) -> Now {
        Now { monotonic_ms: self.now_ms, wall_ms: self.now_ms as i64 }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.has_faults && self.chance.below(n) == 0
    }

    pub(crate) fn step(&mut self) -> Result<(), String> {
        let front = self.chance.below(2) as usize;
        match self.chance.below(10) {
            0..=3 => self.deliver_call(front)?,
            4..=6 => self.deliver_watch(front)?,
            7 => self.tick(front)?,
            _ => self.act()?,
        }
        if let Some(fault) = self.etcd.short_lease.take() {
            return Err(fault);
        }
        if self.one_in(400) {
            self.etcd.compact();
        }
        if self.one_in(600) {
            self.kill(front);
        }
        Ok(())
    }

    fn input(&mut self, front: usize, input: Input) -> Result<(), String> {
        let now = self.now();
        let Front { engine, state, out, .. } = &mut self.fronts[front];
        let mut effects = Effects::default();
        engine.step(now, input, state, out, &mut effects);
        engine.work(now, state, out, &mut effects);
        let at = &mut self.fronts[front];
        at.calls.append(&mut effects.calls);
        at.watch = effects.watch.or(at.watch.take());
        for lease in effects.keep_alive {
            self.etcd.keep_alive(lease, self.now_ms);
        }
        self.take_mail(front)
    }

    fn deliver_call(&mut self, front: usize) -> Result<(), String> {
        let count = self.fronts[front].calls.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let at = self.chance.below(count) as usize;
        let (id, call) = self.fronts[front].calls.swap_remove(at);
        let lost = || Err(CallError::Lost("of the model".into()));
        if self.one_in(12) {
            // It is carried out later: its sender has given it up by then.
            if self.one_in(2) {
                self.fronts[front].calls.push((CallId(u64::MAX), call));
            }
            return self.input(front, Input::Answer(id, lost()));
        }
        let answer = self.etcd.answer(&call, self.now_ms);
        let answer = if self.one_in(12) { lost() } else { answer };
        self.input(front, Input::Answer(id, answer))
    }

    fn deliver_watch(&mut self, front: usize) -> Result<(), String> {
        let Some(order) = self.fronts[front].watch.clone() else { return Ok(()) };
        let generation = order.generation;
        let tell = |message| Input::Watch { generation, message };
        if self.one_in(60) {
            self.fronts[front].watch = None;
            return self.input(front, tell(WatchMessage::Lost("of the model".into())));
        }
        let Ok(next) = self.etcd.next_revision(order.first_revision) else {
            self.fronts[front].watch = None;
            return self.input(front, tell(WatchMessage::Compacted));
        };
        let Some(events) = next else { return self.input(front, tell(WatchMessage::Opened)) };
        let revision = events[0].mod_revision;
        if let Some(watch) = &mut self.fronts[front].watch {
            watch.first_revision = revision + 1;
        }
        if self.etcd.mistake == Mistake::LosesRevisions && self.one_in(30) {
            return Ok(());
        }
        self.input(front, tell(WatchMessage::Events { revision, events }))
    }

    fn has_events(&self, front: usize) -> bool {
        let watch = self.fronts[front].watch.as_ref();
        watch.is_some_and(|watch| {
            matches!(self.etcd.next_revision(watch.first_revision), Ok(Some(_)) | Err(()))
        })
    }

    fn tick(&mut self, front: usize) -> Result<(), String> {
        self.now_ms += 30;
        self.etcd.end_leases(self.now_ms);
        let sessions: Vec<SessionId> = self
            .clients
            .iter()
            .filter(|client| client.front == front && client.is_connected)
            .filter_map(|client| client.session)
            .collect();
        for session in sessions {
            self.input(front, Input::Client(ClientInput::Touch { session }))?;
        }
        self.input(front, Input::Tick)
    }

    /// The process is killed: its connections end.
    fn kill(&mut self, front: usize) {
        self.fronts[front] = self.new_front();
        for client in self.clients.iter_mut().filter(|client| client.front == front) {
            client.disconnected();
        }
    }

    fn act(&mut self) -> Result<(), String> {
        let at = self.chance.below(CLIENTS as u64) as usize;
        let client = &self.clients[at];
        if client.conn.is_none() {
            return if self.has_faults { self.connect(at) } else { Ok(()) };
        }
        if !client.is_connected || !self.has_faults || client.waiting.len() > 5 {
            return Ok(());
        }
        if self.one_in(80) {
            return self.disconnect(at);
        }
        match self.chance.below(8) {
            0 => self.sync(at),
            1 => self.write(at, "/e-", 3),
            _ => self.write(at, "/q-", 2),
        }
    }

    fn connect(&mut self, at: usize) -> Result<(), String> {
        let conn = ConnId::new(0, self.next_conn);
        self.next_conn += 1;
        let front = self.chance.below(2) as usize;
        // A client may come back with a longer timeout, or with a shorter one.
        let timeout_ms = TIMEOUT_MS << self.chance.below(2);
        let client = &mut self.clients[at];
        client.front = front;
        client.conn = Some(conn);
        let may_only_read = false;
        let input = match client.session {
            Some(session) => ClientInput::Resume { conn, session, timeout_ms, may_only_read },
            None => ClientInput::Connect { conn, timeout_ms, may_only_read },
        };
        self.input(front, Input::Client(input))
    }

    fn disconnect(&mut self, at: usize) -> Result<(), String> {
        let client = &mut self.clients[at];
        let front = client.front;
        let conn = client.disconnected();
        conn.map_or(Ok(()), |conn| self.input(front, Input::Client(ClientInput::Disconnect { conn })))
    }

    fn write(&mut self, at: usize, path: &str, flags: i32) -> Result<(), String> {
        let number = self.next_request;
        self.next_request += 1;
        let mut body = Vec::new();
        body.put_string(path);
        body.put_buffer(Some(&number.to_be_bytes()));
        body.put_count(1);
        Acl::open().encode(&mut body);
        body.put_i32(flags);
        let client = &mut self.clients[at];
        let (Some(conn), Some(session)) = (client.conn, client.session) else { return Ok(()) };
        let mut command = Vec::new();
        Command::encode(session, 0, IdList::NONE, OpCode::Create, &body, &mut command);
        client.waiting.push((number as i32, number));
        let (front, xid, op) = (client.front, Xid(number as i32), OpCode::Create);
        self.input(front, Input::Client(ClientInput::Write { conn, xid, op, command }))
    }

    fn sync(&mut self, at: usize) -> Result<(), String> {
        let number = self.next_request;
        self.next_request += 1;
        let client = &mut self.clients[at];
        let (Some(conn), Some(session)) = (client.conn, client.session) else { return Ok(()) };
        client.waiting.push((number as i32, 0));
        let mut body = Vec::new();
        body.put_string("/");
        let read = QueuedRead {
            client: Client::new(conn, session, &[]),
            xid: Xid(number as i32),
            op: OpCode::Sync,
            body,
        };
        let front = client.front;
        self.input(front, Input::Client(ClientInput::Read(read)))
    }

    fn take_mail(&mut self, front: usize) -> Result<(), String> {
        let mut gone = Vec::new();
        let World { fronts, clients, acknowledged, .. } = self;
        for (_, outbox) in fronts[front].out.iter_mut() {
            for (conn, parcel) in outbox.iter() {
                let Some(client) = clients.iter_mut().find(|client| client.conn == Some(conn)) else {
                    continue;
                };
                match parcel {
                    Parcel::Connected { session, .. } => {
                        if client.session != Some(session) {
                            client.last_name.clear();
                        }
                        (client.session, client.is_connected) = (Some(session), true);
                    }
                    Parcel::Expired => {
                        client.session = None;
                        gone.extend(client.disconnected().map(|conn| (client.front, conn)));
                    }
                    Parcel::Close => gone.extend(client.disconnected().map(|conn| (client.front, conn))),
                    Parcel::Reply(frame) => client.take_reply(frame, acknowledged)?,
                    Parcel::Event(_) => return Err("an event that nobody waits for".into()),
                }
            }
            outbox.clear();
        }
        for (front, conn) in gone {
            self.input(front, Input::Client(ClientInput::Disconnect { conn }))?;
        }
        Ok(())
    }

    /// Ends the faults, and checks what is promised in the end.
    pub(crate) fn finish(mut self) -> Result<usize, String> {
        self.has_faults = false;
        for _ in 0..HEALING_TICKS {
            for front in 0..2 {
                while !self.fronts[front].calls.is_empty() {
                    self.deliver_call(front)?;
                }
                while self.has_events(front) {
                    self.deliver_watch(front)?;
                }
                self.deliver_watch(front)?;
                self.tick(front)?;
            }
        }
        for (at, client) in self.clients.iter().enumerate() {
            if !client.waiting.is_empty() || client.conn.is_some() && !client.is_connected {
                return Err(format!("client {at} still waits: {:?}", client.waiting));
            }
        }
        self.check_states()?;
        Ok(self.acknowledged.len())
    }

    fn check_states(&mut self) -> Result<(), String> {
        let [first, second] = [0, 1].map(|front| znodes(&self.fronts[front].state));
        if first != second {
            return Err(format!("two states: {first:?} and {second:?}"));
        }
        let mut requests = BTreeSet::new();
        for (path, (number, _)) in &first {
            if !requests.insert(*number) {
                return Err(format!("request {number} was carried out twice, at last in {path}"));
            }
        }
        for (number, name) in self.acknowledged.iter().filter(|(_, name)| name.starts_with("/q-")) {
            match first.get(name) {
                Some((found, _)) if found == number => {}
                found => return Err(format!("{name} of request {number} is {found:?}")),
            }
        }
        let owners: BTreeSet<i64> =
            first.values().map(|(_, owner)| *owner).filter(|owner| *owner != 0).collect();
        let alive: BTreeSet<i64> = self.fronts[0].state.tree().sessions().map(|(id, _)| id.0).collect();
        if owners.is_subset(&alive) { Ok(()) } else { Err(format!("znodes of {owners:?} in {alive:?}")) }
    }
}

impl TestClient {
    fn disconnected(&mut self) -> Option<ConnId> {
        self.is_connected = false;
        self.waiting.clear();
        self.last_name.clear();
        self.conn.take()
    }

    fn take_reply(&mut self, frame: &[u8], acknowledged: &mut BTreeMap<u64, String>) -> Result<(), String> {
        let mut r = Reader::new(&frame[4..]);
        let broken = |_| "a broken reply".to_owned();
        let (xid, _zxid, error) =
            (r.i32().map_err(broken)?, r.i64().map_err(broken)?, r.i32().map_err(broken)?);
        if self.waiting.is_empty() || self.waiting[0].0 != xid {
            return Err(format!("a reply to {xid}, not to {:?}", self.waiting));
        }
        let (_, number) = self.waiting.remove(0);
        if number == 0 || error != 0 {
            return Ok(());
        }
        let name = r.string().map_err(broken)?.to_owned();
        let of = |name: &str| name[3..].to_owned();
        if !self.last_name.is_empty() && of(&name) <= of(&self.last_name) {
            return Err(format!("{name} comes after {}", self.last_name));
        }
        self.last_name.clone_from(&name);
        acknowledged.insert(number, name);
        Ok(())
    }
}

/// The znodes that clients have created: number of the request, and owner.
fn znodes(state: &State) -> BTreeMap<String, (u64, i64)> {
    let mut found = BTreeMap::new();
    let mut all = state.tree().znodes();
    while let Some((path, znode)) = all.next_znode() {
        if let Some(data) = znode.data.and_then(|data| data.try_into().ok()) {
            let owner = match znode.kind {
                ZnodeKind::Ephemeral(session) => session.0,
                _ => 0,
            };
            found.insert(path.to_owned(), (u64::from_be_bytes(data), owner));
        }
    }
    found
}
