//! One member between what it decides and the process that it lives in: it recovers what its directory holds, carries
//! out what the replica asks for, and takes snapshots, all on a [`Disk`](paddock_storage::Disk).
//!
//! There are no threads, no sockets and no clock here. [`Member`] works in steps that its owner calls; what it needs of
//! the process comes through a [`Shell`]. `paddock-server` is one, with threads, links and real clocks around it. A
//! simulator is another one, with a disk in memory and the time it wants it to be.

mod addressed;
mod clock;
mod config;
mod diverged;
mod entry_span;
mod entry_stream;
mod group_state;
mod identity;
mod incoming;
mod inspection;
mod let_go;
mod live_log;
mod member;
mod offline;
mod pieces;
mod progress;
mod recovery;
mod running_whole;
mod settings;
mod shell;
mod snapshots;
mod whole;

#[cfg(feature = "testing")]
pub use addressed::open_message;
pub use addressed::{is_of_log, open_of_copies, seal_of_copies};
pub use clock::{Clock, StateLock};
pub use config::Config;
pub use entry_stream::{EntryStreamError, EntryStreamReader, EntryStreamWriter, StreamEnd, StreamHead};
pub use identity::IdentityError;
pub use incoming::IncomingError;
pub use inspection::{
    DirectoryLook, InspectedIdentity, InspectedLog, InspectedSnapshot, inspect_directory, inspect_identity,
    inspect_log, inspect_snapshot, inspect_snapshots,
};
pub use live_log::find_entries;
pub use member::{Member, MemberError, Work};
pub use offline::{
    DirectoryInMaking, OfflineError, check_free, is_data_dir, make_directory, read_directory, read_snapshot,
    read_whole_snapshot,
};
pub use recovery::RecoveryError;
pub use running_whole::{
    GroupCopy, GroupHandle, RunningFiles, WholeCopy, WholeCopyError, copy_path, read_copy, remove_copies,
    remove_copy,
};
pub use settings::MemberSettings;
pub use shell::Shell;
pub use snapshots::{SnapshotOrder, SnapshotWalk, Taken};
pub use whole::{DirectoryState, EarlierState, GroupCut};
