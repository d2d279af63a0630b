//! Errors with which a member does not start, or stops.

use std::io;
use std::path::PathBuf;

use paddock_member::{MemberError, RecoveryError};
use paddock_os::binding::BindError;
use paddock_proto::MemberNumber;
use paddock_storage::LogError;
use paddock_tls::TlsError;

/// The reason for which a member did not start, or stopped.
///
/// Each says the action and the file or address that it is about; the cause is its `source`.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address for clients, metrics or the HTTP interface cannot be listened at.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// The data directory cannot be used: another member has it, it belongs to another number, or what is in it is damaged.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The data are of an ensemble, and [`Config::ensemble`](crate::Config::ensemble) is `None`.
    #[error(
        "data directory {} belongs to an ensemble of the members {present:?}, but the configuration names none: name them, \
         or begin an ensemble of this member alone with --recover",
        path.display()
    )]
    NotAlone {
        /// The data directory.
        path: PathBuf,
        /// Numbers of the ensemble's members, as the data have them.
        present: Vec<MemberNumber>,
    },
    /// The address for other members cannot be listened at.
    #[error("listen for members")]
    Links(#[source] BindError),
    /// Keys and certificates of [`Ensemble::tls`](crate::Ensemble::tls) cannot be read or used.
    #[error("TLS between members")]
    PeerTls(#[source] TlsError),
    /// Keys and certificates of [`Config::tls`](crate::Config::tls) cannot be read or used.
    #[error("TLS for clients")]
    ClientTls(#[source] TlsError),
    /// Keys and certificates of [`EtcdSettings::tls`](crate::EtcdSettings::tls) cannot be read or used.
    #[error("TLS to etcd")]
    EtcdTls(#[source] TlsError),
    /// Keys and certificates of the HTTP interface cannot be read or used.
    #[error("TLS of the HTTP interface")]
    AdminTls(#[source] TlsError),
    /// The system's library of Kerberos is not there, or has no keys of the principal.
    #[cfg(feature = "kerberos")]
    #[error("Kerberos for clients, as {principal}")]
    Kerberos {
        /// The member's principal, as the settings have it.
        principal: String,
        /// The words of the library.
        #[source]
        source: paddock_gssapi::GssError,
    },
    /// The settings have Kerberos, and the crate was built without its feature `kerberos`.
    #[error("Kerberos for clients: this program was built without it")]
    NoKerberos,
    /// The audit log cannot be opened.
    #[error("open the audit log {}", path.display())]
    AuditLog {
        /// The file of the audit log.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A write or a sync of the transaction log failed. It is not tried again: the next start reads what is on the disk.
    #[error("the log failed, so the member stopped")]
    Log(#[from] LogError),
    /// Another file of the member failed, or its state was found to differ from that of most others.
    #[error("the disk failed, so the member stopped")]
    Member(#[from] MemberError),
    /// A thread of the member has panicked: an invariant does not hold. What was acknowledged is on the disk.
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
