//! The world of a seed: etcd, two front ends, and clients that write, read and move between them.

use std::fmt::Arguments;

use paddock_chance::Chance;
use paddock_etcd::{
    Call, CallError, CallId, Input, Keys, Operation, Pending, Tag, WatchMessage, encode_znode,
};
use paddock_proto::{Acl, SessionId};
use paddock_state::{ClientInput, Now};
use paddock_tree::{Znode, ZnodeKind};

use super::checks::Checks;
use super::client::Client;
use super::front_end::FrontEnd;
use super::store::{Mistakes, Store};
use super::weather::Weather;
use crate::checks::Checked;
use crate::time::{SimDuration, Time};
use crate::trace::{Telling, Trace};
use crate::world::Account;

pub(crate) const FRONT_ENDS: usize = 2;
pub(crate) const CLIENTS: usize = 4;
/// Steps in which things go wrong.
const STEPS: u64 = 4000;
/// Steps between two comparisons of a front end's state with etcd.
const COMPARISON_STEPS: u64 = 50;
/// A directory that all clients share.
pub(super) const SHARED: &str = "/s";

pub(crate) struct World {
    pub(super) chance: Chance,
    pub(super) weather: Weather,
    trace: Trace,
    pub(super) store: Store,
    pub(super) fronts: Vec<FrontEnd>,
    pub(super) clients: Vec<Client>,
    pub(super) checks: Checks,
    /// Calls whose senders have given them up, and which etcd carries out later.
    pub(super) late: Vec<Call>,
    now_ms: u64,
    /// Steps for which etcd has no space.
    scarce: u64,
    steps: u64,
    faults: u64,
    next_front: u64,
    pub(super) next_conn: u64,
    pub(super) next_request: u64,
    pub(super) has_faults: bool,
}

fn keys() -> Keys {
    Keys::new("/p")
}

pub(super) fn own_directory(client: usize) -> String {
    format!("/c{client}")
}

impl World {
    pub(crate) fn new(seed: u64, telling: Telling, mistakes: Mistakes) -> World {
        let mut world = World {
            chance: Chance::of(seed, "etcd"),
            weather: Weather::throw(seed),
            trace: Trace::new(telling),
            store: Store::new(keys(), mistakes),
            fronts: Vec::new(),
            clients: (0..CLIENTS).map(|at| Client { front: at % FRONT_ENDS, ..Client::default() }).collect(),
            checks: Checks::new(keys()),
            late: Vec::new(),
            now_ms: 10_000,
            scarce: 0,
            steps: 0,
            faults: 0,
            next_front: 1,
            next_conn: 1,
            next_request: 1,
            has_faults: true,
        };
        world.found();
        world.fronts = (0..FRONT_ENDS).map(|_| world.new_front()).collect();
        let weather = world.weather.clone();
        world.note(format_args!("{weather:?}"));
        world
    }

    /// Writes the directories that clients work in.
    fn found(&mut self) {
        let directory = Znode {
            data: None,
            acl: [Acl::open()].into(),
            kind: ZnodeKind::Persistent,
            czxid: self.store.revision() + 1,
            mzxid: self.store.revision() + 1,
            pzxid: self.store.revision() + 1,
            ctime_ms: 0,
            mtime_ms: 0,
            version: 0,
            children_created: 0,
            aversion: 0,
        };
        let value = encode_znode(&directory, Pending(self.store.revision()), Tag::default());
        let paths = (0..CLIENTS).map(own_directory).chain([SHARED.to_owned()]);
        let put =
            |path: String| Operation::Put { key: keys().znode(&path), value: value.clone(), lease: None };
        let puts: Vec<Operation> = paths.map(put).collect();
        self.store.write(&puts);
    }

    fn new_front(&mut self) -> FrontEnd {
        self.next_front += 1;
        FrontEnd::start(self.next_front, &keys(), self.now())
    }

