//! ZooKeeper's files on disk, read into a tree and written from one: snapshots, transaction logs, data directories. ClickHouse
//! Keeper's are read, too.
//!
//! A running ensemble can be followed, too: `learner.rs` speaks as one of its observers, over any stream of bytes, and `working_copy.rs`
//! keeps what it hears.
//!
//! Nothing in a file is believed: a length reserves no memory that its bytes do not fill, and what is wrong is named with file
//! and offset. There are no sockets and no threads here, and nothing is ever written but new files.

mod answer;
mod applied;
mod data_dir;
mod digest;
mod error;
mod export;
#[doc(hidden)]
pub mod fuzzing;
mod jute_stream;
mod keeper;
mod learner;
mod listing;
mod load;
mod owner;
mod proportion;
mod replay;
mod snappy;
mod snapshot;
mod transaction;
mod transaction_log;
mod working_copy;

pub use data_dir::is_data_dir;
pub use error::{FileError, Problem};
pub use export::{Exported, export};
pub use keeper::{KeeperDirs, KeeperLoaded, KeeperReport, list_requests, load as load_keeper};
pub use learner::{
    Event, LearnerError, LearnerRequest, LearnerStream, ReceivedSnapshot, SourceMember, TouchedSessions,
};
pub use listing::{ListedTransaction, list_transactions};
pub use load::{
    DigestCheck, LoadOptions, Loaded, LogRead, Progress, Report, ZooKeeperDirs, load, load_snapshot,
};
pub use transaction::needs_no_client;
pub use working_copy::WorkingCopy;
