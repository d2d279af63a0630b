//! Members on a stage: their disks, the messages between them, their connections.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use paddock_chance::Chance;
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{AclList, Id, IdList, OpCode, Read, ReplyHeader, SessionId, WatchEvent, Xid, frame};
use paddock_replica::testing::MessageFacts;
use paddock_replica::{
    Cluster, Effects, Founding, HardState, Input, Install, LogEntry, Membership, Recovered, Replica,
    ReplicaOptions, Replicated, Role,
};
use paddock_state::{Client, ClientInput, ConnId, Now, Outboxes, Parcel, QueuedRead};
use paddock_tree::{Asker, Command, Tree, TreeLoader};

const TICK_MS: u64 = 100;
const SESSION_TIMEOUT_MS: i32 = 10_000;

/// Snapshots travel in pieces of so many bytes.
const PIECE_BYTES: usize = 1000;

#[derive(Clone, Default)]
pub(crate) struct Disk {
    /// Index and term, who took part, and the blocks one behind the other, each behind its length.
    snapshot: Option<((u64, u64), Membership, Vec<u8>)>,
    /// One that is on its way here.
    partial: Vec<u8>,
    /// Behind the snapshot.
    entries: Vec<LogEntry>,
    hard_state: HardState,
    cluster: Cluster,
    /// The contents are wrong: the member begins anew without them.
    has_diverged: bool,
}

impl Disk {
    /// The last entry that is here, and its term.
    fn last(&self) -> (u64, u64) {
        let snapshot = self.snapshot.as_ref().map_or((0, 0), |(applied, ..)| *applied);
        self.entries.last().map_or(snapshot, |entry| (entry.index, entry.term))
    }

    /// Asserts that the promise of a message is on disk when it leaves: a vote, entries that are acknowledged.
    fn check_promise(&self, member: u64, to: u64, message: &[u8]) {
        let MessageFacts { campaign, vote, acknowledges, .. } = MessageFacts::of(message);
        let own = campaign.map(|(term, _)| (term, member));
        for (term, candidate) in own.into_iter().chain(vote.map(|term| (term, to))) {
            let HardState { term: written, vote, .. } = self.hard_state;
            let is_here = written > term || (written, vote) == (term, candidate);
            assert!(
                is_here,
                "member {member} votes for {candidate} in term {term}, with {vote} in {written} on disk"
            );
        }
        if let Some((index, term)) = acknowledges {
            let (last, last_term) = self.last();
            let is_here = last >= index || self.hard_state.term > term;
            assert!(is_here, "member {member} acknowledges {index}, with {last} of term {last_term} on disk");
        }
    }
}

struct Member {
    replica: Replica,
    state: Replicated,
    out: Outboxes,
    wants_snapshot: bool,
    /// Members whose state was seen to be another one.
    differing: Vec<u64>,
    /// Peers that were refused, since they belong to another ensemble.
    foreign: Vec<u64>,
}

impl Member {
    fn move_pieces(&mut self, now: Now, effects: &mut Effects, disk: &mut Disk) {
        self.wants_snapshot |= std::mem::take(&mut effects.wants_snapshot);
        for read in effects.snapshot_reads.drain(..) {
            let found = disk.snapshot.as_ref().filter(|((index, _), ..)| *index == read.index);
            let piece = found.map(|(.., bytes)| {
                let rest = &bytes[read.offset as usize..];
                (rest[..rest.len().min(PIECE_BYTES)].to_vec(), rest.len() <= PIECE_BYTES)
            });
            self.replica.step(now, Input::SnapshotRead { read, piece });
        }
        for write in effects.snapshot_writes.drain(..) {
            disk.partial.truncate(write.offset as usize);
            assert_eq!(disk.partial.len() as u64, write.offset, "pieces come one after the other");
            disk.partial.extend(write.bytes);
            let (index, offset, is_last) = (write.index, disk.partial.len() as u64, write.is_last);
            let is_good = !is_last || is_whole(&disk.partial);
            self.replica.step(now, Input::SnapshotWritten { index, offset, is_last, is_good });
        }
    }

    fn install(&mut self, now: Now, disk: &mut Disk, install: &Install) {
        let bytes = std::mem::take(&mut disk.partial);
        let (applied, membership) = ((install.index, install.term), install.membership.clone());
        self.state = Replicated::new(load(&bytes), applied, membership.clone());
        disk.snapshot = Some((applied, membership, bytes));
        disk.entries.clear();
        self.replica.installed(now, &self.state, &mut self.out);
    }

