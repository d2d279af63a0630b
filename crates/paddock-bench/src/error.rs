//! Errors for which a run could not be made, or not be finished.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A request of the user that cannot be done; a sentence that tells what to do instead.
    #[error("{0}")]
    Usage(String),
    /// An error with its place in a file.
    #[error("{file}:{line}: {message}", file = file.display())]
    InFile { file: PathBuf, line: usize, message: String },
    #[error("{action} {path}", path = path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// No session could be opened.
    #[error("connect to {host}")]
    Connect {
        host: String,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot open {sessions} sessions: {reason}; servers limit connections from one address (maxClientCnxns)"
    )]
    Sessions { sessions: usize, reason: String },
    /// A host answers, but not as ZooKeeper does.
    #[error("{host} does not speak ZooKeeper's protocol: {reason}")]
    Protocol { host: String, reason: String },
    /// The session of a client that prepares znodes, or is itself measured, was refused something or was lost.
    #[error("a client of {hosts}")]
    Client {
        hosts: String,
        #[source]
        source: paddock_client::Error,
    },
    #[error("TLS")]
    Tls(#[from] paddock_client::TlsError),
    /// A server that a suite started; with the end of what it wrote.
    #[error("{server}: {what}; the end of its log:\n{log}")]
    Server { server: String, what: String, log: String },
    /// A run within a measurement, from which nothing can be computed.
    #[error("{0}")]
    Unfinished(String),
    #[error("{action}")]
    System {
        action: &'static str,
        #[source]
        source: io::Error,
    },
}

impl BenchError {
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> BenchError {
        let path = path.into();
        move |source| BenchError::File { action, path, source }
    }
}
