//! The engine: it owns the member and its log.
//!
//! The engine takes all that waits, writes it with one sync, applies what is committed and answers. While it syncs, the next
//! requests gather, so a slow disk makes larger batches and not a longer queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use paddock_links::Links;
use paddock_member::{Clock, GroupHandle, Member, MemberError, Shell, Work};
use paddock_proto::{MemberNumber, Zxid};
use paddock_replica::{Cluster, Input};
use paddock_state::{ClientInput, Serving};
use paddock_statistics::request_times::Stage;

use super::combining::Rest;
use super::shell::MemberShell;
use crate::engine::member_profile::MemberProfile;
use crate::engine_report::EngineReport;
use crate::shared::Shared;

const TICK: Duration = Duration::from_millis(Member::TICK_MS);
/// Pause between two looks at what the other members are told of this one.
const PROFILE_INTERVAL: Duration = Duration::from_secs(5);
/// Messages that are taken, at most, before the writes in them are synced.
const MESSAGES_PER_ROUND: usize = 1024;
/// After this many inputs in one turn, more is likely to come at once.
const INPUTS_OF_CROWD: usize = 64;
/// If the last sync took longer than this, the engine works on its own thread.
const BORROWED_MAX: Duration = Duration::from_millis(2);

/// Something for the engine.
#[derive(Debug)]
pub(super) enum Message {
    /// Inputs from the front of one worker, and when they were handed over, if that is timed.
    Clients(Vec<ClientInput>, Option<Instant>),
    /// An input from another member, or from this process.
    Member(Input),
    /// Members that the configuration file has from now on, as lines.
    FileMembers(String),
    /// An order to take a snapshot, whatever has been written since the last one.
    Snapshot,
    /// The states of the groups beside the home group are to be looked at.
    GroupPlaces(Sender<GroupPlaces>),
    /// Another member is to have these bytes.
    Send { to: MemberNumber, message: Vec<u8> },
    /// A group is to take a zxid that is not below this one.
    Mark { group: u32, at_least: Zxid },
}

/// Groups beside the home group that this member serves, and the others.
#[derive(Debug)]
pub(crate) struct GroupPlaces {
    pub(crate) handles: Vec<GroupHandle>,
    /// Members that have the others and are there, those first that are to be asked first.
    pub(crate) hosts: BTreeMap<u32, Vec<MemberNumber>>,
}

#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    member: Member,
    shell: MemberShell,
    messages: Receiver<Message>,
    next_tick: Instant,
    next_profile: Instant,
    /// Number of inputs that the last turn took.
    inputs_taken: usize,
    /// An entry of the log whose way to a quorum is timed.
    replicating: Option<Replicating>,
    /// The last entry of the log, and the last one that was known to be committed, when the last round was over.
    seen: (u64, u64),
    /// The last sync took long.
    pub(super) is_slow: bool,
    /// The error of a turn on a thread that is not the engine's.
    pub(super) failure: Option<MemberError>,
}

/// An entry on its way to a quorum.
#[derive(Clone, Copy, Debug)]
struct Replicating {
    entry: u64,
    /// Start of the round in which it was proposed.
    proposed: Instant,
    /// The time at which it was on this member's disk.
    synced: Instant,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    Done,
    /// All workers have let go of the member.
    Last,
}

impl Engine {
    pub(super) fn new(
        shared: Arc<Shared>,
        member: Member,
        shell: MemberShell,
        messages: Receiver<Message>,
    ) -> Engine {
        let now = Instant::now();
        let seen = (member.last_entry(), member.committed_entry());
        Engine {
            shared,
            seen,
            member,
            shell,
            messages,
            next_tick: now + TICK,
            next_profile: now,
            inputs_taken: 0,
            replicating: None,
            is_slow: false,
            failure: None,
        }
    }

    /// Applies what the log holds, so that the member is as it was. To be called before its thread starts.
    pub(crate) fn catch_up(&mut self) -> Result<(), MemberError> {
        let started = Instant::now();
        self.carry_out(&mut || {})?;
        let standing = self.member.standing();
        let mut start = self.shared.statistics.server_metrics.start.lock();
        start.replay_ms = started.elapsed().as_millis() as u64;
        start.replayed = standing.applied.saturating_sub(standing.snapshot);
        drop(start);
        self.shared.publish(self.report());
        Ok(())
    }

    /// Connections serve these sessions already. To be called before anything of them is taken.
    pub(crate) fn adopt(&mut self, serving: Serving) {
        self.member.adopt(&self.shell, serving);
    }

    /// Begins to talk to the other members, if there are any. To be called after `catch_up`.
    pub(super) fn connect(&mut self, links: Option<Links>) {
        self.shell.connect(links);
    }

    /// The ensemble that the member belongs to, and the number of this process: links begin with them.
    pub(super) fn identity(&self) -> (Cluster, u64) {
        (self.member.cluster(), self.member.process())
    }

