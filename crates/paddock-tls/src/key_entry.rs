//! A private key with its certificates.

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A private key, and the certificates that vouch for it: first its own, then that of who signed it, and so on.
#[derive(Debug)]
pub(crate) struct KeyEntry {
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) chain: Vec<CertificateDer<'static>>,
}
