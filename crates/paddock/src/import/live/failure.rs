//! Failures of a live copy.

use paddock_client::Error;

use crate::access::AccessError;
use crate::diff::failure::DiffFailure as WalkFailure;
use crate::moving::MovingFailure;

/// Reason for which a live copy ended without two equal trees.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveFailure {
    #[error("{0}")]
    Walk(WalkFailure),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(
        "{server} does not let {path} be read; show an identity with --from-auth or --to-auth, or leave it out with --exclude"
    )]
    NoReading { server: String, path: String },
    #[error(
        "{server} does not let {path} be written; show an identity that may, such as that of its super user, with --to-auth"
    )]
    NoWriting { server: String, path: String },
    #[error(
        "the ACL of {path} is hidden by {server}: show an identity that may administer it with --from-auth"
    )]
    HiddenAcl { server: String, path: String },
    #[error("{server} refuses the ACL of {path}: its scheme is not one that it knows")]
    InvalidAcl { server: String, path: String },
    #[error(
        "{server} holds znodes already ({path}); --overwrite makes it equal to the source, whatever is there"
    )]
    NotEmpty { server: String, path: String },
    #[error("{0} is named as the source and as the target")]
    SameServer(String),
    #[error("connection to {0} lost")]
    Disconnected(String),
    #[error("{server}")]
    Client {
        server: String,
        #[source]
        source: Error,
    },
    #[error("ended before everything was copied")]
    Interrupted,
    #[error("{0} znodes are not equal: somebody writes to the source, or to the target")]
    Different(u64),
    #[error("listen for signals")]
    Signals(#[source] std::io::Error),
    #[error("start the runtime")]
    Runtime(#[source] std::io::Error),
}

impl LiveFailure {
    /// True if another attempt, with new sessions, may go better.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            LiveFailure::Disconnected(_) => true,
            LiveFailure::Client { source, .. } | LiveFailure::Walk(WalkFailure::Client { source, .. }) => {
                matches!(
                    source,
                    Error::ConnectionLost | Error::SessionExpired | Error::Closed | Error::Connect { .. }
                )
            }
            _ => false,
        }
    }

    pub(super) fn client(server: &str, source: Error) -> LiveFailure {
        LiveFailure::Client { server: server.to_owned(), source }
    }
}

impl From<WalkFailure> for LiveFailure {
    fn from(failure: WalkFailure) -> LiveFailure {
        match failure {
            WalkFailure::NoAuth { server, path } => LiveFailure::NoReading { server, path },
            WalkFailure::Client { server, source } => LiveFailure::Client { server, source },
            other => LiveFailure::Walk(other),
        }
    }
}

impl From<LiveFailure> for MovingFailure {
    fn from(failure: LiveFailure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}
