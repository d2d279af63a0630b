//! The log against a simple model, with random work, faults and crashes on a simulated disk.
//!
//! The model is the list of all records in the order they were appended; a record's number is in its term, or its
//! payload if it has no term. Whatever happens, opening must stream a contiguous part of that list: from a place before
//! which all is released, to a place after all that was synced.

#[path = "shared/common.rs"]
mod common;

use std::collections::BTreeMap;

use common::Kept;
use paddock_storage::disk::DiskFault;
use paddock_storage::{GroupNumber, Index, Log, LogError, MemDisk, Term};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum ModelStep {
    Append {
        group: u32,
        back: u64,
        bytes: usize,
        zeros: bool,
    },
    HardState {
        group: u32,
        bytes: usize,
    },
    Base {
        group: u32,
        ahead: u64,
    },
    Sync,
    Mark,
    Release {
        group: u32,
        keep: u64,
    },
    Housekeep,
    Crash,
    Kill,
    /// The disk has this much room, until the next sync that fails for it has been tried.
    Full {
        room: u64,
    },
    Fail {
        fault: DiskFault,
        after: u64,
    },
}

fn step() -> impl Strategy<Value = ModelStep> {
    let fault = prop_oneof![
        Just(DiskFault::Write),
        Just(DiskFault::Sync),
        Just(DiskFault::SyncDir),
        Just(DiskFault::Rename)
    ];
    prop_oneof![
        20 => (0..3u32, 0..4u64, 0..1500usize, any::<bool>())
            .prop_map(|(group, back, bytes, zeros)| ModelStep::Append { group, back, bytes, zeros }),
        3 => (0..3u32, 0..100usize).prop_map(|(group, bytes)| ModelStep::HardState { group, bytes }),
        1 => (0..3u32, 1..50u64).prop_map(|(group, ahead)| ModelStep::Base { group, ahead }),
        10 => Just(ModelStep::Sync),
        2 => Just(ModelStep::Mark),
        5 => (0..3u32, 0..5u64).prop_map(|(group, keep)| ModelStep::Release { group, keep }),
        5 => Just(ModelStep::Housekeep),
        4 => Just(ModelStep::Crash),
        2 => Just(ModelStep::Kill),
        1 => (0..5000u64).prop_map(|room| ModelStep::Full { room }),
        3 => (fault, 0..12u64).prop_map(|(fault, after)| ModelStep::Fail { fault, after }),
    ]
}

struct World {
    disk: MemDisk,
    segment_bytes: u64,
    log: Log,
    history: Vec<Kept>,
    /// Number of them that are synced.
    synced: usize,
    released: BTreeMap<GroupNumber, u64>,
}

impl World {
    fn new(seed: u64, segment_bytes: u64) -> Self {
        let disk = MemDisk::new(seed);
        let compresses = seed.is_multiple_of(2);
        let opened = common::open_to_pack(&disk, segment_bytes, compresses);
        let (log, found) = opened.expect("an empty directory is a log");
        assert!(found.is_empty());
        Self { disk, segment_bytes, log, history: Vec::new(), synced: 0, released: BTreeMap::new() }
    }

    fn step(&mut self, step: ModelStep) {
        match step {
            ModelStep::Append { group, back, bytes, zeros } => {
                self.append(GroupNumber(group), back, bytes, zeros)
            }
            ModelStep::HardState { group, bytes } => self.hard_state(GroupNumber(group), bytes),
            ModelStep::Base { group, ahead } => self.base(GroupNumber(group), ahead),
            ModelStep::Sync => self.sync(Log::sync),
            ModelStep::Mark => self.sync(Log::mark),
            ModelStep::Release { group, keep } => self.release(GroupNumber(group), keep),
            ModelStep::Housekeep => self.housekeep(),
            ModelStep::Crash => self.restart(MemDisk::crash),
            ModelStep::Kill => self.restart(MemDisk::kill),
            ModelStep::Full { room } => self.disk.set_capacity(Some(self.disk.used_bytes() + room)),
            ModelStep::Fail { fault, after } => self.disk.fail_after(fault, after),
        }
    }

    fn take(&mut self, record: Kept) {
        self.log.append(record.record());
        self.history.push(record);
    }

    fn next_id(&self) -> u64 {
        self.history.len() as u64
    }

    fn released(&self, group: GroupNumber) -> u64 {
        self.released.get(&group).copied().unwrap_or(0)
    }

    fn append(&mut self, group: GroupNumber, back: u64, bytes: usize, zeros: bool) {
        let id = self.next_id();
        let next = self.log.last_index(group).map_or(self.released(group), |last| last.0) + 1;
        let first = self.log.first_index(group).map_or(next, |first| first.0);
        let index = next.saturating_sub(back).max(first).max(self.released(group) + 1).min(next);
        let payload = (0..bytes).map(|at| if zeros { 0 } else { (id as usize * 31 + at) as u8 }).collect();
        if index > self.released(group) {
            self.take(Kept::Entry { group, term: Term(id), index: Index(index), payload });
        }
    }

