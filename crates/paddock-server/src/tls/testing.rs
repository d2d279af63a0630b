//! For tests: authorities, certificates and stores, made on the spot.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::config::{PeerTls, Store, TlsMode, TlsVersions};

/// Signs certificates.
#[derive(Debug)]
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A new certificate with its key.
    pub(crate) fn issue(&self, params: &CertificateParams) -> String {
        self.sign(params, &KeyPair::generate().unwrap())
    }

    /// The same with a key of the other kind.
    pub(crate) fn issue_rsa(&self, params: &CertificateParams) -> String {
        self.sign(params, &KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap())
    }

    fn sign(&self, params: &CertificateParams, key: &KeyPair) -> String {
        params.signed_by(key, &self.0).unwrap().pem() + &key.serialize_pem()
    }
}

/// A certificate that nobody else has signed, with its key.
pub(crate) fn self_signed(params: &CertificateParams) -> String {
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem() + &key.serialize_pem()
}

pub(crate) fn named(common_name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

/// A certificate for where tests run.
pub(crate) fn for_loopback() -> CertificateParams {
    named("a member", &["127.0.0.1"])
}

/// The same, but for a change.
pub(crate) fn with(
    mut params: CertificateParams,
    change: impl FnOnce(&mut CertificateParams),
) -> CertificateParams {
    change(&mut params);
    params
}

pub(crate) fn expired(params: CertificateParams) -> CertificateParams {
    with(params, |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1))
}

/// Stores in a directory, and the settings of a member that uses them.
pub(crate) fn settings(dir: &Path, key: &str, trusted: &str) -> PeerTls {
    let store = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        Store { path, password: None }
    };
    PeerTls {
        mode: TlsMode::Required,
        key_store: store("key.pem", key),
        certificates: None,
        trust_store: store("trust.pem", trusted),
        verify_called: true,
        verify_callers: true,
        versions: TlsVersions::Both,
        cipher_suites: None,
    }
}