    /// Takes what waits and does what comes of that. `meanwhile` is called as often as there may be answers.
    pub(super) fn turn(&mut self, meanwhile: &mut dyn FnMut()) -> Result<TurnEnd, MemberError> {
        let mut turn = TurnEnd::Done;
        self.inputs_taken = 0;
        for _ in 0..MESSAGES_PER_ROUND {
            match self.messages.try_recv() {
                Ok(Message::Clients(inputs, handed_over)) => {
                    if let Some(handed_over) = handed_over {
                        self.shared.statistics.times.engine.passed(Stage::Queue, handed_over);
                    }
                    self.inputs_taken += inputs.len();
                    self.member.take(&self.shell, inputs.into_iter().map(Input::Client));
                }
                Ok(Message::Member(input)) => {
                    self.inputs_taken += 1;
                    self.member.take(&self.shell, [input]);
                }
                Ok(Message::FileMembers(lines)) => {
                    self.member.take(&self.shell, [Input::FileMembers(lines)]);
                    Shell::members_changed(&mut self.shell);
                }
                Ok(Message::Snapshot) => self.member.want_snapshot(),
                // The thread that asked may have given up.
                Ok(Message::GroupPlaces(to)) => drop(to.send(self.group_places())),
                Ok(Message::Send { to, message }) => {
                    self.shell.send(to, message);
                    self.shell.flush();
                }
                Ok(Message::Mark { group, at_least }) => self.member.mark_group(group, at_least),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    turn = TurnEnd::Last;
                    break;
                }
            }
        }
        if Instant::now() >= self.next_tick {
            self.tick()?;
        }
        self.carry_out(meanwhile)?;
        Ok(turn)
    }

    /// Takes what waits, and then what has come while it did, in `turns_max` turns at most.
    pub(super) fn turns(&mut self, turns_max: usize, meanwhile: &mut dyn FnMut()) -> Result<(), MemberError> {
        for _ in 0..turns_max {
            self.turn(meanwhile)?;
            if self.messages.is_empty() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn rest(&self) -> Rest {
        let until = self.shell.host.next_slice().map_or(self.next_tick, |slice| slice.min(self.next_tick));
        Rest { until, expects_more: self.inputs_taken >= INPUTS_OF_CROWD }
    }

    /// Removes some of the watches that connections have left behind, if it is time.
    pub(super) fn sweep_watches(&mut self) {
        self.shell.host.sweep_watches();
    }

    fn group_places(&self) -> GroupPlaces {
        let hosts = self.member.hosts_of_others(self.shared.state.read().tree(), self.shell.now());
        GroupPlaces { handles: self.member.group_handles(), hosts }
    }

    fn report(&self) -> EngineReport {
        EngineReport {
            role: self.member.role(),
            standing: self.member.standing(),
            confirmed_ms: self.member.confirmed_ms(),
        }
    }

    fn tick(&mut self) -> Result<(), MemberError> {
        self.next_tick = Instant::now() + TICK;
        self.member.tick(&mut self.shell)?;
        let report = self.report();
        self.shell.host.publish(report);
        self.tell_profile();
        Ok(())
    }

    /// Now and then gathers what the other members show their operators of this one.
    fn tell_profile(&mut self) {
        let now = Instant::now();
        if now >= self.next_profile {
            self.next_profile = now + PROFILE_INTERVAL;
            let profile = MemberProfile::of(&self.shared).encode();
            self.member.take(&self.shell, [Input::Profile(profile)]);
        }
    }

    /// Lets the member work until there is nothing to do, but to wait for room on a full disk.
    fn carry_out(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), MemberError> {
        loop {
            let (syncs, start) = (self.member.syncs(), Instant::now());
            let work = self.member.work(&mut self.shell)?;
            self.shared.note_contact(self.member.confirmed_ms());
            if self.member.syncs() != syncs {
                self.shared.statistics.clients.fsyncs.store(self.member.syncs(), Relaxed);
                self.note_sync(start);
            }
            self.note_replicated();
            self.note_progress();
            meanwhile();
            if !matches!(work, Work::Done) {
                return Ok(());
            }
        }
    }

    /// Notes a round of work that began then and synced the log.
    fn note_sync(&mut self, start: Instant) {
        let now = Instant::now();
        let length = now - start;
        self.is_slow = length > BORROWED_MAX;
        self.shared.statistics.times.engine.spent(Stage::Sync, length.as_micros() as u64);
        if self.replicating.is_none() {
            self.shared.statistics.server_metrics.entries.note_own_ack(self.member.role(), start);
            let entry = self.member.last_entry();
            self.replicating = Some(Replicating { entry, proposed: start, synced: now });
        }
    }

    /// Notes when a quorum has the entry that is timed.
    fn note_replicated(&mut self) {
        if let Some(Replicating { entry, proposed, synced }) = self.replicating
            && self.member.committed_entry() >= entry
        {
            self.replicating = None;
            self.shared.statistics.times.engine.passed(Stage::Replicate, synced);
            self.shared.statistics.server_metrics.entries.note_quorum_ack(self.member.role(), proposed);
        }
    }

    /// Counts the entries that the round has added to the log, and those that it has shown to be committed.
    fn note_progress(&mut self) {
        let now = (self.member.last_entry(), self.member.committed_entry());
        let (last, committed) = std::mem::replace(&mut self.seen, now);
        if now != (last, committed) {
            let (added, committed) = (now.0.saturating_sub(last), now.1.saturating_sub(committed));
            self.shared.statistics.server_metrics.entries.note_progress(self.member.role(), added, committed);
        }
    }

    pub(super) fn end(mut self) -> Result<(), MemberError> {
        let ended = self.member.end(&mut self.shell);
        self.shell.shutdown();
        ended
    }
}
