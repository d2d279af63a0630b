//! The hash in identities of the scheme `digest`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha512};

/// Hash of passwords in the ids of the scheme `digest`. All members of an ensemble need the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestAlgorithm {
    /// SHA-1, which ZooKeeper has by default.
    #[default]
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl DigestAlgorithm {
    /// Length in characters of a hash as Base64.
    pub fn encoded_len(self) -> usize {
        self.encode(b"").len()
    }

    pub(crate) fn encode(self, text: &[u8]) -> String {
        match self {
            DigestAlgorithm::Sha1 => STANDARD.encode(Sha1::digest(text)),
            DigestAlgorithm::Sha256 => STANDARD.encode(Sha256::digest(text)),
            DigestAlgorithm::Sha512 => STANDARD.encode(Sha512::digest(text)),
        }
    }
}
