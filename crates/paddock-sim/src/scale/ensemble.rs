//! Members with a core each, and the network between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use paddock_chance::Chance;
use paddock_proto::GroupsCommand;
use paddock_replica::{Input, raft_id};
use paddock_state::{ConnId, Now};
use paddock_tree::{FeatureLevel, SLOTS};

use super::costs::{Costs, Spent};
use super::shape::Shape;
use crate::machine::disk::SimDisk;
use crate::machine::process::{NextWork, SimProcess};
use crate::machine::setup::Settings;
use crate::machine::shell::RoundOutput;
use crate::names;
use crate::queue::Queue;
use crate::time::{SimDuration, Time};
use crate::wire::WirePacket;

/// Time that a packet is on its way.
const NETWORK: SimDuration = SimDuration::micros(50);
/// Time for which a sync of the disk is waited for.
const SYNC: SimDuration = SimDuration::micros(100);
const TICK: SimDuration = SimDuration::millis(paddock_member::Member::TICK_MS);
/// Begin of the world, for clocks that people set.
const WALL_MS: i64 = 1_700_000_000_000;
/// Virtual time in which an ensemble has to be founded, or slots have to move.
const PREPARES_WITHIN: SimDuration = SimDuration::seconds(600);
/// Virtual time behind its founding after which each group is led by the member to which its lead belongs.
const LEADS_SETTLE: SimDuration = SimDuration::seconds(10);

/// The split point below which clients write.
pub(super) const ROOT: &str = names::SPLIT_POINTS[0];

#[derive(Debug)]
enum Arrival {
    Letters {
        from: u8,
        letters: Vec<Vec<u8>>,
    },
    Accept {
        conn: ConnId,
    },
    Requests {
        conn: ConnId,
        bytes: Vec<u8>,
    },
    Tick,
    /// The time has come to report sessions.
    Touches,
    Synced,
    /// Turns of connections that were cut short go on.
    Rest,
}

#[derive(Debug)]
enum ScaleEvent {
    Arrives {
        member: u8,
        what: Arrival,
    },
    /// A member's core is free, and something waits.
    Turn {
        member: u8,
    },
    Client(Replies),
}

/// Packets that a member has sent to a client together.
#[derive(Debug)]
pub(super) struct Replies {
    pub(super) conn: ConnId,
    pub(super) packets: Vec<WirePacket>,
}

/// Work of the members in a time.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) span: SimDuration,
    pub(super) members: Vec<Spent>,
}

#[derive(Debug)]
struct ScaleMember {
    process: SimProcess,
    disk: SimDisk,
    waiting: Vec<Arrival>,
    /// Nanoseconds since the world began at which its core is free.
    free_at_ns: u64,
    has_turn: bool,
    spent: Spent,
}

#[derive(Debug)]
pub(super) struct ScaledEnsemble {
    shape: Shape,
    members: Vec<ScaleMember>,
    queue: Queue<ScaleEvent>,
    now: Time,
}

