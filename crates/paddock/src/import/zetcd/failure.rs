//! Failures of an import from a zetcd.

use paddock_etcd::{CallError, ZetcdError};

use crate::moving::MovingFailure;

/// Reason for which nothing was imported from a zetcd, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ZetcdFailure {
    #[error("{0}")]
    Settings(String),
    #[error("{action}: {error}")]
    Call { action: &'static str, error: CallError },
    #[error(transparent)]
    Keys(#[from] ZetcdError),
    #[error("etcd has no key below /zk/: no zetcd of the default build has written there")]
    Nothing,
    #[error("--to-prefix {0} is where zetcd's own keys are, name another one such as /paddock")]
    OwnPrefix(String),
    #[error(
        "etcd has keys below {0} already, and nothing is written over: name another --to-prefix, or, if an import was broken off, \
         remove them: etcdctl del --prefix {0}/"
    )]
    NotEmpty(String),
}

impl From<ZetcdFailure> for MovingFailure {
    fn from(failure: ZetcdFailure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}