    fn take_snapshot(&mut self, now: Now, disk: &mut Disk) {
        self.wants_snapshot = false;
        let (index, term) = self.state.applied();
        let mut bytes = Vec::new();
        for block in save(self.state.tree_mut()) {
            bytes.extend_from_slice(&(block.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&block);
        }
        let membership = self.state.membership().clone();
        disk.snapshot = Some(((index, term), membership.clone(), bytes));
        disk.entries.retain(|entry| entry.index > index);
        self.replica.step(now, Input::SnapshotTaken { index, term, membership });
    }
}

/// A client's session on a member.
#[derive(Clone)]
pub(crate) struct Guest {
    member: u64,
    client: Client,
}

pub(crate) struct Stage {
    members: BTreeMap<u64, Option<Member>>,
    disks: BTreeMap<u64, Disk>,
    now: Now,
    seed: u64,
    /// Configuration of the members that start from now on.
    pub(crate) founding: Founding,
    pub(crate) linearizable_reads: bool,
    pub(crate) lease_clock_bound_ms: Option<u64>,
    messages: VecDeque<(u64, u64, Vec<u8>)>,
    pub(crate) messages_carried: usize,
    cut: BTreeSet<u64>,
    /// These reach each other, and nobody else.
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

    /// Somebody sets everybody's clock.
    pub(crate) fn set_wall_clock(&mut self, wall_ms: i64) {
        self.now.wall_ms = wall_ms;
    }

    /// A member with an empty disk, whether it is new or has lost what it had.
    pub(crate) fn start_empty(&mut self, member: u64) {
        self.stop(member);
        self.disks.insert(member, Disk::default());
        self.start(member);
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
            entry_bytes_kept: 2000,
            linearizable_reads: self.linearizable_reads,
            lease_clock_bound_ms: self.lease_clock_bound_ms,
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
        recovered.begin(member, state.tree(), self.now);
        disk.hard_state = recovered.hard_state;
        let replica = Replica::new(options, recovered, &state, self.now);
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

    /// A copy of what is on the member's disk.
    pub(crate) fn copy_disk(&self, member: u64) -> Disk {
        self.disks[&member].clone()
    }

    /// Starts the member with another disk.
    pub(crate) fn start_with(&mut self, member: u64, disk: Disk) {
        self.stop(member);
        self.disks.insert(member, disk);
        self.start(member);
    }

    /// True if the member has stopped, because most others have another state.
    pub(crate) fn has_diverged(&self, member: u64) -> bool {
        self.members[&member].is_none() && self.disks[&member].has_diverged
    }

    /// Which peers the member has refused, since they belong to another ensemble.
    pub(crate) fn foreign(&self, member: u64) -> &[u64] {
        &self.members[&member].as_ref().expect("the member runs").foreign
    }

    /// The member's process is gone; what it had synced is there.
    pub(crate) fn stop(&mut self, member: u64) {
        self.members.insert(member, None);
        self.messages.retain(|(from, to, _)| *from != member && *to != member);
    }

    /// A member's link to another one ends, and there is no other for now.
    pub(crate) fn lose_link(&mut self, member: u64, peer: u64) {
        self.step(member, Input::LinkLost { peer });
        self.settle();
    }

    /// Nothing goes in or out.
    pub(crate) fn cut(&mut self, member: u64) {
        self.cut.insert(member);
    }

    pub(crate) fn mend(&mut self, member: u64) {
        self.cut.remove(&member);
    }

    /// From now on these members reach each other, and nobody else.
    pub(crate) fn set_apart(&mut self, members: &[u64]) {
        self.apart = members.iter().copied().collect();
    }

    /// Milliseconds since the member's last contact with a leader that a quorum follows.
    pub(crate) fn silence_ms(&self, member: u64) -> u64 {
        let member = self.members[&member].as_ref().expect("the member runs");
        self.now.monotonic_ms.saturating_sub(member.replica.confirmed_ms())
    }

    pub(crate) fn sleep(&mut self, member: u64) {
        self.asleep.insert(member);
        self.cut(member);
    }

    pub(crate) fn wake(&mut self, member: u64) {
        self.asleep.remove(&member);
        self.mend(member);
    }

    /// Keeps messages for this member until `tell` is called.
    pub(crate) fn deafen(&mut self, member: u64) {
        self.deaf.insert(member, Vec::new());
    }

    pub(crate) fn tell(&mut self, member: u64) {
        for (from, bytes) in self.deaf.remove(&member).expect("it was deaf") {
            self.step(member, Input::Peer { from, bytes });
        }
        self.settle();
    }

    /// Stops, starts, cuts or mends some member, or loses some messages, but leaves a majority of disks in peace.
    pub(crate) fn disturb(&mut self, chance: &mut Chance) {
        let count = self.members.len() as u64;
        let member = 1 + chance.below(count);
        match chance.below(10) {
            0 => self.stop(member),
            1 | 2 => {
                let stopped: Vec<u64> =
                    self.members.iter().filter(|(_, m)| m.is_none()).map(|(id, _)| *id).collect();
                stopped.into_iter().for_each(|member| self.start(member));
            }
            3 => self.cut(member),
            4 | 5 => self.cut.clear(),
            6 => self.messages.truncate(self.messages.len() / 2),
            _ => {}
        }
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
        let stopped: Vec<u64> = self.members.iter().filter(|(_, m)| m.is_none()).map(|(id, _)| *id).collect();
        stopped.into_iter().for_each(|member| self.start(member));
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
            member.differing.append(&mut effects.differing);
            member.foreign.extend(effects.foreign.drain(..).map(|(from, _)| from));
            member.move_pieces(now, &mut effects, disk);
            if let Some(install) = effects.install.take() {
                member.install(now, disk, &install);
            }
            member.replica.apply(now, &mut effects, &mut member.state, &mut member.out);
            if let Some(round) = effects.round.take() {
                disk.hard_state = effects.hard_state.take().unwrap_or(disk.hard_state);
                disk.cluster = member.replica.cluster();
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
                if let Parcel::Connected { session, .. } = parcel {
                    self.sessions.insert((number, conn), session);
                }
                self.stories.entry((number, conn)).or_default().extend(tell(parcel));
            }
            outbox.clear();
        }
    }

