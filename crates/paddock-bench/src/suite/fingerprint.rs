//! Fingerprints, by which a changed file or suite is known.

use sha1::{Digest, Sha1};

/// SHA-1 of all parts, one after the other, in hexadecimal digits.
pub(super) fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hash = Sha1::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
