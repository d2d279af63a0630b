//! Files of keys and certificates, as operators of ZooKeeper have them: PEM, PKCS12 and JKS.
//!
//! Content tells the kind of a file. Java goes by that too: `keytool` writes PKCS12 whatever the file is called, and
//! reads either under the name of the other.

use std::fs;
use std::path::Path;

use rustls::pki_types::CertificateDer;

use crate::error::{StoreError, TlsError};
use crate::key_entry::KeyEntry;
use crate::secret_files::warn_of_readable_file;
use crate::settings::{Password, Store};
use crate::{jks, pem, pkcs12};

/// The private key of a store. If there are more, the first one counts. Its certificates may be in a file of their own,
/// if both are PEM.
pub(crate) fn read_key_entry(store: &Store, certificates: Option<&Path>) -> Result<KeyEntry, TlsError> {
    let (mut bytes, password) = open(store)?;
    warn_of_readable_file(&store.path, "a private key");
    if let Some(path) = certificates.filter(|path| *path != store.path) {
        bytes.push(b'\n');
        bytes.extend(read(path)?);
    }
    let entry = match format(&bytes) {
        Some(Format::Pem) => pem::key_entry(&bytes, password.as_deref()),
        Some(Format::Pkcs12) => pkcs12::key_entry(&bytes, password.as_deref().unwrap_or_default()),
        Some(Format::Jks) => jks::key_entry(&bytes, password.as_deref().unwrap_or_default()),
        None => Err(StoreError::Format),
    };
    entry.map_err(|source| TlsError::Store { path: store.path.clone(), source })
}

/// The certificates that a store says to trust, at least one.
pub(crate) fn read_trusted(store: &Store) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (bytes, password) = open(store)?;
    let trusted = match format(&bytes) {
        Some(Format::Pem) => pem::certificates(&bytes),
        Some(Format::Pkcs12) => pkcs12::trusted(&bytes, password.as_deref().unwrap_or_default()),
        Some(Format::Jks) => jks::trusted(&bytes, password.as_deref().unwrap_or_default()),
        None => Err(StoreError::Format),
    };
    let trusted =
        trusted.and_then(|list| if list.is_empty() { Err(StoreError::NoCertificate) } else { Ok(list) });
    trusted.map_err(|source| TlsError::Store { path: store.path.clone(), source })
}

enum Format {
    Pem,
    Pkcs12,
    Jks,
}

fn format(bytes: &[u8]) -> Option<Format> {
    const SEQUENCE: u8 = 0x30;
    if bytes.starts_with(&jks::MAGIC) {
        Some(Format::Jks)
    } else if pem::is_pem(bytes) {
        Some(Format::Pem)
    } else if bytes.first() == Some(&SEQUENCE) {
        Some(Format::Pkcs12)
    } else {
        None
    }
}

fn open(store: &Store) -> Result<(Vec<u8>, Option<String>), TlsError> {
    let bytes = read(&store.path)?;
    let password = match &store.password {
        None => None,
        Some(Password::Text(text)) => Some(text.reveal().to_owned()),
        Some(Password::File(path)) => {
            warn_of_readable_file(path, "the password of a key store");
            let text =
                String::from_utf8(read(path)?).map_err(|_| TlsError::PasswordText { path: path.clone() })?;
            let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
            Some(line.unwrap_or(&text).to_owned())
        }
    };
    // Java cannot tell an empty password from none either.
    Ok((bytes, password.filter(|password| !password.is_empty())))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