    /// Time in which no member does anything.
    pub(crate) fn pass_time(&mut self, ms: u64) {
        self.now.monotonic_ms += ms;
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

    /// Runs until one member leads all that run and are not cut off.
    pub(crate) fn elect(&mut self) -> u64 {
        for _ in 0..500 {
            self.run_ticks(1);
            let leaders: Vec<u64> =
                self.running().filter(|(_, m)| m.replica.role() == Role::Leader).map(|(n, _)| n).collect();
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
                .find(|(n, m)| *n != former && m.replica.role() == Role::Leader)
                .map(|(n, _)| n);
            if let Some(leader) = leader {
                return leader;
            }
        }
        panic!("no other leader after 500 ticks");
    }

    /// The leader, as every member believes.
    pub(crate) fn roles(&self) -> Vec<Role> {
        self.running().map(|(_, member)| member.replica.role()).collect()
    }

    pub(crate) fn entries(&self, member: u64) -> usize {
        self.disks[&member].entries.len()
    }

    /// The members that were ever started.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.members.keys().copied().collect()
    }

    pub(crate) fn is_running(&self, member: u64) -> bool {
        self.members[&member].is_some()
    }

    fn running(&self) -> impl Iterator<Item = (u64, &Member)> {
        self.members.iter().filter_map(|(number, member)| Some((*number, member.as_ref()?)))
    }

    pub(crate) fn other_than(&self, member: u64) -> u64 {
        self.running().map(|(number, _)| number).find(|number| *number != member).expect("others run")
    }

    pub(crate) fn connect(&mut self, member: u64, number: u64) -> Guest {
        self.ask_for_session(member, number, false);
        self.greet(member, ConnId::new(0, number))
    }

    pub(crate) fn ask_for_session(&mut self, member: u64, number: u64, may_only_read: bool) {
        let conn = ConnId::new(0, number);
        self.step(
            member,
            Input::Client(ClientInput::Connect { conn, timeout_ms: SESSION_TIMEOUT_MS, may_only_read }),
        );
        self.settle();
    }

    /// Story of a connection without a session.
    pub(crate) fn story_of(&mut self, member: u64, number: u64) -> Vec<String> {
        self.stories.remove(&(member, ConnId::new(0, number))).unwrap_or_default()
    }

    pub(crate) fn resume(&mut self, member: u64, number: u64, former: &Guest) -> Guest {
        let conn = self.submit_resume(member, number, former);
        self.greet(member, conn)
    }

