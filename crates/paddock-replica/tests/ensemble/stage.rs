//! Members on a stage: their disks, the messages between them, their connections. The stage carries out what the replicas ask
//! for, in the order that `Effects` states; time passes and messages arrive when a story says so.

mod clients;
mod disk;
mod facts;
mod faults;
mod member;
mod packets;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use paddock_proto::{SessionId, SessionSecret};
use paddock_replica::{
    Effects, Founding, Input, Membership, OwnState, Recovered, ReplicaOptions, Replicated, Role, SingleGroup,
    WORK_AT_ONCE,
};
use paddock_state::{ConnId, Connected, Now, Outboxes, Parcel};
use paddock_tree::{FeatureLevel, REMOVED_AT_ONCE, Tree};

pub(crate) use self::clients::Guest;
pub(crate) use self::disk::Disk;
use self::disk::load;
use self::member::Member;
use self::packets::tell;

const TICK_MS: u64 = 100;

pub(crate) struct Stage {
    members: BTreeMap<u64, Option<Member>>,
    disks: BTreeMap<u64, Disk>,
    now: Now,
    seed: u64,
    /// Configuration of the members that start from now on.
    pub(crate) founding: Founding,
    /// Feature levels that the programs of members know: none unless it is said.
    pub(crate) known_levels: BTreeMap<u64, FeatureLevel>,
    pub(crate) linearizable_reads: bool,
    pub(crate) lease_clock_bound_ms: Option<u64>,
    messages: VecDeque<(u64, u64, Vec<u8>)>,
    pub(crate) messages_carried: usize,
    cut: BTreeSet<u64>,
    /// These reach each other, and no others.
    apart: BTreeSet<u64>,
    /// Messages to these are kept, in the order in which they were sent.
    deaf: BTreeMap<u64, Vec<(u64, Vec<u8>)>>,
    /// Nothing happens there, as if the process was stopped.
    asleep: BTreeSet<u64>,
    /// A member takes a snapshot when its log has more entries than this.
    pub(crate) entries_max: usize,
    /// Processes that were started.
    starts: u64,
    stories: BTreeMap<(u64, ConnId), Vec<String>>,
    sessions: BTreeMap<(u64, ConnId), SessionId>,
}

impl Stage {
    pub(crate) fn new(members: u64, seed: u64) -> Stage {
        Stage::founded_with(founding(1..=members), seed)
    }

    /// Stage of the members with which this configuration founds.
    pub(crate) fn founded_with(founding: Founding, seed: u64) -> Stage {
        let members = founding.membership.voters.len() as u64;
        let mut stage = Stage {
            members: (1..=members).map(|member| (member, None)).collect(),
            disks: (1..=members).map(|member| (member, Disk::default())).collect(),
            now: Now { monotonic_ms: 1000, wall_ms: 1_000_000 },
            seed,
            founding,
            known_levels: BTreeMap::new(),
            linearizable_reads: false,
            lease_clock_bound_ms: None,
            messages: VecDeque::new(),
            messages_carried: 0,
            cut: BTreeSet::new(),
            apart: BTreeSet::new(),
            deaf: BTreeMap::new(),
            asleep: BTreeSet::new(),
            entries_max: usize::MAX,
            starts: 0,
            stories: BTreeMap::new(),
            sessions: BTreeMap::new(),
        };
        (1..=members).for_each(|member| stage.start(member));
        stage
    }

    pub(crate) fn start(&mut self, member: u64) {
        self.starts += 1;
        let disk = self.disks.get_mut(&member).expect("every member has a disk");
        disk.partial.clear();
        let is_to_learn = std::mem::take(&mut disk.has_diverged);
        if is_to_learn {
            *disk = Disk { cluster: disk.cluster, ..Disk::default() };
        }
        let state = match &disk.snapshot {
            Some((applied, membership, bytes)) => Replicated::new(load(bytes), *applied, membership.clone()),
            None => Replicated::new(Tree::new(), (0, 0), Membership::default()),
        };
        let options = ReplicaOptions {
            member,
            tick_ms: TICK_MS,
            garbage_interval_ms: 60_000,
            garbage_max: 100,
            removed_at_once: REMOVED_AT_ONCE,
            stamps: false,
            work_at_once: WORK_AT_ONCE,
            entry_bytes_kept: 2000,
            group_count: 1,
            group_replicas: 0,
            split_points: Default::default(),
            linearizable_reads: self.linearizable_reads,
            lease_clock_bound_ms: self.lease_clock_bound_ms,
            secret: SessionSecret([member as u8; SessionSecret::BYTES]),
            known_level: self.known_levels.get(&member).copied().unwrap_or_default(),
            level_max: FeatureLevel::KNOWN,
            seed: self.seed,
            // Another one in every stage.
            process: self.seed * 1_000_000 + self.starts,
            founding: self.founding.clone(),
        };
        let membership = state.membership().clone();
        let entries = disk.entries.clone();
        let mut recovered = Recovered::new(state.applied(), membership, disk.hard_state, entries);
        recovered.cluster = disk.cluster;
        if is_to_learn {
            recovered.learn_first();
        }
        recovered.begin(member, options.process, state.tree(), self.now);
        disk.hard_state = recovered.hard_state;
        let replica = SingleGroup::new(options, recovered, &state, self.now);
        self.members.insert(
            member,
            Some(Member {
                replica,
                state,
                out: Outboxes::new(1),
                wants_snapshot: false,
                differing: vec![],
                foreign: vec![],
            }),
        );
    }

