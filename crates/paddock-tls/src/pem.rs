//! PEM: a private key and certificates as text.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::StoreError;
use crate::key_entry::KeyEntry;

const BEGIN: &[u8] = b"-----BEGIN ";
const ENCRYPTED: (&str, &str) =
    ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "-----END ENCRYPTED PRIVATE KEY-----");
/// Header of keys that OpenSSL encrypted before there was PKCS8.
const TRADITIONAL_ENCRYPTION: &str = "Proc-Type: 4,ENCRYPTED";

pub(crate) fn is_pem(bytes: &[u8]) -> bool {
    bytes.windows(BEGIN.len()).any(|window| window == BEGIN)
}

pub(crate) fn key_entry(bytes: &[u8], password: Option<&str>) -> Result<KeyEntry, StoreError> {
    let key = key(bytes, password)?;
    let chain = certificates(bytes)?;
    if chain.is_empty() { Err(StoreError::NoChain) } else { Ok(KeyEntry { key, chain }) }
}

pub(crate) fn certificates(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    CertificateDer::pem_slice_iter(bytes).collect::<Result<_, _>>().map_err(damaged)
}

fn key(bytes: &[u8], password: Option<&str>) -> Result<PrivateKeyDer<'static>, StoreError> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains(TRADITIONAL_ENCRYPTION) {
        return Err(StoreError::Encryption);
    }
    match encrypted_key(&text) {
        Some(encoded) => decrypt(encoded, password.ok_or(StoreError::PasswordMissing)?),
        None => PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
            Error::NoItemsFound => StoreError::NoKey,
            error => damaged(error),
        }),
    }
}

/// The Base64 of an encrypted key, if there is one.
fn encrypted_key(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(ENCRYPTED.0)?;
    rest.split_once(ENCRYPTED.1).map(|(encoded, _)| encoded)
}

fn decrypt(encoded: &str, password: &str) -> Result<PrivateKeyDer<'static>, StoreError> {
    let encoded: String = encoded.split_whitespace().collect();
    let der = BASE64_STANDARD.decode(encoded).map_err(damaged)?;
    // What cannot be understood has an encryption that is not known.
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(&der[..]).map_err(|_| StoreError::Encryption)?;
    if encrypted.encryption_algorithm.pbes2().is_none() {
        return Err(StoreError::Encryption);
    }
    let key = encrypted.decrypt(password).map_err(|_| StoreError::Password)?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

fn damaged(error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(error.to_string())
}
