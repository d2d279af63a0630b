//! The way in to a server: TLS, a login, and the identities that each connection shows.

use std::fmt;

use paddock_client::{Login, Tls};

#[derive(Clone, Debug, Default)]
pub struct Access {
    /// TLS for every connection; none is plaintext.
    pub tls: Option<Tls>,
    /// User that each connection logs in as by SASL; none does not.
    pub login: Option<Login>,
    /// Identities that each connection shows when it is made.
    pub identities: Vec<ShownIdentity>,
}

/// An identity by its scheme, and the proof of it: `digest` and `user:password`.
#[derive(Clone, PartialEq, Eq)]
pub struct ShownIdentity {
    pub scheme: String,
    pub auth: String,
}

/// A proof is a secret, which no log may have.
impl fmt::Debug for ShownIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:…", self.scheme)
    }
}
