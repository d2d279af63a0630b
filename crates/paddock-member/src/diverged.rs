//! A member whose state is not what most others have: its files are put aside, for an operator to look into, and it begins anew.
//!
//! The mark comes first, durably, and the member stops. At the next start the log and the snapshots get other names, the member
//! writes down that it has to learn before it votes, and then the mark goes.

use std::io;
use std::path::{Path, PathBuf};

use paddock_storage::disk::Disk;

use crate::Config;
use crate::config::HOME;
use crate::identity::{IdentityError, failed};

const MARK: &str = "diverged-";

fn mark_path(config: &Config, index: u64) -> PathBuf {
    config.data_dir.join(format!("{MARK}{index:016x}"))
}

/// Notes that the state after entry `index` was found to be wrong.
pub(crate) fn mark(disk: &dyn Disk, config: &Config, index: u64) -> Result<(), IdentityError> {
    let path = mark_path(config, index);
    match disk.create(&path) {
        // An earlier call came so far, and then found no descriptor.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => drop(created.map_err(failed("create", &path))?),
    }
    disk.sync_dir(&config.data_dir).map_err(failed("sync directory", &config.data_dir))
}

/// The entry of the mark, if there is one.
pub(crate) fn marked(disk: &dyn Disk, config: &Config) -> Result<Option<u64>, IdentityError> {
    let names = disk.list(&config.data_dir).map_err(failed("list", &config.data_dir))?;
    let index = |name: &String| u64::from_str_radix(name.strip_prefix(MARK)?, 16).ok();
    Ok(names.iter().filter_map(index).max())
}

/// Gives log and snapshots other names, if they still have their own. Returns those.
pub(crate) fn put_aside(disk: &dyn Disk, config: &Config, index: u64) -> Result<Vec<PathBuf>, IdentityError> {
    let mut names = Vec::new();
    for dir in [config.log_dir(), config.snapshot_dir(HOME)] {
        let aside = aside(&dir, index);
        if disk.list(&aside).is_err() && disk.list(&dir).is_ok() {
            disk.rename_dir(&dir, &aside).map_err(failed("rename", &dir))?;
        }
        names.push(aside);
    }
    Ok(names)
}

fn aside(dir: &Path, index: u64) -> PathBuf {
    let name = dir.file_name().expect("a directory of ours has a name").to_string_lossy();
    dir.with_file_name(format!("{name}.{MARK}{index:016x}"))
}

/// The member has begun anew.
pub(crate) fn remove_mark(disk: &dyn Disk, config: &Config, index: u64) -> Result<(), IdentityError> {
    let path = mark_path(config, index);
    disk.remove(&path).map_err(failed("remove", &path))?;
    disk.sync_dir(&config.data_dir).map_err(failed("sync directory", &config.data_dir))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use paddock_replica::Cluster;
    use paddock_state::Now;
    use paddock_storage::disk::DiskFault;
    use paddock_storage::{Index, MemDisk, Record, Term};

    use super::*;
    use crate::identity;
    use crate::recovery::{Found, recover};

    const INDEX: u64 = 64;

    /// A member with entries, which stopped because its state is wrong.
    fn diverged(disk: &MemDisk, config: &Config) {
        let mut found = recover(Arc::new(disk.clone()), config, &Now::default()).unwrap();
        for index in 1..=5 {
            let (term, index) = (Term(1), Index(index));
            found.log.append(Record::Entry { group: HOME, term, index, payload: &[] });
        }
        found.log.sync().unwrap();
        identity::write(disk, config, Cluster::Known(7)).unwrap();
        mark(disk, config, INDEX).unwrap();
    }

    fn check_begun_anew(disk: &MemDisk, config: &Config, found: &Found) {
        assert_eq!(found.state.applied(), (0, 0));
        assert!(found.recovered.entries.is_empty());
        assert_eq!(found.recovered.cluster, Cluster::Known(7), "it goes back to its own ensemble");
        assert_eq!(found.recovered.hard_state.silent_until, u64::MAX, "it learns before it votes");
        assert_eq!(marked(disk, config).unwrap(), None);
        let aside = disk.list(Path::new("/data/log.diverged-0000000000000040")).unwrap();
        assert!(!aside.is_empty(), "what it had is there to look into");
    }

    #[test]
    fn whenever_it_dies_on_the_way_it_begins_anew_and_keeps_what_it_had_aside() {
        let config = Config::small();
        for fault in [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename] {
            let mut faults = 0;
            loop {
                let disk = MemDisk::new(faults);
                diverged(&disk, &config);
                disk.crash();
                disk.fail_after(fault, faults);
                let first = recover(Arc::new(disk.clone()), &config, &Now::default()).is_ok();
                disk.clear_faults();
                disk.crash();
                let again = recover(Arc::new(disk.clone()), &config, &Now::default());
                let again = again.unwrap_or_else(|error| panic!("{fault:?} after {faults}: {error}"));
                check_begun_anew(&disk, &config, &again);
                if first {
                    assert!(faults > 0, "{fault:?} never happens");
                    break;
                }
                faults += 1;
            }
        }
    }
}
