//! For tests: authorities, certificates and stores, made on the spot.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, date_time_ymd,
};

use crate::settings::{
    ClientAuth, ClientTls, OneSidedStores, PeerTls, PortProtocol, Store, TlsMode, TlsVersions,
};

/// Signs certificates.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A new certificate with its key.
    pub fn issue(&self, params: &CertificateParams) -> String {
        self.sign(params, &KeyPair::generate().unwrap())
    }

    /// A certificate with a key of the other kind.
    pub fn issue_rsa(&self, params: &CertificateParams) -> String {
        self.sign(params, &KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap())
    }

    fn sign(&self, params: &CertificateParams, key: &KeyPair) -> String {
        params.signed_by(key, &self.0).unwrap().pem() + &key.serialize_pem()
    }
}

/// A certificate that signs itself, with its key.
pub fn self_signed(params: &CertificateParams) -> String {
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem() + &key.serialize_pem()
}

pub fn named(common_name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

/// A certificate for where tests run.
pub fn for_loopback() -> CertificateParams {
    named("a member", &["127.0.0.1"])
}

/// Parameters with a change.
pub fn with(mut params: CertificateParams, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    change(&mut params);
    params
}

/// The list of the certificates with these serial numbers, which an authority has revoked.
pub fn revocation_list(authority: &Authority, serials: &[u64]) -> String {
    let revoked = serials.iter().map(|serial| RevokedCertParams {
        serial_number: (*serial).into(),
        revocation_time: date_time_ymd(2024, 1, 1),
        reason_code: None,
        invalidity_date: None,
    });
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(4096, 1, 1),
        crl_number: 1.into(),
        issuing_distribution_point: None,
        revoked_certs: revoked.collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(&authority.0).unwrap().pem().unwrap()
}

/// The settings of ports on which clients must show a certificate that one of `trusted` has signed.
pub fn client_port_settings(dir: &Path, key: &str, trusted: &str) -> ClientTls {
    let PeerTls { key_store, trust_store, .. } = settings(dir, key, trusted);
    ClientTls {
        listen: None,
        at_listen: PortProtocol::Tls,
        key_store,
        certificates: None,
        trust_store: Some(trust_store),
        client_auth: ClientAuth::Need,
        verify_addresses: false,
        revocations: None,
        versions: TlsVersions::Both,
        cipher_suites: None,
        detection_timeout_ms: ClientTls::DETECTION_TIMEOUT_MS,
        superuser: None,
    }
}

pub fn expired(params: CertificateParams) -> CertificateParams {
    with(params, |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1))
}

/// Stores in a directory, and the settings of a member that uses them.
pub fn settings(dir: &Path, key: &str, trusted: &str) -> PeerTls {
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
        one_sided: OneSidedStores::default(),
        verify_called: true,
        verify_callers: true,
        versions: TlsVersions::Both,
        cipher_suites: None,
    }
}
