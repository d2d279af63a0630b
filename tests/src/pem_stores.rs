//! Key stores and a trust store of PEM for the members of an ensemble on loopback.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Stores of PEM for `members` members, from one authority.
pub fn pem_stores(dir: &Path, authority: &str, members: usize) {
    write_stores(dir, authority, members, None);
}

/// Stores whose certificates end after this time.
pub fn pem_stores_until(dir: &Path, authority: &str, members: usize, valid_for: Duration) {
    write_stores(dir, authority, members, Some(SystemTime::now() + valid_for));
}

fn write_stores(dir: &Path, authority: &str, members: usize, end: Option<SystemTime>) {
    fs::create_dir_all(dir).expect("make a directory for stores");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, authority);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("generate a key");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("make an authority");
    fs::write(dir.join("trust.pem"), issuer.pem()).expect("write the trust store");
    for id in 1..=members {
        let key = KeyPair::generate().expect("generate a key");
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("name a host");
        if let Some(end) = end {
            params.not_after = end.into();
        }
        let certificate = params.signed_by(&key, &issuer).expect("sign a certificate");
        let store = certificate.pem() + &key.serialize_pem();
        fs::write(dir.join(format!("{id}.pem")), store).expect("write a key store");
    }
}
