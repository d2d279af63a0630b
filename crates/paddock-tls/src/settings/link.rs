//! TLS settings of the links between members.

use std::path::PathBuf;

use super::{CipherSuite, Store, TlsVersions};

/// TLS on the links between members: both sides of a link show a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTls {
    /// Links that are made and taken.
    pub mode: TlsMode,
    /// This member's private key, and the certificates that vouch for it.
    pub key_store: Store,
    /// File of those certificates, if the key is in a file of PEM without them.
    pub certificates: Option<PathBuf>,
    /// Certificates that are trusted, and those whose signature makes another certificate trusted.
    pub trust_store: Store,
    /// Stores for one side of a link, where certificates have one purpose each.
    pub one_sided: OneSidedStores,
    /// True if a member that is called needs a certificate for the host under which it was called.
    pub verify_called: bool,
    /// True if a member that calls needs a certificate for the host that it has in the list of members.
    pub verify_callers: bool,
    /// Versions of TLS that members speak.
    pub versions: TlsVersions,
    /// The first is liked best. `None` is all that there are.
    pub cipher_suites: Option<Vec<CipherSuite>>,
}

/// Stores that count before those of both sides of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneSidedStores {
    /// The private key with which this member calls others.
    pub calling_key_store: Option<Store>,
    /// File of the certificates that vouch for it, if they are not with the key.
    pub calling_certificates: Option<PathBuf>,
    /// Certificates by which members that call are verified.
    pub callers_trust_store: Option<Store>,
}

/// Stages of an ensemble on its way to TLS. A member in one mode is understood by one in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Calls without TLS, takes calls with and without.
    Accepted,
    /// Calls with TLS, takes calls with and without.
    Preferred,
    /// Calls with TLS and takes no other calls.
    Required,
}
