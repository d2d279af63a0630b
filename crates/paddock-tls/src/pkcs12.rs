//! PKCS12, the usual key store of Java since its version 9.

use p12_keystore::error::Error;
use p12_keystore::{CertificateBag, KeyStore, Pkcs12Archive, Pkcs12ImportPolicy};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::error::StoreError;
use crate::key_entry::KeyEntry;

pub(crate) fn key_entry(bytes: &[u8], password: &str) -> Result<KeyEntry, StoreError> {
    let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Strict).map_err(problem)?;
    let (_, entry) = store.private_key_chain().ok_or(StoreError::NoKey)?;
    let chain = entry.certs().iter().map(|certificate| certificate.as_der().to_vec().into()).collect();
    let key = PrivatePkcs8KeyDer::from(entry.key().as_der().to_vec()).into();
    Ok(KeyEntry { key, chain })
}

/// Java marks the certificates that are to be trusted. Where there is neither a mark nor a key, as in what OpenSSL
/// makes of certificates alone, all of them are meant.
pub(crate) fn trusted(bytes: &[u8], password: &str) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let archive = Pkcs12Archive::from_pkcs12(bytes, password).map_err(problem)?;
    let is_unmarked = archive.keys.is_empty() && !archive.certs.iter().any(|bag| bag.trusted);
    let is_meant = |bag: &&CertificateBag| bag.trusted || is_unmarked;
    Ok(archive.certs.iter().filter(is_meant).map(|bag| bag.cert.as_der().to_vec().into()).collect())
}

fn problem(error: Error) -> StoreError {
    match error {
        Error::MacError(_) | Error::Pkcs5Error(_) | Error::UnpadError => StoreError::Password,
        Error::DerError(_) | Error::InvalidVersion => StoreError::Format,
        Error::UnsupportedContentType
        | Error::UnsupportedCertificateType
        | Error::UnsupportedEncryptionScheme
        | Error::UnsupportedMacAlgorithm
        | Error::InvalidParameters => StoreError::Protection(error.to_string()),
        error => StoreError::Damaged(error.to_string()),
    }
}
