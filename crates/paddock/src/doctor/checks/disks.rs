//! Disks of the servers: the times of syncs, room, and snapshots.

use super::common::{bytes, of_servers, percent};
use crate::doctor::facts::DoctorFacts;
use crate::doctor::finding::{Finding, Level};

/// Average time of a sync, in milliseconds, from which writes are slow, and from which elections are in danger.
const SYNC_MS_SLOW: f64 = 20.0;
const SYNC_MS_BAD: f64 = 100.0;
/// Longest sync that is not worth a note, in milliseconds.
const SYNC_MS_MAX: f64 = 1000.0;
/// Free part of a disk, in percent, below which there is too little.
const FREE_LOW: u64 = 10;
const FREE_BAD: u64 = 5;

/// Times of syncs of the log: no write is answered sooner.
pub(super) fn sync(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "sync", "syncs of the log are quick", |server| {
        let average = server.metric("avg_fsynctime").or_else(|| {
            let (sum, count) = (server.metric("fsynctime_sum")?, server.metric("fsynctime_count")?);
            Some(if count > 0.0 { sum / count } else { 0.0 })
        })?;
        let longest = server.metric("max_fsynctime").unwrap_or(0.0);
        let text = format!("a sync of the log takes {average:.1} ms, at most {longest:.0} ms");
        let advice = "give the log a disk of its own (dataLogDir) with a cache that survives a power cut; see who else writes there";
        let level = match average {
            SYNC_MS_BAD.. => Level::Error,
            SYNC_MS_SLOW.. => Level::Warning,
            _ if longest >= SYNC_MS_MAX => Level::Note,
            _ => return Some(Finding::ok("sync", &server.address, text)),
        };
        Some(Finding::new(level, "sync", &server.address, text, advice))
    })
}

/// Room on the disk of the data directory.
pub(super) fn room(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "room", "disks have room", |server| {
        let free = server.metric("paddock_disk_free_bytes")?;
        let size = server.metric("paddock_disk_size_bytes").filter(|size| *size > 0.0)?;
        let data = server.metric("paddock_data_bytes").unwrap_or(0.0);
        Some(judge_room(&server.address, free, size, data))
    })
}

/// A disk with data that is written anew with each snapshot.
pub(super) fn judge_room(subject: &str, free: f64, size: f64, data: f64) -> Finding {
    let share = percent(free, size);
    let text = format!("{} of {} are free ({share}%)", bytes(free), bytes(size));
    let advice = "make room now: a member with a full disk serves reads alone; see what else is on the disk, then enlarge it";
    if share < FREE_BAD {
        Finding::new(Level::Error, "room", subject, text, advice)
    } else if share < FREE_LOW {
        Finding::new(Level::Warning, "room", subject, text, advice)
    } else if free < data {
        let text = format!("{text}, less than the {} that snapshots take now", bytes(data));
        Finding::new(
            Level::Warning,
            "room",
            subject,
            text,
            "enlarge the disk: the next snapshot may not have room beside the last one",
        )
    } else {
        Finding::ok("room", subject, text)
    }
}

/// Snapshots that failed.
pub(super) fn snapshots(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "snapshots", "no snapshot has failed", |server| {
        let failed = server.metric("snapshot_error_count")?;
        if failed == 0.0 {
            return Some(Finding::ok("snapshots", &server.address, "no snapshot has failed"));
        }
        let text = format!("{failed:.0} snapshots have failed since the start");
        let advice = "its log says why; until one succeeds, the log of transactions grows";
        Some(Finding::new(Level::Warning, "snapshots", &server.address, text, advice))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::common::testing::{facts, lines, server};

    #[test]
    fn slow_syncs_are_told() {
        let synced =
            |average, longest| server("leader", &[("avg_fsynctime", average), ("max_fsynctime", longest)]);
        let found = sync(&facts(vec![synced(1.2, 30.0)]));
        assert_eq!(lines(&found), ["ok: a sync of the log takes 1.2 ms, at most 30 ms"]);
        let found = sync(&facts(vec![synced(1.0, 1500.0), synced(25.0, 30.0), synced(120.0, 130.0)]));
        let levels: Vec<_> = found.iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Note, Level::Warning, Level::Error]);
        let page_alone = server("leader", &[("fsynctime_sum", 90.0), ("fsynctime_count", 3.0)]);
        assert_eq!(sync(&facts(vec![page_alone]))[0].level, Level::Warning);
        let idle = server("leader", &[("fsynctime_sum", 0.0), ("fsynctime_count", 0.0)]);
        assert_eq!(sync(&facts(vec![idle]))[0].level, Level::Ok);
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_told() {
        let gib = (1u64 << 30) as f64;
        let check = |free: f64, data: f64| judge_room("a:2181", free * gib, 100.0 * gib, data * gib).level;
        assert_eq!(check(50.0, 1.0), Level::Ok);
        assert_eq!([check(9.0, 1.0), check(4.9, 1.0)], [Level::Warning, Level::Error]);
        assert_eq!(check(20.0, 30.0), Level::Warning);
        let told =
            server("leader", &[("paddock_disk_free_bytes", gib), ("paddock_disk_size_bytes", 100.0 * gib)]);
        assert_eq!(lines(&room(&facts(vec![told]))), ["error a:2181: 1.0 GiB of 100.0 GiB are free (1%)"]);
        assert!(room(&facts(vec![server("leader", &[])])).is_empty());
        let failed = server("leader", &[("snapshot_error_count", 2.0)]);
        assert_eq!(snapshots(&facts(vec![failed]))[0].level, Level::Warning);
    }
}