    pub(crate) fn live(mut self) -> (Account, Vec<String>) {
        let violation = self.go_on().err();
        if let Some(violation) = &violation {
            self.note(format_args!("VIOLATION {violation}"));
        }
        let account = Account {
            violation,
            steps: self.steps,
            trace: self.trace.hash(),
            entries: self.store.revision() as u64,
            writes: self.clients.iter().map(|client| client.acknowledged).sum(),
            faults: self.faults,
        };
        (account, self.trace.into_lines())
    }

    fn go_on(&mut self) -> Checked {
        while self.steps < STEPS {
            self.steps += 1;
            self.step()?;
        }
        self.heal()
    }

    pub(super) fn note(&mut self, what: Arguments<'_>) {
        self.trace.note(Time(0) + SimDuration::millis(self.now_ms), what);
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn now(&self) -> Now {
        Now { monotonic_ms: self.now_ms, wall_ms: self.now_ms as i64 }
    }

    /// True if a fault strikes.
    fn strikes(&mut self, one_in: u64) -> bool {
        let strikes = self.has_faults && self.chance.one_in(one_in);
        self.faults += u64::from(strikes);
        strikes
    }

    fn step(&mut self) -> Checked {
        let front = self.chance.index(FRONT_ENDS);
        match self.chance.below(10) {
            0..=3 => self.deliver_call(front)?,
            4..=6 => self.deliver_watch(front)?,
            7 => self.tick(front)?,
            _ => self.act()?,
        }
        if !self.late.is_empty() && self.chance.one_in(self.weather.late_arrival) {
            self.deliver_late()?;
        }
        self.go_wrong(front)?;
        if self.steps.is_multiple_of(COMPARISON_STEPS) {
            self.compare()?;
        }
        Ok(())
    }

    fn go_wrong(&mut self, front: usize) -> Checked {
        if self.chance.one_in(self.weather.foreign) {
            self.store.write_elsewhere();
        }
        if self.strikes(self.weather.compaction) {
            self.note(format_args!("etcd compacts"));
            self.store.compact();
        }
        if self.strikes(self.weather.alarm) {
            self.scarce = self.chance.between(50, 800);
            self.note(format_args!("etcd has no space"));
        }
        self.scarce = self.scarce.saturating_sub(1);
        self.store.is_full = self.scarce > 0;
        if self.strikes(self.weather.kill) {
            self.kill(front);
        }
        if self.strikes(self.weather.sleep) {
            self.fronts[front].asleep = self.chance.between(50, 800);
            self.note(format_args!("front end {front} sleeps"));
        }
        if self.strikes(self.weather.cut) {
            self.fronts[front].cut_off = self.chance.between(50, 800);
            self.note(format_args!("front end {front} is cut off"));
        }
        for at in &mut self.fronts {
            (at.asleep, at.cut_off) = (at.asleep.saturating_sub(1), at.cut_off.saturating_sub(1));
        }
        Ok(())
    }

    /// The states of all front ends are those of etcd, as far as they have come.
    pub(super) fn compare(&self) -> Checked {
        let mut fronts = self.fronts.iter().enumerate();
        fronts.try_for_each(|(front, at)| self.checks.check_state(front, at, &self.store))
    }

    pub(super) fn input(&mut self, front: usize, input: Input) -> Checked {
        let now = self.now();
        for lease in self.fronts[front].take(now, input) {
            self.store.keep_alive(lease, self.now_ms);
        }
        self.take_mail(front)
    }

    /// A call of a front end comes to etcd, and its answer back.
    pub(super) fn deliver_call(&mut self, front: usize) -> Checked {
        let FrontEnd { calls, asleep, cut_off, .. } = &mut self.fronts[front];
        if calls.is_empty() || *asleep > 0 {
            return Ok(());
        }
        let is_cut_off = *cut_off > 0;
        let (id, call) = calls.swap_remove(self.chance.index(calls.len()));
        if is_cut_off || self.strikes(self.weather.call_lost) {
            return self.lose_call(front, id, call);
        }
        let answer = self.store.answer(&call, self.now_ms);
        self.note(format_args!("front end {front}: {call:?}: {answer:?}"));
        self.checks.observe(&self.store)?;
        let is_lost = self.strikes(self.weather.call_lost);
        let answer = if is_lost { Err(CallError::Lost("on its way back".into())) } else { answer };
        self.input(front, Input::Answer(id, answer))
    }

    fn lose_call(&mut self, front: usize, id: CallId, call: Call) -> Checked {
        self.note(format_args!("front end {front}: {call:?} is lost"));
        if self.chance.one_in(self.weather.call_late) {
            self.late.push(call);
        }
        self.input(front, Input::Answer(id, Err(CallError::Lost("on its way to etcd".into()))))
    }

    pub(super) fn deliver_late(&mut self) -> Checked {
        let at = self.chance.index(self.late.len());
        let call = self.late.swap_remove(at);
        let answer = self.store.answer(&call, self.now_ms);
        self.note(format_args!("late: {call:?}: {answer:?}"));
        self.checks.observe(&self.store)
    }

    /// The watch stream tells a front end the next revision, if there is one.
    pub(super) fn deliver_watch(&mut self, front: usize) -> Checked {
        let FrontEnd { watch, asleep, cut_off, .. } = &self.fronts[front];
        let (Some(order), 0) = (watch.clone(), *asleep) else { return Ok(()) };
        let generation = order.generation;
        let tell = |message| Input::Watch { generation, message };
        if *cut_off > 0 || self.strikes(self.weather.stream_lost) {
            self.fronts[front].watch = None;
            self.note(format_args!("front end {front} loses the watch stream"));
            return self.input(front, tell(WatchMessage::Lost("by chance".into())));
        }
        let Ok(next) = self.store.next_revision(order.first_revision) else {
            self.fronts[front].watch = None;
            self.note(format_args!("front end {front} asks for what is compacted"));
            return self.input(front, tell(WatchMessage::Compacted));
        };
        let Some(events) = next.map(<[_]>::to_vec) else {
            return self.input(front, tell(WatchMessage::Opened));
        };
        let revision = events[0].mod_revision;
        if let Some(watch) = &mut self.fronts[front].watch {
            watch.first_revision = revision + 1;
        }
        if self.store.mistakes.loses_revisions && self.strikes(30) {
            return Ok(());
        }
        self.note(format_args!("front end {front} sees revision {revision}"));
        self.input(front, tell(WatchMessage::Events { revision, events }))
    }

    /// True if the watch stream has something to tell.
    pub(super) fn has_events(&self, front: usize) -> bool {
        let watch = self.fronts[front].watch.as_ref();
        let next = watch.map(|watch| self.store.next_revision(watch.first_revision));
        matches!(next, Some(Ok(Some(_)) | Err(_)))
    }

    pub(super) fn tick(&mut self, front: usize) -> Checked {
        self.now_ms += self.weather.tick_ms;
        self.store.end_leases(self.now_ms);
        self.checks.observe(&self.store)?;
        if self.fronts[front].asleep > 0 {
            return Ok(());
        }
        let connected = self.clients.iter().filter(|client| client.front == front && client.is_connected);
        let sessions: Vec<SessionId> = connected.filter_map(|client| client.session).collect();
        for session in sessions {
            self.input(front, Input::Client(ClientInput::Touch { session }))?;
        }
        self.input(front, Input::Tick)
    }

    /// The process of a front end is killed, and another one starts. Some of its calls are still on their way.
    fn kill(&mut self, front: usize) {
        self.note(format_args!("front end {front} is killed"));
        let new = self.new_front();
        let old = std::mem::replace(&mut self.fronts[front], new);
        for (_, call) in old.calls {
            if self.chance.one_in(self.weather.call_late) {
                self.late.push(call);
            }
        }
        self.clients.iter_mut().filter(|client| client.front == front).for_each(|client| {
            client.disconnected();
        });
    }
}
