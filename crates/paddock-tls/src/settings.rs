//! Settings of TLS: files of keys and certificates, versions and cipher suites.

mod caller;
mod link;
mod port;

use std::fmt;
use std::path::PathBuf;

use crate::cipher_suites::cipher_suite_names;
pub use caller::{CallerIdentity, Trust};
pub use link::{OneSidedStores, PeerTls, TlsMode};
pub use port::{ClientAuth, ClientTls, PortProtocol};

/// A file of keys or certificates. What format it has, its content says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// File of PEM, PKCS12 or JKS.
    pub path: PathBuf,
    /// Password, if the file or its key is encrypted.
    pub password: Option<Password>,
}

/// Password of a store, or the file that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// The password itself.
    Text(Secret),
    /// Its text, but for a line's end.
    File(PathBuf),
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text that no debug output shows from here on.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Versions of TLS that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    Both,
    /// 1.2.
    Only12,
    /// 1.3.
    Only13,
}

/// Encryption of a TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CipherSuite(&'static str);

impl CipherSuite {
    /// The suite that Java and the registry of TLS know by this name, if it is offered.
    pub fn named(name: &str) -> Option<CipherSuite> {
        cipher_suite_names().find(|known| *known == name).map(CipherSuite)
    }

    /// All that are offered.
    pub fn all() -> impl Iterator<Item = CipherSuite> {
        cipher_suite_names().map(CipherSuite)
    }

    /// The name in the registry of TLS.
    pub fn name(self) -> &'static str {
        self.0
    }
}
