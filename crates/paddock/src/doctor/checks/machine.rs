//! Checks of this machine: what the system gives a server, and takes from it.

use super::common::{bytes, percent};
use super::disks::judge_room;
use super::limits::{DESCRIPTORS_MIN, judge_descriptors};
use crate::doctor::facts::{DiskFacts, DoctorFacts};
use crate::doctor::finding::{Finding, Level};

/// File systems over a network, whose syncs may take for ever.
const REMOTE: [&str; 5] = ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs"];
/// File systems in memory.
const VOLATILE: [&str; 2] = ["tmpfs", "ramfs"];
/// Free part of a file system's files, in percent, below which there are too few.
const FILES_LOW: u64 = 5;

/// Limits of open files: those of servers that run here, else the one that a server started from here gets.
pub(super) fn descriptors(facts: &DoctorFacts) -> Vec<Finding> {
    let Some(machine) = &facts.machine else { return Vec::new() };
    let of_processes = machine.processes.iter().filter_map(|process| {
        let (open, max) = process.descriptors?;
        Some(judge_descriptors(
            "local-descriptors",
            &format!("{} (process {})", process.name, process.pid),
            open,
            max,
        ))
    });
    let found: Vec<Finding> = of_processes.collect();
    if !found.is_empty() {
        return found;
    }
    let text = machine.descriptors_max.map_or("no limit of open files".to_owned(), |max| {
        format!("a server started from here may open {max} files and sockets")
    });
    match machine.descriptors_max {
        Some(max) if max < DESCRIPTORS_MIN => {
            let advice =
                "raise the hard limit: LimitNOFILE=65536 in the unit of systemd, or ulimits of the container";
            vec![Finding::new(Level::Warning, "local-descriptors", "", text, advice)]
        }
        _ => vec![Finding::ok("local-descriptors", "", text)],
    }
}

