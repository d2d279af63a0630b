//! TLS settings of a process that calls servers.

use std::path::PathBuf;

use super::Store;

/// Servers that a caller believes.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Servers whose certificate is in the store, or signed by one that is, and is for the host that was called.
    Authorities(&'a Store),
    /// All. Who is on the way can read and change everything.
    Anybody,
}

/// The private key with which a caller shows who it is, and the file of its certificates if they are not beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    /// The private key.
    pub key: Store,
    /// File of the certificates, as PEM. `None` if they are with the key.
    pub certificates: Option<PathBuf>,
}
