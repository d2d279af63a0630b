//! The log of this member as it is, from an entry to the last one that was applied: what a backup takes. The bytes are those of
//! `paddock_member::EntryStreamWriter`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use paddock_member::{EntryStreamWriter, StreamHead, find_entries};
use paddock_storage::{Disk, LiveEntries, LiveLogError, OsDisk};

use crate::shared::Shared;

/// Pause before the state is looked at again that is in the middle of an entry.
const WITHIN_ENTRY_PAUSE: Duration = Duration::from_micros(100);

/// Reasons for which a member cannot give its log from an entry on.
#[derive(Debug, thiserror::Error)]
pub enum OwnLogError {
    /// The entry is one that this member has not applied.
    #[error("This member has applied no entry {first} yet: the last one is {last}")]
    Ahead {
        /// The entry that was asked for.
        first: u64,
        /// The last one that was applied.
        last: u64,
    },
    /// Znodes lie in several Raft groups, and the home group's log does not tell of all.
    #[error(
        "Znodes lie in several Raft groups, whose logs are not copied: take a snapshot, which has all of them"
    )]
    Spread,
    /// The log no longer has it, or cannot be read.
    #[error(transparent)]
    Log(#[from] LiveLogError),
}

/// Place in the log up to which the state has come.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// Index and term of the last entry applied.
    applied: (u64, u64),
    zxid: i64,
    /// Id of the ensemble, or 0.
    cluster: u64,
}

/// Entries of the log, from one on to the last that was applied when they were looked for.
#[derive(Debug)]
pub(crate) struct OwnLog {
    first: u64,
    reached: Reached,
    /// `None` if nothing was applied from the first one on.
    found: Option<LiveEntries>,
}

impl OwnLog {
    /// Looks for the entries from `first` on.
    pub(crate) fn find(shared: &Shared, first: u64) -> Result<OwnLog, OwnLogError> {
        let reached = reached(shared);
        let last = reached.applied.0;
        if first > last + 1 {
            return Err(OwnLogError::Ahead { first, last });
        }
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let find = || find_entries(&disk, &shared.config.log_dir(), first, reached.applied);
        let found = (first <= last).then(find).transpose()?;
        Ok(OwnLog { first, reached, found })
    }

    /// Writes them, and where they end.
    pub(crate) fn write(&self, out: impl Write) -> io::Result<()> {
        let head = StreamHead { cluster: self.reached.cluster, first: self.first };
        let mut writer = EntryStreamWriter::begin(out, head)?;
        if let Some(found) = &self.found {
            copy(found, &mut writer)?;
        }
        writer.finish(self.reached.zxid).map(drop)
    }
}

fn reached(shared: &Shared) -> Reached {
    loop {
        let state = shared.state.read();
        if !state.is_within_entry() {
            let tree = state.tree();
            return Reached { applied: state.applied(), zxid: tree.zxid().0, cluster: tree.cluster() };
        }
        drop(state);
        std::thread::sleep(WITHIN_ENTRY_PAUSE);
    }
}

fn copy<W: Write>(found: &LiveEntries, writer: &mut EntryStreamWriter<W>) -> io::Result<()> {
    let mut written = Ok(());
    let read = found.read(&mut |index, term, payload| {
        written = writer.entry(index.0, term.0, payload);
        written.is_ok()
    });
    written.and(read.map_err(io::Error::other))
}
