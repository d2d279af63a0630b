//! JKS, the key store of Java before its version 9. Big-endian:
//! ```text
//! u32 magic, u32 version, u32 entries
//! entry:  u32 kind, text alias, u64 time
//!         of a private key   u32 length, encrypted key, u32 certificates, that many certificates
//!         of a trusted one   certificate
//! certificate: in version 2 text type; u32 length, DER
//! text:   u16 length, UTF-8
//! SHA-1 of the password, a fixed text and all bytes above
//! ```
//! A private key is encrypted by the exclusive or with SHA-1s that begin with password and salt. That is weak: it keeps
//! the key from a reader who does not guess the password.

use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::{Decode, Reader, SliceReader};
use pkcs8::spki::AlgorithmIdentifierRef;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha1::{Digest, Sha1};

use crate::error::StoreError;
use crate::key_entry::KeyEntry;

pub(crate) const MAGIC: [u8; 4] = 0xFEED_FEED_u32.to_be_bytes();
const PRIVATE_KEY: u32 = 1;
const TRUSTED: u32 = 2;
const SHA1_BYTES: usize = 20;
/// Between the password and the bytes that the last checksum is of.
const WHITENER: &[u8] = b"Mighty Aphrodite";

enum JksEntry<'a> {
    Private { key: &'a [u8], chain: Vec<CertificateDer<'static>> },
    Trusted(CertificateDer<'static>),
}

/// The first private key, and its certificates.
pub(crate) fn key_entry(bytes: &[u8], password: &str) -> Result<KeyEntry, StoreError> {
    let keys = entries(bytes, password)?.into_iter().find_map(|entry| match entry {
        JksEntry::Private { key, chain } => Some((key, chain)),
        JksEntry::Trusted(_) => None,
    });
    let (key, chain) = keys.ok_or(StoreError::NoKey)?;
    if chain.is_empty() {
        return Err(StoreError::NoChain);
    }
    Ok(KeyEntry { key: decrypt(key, &utf16(password))?, chain })
}

pub(crate) fn trusted(bytes: &[u8], password: &str) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let trusted = entries(bytes, password)?.into_iter().filter_map(|entry| match entry {
        JksEntry::Private { .. } => None,
        JksEntry::Trusted(certificate) => Some(certificate),
    });
    Ok(trusted.collect())
}

fn entries<'a>(bytes: &'a [u8], password: &str) -> Result<Vec<JksEntry<'a>>, StoreError> {
    let cut = || StoreError::Damaged("it ends too early".to_owned());
    let (content, checksum) = bytes.split_last_chunk::<SHA1_BYTES>().ok_or_else(cut)?;
    let password = utf16(password);
    if Sha1::new().chain_update(&password).chain_update(WHITENER).chain_update(content).finalize()[..]
        != *checksum
    {
        return Err(StoreError::Password);
    }
    let mut fields = JksFields { rest: content.strip_prefix(&MAGIC).ok_or_else(cut)?, version: 0 };
    fields.version = fields.u32().ok_or_else(cut)?;
    let count = fields.u32().ok_or_else(cut)?;
    (0..count).map(|_| fields.entry().ok_or_else(cut)).collect()
}

/// Rest of the file. `None` is something that does not fit into it.
struct JksFields<'a> {
    rest: &'a [u8],
    version: u32,
}

impl<'a> JksFields<'a> {
    fn entry(&mut self) -> Option<JksEntry<'a>> {
        let kind = self.u32()?;
        let _alias = self.text()?;
        let _time = self.take(8)?;
        match kind {
            PRIVATE_KEY => {
                let key = self.bytes()?;
                let count = self.u32()?;
                let chain = (0..count).map(|_| self.certificate()).collect::<Option<_>>()?;
                Some(JksEntry::Private { key, chain })
            }
            TRUSTED => self.certificate().map(JksEntry::Trusted),
            _ => None,
        }
    }

    fn certificate(&mut self) -> Option<CertificateDer<'static>> {
        if self.version == 2 {
            let _type = self.text()?;
        }
        self.bytes().map(|der| der.to_vec().into())
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.take(2)?;
        self.take(u16::from_be_bytes(length.try_into().expect("two bytes")).into())
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

fn decrypt(encrypted: &[u8], password: &[u8]) -> Result<PrivateKeyDer<'static>, StoreError> {
    let protected = protected_key(encrypted).map_err(|error| StoreError::Damaged(error.to_string()))?;
    let parts = protected.split_first_chunk::<SHA1_BYTES>();
    let parts = parts.and_then(|(salt, rest)| Some((salt, rest.split_last_chunk::<SHA1_BYTES>()?)));
    let (salt, (sealed, checksum)) =
        parts.ok_or_else(|| StoreError::Damaged("its private key is too short".to_owned()))?;
    let (mut key, mut pad) = (sealed.to_vec(), *salt);
    for block in key.chunks_mut(SHA1_BYTES) {
        pad = Sha1::new().chain_update(password).chain_update(pad).finalize().into();
        block.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
    }
    if Sha1::new().chain_update(password).chain_update(&key).finalize()[..] != *checksum {
        return Err(StoreError::Password);
    }
    Ok(PrivatePkcs8KeyDer::from(key).into())
}

/// Salt, encrypted key and checksum, out of the envelope that PKCS8 has for encrypted keys.
fn protected_key(der: &[u8]) -> pkcs8::der::Result<&[u8]> {
    let mut reader = SliceReader::new(der)?;
    let protected = reader.sequence(|reader| {
        let _algorithm = AlgorithmIdentifierRef::decode(reader)?;
        <&OctetStringRef>::decode(reader)
    })?;
    Ok(protected.as_bytes())
}

/// Java's characters.
fn utf16(password: &str) -> Vec<u8> {
    password.encode_utf16().flat_map(u16::to_be_bytes).collect()
}