    pub(crate) fn submit_resume(&mut self, member: u64, number: u64, former: &Guest) -> ConnId {
        let (conn, session) = (ConnId::new(0, number), former.client.session);
        let resume = Input::Client(ClientInput::Resume {
            conn,
            session,
            timeout_ms: SESSION_TIMEOUT_MS,
            may_only_read: false,
        });
        self.step(member, resume);
        conn
    }

    pub(crate) fn greet(&mut self, member: u64, conn: ConnId) -> Guest {
        self.settle();
        let session = self.sessions[&(member, conn)];
        self.stories.remove(&(member, conn));
        Guest { member, client: Client::new(conn, session, &[]) }
    }

    /// Story of the guest since it was asked for last.
    pub(crate) fn story(&mut self, guest: &Guest) -> Vec<String> {
        self.stories.remove(&(guest.member, guest.client.conn)).unwrap_or_default()
    }

    /// True if the guest was told nothing but that this request went well.
    pub(crate) fn is_done(&mut self, guest: &Guest, xid: i32) -> bool {
        matches!(&self.story(guest)[..], [line] if line.starts_with(&format!("#{xid} \"")))
    }

    /// The paths of all creates that were answered since this was asked last.
    pub(crate) fn all_created(&mut self) -> Vec<String> {
        let stories = std::mem::take(&mut self.stories);
        let lines = stories.into_values().flatten();
        lines.filter_map(|line| Some(line.split_once(" \"")?.1.trim_end_matches('"').to_owned())).collect()
    }

    /// Lets time pass for a session that is heard all the while.
    pub(crate) fn run_ticks_with(&mut self, guest: &Guest, ticks: u64) {
        for _ in 0..ticks {
            self.touch(guest);
            self.run_ticks(1);
        }
    }

    pub(crate) fn touch(&mut self, guest: &Guest) {
        self.step(guest.member, Input::Client(ClientInput::Touch { session: guest.client.session }));
    }

    /// The snapshot on a member's disk loses its last byte.
    pub(crate) fn damage_snapshot(&mut self, member: u64) {
        let snapshot = self.disks.get_mut(&member).and_then(|disk| disk.snapshot.as_mut());
        snapshot.expect("it has taken one").2.pop();
    }

    fn submit(&mut self, guest: &Guest, xid: i32, op: OpCode, body: &[u8]) {
        let mut command = Vec::new();
        Command::encode(guest.client.session, 0, IdList::NONE, op, body, &mut command);
        self.step(
            guest.member,
            Input::Client(ClientInput::Write { conn: guest.client.conn, xid: Xid(xid), op, command }),
        );
    }

    pub(crate) fn submit_create(&mut self, guest: &Guest, xid: i32, path: &str, data: &str, flags: i32) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_string(data);
        body.extend_from_slice(AclList::OPEN.wire());
        body.put_i32(flags);
        self.submit(guest, xid, OpCode::Create, &body);
    }

    pub(crate) fn create(&mut self, guest: &Guest, xid: i32, path: &str, data: &str) {
        self.submit_create(guest, xid, path, data, 0);
        self.settle();
    }

    pub(crate) fn submit_sequential(&mut self, guest: &Guest, xid: i32, path: &str) {
        self.submit_create(guest, xid, path, "", 2);
    }

    /// True if the guest's member runs, so that it could ask.
    pub(crate) fn submit_named(&mut self, guest: &Guest, xid: i32, path: &str) -> bool {
        self.touch(guest);
        self.submit_create(guest, xid, path, "x", 0);
        self.members[&guest.member].is_some()
    }

    pub(crate) fn submit_set(&mut self, guest: &Guest, xid: i32, path: &str, data: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_string(data);
        body.put_i32(-1);
        self.submit(guest, xid, OpCode::SetData, &body);
    }

    pub(crate) fn set(&mut self, guest: &Guest, xid: i32, path: &str, data: &str) {
        self.submit_set(guest, xid, path, data);
        self.settle();
    }

    pub(crate) fn submit_local(&mut self, guest: &Guest, xid: i32, op: OpCode, path: &str) {
        self.submit_read(guest, xid, op, path, false);
    }

    /// A getData that sets a watch.
    pub(crate) fn watch(&mut self, guest: &Guest, xid: i32, path: &str) {
        self.submit_read(guest, xid, OpCode::GetData, path, true);
        self.settle();
    }

