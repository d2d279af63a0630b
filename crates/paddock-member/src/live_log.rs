//! The log of a member that runs, read from its files beside it.

use std::path::Path;
use std::sync::Arc;

use paddock_storage::{Disk, Index, LiveEntries, LiveLogError, Term};

use crate::config::HOME;

/// Finds the entries from `first` to the one that was applied last, which has an index and a term, in the directory of the log. `first` is not
/// behind that one.
pub fn find_entries(
    disk: &Arc<dyn Disk>,
    log_dir: &Path,
    first: u64,
    applied: (u64, u64),
) -> Result<LiveEntries, LiveLogError> {
    LiveEntries::find(disk, log_dir, HOME, Index(first), (Index(applied.0), Term(applied.1)))
}
