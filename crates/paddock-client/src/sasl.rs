//! SASL of a connection.

/// Random bits that nobody can foresee, for a login.
pub fn fresh_nonce() -> u128 {
    let mut bytes = [0; 16];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut bytes).expect("the system has random numbers");
    u128::from_be_bytes(bytes)
}