    fn submit_read(&mut self, guest: &Guest, xid: i32, op: OpCode, path: &str, watch: bool) {
        let mut body = Vec::new();
        body.put_string(path);
        if op == OpCode::GetData {
            body.put_bool(watch);
        }
        let local = QueuedRead { client: guest.client.clone(), xid: Xid(xid), op, body };
        self.step(guest.member, Input::Client(ClientInput::Read(local)));
    }

    pub(crate) fn get(&mut self, guest: &Guest, xid: i32, path: &str) {
        self.submit_local(guest, xid, OpCode::GetData, path);
        self.settle();
    }

    fn state(&self, member: u64) -> &Replicated {
        &self.members[&member].as_ref().expect("the member runs").state
    }

    /// Asks for another set of members as one who may.
    pub(crate) fn reconfig(&mut self, guest: &Guest, xid: i32, joining: &[String], leaving: &[u64]) {
        self.submit_reconfig(guest, xid, joining, leaving);
        self.settle();
    }

    pub(crate) fn submit_reconfig(&mut self, guest: &Guest, xid: i32, joining: &[String], leaving: &[u64]) {
        let leaving: Vec<String> = leaving.iter().map(u64::to_string).collect();
        let mut body = Vec::new();
        body.put_string(&joining.join(","));
        body.put_string(&leaving.join(","));
        body.put_i32(-1);
        body.put_i64(-1);
        let ids = IdList::encode(&[Id::new("super", "")]);
        let ids = IdList::decode(&mut Reader::new(&ids)).expect("it was just encoded");
        let mut command = Vec::new();
        let op = OpCode::Reconfig;
        Command::encode(guest.client.session, 0, ids, op, &body, &mut command);
        self.step(
            guest.member,
            Input::Client(ClientInput::Write { conn: guest.client.conn, xid: Xid(xid), op, command }),
        );
    }

    /// Membership, as the member knows.
    pub(crate) fn membership(&self, member: u64) -> Membership {
        self.state(member).membership().clone()
    }

    /// The numbers in what `/zookeeper/config` shows there.
    pub(crate) fn config(&self, member: u64) -> Vec<u64> {
        let ensemble = self.state(member).tree().ensemble();
        ensemble.map_or(vec![], |ensemble| ensemble.members.iter().map(|member| member.id.into()).collect())
    }

    pub(crate) fn cluster(&self, member: u64) -> Option<u64> {
        self.state(member).tree().ensemble().map(|ensemble| ensemble.cluster)
    }

    pub(crate) fn role(&self, member: u64) -> Role {
        self.members[&member].as_ref().expect("the member runs").replica.role()
    }

    /// The member's disk is full, or has room again.
    pub(crate) fn disk_full(&mut self, member: u64, is_full: bool) {
        self.step(member, Input::DiskFull(is_full));
        self.settle();
    }

    /// Changes a member's state behind its back.
    pub(crate) fn corrupt(&mut self, member: u64, path: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_string("corrupt");
        body.put_i32(-1);
        let mut command = Vec::new();
        Command::encode(SessionId::NONE, 0, IdList::NONE, OpCode::SetData, &body, &mut command);
        let member = self.members.get_mut(&member).and_then(Option::as_mut).expect("the member runs");
        let command = Command::decode(&command).expect("it was just encoded");
        assert!(member.state.tree_mut().apply(&command).result.is_ok());
    }

    pub(crate) fn zxid(&self, member: u64) -> i64 {
        self.state(member).tree().zxid().0
    }

    /// Number of watches that the member holds for its connections.
    pub(crate) fn watch_count(&self, member: u64) -> usize {
        self.state(member).state().watch_count()
    }

    pub(crate) fn disconnect(&mut self, guest: &Guest) {
        self.step(guest.member, Input::Client(ClientInput::Disconnect { conn: guest.client.conn }));
    }

    /// Members whose state the member has seen to differ from its own.
    pub(crate) fn differing(&self, member: u64) -> &[u64] {
        &self.members[&member].as_ref().expect("the member runs").differing
    }

    pub(crate) fn has_session_at(&self, member: u64, guest: &Guest) -> bool {
        self.state(member).tree().session_timeout_ms(guest.client.session).is_some()
    }

    pub(crate) fn data(&self, member: u64, path: &str) -> Option<String> {
        let mut out = Vec::new();
        let read = Read::GetData { path, watch: false };
        self.state(member).tree().read(&read, &Asker::NOBODY, &mut out).ok()?;
        let data = Reader::new(&out).buffer().expect("a reply begins with the data");
        data.map(|data| String::from_utf8_lossy(data).into_owned())
    }

