//! Passwords that are a keyed hash of their session's id.

use hmac::{Hmac, KeyInit, Mac};
use paddock_proto::{PASSWORD_BYTES, Password, SessionId, SessionSecret};
use sha2::Sha256;
use xxhash_rust::xxh3::xxh3_64;

/// The password that is made of a session's id and the secret.
pub fn keyed_password(secret: &SessionSecret, session: SessionId) -> Password {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key may have any length");
    mac.update(&session.0.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let mut password = Password::ZERO;
    password.0.copy_from_slice(&hash[..PASSWORD_BYTES]);
    password
}

/// Part of the state's digest.
pub(crate) fn secret_digest(secret: Option<&SessionSecret>) -> u64 {
    // The digest is shown to operators: a hash that cannot be turned round goes into it.
    secret.map_or(0, |secret| xxh3_64(&keyed_password(secret, SessionId::NONE).0))
}
