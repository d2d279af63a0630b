//! Errors with which a member does not start, or stops.

use std::io;
use std::path::PathBuf;

use paddock_member::{MemberError, RecoveryError};
use paddock_os::binding::BindError;
use paddock_proto::MemberNumber;
use paddock_storage::LogError;
use paddock_tls::TlsError;

/// The reason for which a member did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Listen(#[from] BindError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error(
        "data directory {} belongs to an ensemble of the members {present:?}, but the configuration names none: name them, \
         or begin an ensemble of this member alone with --recover",
        path.display()
    )]
    NotAlone { path: PathBuf, present: Vec<MemberNumber> },
    #[error("listen for members")]
    Links(#[source] BindError),
    #[error("TLS between members")]
    PeerTls(#[source] TlsError),
    #[error("TLS for clients")]
    ClientTls(#[source] TlsError),
    #[error("TLS to etcd")]
    EtcdTls(#[source] TlsError),
    #[error("TLS of the HTTP interface")]
    AdminTls(#[source] TlsError),
    #[cfg(feature = "kerberos")]
    #[error("Kerberos for clients, as {principal}")]
    Kerberos {
        principal: String,
        #[source]
        source: paddock_gssapi::GssError,
    },
    #[error("Kerberos for clients: this program was built without it")]
    NoKerberos,
    #[error("open the audit log {}", path.display())]
    AuditLog {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the log failed, so the member stopped")]
    Log(#[from] LogError),
    #[error("the disk failed, so the member stopped")]
    Member(#[from] MemberError),
    #[error("a thread of the member panicked, so it stopped")]
    Panicked,
}

impl ServerError {
    /// True if the member stopped because its state is not the one that most others have. Started again, it puts its files
    /// aside and fetches the state from the leader.
    pub fn is_divergence(&self) -> bool {
        matches!(self, ServerError::Member(MemberError::Diverged { .. }))
    }
}
