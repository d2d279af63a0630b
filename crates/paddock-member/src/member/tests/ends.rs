//! Two ends, one after the other: the process is killed, so that what it wrote is shown and may not be durable, and then the
//! power is cut, while the next process recovers or after it has served.

use super::*;

const FAULTS: [DiskFault; 4] = [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename];

/// Serves until an operation fails. Returns the znodes that were acknowledged.
fn life(disk: &MemDisk, first: usize, creates: usize, fault: Option<(DiskFault, u64)>) -> Vec<usize> {
    fault.into_iter().for_each(|(fault, others)| disk.fail_after(fault, others));
    let Ok(mut stage) = Stage::start(disk) else { return Vec::new() };
    stage.created = first;
    let before = stage.shell.replies;
    let _ = stage.live(creates);
    (first..first + stage.shell.replies - before).collect()
}

#[test]
fn a_power_cut_after_a_kill_takes_nothing_that_was_acknowledged() {
    for (killed_by, others) in FAULTS.iter().flat_map(|fault| (1..40).map(move |others| (*fault, others))) {
        for cut_at in
            [None, Some((DiskFault::Sync, 0)), Some((DiskFault::Sync, 1)), Some((DiskFault::SyncDir, 2))]
        {
            let disk = MemDisk::new(others);
            let mut acknowledged = life(&disk, 0, 40, Some((killed_by, others)));
            disk.clear_faults();
            disk.kill();
            acknowledged.extend(life(&disk, 1000, 3, cut_at));
            disk.clear_faults();
            disk.crash();
            let what = format!("{killed_by:?} after {others}, then {cut_at:?}");
            let again = Stage::start(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
            let lost: Vec<_> = acknowledged.iter().filter(|number| !again.has(**number)).collect();
            assert!(lost.is_empty(), "{what}: {lost:?}");
        }
    }
}