    pub(crate) fn run_ticks(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.now.monotonic_ms += TICK_MS;
            self.now.wall_ms += TICK_MS as i64;
            let numbers: Vec<u64> = self.members.keys().copied().collect();
            numbers.into_iter().for_each(|number| self.step(number, Input::Tick));
            self.settle();
        }
    }

    /// One tick, and one round of messages.
    pub(crate) fn step_once(&mut self) {
        self.now.monotonic_ms += TICK_MS;
        let numbers: Vec<u64> = self.members.keys().copied().collect();
        for number in numbers {
            self.step(number, Input::Tick);
            self.act(number);
        }
        self.deliver_all();
    }

    /// Lets every member do what it has to, and carries the messages, until all is quiet.
    pub(crate) fn settle(&mut self) {
        loop {
            let numbers: Vec<u64> = self.members.keys().copied().collect();
            numbers.into_iter().for_each(|number| self.act(number));
            if self.messages.is_empty() {
                return;
            }
            self.deliver_all();
        }
    }

    pub(crate) fn deliver_all(&mut self) {
        self.messages_carried += self.messages.len();
        for (from, to, bytes) in std::mem::take(&mut self.messages) {
            if self.is_cut(from, to) {
                continue;
            }
            match self.deaf.get_mut(&to) {
                Some(kept) => kept.push((from, bytes)),
                None => self.step(to, Input::Peer { from, bytes }),
            }
        }
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        let is_between = self.apart.contains(&from) != self.apart.contains(&to);
        is_between || self.cut.contains(&from) || self.cut.contains(&to)
    }

    fn step(&mut self, member: u64, input: Input) {
        let now = self.now;
        if self.asleep.contains(&member) {
            return;
        }
        if let Some(member) = self.members.get_mut(&member).and_then(Option::as_mut) {
            member.replica.step(now, input);
        }
    }

    fn act(&mut self, number: u64) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&number).and_then(Option::as_mut) else { return };
        let disk = self.disks.get_mut(&number).expect("every member has a disk");
        let mut effects = Effects::default();
        loop {
            member.replica.collect(now, &mut effects);
            if effects.is_empty() {
                break;
            }
            if effects.diverged_at.is_some() {
                disk.has_diverged = true;
                return self.stop(number);
            }
            for (to, bytes) in effects.messages.drain(..) {
                disk.check_promise(number, to, &bytes);
                self.messages.push_back((number, to, bytes));
            }
            // All members reach each other here.
            effects.sought_members = None;
            member.differing.append(&mut effects.differing);
            member.foreign.extend(effects.foreign.drain(..).map(|(from, _)| from));
            member.move_pieces(now, &mut effects, disk);
            if let Some(install) = effects.install.take() {
                member.install(now, disk, &install);
            }
            let mut held = OwnState(&mut member.state, &mut member.out);
            member.replica.apply(now, &mut effects, &mut held);
            if let Some(round) = effects.round.take() {
                disk.hard_state = effects.hard_state.take().unwrap_or(disk.hard_state);
                disk.cluster = member.replica.presence.cluster();
                for entry in effects.entries.drain(..) {
                    disk.entries.retain(|old| old.index < entry.index);
                    disk.entries.push(entry);
                }
                member.replica.step(now, Input::Persisted { round });
            }
        }
        if member.wants_snapshot || disk.entries.len() > self.entries_max {
            member.take_snapshot(now, disk);
        }
        for (_, outbox) in member.out.iter_mut() {
            for (conn, parcel) in outbox.iter() {
                if let Parcel::Connected(Connected { session, .. }, _) = parcel {
                    self.sessions.insert((number, conn), session);
                }
                self.stories.entry((number, conn)).or_default().extend(tell(parcel));
            }
            outbox.clear();
        }
    }

    /// Runs until one member leads all that run and are not cut off.
    pub(crate) fn elect(&mut self) -> u64 {
        for _ in 0..500 {
            self.run_ticks(1);
            let leaders: Vec<u64> = self
                .running()
                .filter(|(_, m)| m.replica.facts().role() == Role::Leader)
                .map(|(n, _)| n)
                .collect();
            if let [leader] = leaders[..]
                && !self.cut.contains(&leader)
            {
                return leader;
            }
        }
        panic!("no leader after 500 ticks");
    }

    /// Runs until a member leads that is not `former`, who may still believe that it does.
    pub(crate) fn elect_beside(&mut self, former: u64) -> u64 {
        for _ in 0..500 {
            self.run_ticks(1);
            let leader = self
                .running()
                .find(|(n, m)| *n != former && m.replica.facts().role() == Role::Leader)
                .map(|(n, _)| n);
            if let Some(leader) = leader {
                return leader;
            }
        }
        panic!("no other leader after 500 ticks");
    }
}

/// Configuration of voters with these numbers.
pub(crate) fn founding(voters: impl IntoIterator<Item = u64>) -> Founding {
    let voters: Vec<u64> = voters.into_iter().collect();
    let members = voters.iter().map(|id| server_line(*id, "participant") + "\n").collect();
    Founding {
        membership: Membership::new(voters, vec![]),
        members,
        by_majority: true,
        files_change_members: false,
    }
}

/// A member as a client names it.
pub(crate) fn server_line(id: u64, role: &str) -> String {
    format!("server.{id}=host{id}:2888:3888:{role};2181")
}
