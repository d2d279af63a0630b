//! Reasons for which a server of a test does not serve.

use std::error::Error;
use std::io;
use std::time::Duration;

use paddock_server::ServerError;

/// A server did not come to serve.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no temporary directory for its data.
    #[error("make a temporary directory")]
    Directory(#[source] io::Error),
    /// All ports of 127.0.0.1 from which it takes one are in use.
    #[error("no free port for the server at 127.0.0.1")]
    NoPort,
    /// The server says why.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The members of an ensemble did not agree on a leader in time. `modes` is what each member that runs said last.
    #[error("no leader that all members follow after {waited:?}: {modes:?}")]
    NoLeader {
        /// Time for which the caller has waited.
        waited: Duration,
        /// `leader` or `follower`, or `None` of a member that did not say.
        modes: Vec<Option<String>>,
    },
}

impl StartError {
    /// True if another process listens at a port of the server.
    pub(crate) fn is_address_in_use(&self) -> bool {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}