    fn hard_state(&mut self, group: GroupNumber, bytes: usize) {
        let mut payload = self.next_id().to_le_bytes().to_vec();
        payload.resize(8 + bytes, 7);
        self.take(Kept::HardState { group, payload });
    }

    fn base(&mut self, group: GroupNumber, ahead: u64) {
        let last = self.log.last_index(group).map_or(0, |last| last.0).max(self.released(group));
        self.take(Kept::Base { group, term: Term(self.next_id()), index: Index(last + ahead) });
    }

    fn sync(&mut self, how: fn(&mut Log) -> Result<(), LogError>) {
        match how(&mut self.log) {
            Ok(()) => self.synced = self.history.len(),
            Err(LogError::DiskFull { .. }) => {
                self.disk.set_capacity(None);
                self.sync(how);
            }
            Err(_) => {
                assert!(matches!(self.log.sync(), Err(LogError::Poisoned)), "a failed log stays failed");
                self.restart(if self.history.len().is_multiple_of(2) {
                    MemDisk::crash
                } else {
                    MemDisk::kill
                });
            }
        }
    }

    /// Only what is synced is ever released: the owner has it in a snapshot by then.
    fn release(&mut self, group: GroupNumber, keep: u64) {
        let synced = self.history[..self.synced].iter().rev();
        let last = synced.filter_map(|record| position(record).filter(|(of, _)| *of == group)).next();
        let through = last.map_or(0, |(_, index)| index).saturating_sub(keep).max(self.released(group));
        // An unsynced entry may already replace it.
        if through > 0 && self.log.last_index(group).is_some_and(|last| through <= last.0) {
            self.released.insert(group, through);
            self.log.release(group, Index(through));
        }
    }

    fn housekeep(&mut self) {
        let housekeeper = self.log.housekeeper();
        loop {
            match housekeeper.run() {
                Ok(true) => {}
                Ok(false) => return,
                Err(LogError::DiskFull { .. }) => self.disk.set_capacity(None),
                Err(_) => return self.restart(MemDisk::crash),
            }
        }
    }

    fn restart(&mut self, end: fn(&MemDisk)) {
        end(&self.disk);
        let (log, found) = loop {
            let compresses = self.history.len().is_multiple_of(3);
            match common::open_to_pack(&self.disk, self.segment_bytes, compresses) {
                Ok(opened) => break opened,
                Err(LogError::DiskFull { .. }) => self.disk.set_capacity(None),
                // A fault was waiting. There are few of them.
                Err(LogError::Io { .. }) => end(&self.disk),
                Err(error) => panic!("a crash must leave a log that opens: {error}"),
            }
        };
        self.log = log;
        self.check(&found);
    }

    fn check(&mut self, found: &[Kept]) {
        // Of what was not synced the first part may be there; of what was, all must be, or be released.
        let newest = found.iter().map(|record| id(record) as usize + 1).max();
        self.synced = self.synced.max(newest.unwrap_or(0));
        self.history.truncate(self.synced);
        self.check_hard_states(found);

        // The log itself writes a base in the place of the last entry, once all are released.
        let stands_for_released = |record: &&Kept| match record {
            Kept::Base { group, index, .. } => index.0 <= self.released(*group),
            Kept::Entry { .. } | Kept::HardState { .. } => false,
        };
        let counts = |record: &&Kept| position(record).is_some() && !stands_for_released(record);
        let found: Vec<&Kept> = found.iter().filter(counts).collect();
        let expected: Vec<&Kept> = self.history.iter().filter(counts).collect();
        assert!(found.len() <= expected.len(), "something was invented");
        let (gone, rest) = expected.split_at(expected.len() - found.len());
        assert!(rest == found, "expected {rest:?}, found {found:?}");
        for record in gone {
            let (group, index) = position(record).expect("they were selected for it");
            assert!(index <= self.released(group), "{record:?} is gone and was not released");
        }
    }

    fn check_hard_states(&self, found: &[Kept]) {
        let latest = |records: &[Kept]| -> BTreeMap<GroupNumber, Vec<u8>> {
            let states = records.iter().filter_map(|record| match record {
                Kept::HardState { group, payload } => Some((*group, payload.clone())),
                _ => None,
            });
            states.collect()
        };
        assert_eq!(latest(found), latest(&self.history));
    }
}

fn position(record: &Kept) -> Option<(GroupNumber, u64)> {
    match record {
        Kept::Entry { group, index, .. } | Kept::Base { group, index, .. } => Some((*group, index.0)),
        Kept::HardState { .. } => None,
    }
}

fn id(record: &Kept) -> u64 {
    match record {
        Kept::Entry { term, .. } | Kept::Base { term, .. } => term.0,
        Kept::HardState { payload, .. } => {
            u64::from_le_bytes(payload[..8].try_into().expect("it starts with it"))
        }
    }
}

/// `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(1000), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_was_synced_survives(
        seed in any::<u64>(),
        segment_bytes in prop_oneof![Just(512u64), Just(1000), Just(4096), Just(16384)],
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut world = World::new(seed, segment_bytes);
        for step in steps {
            world.step(step);
        }
        world.disk.clear_faults();
        world.sync(Log::sync);
        world.restart(MemDisk::crash);
        world.restart(MemDisk::kill);
    }
}