/// Swap in use.
pub(super) fn swap(facts: &DoctorFacts) -> Vec<Finding> {
    let Some(machine) = &facts.machine else { return Vec::new() };
    let advice = "swapoff -a, or vm.swappiness=1 and more memory: swap stops a member for longer than an election takes";
    let swapped = machine.processes.iter().filter(|process| process.swapped_bytes > 0);
    let found: Vec<Finding> = swapped
        .map(|process| {
            let subject = format!("{} (process {})", process.name, process.pid);
            let text = format!("{} of it are in swap", bytes(process.swapped_bytes as f64));
            Finding::new(Level::Warning, "swap", &subject, text, advice)
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    match machine.swap {
        (0, _) => vec![Finding::ok("swap", "", "there is no swap")],
        (all, 0) => vec![Finding::ok("swap", "", format!("none of {} is in use", bytes(all as f64)))],
        (all, used) => {
            let text =
                format!("{} of {} are in use, by other processes", bytes(used as f64), bytes(all as f64));
            vec![Finding::new(Level::Note, "swap", "", text, advice)]
        }
    }
}

/// Transparent huge pages.
pub(super) fn huge_pages(facts: &DoctorFacts) -> Vec<Finding> {
    let mode = facts.machine.as_ref().and_then(|machine| machine.huge_pages.as_deref());
    match mode {
        None => Vec::new(),
        Some("always") => {
            let advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: otherwise memory grows, and pauses come when it is made into huge pages";
            vec![Finding::new(
                Level::Note,
                "huge-pages",
                "",
                "transparent huge pages are made always",
                advice,
            )]
        }
        Some(mode) => vec![Finding::ok("huge-pages", "", format!("transparent huge pages: {mode}"))],
    }
}

/// The clock's synchronisation.
pub(super) fn clock(facts: &DoctorFacts) -> Vec<Finding> {
    let Some(machine) = &facts.machine else { return Vec::new() };
    match machine.clock_synchronised {
        Some(true) => vec![Finding::ok("local-clock", "", "the clock is synchronised")],
        Some(false) => {
            let advice = "start chrony or systemd-timesyncd, and see that it reaches its servers";
            vec![Finding::new(Level::Warning, "local-clock", "", "the clock is not synchronised", advice)]
        }
        None => {
            let text = "neither timedatectl nor chronyc tells whether the clock is synchronised";
            let advice = "see to it on the machine itself, if this is a container";
            vec![Finding::new(Level::Note, "local-clock", "", text, advice)]
        }
    }
}

/// Disks of the directories for data.
pub(super) fn directories(facts: &DoctorFacts) -> Vec<Finding> {
    let Some(machine) = &facts.machine else { return Vec::new() };
    if machine.directories.is_empty() {
        let text = "no data directory is known";
        return vec![Finding::new(
            Level::Note,
            "room",
            "",
            text,
            "name it: --data-dir DIR, or --config FILE",
        )];
    }
    machine.directories.iter().flat_map(judge_directory).collect()
}

fn judge_directory(disk: &DiskFacts) -> Vec<Finding> {
    let path = disk.path.display().to_string();
    let Some((free, size)) = disk.bytes else {
        let advice =
            "make it, writable by the server's user; a server makes the last part of the path itself";
        return vec![Finding::new(Level::Warning, "room", &path, "cannot be looked at", advice)];
    };
    let mut found = vec![judge_room(&path, free as f64, size as f64, disk.used_bytes as f64)];
    let (files_free, files) = disk.files;
    if files > 0 && percent(files_free as f64, files as f64) < FILES_LOW {
        let text = format!("{files_free} of {files} files can still be made");
        found.push(Finding::new(Level::Warning, "room", &path, text, "remove small files from that disk"));
    }
    let kind = disk.filesystem.as_str();
    if REMOTE.contains(&kind) {
        let advice = "use a disk of the machine: a sync over a network can hang, and locks may not hold";
        found.push(Finding::new(Level::Warning, "filesystem", &path, format!("is on {kind}"), advice));
    } else if VOLATILE.contains(&kind) {
        let text = format!("is on {kind}: its data are gone when the machine is");
        found.push(Finding::new(Level::Error, "filesystem", &path, text, "use a disk"));
    } else if !kind.is_empty() {
        found.push(Finding::ok("filesystem", &path, format!("is on {kind}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::common::testing::lines;
    use crate::doctor::facts::{MachineFacts, ProcessFacts};

    fn facts(machine: MachineFacts) -> DoctorFacts {
        DoctorFacts { machine: Some(machine), ..DoctorFacts::default() }
    }

    #[test]
    fn a_server_that_runs_here_is_looked_at() {
        let process =
            ProcessFacts { pid: 17, name: "Paddock", descriptors: Some((9, 256)), swapped_bytes: 2048 };
        let here = facts(MachineFacts {
            processes: vec![process],
            swap: (1 << 30, 1 << 20),
            ..MachineFacts::default()
        });
        assert_eq!(
            lines(&descriptors(&here)),
            ["warning Paddock (process 17): 9 of 256 files and sockets are open"]
        );
        assert_eq!(lines(&swap(&here)), ["warning Paddock (process 17): 2.0 KiB of it are in swap"]);
        let none = |descriptors_max| facts(MachineFacts { descriptors_max, ..MachineFacts::default() });
        assert_eq!(descriptors(&none(Some(1024)))[0].level, Level::Warning);
        assert_eq!(
            [descriptors(&none(Some(1 << 20)))[0].level, descriptors(&none(None))[0].level],
            [Level::Ok; 2]
        );
        assert_eq!(lines(&swap(&none(None))), ["ok: there is no swap"]);
        let others = facts(MachineFacts { swap: (1 << 30, 1 << 20), ..MachineFacts::default() });
        assert_eq!(swap(&others)[0].level, Level::Note);
    }

    #[test]
    fn the_system_is_judged() {
        let with = |mode: &str, synchronised| {
            facts(MachineFacts {
                huge_pages: Some(mode.to_owned()),
                clock_synchronised: synchronised,
                ..MachineFacts::default()
            })
        };
        let levels = |facts: &DoctorFacts| [huge_pages(facts)[0].level, clock(facts)[0].level];
        assert_eq!(levels(&with("always", Some(false))), [Level::Note, Level::Warning]);
        assert_eq!(levels(&with("madvise", Some(true))), [Level::Ok, Level::Ok]);
        assert_eq!(levels(&with("never", None)), [Level::Ok, Level::Note]);
        assert!(
            huge_pages(&DoctorFacts::default()).is_empty() && directories(&DoctorFacts::default()).is_empty()
        );
    }

    #[test]
    fn a_directory_is_judged_by_its_disk() {
        let check = |filesystem: &str, bytes, files| {
            let (path, filesystem) = ("/data".into(), filesystem.to_owned());
            let disk = DiskFacts { path, filesystem, bytes, files, used_bytes: 10 };
            lines(&judge_directory(&disk))
        };
        assert_eq!(
            check("ext4", Some((90, 100)), (0, 0)),
            ["ok /data: 90 bytes of 100 bytes are free (90%)", "ok /data: is on ext4"]
        );
        assert_eq!(
            check("nfs4", Some((90, 100)), (1, 100))[1..],
            ["warning /data: 1 of 100 files can still be made", "warning /data: is on nfs4"]
        );
        assert_eq!(
            check("tmpfs", Some((90, 100)), (0, 0))[1],
            "error /data: is on tmpfs: its data are gone when the machine is"
        );
        assert_eq!(check("", None, (0, 0)), ["warning /data: cannot be looked at"]);
        assert_eq!(
            lines(&directories(&facts(MachineFacts::default()))),
            ["note: no data directory is known"]
        );
    }
}
