//! The world of a seed: etcd, two front ends, and clients that write, read and move between them.

use std::fmt::Arguments;

use paddock_chance::Chance;
use paddock_etcd::{Call, Input, Keys, Operation, Pending, Tag, WatchMessage, encode_znode};
use paddock_proto::{Acl, SessionId};
use paddock_state::{ClientInput, ConnId, Now};
use paddock_tree::{Znode, ZnodeKind};

use super::checks::Checks;
use super::client::FrontEndClient;
use super::front_end::FrontEnd;
use super::store::{EtcdModel, Mistakes};
use super::weather::Weather;
use crate::checks::{Checked, ensure};
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
    pub(super) store: EtcdModel,
    pub(super) fronts: Vec<FrontEnd>,
    pub(super) clients: Vec<FrontEndClient>,
    /// Front ends and connections of those who want sessions of clients and may not have them.
    pub(super) strangers: Vec<(usize, ConnId)>,
    pub(super) checks: Checks,
    /// Calls whose senders have given them up, and which etcd carries out later.
    pub(super) late: Vec<Call>,
    now_ms: u64,
    /// Steps for which etcd has no space.
    pub(super) scarce: u64,
    /// Steps for which etcd refuses every call.
    pub(super) denying: u64,
    steps: u64,
    pub(super) faults: u64,
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
            store: EtcdModel::new(keys(), mistakes),
            fronts: Vec::new(),
            clients: (0..CLIENTS)
                .map(|at| FrontEndClient { front: at % FRONT_ENDS, ..FrontEndClient::default() })
                .collect(),
            strangers: Vec::new(),
            checks: Checks::new(keys()),
            late: Vec::new(),
            now_ms: 10_000,
            scarce: 0,
            denying: 0,
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

    pub(super) fn new_front(&mut self) -> FrontEnd {
        self.next_front += 1;
        FrontEnd::start(self.next_front, &keys(), self.weather.operations_max, self.now())
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
        self.go_wrong(front);
        if self.steps.is_multiple_of(COMPARISON_STEPS) {
            self.compare()?;
        }
        Ok(())
    }

    /// The states of all front ends are those of etcd, as far as they have come.
    pub(super) fn compare(&self) -> Checked {
        let mut fronts = self.fronts.iter().enumerate();
        fronts.try_for_each(|(front, at)| self.checks.check_state(front, at, &self.store))
    }

    /// The contact that a front end claims is true: its state has all that etcd had before that time. It reads the state anew only if
    /// it could not follow.
    fn check_contact(&self, front: usize) -> Checked {
        let at = &self.fronts[front];
        at.engine.assert_sound();
        let loads = at.engine.counts(self.now()).loads;
        ensure!(
            loads <= 1 + at.compactions,
            "following",
            "front end {front} has read the state {loads} times, and was told of {} compactions",
            at.compactions
        );
        let (confirmed_ms, shown) = (at.engine.confirmed_ms(), at.state.tree().zxid().0);
        self.checks.contact.check(front, confirmed_ms, shown, self.store.refused_ms)
    }

    pub(super) fn input(&mut self, front: usize, input: Input) -> Checked {
        let now = self.now();
        let renewed = self.fronts[front].take(now, input);
        if !self.fronts[front].is_cut_off(self.now_ms) {
            renewed.into_iter().for_each(|lease| self.store.keep_alive(lease, self.now_ms));
        }
        self.check_contact(front)?;
        self.take_mail(front)
    }

    /// The watch stream tells a front end the next revision, if there is one.
    pub(super) fn deliver_watch(&mut self, front: usize) -> Checked {
        let FrontEnd { watch, asleep, stalled, .. } = &self.fronts[front];
        let is_stalled = *stalled > 0;
        let (Some(order), 0) = (watch.clone(), *asleep) else { return Ok(()) };
        let generation = order.generation;
        let tell = |message| Input::Watch { generation, message };
        if self.fronts[front].is_cut_off(self.now_ms) || self.strikes(self.weather.stream_lost) {
            self.fronts[front].watch = None;
            self.note(format_args!("front end {front} loses the watch stream"));
            return self.input(front, tell(WatchMessage::Lost("by chance".into())));
        }
        if is_stalled {
            return Ok(());
        }
        let Ok(next) = self.store.next_revision(order.first_revision) else {
            self.fronts[front].watch = None;
            self.fronts[front].compactions += 1;
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
        if self.fronts[front].stalled > 0 {
            return false;
        }
        let watch = self.fronts[front].watch.as_ref();
        let next = watch.map(|watch| self.store.next_revision(watch.first_revision));
        matches!(next, Some(Ok(Some(_)) | Err(_)))
    }

    pub(super) fn tick(&mut self, front: usize) -> Checked {
        self.now_ms += self.tick_ms();
        self.store.end_leases(self.now_ms);
        self.checks.observe(&self.store, self.now_ms)?;
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
}