impl ScaledEnsemble {
    /// All members, with empty disks.
    pub(super) fn start(shape: &Shape) -> ScaledEnsemble {
        let settings = settings(shape);
        let mut ensemble =
            ScaledEnsemble { shape: shape.clone(), members: Vec::new(), queue: Queue::new(), now: Time(0) };
        for number in 1..=shape.members {
            let disk = SimDisk::new(number.into());
            let config = settings.config(number, number.into(), FeatureLevel::KNOWN);
            let started = SimProcess::start(&disk, config, &settings, local_time(Time(0)));
            let mut process = started.expect("an empty disk has nothing that is wrong");
            process.take_bytes_whole();
            let spent = Spent::default();
            ensemble.members.push(ScaleMember {
                process,
                disk,
                waiting: Vec::new(),
                free_at_ns: 0,
                has_turn: false,
                spent,
            });
            // Members tick at different times.
            let offset = SimDuration(TICK.0 * u64::from(number) / u64::from(shape.members));
            ensemble.plan(offset, number, Arrival::Tick);
            ensemble.plan(offset, number, Arrival::Touches);
        }
        ensemble
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Lives until all groups are there and led.
    pub(super) fn settle(&mut self) {
        let groups = self.shape.groups as usize;
        self.live_until("all groups have a leader", |ensemble| {
            let led = ensemble.members.iter().flat_map(|member| member.process.group_standings());
            let led: BTreeSet<u32> =
                led.filter(|standing| standing.leads).map(|standing| standing.number).collect();
            led.len() == groups
        });
        self.measure(LEADS_SETTLE, |_, _| {});
    }

    /// Spreads the slots of the root evenly over the groups beside the home group.
    pub(super) fn spread(&mut self) {
        for group in 1..self.shape.groups {
            let (first, last) = self.slots(group);
            let mut body = Vec::new();
            GroupsCommand::Move { path: ROOT, first, last, group }.encode(&mut body);
            self.members[0].process.put(Input::BetweenGroups(body));
            self.wake(1);
            self.live_until("slots have moved", |ensemble| {
                let state = ensemble.members[0].process.state.read();
                let point = state.tree().split_points().get(ROOT);
                point.is_some_and(|point| point.leaving().is_none() && point.slots().group(last) == group)
            });
        }
    }

    /// Slots of a group beside the home group, the first and the last.
    pub(super) fn slots(&self, group: u32) -> (u16, u16) {
        let (slots, groups) = (u32::from(SLOTS), self.shape.loaded_groups());
        let begin = |group: u32| ((group - 1) * slots / groups) as u16;
        (begin(group), (group * slots / groups - 1) as u16)
    }

    pub(super) fn accept(&mut self, member: u8, conn: ConnId) {
        self.plan(NETWORK, member, Arrival::Accept { conn });
    }

    pub(super) fn request(&mut self, member: u8, conn: ConnId, bytes: Vec<u8>) {
        self.plan(NETWORK, member, Arrival::Requests { conn, bytes });
    }

    /// Lives for this time, and tells what each member has done in it. Clients are told by `hear` what comes for them.
    pub(super) fn measure(
        &mut self,
        span: SimDuration,
        mut hear: impl FnMut(&mut ScaledEnsemble, Replies),
    ) -> Measured {
        self.members.iter_mut().for_each(|member| member.spent = Spent::default());
        let end = self.now + span;
        while self.now < end {
            if let Some(replies) = self.step() {
                hear(self, replies);
            }
        }
        Measured { span, members: self.members.iter().map(|member| member.spent).collect() }
    }

    /// Lives until a client hears something.
    pub(super) fn next_replies(&mut self) -> Replies {
        let end = self.now + PREPARES_WITHIN;
        loop {
            if let Some(replies) = self.step() {
                return replies;
            }
            assert!(self.now < end, "no client is answered");
        }
    }

    fn live_until(&mut self, what: &str, is_so: impl Fn(&ScaledEnsemble) -> bool) {
        let end = self.now + PREPARES_WITHIN;
        while !is_so(self) {
            self.measure(SimDuration::millis(20), |_, _| {});
            assert!(self.now < end, "within {PREPARES_WITHIN}, not true: {what}");
        }
    }

    fn step(&mut self) -> Option<Replies> {
        let (at, event) = self.queue.next().expect("members tick");
        self.now = at;
        match event {
            ScaleEvent::Arrives { member, what } => {
                self.member(member).waiting.push(what);
                self.wake(member);
                None
            }
            ScaleEvent::Turn { member } => {
                self.turn(member);
                None
            }
            ScaleEvent::Client(replies) => Some(replies),
        }
    }

    /// Plans a turn of a member for the time at which its core is free.
    fn wake(&mut self, number: u8) {
        let now = self.now;
        let member = self.member(number);
        if !std::mem::replace(&mut member.has_turn, true) {
            let free_at = Time(member.free_at_ns.div_ceil(1000));
            self.queue.plan(free_at.max(now), ScaleEvent::Turn { member: number });
        }
    }

    /// A member takes all that waits, and does what comes of it, up to the next sync.
    fn turn(&mut self, number: u8) {
        let now = self.now;
        let member = self.member(number);
        member.has_turn = false;
        let done = member.work(local_time(now));
        let spent_ns = (done.spent.total_ns() as f64 / self.shape.core) as u64;
        let member = self.member(number);
        member.spent += done.spent;
        member.free_at_ns = member.free_at_ns.max(now.0 * 1000) + spent_ns;
        let free_at = Time(member.free_at_ns.div_ceil(1000));
        let has_work = member.process.has_work() && !member.process.is_busy;
        for (to, letters) in done.letters {
            let what = Arrival::Letters { from: number, letters };
            self.queue.plan(free_at + NETWORK, ScaleEvent::Arrives { member: to, what });
        }
        for (conn, packets) in done.packets {
            self.queue.plan(free_at + NETWORK, ScaleEvent::Client(Replies { conn, packets }));
        }
        for (span, what) in done.planned {
            // A tick that is late is not made up for.
            self.queue.plan(free_at.max(now) + span, ScaleEvent::Arrives { member: number, what });
        }
        if has_work {
            self.wake(number);
        }
    }

    fn plan(&mut self, span: SimDuration, member: u8, what: Arrival) {
        self.queue.plan(self.now + span, ScaleEvent::Arrives { member, what });
    }

    fn member(&mut self, number: u8) -> &mut ScaleMember {
        &mut self.members[usize::from(number) - 1]
    }
}

/// Yield of a turn.
#[derive(Debug, Default)]
struct Done {
    spent: Spent,
    letters: BTreeMap<u8, Vec<Vec<u8>>>,
    packets: BTreeMap<ConnId, Vec<WirePacket>>,
    planned: Vec<(SimDuration, Arrival)>,
}

impl ScaleMember {
    fn work(&mut self, now: Now) -> Done {
        // A thread of its own writes the next file of the log: zeros, and here into memory. That is counted nowhere.
        while self.process.keep_house().expect("the disk is good") {}
        let (mut done, mut packets) = (Done::default(), Vec::new());
        let (mut senders, mut readers) = (BTreeSet::new(), BTreeSet::new());
        let begun = Instant::now();
        for arrival in std::mem::take(&mut self.waiting) {
            match arrival {
                Arrival::Letters { from, letters } => {
                    senders.insert(from);
                    let peer = |bytes| Input::Peer { from: raft_id(from.into()), bytes };
                    letters.into_iter().map(peer).for_each(|input| self.process.put(input));
                }
                Arrival::Accept { conn } => {
                    self.process.beside(now).accept(conn, ([10, 0, 0, 1], 1).into());
                }
                Arrival::Requests { conn, bytes } => {
                    readers.insert(conn);
                    packets.extend(self.process.beside(now).receive_bytes(conn, &bytes));
                }
                Arrival::Tick => {
                    self.process.tick_is_due();
                    done.planned.push((TICK, Arrival::Tick));
                }
                Arrival::Touches => {
                    packets.extend(self.process.beside(now).report_heard());
                    done.planned.push((TICK, Arrival::Touches));
                }
                Arrival::Synced => {
                    self.process.is_busy = false;
                    self.disk.complete_sync();
                }
                Arrival::Rest => {}
            }
        }
        done.spent.front_ns = elapsed_ns(begun);
        self.run_engine(now, &mut done);
        let begun = Instant::now();
        for worker in 0..self.process.workers() {
            packets.extend(self.process.beside(now).deliver(worker));
        }
        if self.process.has_put_off() {
            packets.extend(self.process.beside(now).take_turns());
            done.planned.push((SimDuration::ZERO, Arrival::Rest));
        }
        done.spent.front_ns += elapsed_ns(begun);
        for (conn, packet) in packets {
            done.packets.entry(conn).or_default().push(packet);
        }
        let counted = [
            (1, Costs::WAKE_NS),
            (done.letters.len(), Costs::SEND_NS),
            (senders.len(), Costs::RECEIVE_NS),
            (readers.len(), Costs::CLIENT_READ_NS),
            (done.packets.len(), Costs::CLIENT_WRITE_NS),
            (done.spent.syncs as usize, Costs::SYNC_NS),
        ];
        done.spent.system_ns = counted.iter().map(|(count, each)| *count as u64 * each).sum();
        done.spent.packets = done.letters.len() as u64;
        done
    }

