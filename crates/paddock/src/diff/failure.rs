//! Failures of a comparison.

use std::io;
use std::path::PathBuf;

use paddock_client::Error;
use paddock_files::FileError;
use paddock_member::OfflineError;

use crate::access::AccessError;

/// Reason for which two trees could not be compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiffFailure {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Offline(#[from] OfflineError),
    #[error(
        "{0} is neither a server (host:port) nor a file or directory that can be read; a directory that is not there may be misspelt"
    )]
    Nowhere(String),
    #[error("{} is no data directory of Paddock or ZooKeeper", .0.display())]
    UnknownDirectory(PathBuf),
    #[error(
        "{server} does not let {path} be read; show an identity with --auth, or leave it out with --exclude"
    )]
    NoAuth { server: String, path: String },
    #[error("{server}")]
    Client {
        server: String,
        #[source]
        source: Error,
    },
    #[error("print the differences")]
    Print(#[from] io::Error),
}
