//! Chance that cannot be foreseen.

/// Random bytes of the system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes)
        .expect("the system has random numbers");
    bytes
}