    fn run_engine(&mut self, now: Now, done: &mut Done) {
        if self.process.is_busy || !self.process.has_work() {
            return;
        }
        let (begun, mut output) = (Instant::now(), RoundOutput::default());
        let next = self.process.turn(now, &self.disk, &mut output, &mut ());
        done.spent.engine_ns = elapsed_ns(begun);
        if let NextWork::Synced = next.expect("nothing goes wrong here") {
            self.process.is_busy = true;
            (done.spent.syncs, self.process.last_sync) = (1, SYNC);
            done.planned.push((SYNC, Arrival::Synced));
        }
        done.spent.home_entries = output.committed.len() as u64;
        done.spent.group_entries = output.committed_in_groups.len() as u64;
        for (to, bytes) in output.letters {
            (done.spent.letters, done.spent.letter_bytes) =
                (done.spent.letters + 1, done.spent.letter_bytes + bytes.len() as u64);
            done.letters.entry(to).or_default().push(bytes);
        }
    }
}

fn elapsed_ns(begun: Instant) -> u64 {
    begun.elapsed().as_nanos() as u64
}

fn local_time(now: Time) -> Now {
    let millis = now.0 / 1000;
    Now { monotonic_ms: millis + 1_000_000, wall_ms: WALL_MS + millis as i64 }
}

/// Settings of a server, as far as they matter here. No snapshot is taken: it is short.
fn settings(shape: &Shape) -> Settings {
    let mut settings = Settings::throw(shape.members, 0, &mut Chance::new(1));
    (settings.groups, settings.replicas) = (shape.groups, shape.replicas);
    settings.tick_ms = 2000;
    settings.workers = 1;
    settings.garbage_interval_ms = 60_000;
    (settings.snapshot_writes, settings.snapshot_log_bytes) = (1 << 40, 1 << 40);
    settings.segment_bytes = 16 << 20;
    settings.entry_bytes_kept = 4 << 20;
    (settings.linearizable_reads, settings.lease_clock_bound_ms) = (false, None);
    settings.compressing = 0;
    settings
}
