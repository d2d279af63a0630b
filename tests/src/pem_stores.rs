//! Key stores and a trust store of PEM for the members of an ensemble on loopback.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Stores of PEM for `members` members, from one authority.
pub fn pem_stores(dir: &Path, authority: &str, members: usize) {
    fs::create_dir_all(dir).expect("make a directory for stores");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, authority);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("generate a key");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("make an authority");
    fs::write(dir.join("trust.pem"), issuer.pem()).expect("write the trust store");
    for id in 1..=members {
        let key = KeyPair::generate().expect("generate a key");
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("name a host");
        let certificate = params.signed_by(&key, &issuer).expect("sign a certificate");
        let store = certificate.pem() + &key.serialize_pem();
        fs::write(dir.join(format!("{id}.pem")), store).expect("write a key store");
    }
}
