//! Failures of commands, as one line that says what to do.

use std::io;

use paddock_client::{Error, ErrorCode};

use crate::words::SplitError;

/// Reason for which a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ShellFailure {
    /// The line itself is wrong.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Split(#[from] SplitError),
    /// A request about a znode failed.
    #[error("{}", explain(path, error))]
    Znode { path: String, error: Error },
    /// A request that is not about one znode failed.
    #[error("{}", explain("this", .0))]
    Client(#[from] Error),
    /// The server answered, and what was asked cannot be.
    #[error("{0}")]
    Refused(String),
    #[error("not connected: connect host:port")]
    NotConnected,
    #[error("write the output: {0}")]
    Output(io::Error),
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    /// A subtree is removed only when its user has agreed.
    #[error("nothing was removed: -f removes {what} without a question")]
    Unconfirmed { what: String },
    /// Ctrl-C came before the end.
    #[error("interrupted: a change that was under way may be done or not")]
    Interrupted,
    #[error("edit a line: {0}")]
    Editor(String),
    /// The reader of the output has gone, as `head` does: nothing to tell.
    #[error("the output is closed")]
    OutputClosed,
}

impl From<io::Error> for ShellFailure {
    fn from(error: io::Error) -> ShellFailure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => ShellFailure::OutputClosed,
            _ => ShellFailure::Output(error),
        }
    }
}

impl ShellFailure {
    pub(crate) fn at(path: &str) -> impl FnOnce(Error) -> ShellFailure + use<> {
        let path = path.to_owned();
        move |error| ShellFailure::Znode { path, error }
    }

    /// The code of the server's refusal.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        match self {
            ShellFailure::Znode { error, .. } | ShellFailure::Client(error) => error.code(),
            _ => None,
        }
    }

    /// True if the session is over, so that only a new one can go on.
    pub fn ends_session(&self) -> bool {
        match self {
            ShellFailure::Znode { error, .. } | ShellFailure::Client(error) => {
                matches!(error, Error::SessionExpired | Error::Closed | Error::AuthFailed)
            }
            _ => false,
        }
    }
}

fn explain(subject: &str, error: &Error) -> String {
    match error {
        Error::Refused { code, .. } => format!("{subject}: {}", advice(*code)),
        Error::MultiFailed { index, code } => {
            format!(
                "operation {} of the transaction failed, so nothing was done: {}",
                index + 1,
                advice(*code)
            )
        }
        Error::ConnectionLost => {
            format!(
                "{subject}: the connection was lost before the answer: it may have been done or not; look before you repeat it"
            )
        }
        Error::SessionExpired => {
            "the session has expired, and with it its ephemerals and watches: connect again".to_owned()
        }
        Error::Closed => "the session is closed: connect again".to_owned(),
        Error::Connect { .. } => {
            format!("{}: check the address, and that a server listens there", paddock_tls::with_causes(error))
        }
        other => format!("{subject}: {}", paddock_tls::with_causes(other)),
    }
}

fn advice(code: ErrorCode) -> String {
    let text = match code {
        ErrorCode::NoNode => "no such znode (ls its parent to see what is there)",
        ErrorCode::NodeExists => "the znode exists already (set changes it)",
        ErrorCode::NoAuth => "not allowed by the ACL: show an identity with addauth, or --auth",
        ErrorCode::BadVersion => "the version is another one by now (stat shows it)",
        ErrorCode::NotEmpty => "the znode has children (deleteall removes them too)",
        ErrorCode::NoChildrenForEphemerals => "an ephemeral znode has no children",
        ErrorCode::InvalidAcl => "the ACL is not valid: scheme:id:perms, as in world:anyone:cdrwa",
        ErrorCode::AuthFailed => "the server does not take this identity",
        ErrorCode::NoWatcher => "no such watch is set by this session",
        ErrorCode::ReconfigDisabled => "reconfig is turned off on the server (reconfigEnabled)",
        ErrorCode::ReconfigInProgress => "another reconfig is under way: try again",
        ErrorCode::NewConfigNoQuorum => "too few members of the new configuration are up to date",
        ErrorCode::QuotaExceeded => "a quota would be exceeded (listquota shows it)",
        ErrorCode::Unimplemented => "the server does not know this operation",
        ErrorCode::BadArguments => "the server finds an argument wrong",
        ErrorCode::NotReadOnly => "the server is read-only: it has no contact to a quorum",
        ErrorCode::ThrottledOp => "the server is too busy: try again later",
        ErrorCode::SessionClosedRequireSaslAuth => "the server wants a login: --sasl USER:FILE",
        other => return format!("refused: {other:?}"),
    };
    text.to_owned()
}
