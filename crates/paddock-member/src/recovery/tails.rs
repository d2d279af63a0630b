//! Reading the log for all groups of a member. What is known to be committed is applied when there is more of it than is kept: so a log of any length takes no more
//! memory than its end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use paddock_replica::{HardState, LogEntry, raft_id};
use paddock_storage::{Disk, GroupNumber, Index, Log, LogOptions, Progress, ReadLog, Record, Replay, Term};

use super::{GroupOnDisk, RecoveryError, check_log};
use crate::clock::Clock;
use crate::config::HOME;
use crate::progress::Report;
use crate::{Config, MemberSettings};

/// Reads the log of a member. `home` is its home group, as the newest snapshot has it. The other groups come by rising number.
pub(super) fn read_log(
    disk: &Arc<dyn Disk>,
    config: &Config,
    home: GroupOnDisk,
    clock: &impl Clock,
) -> Result<(ReadLog, GroupOnDisk, Vec<GroupOnDisk>), RecoveryError> {
    let mut tails = Tails {
        by_group: BTreeMap::from([(HOME, home)]),
        bytes: 0,
        failed: None,
        report: Report::start("reading log", "entries", clock),
        disk: disk.as_ref(),
        config,
        clock,
    };
    let MemberSettings { segment_bytes, log_compression: compresses, .. } = config.settings;
    let options = LogOptions { segment_bytes, compresses, ..LogOptions::default() };
    let log = Log::read(disk.clone(), &config.log_dir(), options, &mut tails)?;
    let Tails { mut by_group, failed, report, .. } = tails;
    if let Some(error) = failed {
        return Err(error);
    }
    for found in by_group.values().filter(|found| !found.begins_anew() && !found.is_let_go) {
        check_log(log.log(), config, &found.meta)?;
    }
    let behind = |found: &GroupOnDisk| found.tail.behind.0 - found.meta.index.0;
    let applied: u64 = by_group.values().map(behind).sum();
    let entries = applied + by_group.values().map(|found| found.tail.entries.len() as u64).sum::<u64>();
    if entries > 0 {
        let seconds = format!("{:.2}", report.seconds(clock));
        tracing::info!(entries, applied, seconds, "log read");
    }
    let home = by_group.remove(&HOME).expect("it was put there");
    Ok((log, home, by_group.into_values().collect()))
}

/// The end of a group's log.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The last entry that the group's state has.
    pub(crate) behind: Index,
    pub(crate) hard_state: HardState,
    pub(crate) entries: VecDeque<LogEntry>,
    bytes: usize,
}

impl Tail {
    /// Memory that an entry takes beside its payload, in bytes, about.
    const ENTRY_BYTES: usize = 96;

    pub(crate) fn behind(snapshot: Index) -> Tail {
        Tail { behind: snapshot, ..Tail::default() }
    }

    /// An entry replaces all that stood at its index and after it.
    pub(crate) fn put(&mut self, term: Term, index: Index, payload: &[u8]) {
        if index <= self.behind {
            return;
        }
        let kept = self.entries.partition_point(|entry| entry.index < index.0);
        while self.entries.len() > kept {
            self.drop_one(VecDeque::pop_back);
        }
        let payload = Bytes::copy_from_slice(payload);
        self.bytes += Tail::ENTRY_BYTES + payload.len();
        self.entries.push_back(LogEntry { index: index.0, term: term.0, payload });
    }

    /// A snapshot has taken the place of all that stood before it, and of what the leader did not have.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    fn drop_one(&mut self, take: impl FnOnce(&mut VecDeque<LogEntry>) -> Option<LogEntry>) {
        if let Some(entry) = take(&mut self.entries) {
            self.bytes -= Tail::ENTRY_BYTES + entry.payload.len();
        }
    }
}

/// Collects what the log holds behind the snapshot of each group.
struct Tails<'a, C> {
    by_group: BTreeMap<GroupNumber, GroupOnDisk>,
    /// Memory that the entries of all groups take.
    bytes: usize,
    /// Reason for which something could not be read, or must not be applied: from then on nothing is looked at.
    failed: Option<RecoveryError>,
    report: Report,
    disk: &'a dyn Disk,
    config: &'a Config,
    clock: &'a C,
}

impl<C: Clock> Tails<'_, C> {
    fn take(&mut self, record: Record<'_>) -> Result<(), RecoveryError> {
        let (Record::Entry { group, .. } | Record::HardState { group, .. } | Record::Base { group, .. }) =
            record;
        if !self.by_group.contains_key(&group) {
            let found = GroupOnDisk::read(self.disk, self.config, group, self.clock)?;
            self.by_group.insert(group, found);
        }
        let found = self.by_group.get_mut(&group).expect("it was just looked for");
        match record {
            Record::Entry { term, index, payload, .. } => {
                self.report.advance(1, self.clock);
                if found.has_log() {
                    let before = found.tail.bytes;
                    found.tail.put(term, index, payload);
                    self.bytes = self.bytes - before + found.tail.bytes;
                }
            }
            Record::HardState { payload, .. } => {
                found.tail.hard_state =
                    HardState::decode(payload).expect("a hard state whose checksum is right");
            }
            Record::Base { .. } => {
                self.bytes -= found.tail.bytes;
                found.tail.clear();
                if found.has_applied() {
                    // What was applied stands before it, and does not count any more: the replica was let go.
                    let hard_state = found.tail.hard_state;
                    *found = GroupOnDisk::read(self.disk, self.config, group, self.clock)?;
                    found.tail.hard_state = hard_state;
                }
            }
        }
        let member = raft_id(self.config.member);
        while self.bytes > self.config.log_bytes_held
            && let Some(entry) = found.tail.entries.front()
            && found.state.may_apply(member, entry, found.tail.hard_state.commit)
        {
            if let Some(raised) = entry.raised_level() {
                raised.check(self.config.known_level)?;
            }
            found.state.apply(member, entry, self.config.removed_at_once);
            found.tail.behind = Index(entry.index);
            let before = found.tail.bytes;
            found.tail.drop_one(VecDeque::pop_front);
            self.bytes = self.bytes - before + found.tail.bytes;
        }
        Ok(())
    }
}

impl<C: Clock> Replay for Tails<'_, C> {
    fn record(&mut self, record: Record<'_>) {
        if self.failed.is_none() {
            self.failed = self.take(record).err();
        }
    }

    fn progress(&mut self, progress: Progress) {
        if progress.segments > 8 {
            tracing::debug!(done = progress.segments_done, of = progress.segments, "log segments read");
        }
    }
}
