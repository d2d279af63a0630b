//! Identities that connections prove: by a certificate of TLS, and by SASL with DIGEST-MD5.

use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use md5::{Digest, Md5};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

/// Identities that a connection proves, beside the address that it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OracleIdentity {
    #[default]
    Nobody,
    /// `CN=alice`, by her certificate.
    Alice,
    /// `CN=bob`, by his certificate.
    Bob,
    /// `carol`, by SASL.
    Carol,
    /// `dave`, by SASL.
    Dave,
}

impl OracleIdentity {
    pub const ALL: [OracleIdentity; 5] = [
        OracleIdentity::Nobody,
        OracleIdentity::Alice,
        OracleIdentity::Bob,
        OracleIdentity::Carol,
        OracleIdentity::Dave,
    ];

    /// Name and password of a user of SASL.
    pub(super) fn user(self) -> Option<(&'static str, &'static str)> {
        match self {
            OracleIdentity::Carol => Some(("carol", "carol's secret")),
            OracleIdentity::Dave => Some(("dave", "dave's secret")),
            OracleIdentity::Nobody | OracleIdentity::Alice | OracleIdentity::Bob => None,
        }
    }
}

/// Certificates, and the users of a JAAS file, for servers of either kind and for clients.
#[derive(Debug)]
pub struct Identities {
    directory: TempDir,
    alice: Arc<ClientConfig>,
    bob: Arc<ClientConfig>,
}

impl Default for Identities {
    fn default() -> Identities {
        Identities::new()
    }
}

impl Identities {
    pub fn new() -> Identities {
        let directory = tempfile::tempdir().expect("make a directory for stores");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("generate a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("make an authority");
        let issue = |name: &str| {
            let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("name a host");
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().expect("generate a key");
            params.signed_by(&key, &issuer).expect("sign a certificate").pem() + &key.serialize_pem()
        };
        let write =
            |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("write a file");
        write("trust.pem", &issuer.pem());
        write("server.pem", &issue("server"));
        let (alice, bob) = (issue("alice"), issue("bob"));
        write("alice.pem", &alice);
        let (carol, password) = OracleIdentity::Carol.user().expect("she is a user of SASL");
        write(carol, password);
        let users =
            [OracleIdentity::Carol, OracleIdentity::Dave].into_iter().filter_map(OracleIdentity::user);
        let users: String =
            users.map(|(name, password)| format!("\n    user_{name}=\"{password}\"")).collect();
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
        write("jaas.conf", &format!("Server {{\n    {module} required{users};\n}};\n"));
        let client = |own: &str| Arc::new(client_config(&issuer.pem(), own));
        Identities { alice: client(&alice), bob: client(&bob), directory }
    }

    /// A file: `trust.pem`; `server.pem` and `alice.pem` with their keys; `carol` with her password.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Lines of a `zoo.cfg` with which a server takes all these identities, those of TLS at this port.
    pub fn settings(&self, tls_port: u16) -> Vec<(&'static str, String)> {
        let path = |name| self.path(name).display().to_string();
        vec![
            ("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory".into()),
            ("secureClientPort", tls_port.to_string()),
            ("secureClientPortAddress", "127.0.0.1".into()),
            ("ssl.keyStore.location", path("server.pem")),
            ("ssl.trustStore.location", path("trust.pem")),
            ("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider".into()),
            ("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider".into()),
            ("java.security.auth.login.config", path("jaas.conf")),
        ]
    }
}

fn client_config(trusted: &str, own: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(trusted.as_bytes()).expect("read a certificate");
    roots.add(trusted).expect("trust a certificate");
    let chain = CertificateDer::pem_slice_iter(own.as_bytes()).map(|der| der.expect("read a certificate"));
    let key = PrivateKeyDer::from_pem_slice(own.as_bytes()).expect("read a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("the versions of TLS are known").with_root_certificates(roots);
    builder.with_client_auth_cert(chain.collect(), key).expect("show a certificate")
}

/// Addresses of a server, also that for clients which prove something.
#[derive(Clone, Debug)]
pub struct Entrance {
    pub(super) address: SocketAddr,
    tls: Option<(SocketAddr, Arc<Identities>)>,
}

impl Entrance {
    /// For connections that prove nothing.
    pub fn new(address: SocketAddr) -> Entrance {
        Entrance { address, tls: None }
    }

    /// For connections that prove all identities.
    pub fn with_identities(address: SocketAddr, tls_port: u16, identities: Arc<Identities>) -> Entrance {
        Entrance { address, tls: Some(((Ipv4Addr::LOCALHOST, tls_port).into(), identities)) }
    }

    /// True if connections prove who they are.
    pub(super) fn has_identities(&self) -> bool {
        self.tls.is_some()
    }

    /// The port for TLS and the certificate that is shown there; `None` for a connection in plaintext.
    pub(super) fn tls(&self, identity: OracleIdentity) -> Option<(SocketAddr, Arc<ClientConfig>)> {
        let (address, identities) = self.tls.as_ref()?;
        match identity {
            OracleIdentity::Alice => Some((*address, identities.alice.clone())),
            OracleIdentity::Bob => Some((*address, identities.bob.clone())),
            OracleIdentity::Nobody | OracleIdentity::Carol | OracleIdentity::Dave => None,
        }
    }
}

/// Answer to a server's challenge of DIGEST-MD5 (RFC 2831).
pub(super) fn answer_challenge(challenge: &str, (user, password): (&str, &str)) -> String {
    let value = |key: &str| {
        let start = challenge.find(&format!("{key}="))? + key.len() + 1;
        let rest = &challenge[start..];
        Some(match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest.split(',').next().unwrap_or_default(),
        })
    };
    let realm = value("realm").expect("a challenge has a realm");
    let nonce = value("nonce").expect("a challenge has a nonce");
    let (cnonce, uri) = ("0123456789abcdef", format!("zookeeper/{realm}"));
    let secret = Md5::digest(format!("{user}:{realm}:{password}"));
    let first = [&secret[..], format!(":{nonce}:{cnonce}").as_bytes()].concat();
    let first = hex(&Md5::digest(first));
    let second = hex(&Md5::digest(format!("AUTHENTICATE:{uri}")));
    let response = hex(&Md5::digest(format!("{first}:{nonce}:00000001:{cnonce}:auth:{second}")));
    format!(
        "charset=utf-8,username=\"{user}\",realm=\"{realm}\",nonce=\"{nonce}\",nc=00000001,cnonce=\"{cnonce}\",\
         digest-uri=\"{uri}\",maxbuf=65536,response={response},qop=auth"
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}
