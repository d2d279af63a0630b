//! A round of which a part has reached the disk.

use std::collections::BTreeMap;

use paddock_replica::{HardState, LogEntry};
use paddock_storage::{Disk, LogOptions};

use super::first_disk::{Voter, live_together};
use super::*;
use crate::config::HOME;

/// Terms of the entries in a log, and its last hard state.
fn read(disk: &MemDisk) -> (BTreeMap<u64, u64>, HardState) {
    let (mut terms, mut last) = (BTreeMap::new(), HardState::default());
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Log::open(
        disk,
        &Config::small().log_dir(),
        LogOptions::default(),
        &mut |record: Record<'_>| match record {
            Record::Entry { group: HOME, term, index, .. } => {
                terms.split_off(&index.0);
                terms.insert(index.0, term.0);
            }
            Record::HardState { group: HOME, payload } => last = HardState::decode(payload).unwrap(),
            _ => {}
        },
    )
    .unwrap();
    (terms, last)
}

/// A new leader replaces entries of a follower, and tells that the new ones are committed. However much of that reaches the disk, those of before never count as
/// committed.
#[test]
fn entries_that_others_replace_are_not_committed_by_the_beginning_of_a_write() {
    let disks = [MemDisk::new(1), MemDisk::new(2)];
    let mut voters = [(&disks[0], 1), (&disks[1], 2)]
        .map(|(disk, number)| Voter::start_as(disk, number, number.into(), Config::small()).unwrap());
    live_together(&mut voters);
    let [_, Voter { member, shell, .. }] = &mut voters;
    let (last, term) = (member.last_entry(), member.standing().term);
    let mut write = |commit: u64, term: u64| {
        let entry = |index| LogEntry { index, term, payload: vec![term as u8; 50].into() };
        let effects = &mut member.groups[0].effects;
        effects.hard_state = Some(HardState { term, commit, incarnation: 1, ..HardState::default() });
        effects.entries = (last + 1..=last + 3).map(entry).collect();
        member.write(0, shell);
        member.log.sync().unwrap();
    };
    write(last, term);
    let segments = |disk: &MemDisk| {
        let dir = Config::small().log_dir();
        let names = disk.list(&dir).unwrap();
        let files = names.iter().filter(|name| name.starts_with("log-")).map(|name| dir.join(name));
        files.map(|path| (path.clone(), disk.contents(&path).unwrap())).collect::<Vec<_>>()
    };
    let before = segments(&disks[1]);
    let (replaced, term) = (last + 1, term + 1);
    write(last + 3, term);
    let after = segments(&disks[1]);
    let is_changed = |(_, bytes): &(_, Vec<u8>)| before.iter().all(|(_, old)| old != bytes);
    let (path, new) = after.into_iter().find(is_changed).expect("a file has changed");
    let old = before.into_iter().find(|(name, _)| *name == path).map(|(_, old)| old).unwrap_or_default();
    let begins = new.iter().zip(&old).take_while(|(new, old)| new == old).count();
    let mut commits = Vec::new();
    // A crash leaves a sector new in front and old behind, by words.
    for length in (begins.next_multiple_of(8)..=new.len()).step_by(8) {
        let torn = [&new[..length], old.get(length..).unwrap_or_default()].concat();
        let disk = disks[1].copy(3);
        disk.put(&path, &torn);
        let (terms, hard_state) = read(&disk);
        let is_stale =
            |(index, of): &(&u64, &u64)| (replaced..=hard_state.commit).contains(*index) && **of != term;
        let stale: Vec<_> = terms.iter().filter(is_stale).collect();
        assert!(stale.is_empty(), "{length} bytes: {stale:?} of {hard_state:?}");
        commits.push(hard_state.commit);
    }
    assert_eq!(commits.last(), Some(&(last + 3)));
}
