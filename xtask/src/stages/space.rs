//! Room on the disk that tests need: what they run short of fails in a hundred ways, none of which says so.

use std::path::Path;

use rustix::fs::statvfs;

use crate::layout::Layout;

/// Bytes that a first run of the usual stages writes, about: programs for three profiles, and what is installed.
const NEEDED: u64 = 20 << 30;

/// A line about a disk on which a first run may not find enough room.
pub(super) fn warning(layout: &Layout) -> Option<String> {
    let target = layout.environment("");
    // The directory may be about to be made.
    let there = target.ancestors().find(|path| path.exists())?;
    let free = free_bytes(there).filter(|free| *free < NEEDED)?;
    let [free, needed] = [free, NEEDED].map(|bytes| bytes >> 30);
    Some(format!("{free} GiB free at {}: a first run of all stages writes about {needed}", there.display()))
}

fn free_bytes(path: &Path) -> Option<u64> {
    let disk = statvfs(path).ok()?;
    Some(disk.f_bavail * disk.f_frsize)
}
