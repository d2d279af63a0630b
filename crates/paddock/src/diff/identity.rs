//! Identities that are shown to servers.

use std::fmt;

/// Scheme and proof of an identity.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) scheme: String,
    pub(super) auth: String,
}

/// A proof is a secret, which no log may have.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:…", self.scheme)
    }
}

pub(super) fn parse(text: &str) -> Result<Identity, String> {
    let (scheme, auth) = text.split_once(':').ok_or("expected SCHEME:AUTH, as in digest:user:password")?;
    Ok(Identity { scheme: scheme.to_owned(), auth: auth.to_owned() })
}