    /// All members are at the same zxid with the same state, byte by byte.
    pub(crate) fn check_agreement(&mut self) {
        let mut saved: Vec<(u64, Vec<Vec<u8>>)> = Vec::new();
        for (number, member) in self.members.iter_mut() {
            let member = member.as_mut().expect("all members run");
            saved.push((*number, save(member.state.tree_mut())));
        }
        for (number, blocks) in &saved[1..] {
            assert!(blocks == &saved[0].1, "member {number} differs from member {}", saved[0].0);
        }
    }

    /// The creates of each guest were carried out in their order.
    pub(crate) fn check_order(&self, seed: u64, paths: &[String]) {
        let mut last: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        let mut by_xid: Vec<(&str, i64, i64)> = Vec::new();
        for path in paths {
            let (guest, xid) = path.rsplit_once('-').expect("a path names guest and xid");
            let czxid = self.state(1).tree().stat(path).expect("it is there").czxid.0;
            by_xid.push((guest, xid.parse().expect("a number"), czxid));
        }
        by_xid.sort_unstable();
        for (guest, xid, czxid) in by_xid {
            if let Some((before, earlier)) = last.insert(guest, (xid, czxid)) {
                assert!(earlier < czxid, "seed {seed}: {guest}: {before} was carried out after {xid}");
            }
        }
    }
}

/// True if the blocks are as long as they say.
fn is_whole(mut bytes: &[u8]) -> bool {
    while let Some((len, rest)) = bytes.split_first_chunk::<4>() {
        let Some(behind) = rest.get(u32::from_le_bytes(*len) as usize..) else { return false };
        bytes = behind;
    }
    bytes.is_empty()
}

fn load(mut bytes: &[u8]) -> Tree {
    let mut loader = TreeLoader::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<4>() {
        let (block, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        loader.block(block).expect("a snapshot comes as it was saved");
        bytes = rest;
    }
    loader.finish().expect("a snapshot is a tree")
}

fn save(tree: &mut Tree) -> Vec<Vec<u8>> {
    let (mut scan, mut blocks) = (tree.begin_snapshot(), Vec::new());
    let mut more = true;
    while more {
        let mut block = Vec::new();
        more = tree.scan_snapshot(&mut scan, 1000, &mut block);
        blocks.push(block);
    }
    tree.end_snapshot(scan);
    blocks
}

/// One line for each packet of a parcel.
fn tell(parcel: Parcel<'_>) -> Vec<String> {
    match parcel {
        Parcel::Reply(mut bytes) | Parcel::Event(mut bytes) => {
            let mut lines = Vec::new();
            while let Some((body, len)) = frame::split(bytes, i32::MAX).expect("a member writes whole frames")
            {
                lines.push(tell_packet(body));
                bytes = &bytes[len..];
            }
            lines
        }
        Parcel::Connected { read_only: true, .. } => vec!["connected to read".into()],
        Parcel::Connected { .. } => vec!["connected".into()],
        Parcel::Expired => vec!["expired".into()],
        Parcel::Close => vec!["close".into()],
    }
}

fn tell_packet(body: &[u8]) -> String {
    let mut reader = Reader::new(body);
    let header = ReplyHeader::decode(&mut reader).expect("a reply has a header");
    if header.xid == Xid::NOTIFICATION {
        let event = WatchEvent::decode(header.zxid, reader.rest()).expect("a notification has an event");
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

/// Configuration of voters with these numbers.
pub(crate) fn founding(voters: impl IntoIterator<Item = u64>) -> Founding {
    let voters: Vec<u64> = voters.into_iter().collect();
    let members = voters.iter().map(|id| server_line(*id, "participant") + "\n").collect();
    Founding { membership: Membership::new(voters, vec![]), members }
}

/// A member as a client names it.
pub(crate) fn server_line(id: u64, role: &str) -> String {
    format!("server.{id}=host{id}:2888:3888:{role};2181")
}

/// The seeds of a run; `ENSEMBLE_SEEDS` asks for another number of them.
pub(crate) fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("ENSEMBLE_SEEDS").ok();
    let count = asked.map_or(count, |asked| asked.parse().expect("ENSEMBLE_SEEDS is a number"));
    first..first + count
}
