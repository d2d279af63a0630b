//! TLS of the links between members: from files of keys and certificates to what a connection is made with.
//!
//! The files are read when the member starts, and again when a connection is made and one of them has changed since.
//! Files that cannot be used then are named, and those read before stay in use: a file may be half written.
//!
//! Always true: each side of a connection has shown a certificate, and has it verified by the other in this very
//! handshake. Sessions are not resumed: a certificate that is no longer good is not taken by way of an earlier one.

mod certificate;
mod failure;
mod jks;
mod pem;
mod pkcs12;
mod store;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod verifier;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, Connection, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

pub(crate) use failure::TlsFailure;
pub use store::StoreError;

use crate::config::{CipherSuite, Password, PeerTls, TlsMode, TlsVersions};
use certificate::Facts;
use store::KeyEntry;
use verifier::{Verifier, check_host};

/// Why a member has no TLS although it was told to.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("TLS between members: read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("TLS between members: the password in {path} is not UTF-8")]
    PasswordText { path: PathBuf },
    #[error("TLS between members: {path} cannot be used")]
    Store {
        path: PathBuf,
        #[source]
        source: StoreError,
    },
    #[error("TLS between members: the key and the certificate in {path} cannot be used: {reason}")]
    Key { path: PathBuf, reason: String },
    #[error("TLS between members: no certificate of the trust store can be used: {0}")]
    Trust(String),
    #[error(
        "TLS between members: none of the cipher suites belongs to a version of TLS that is allowed: {0}"
    )]
    Versions(String),
}

/// Keys, certificates and rules for TLS on a member's links.
#[derive(Debug)]
pub(crate) struct Tls {
    settings: PeerTls,
    /// Where the other members find this one.
    own_host: String,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    credentials: Arc<Credentials>,
    /// Stamps of the files when they were read last.
    stamps: Vec<Stamp>,
}

/// Stamp of a file: another one tells that the file has changed.
type Stamp = Option<(Option<SystemTime>, u64)>;

/// Content of the files.
#[derive(Debug)]
struct Credentials {
    calling: Arc<ClientConfig>,
    called: Arc<ServerConfig>,
    verifier: Arc<Verifier>,
    chain: Vec<CertificateDer<'static>>,
}

impl Tls {
    pub(crate) fn load(settings: PeerTls, own_host: String) -> Result<Tls, TlsError> {
        let stamps = stamps(&settings);
        let credentials = Arc::new(Credentials::read(&settings)?);
        credentials.tell(&own_host);
        Ok(Tls { settings, own_host, current: Mutex::new(Current { credentials, stamps }) })
    }

    pub(crate) fn mode(&self) -> TlsMode {
        self.settings.mode
    }

    /// The beginning of a connection to a member.
    pub(crate) fn call(&self, host: &str) -> Result<Connection, TlsFailure> {
        let name = server_name(host)?;
        let connection = rustls::ClientConnection::new(self.credentials().calling.clone(), name);
        Ok(connection.map_err(TlsFailure::Protocol)?.into())
    }

    /// The beginning of a connection from whoever calls.
    pub(crate) fn answer(&self) -> Result<Connection, TlsFailure> {
        let connection = rustls::ServerConnection::new(self.credentials().called.clone());
        Ok(connection.map_err(TlsFailure::Protocol)?.into())
    }

    /// True if a caller that says to be the member at `host` has a certificate for it, as far as that is asked for.
    pub(crate) fn check_caller(
        &self,
        certificate: &CertificateDer<'_>,
        host: &str,
    ) -> Result<(), TlsFailure> {
        if !self.settings.verify_callers {
            return Ok(());
        }
        check_host(certificate, &server_name(host)?).map_err(TlsFailure::Protocol)
    }

    /// Reads the files again if they have changed.
    fn credentials(&self) -> Arc<Credentials> {
        let mut current = self.current.lock();
        let stamps = stamps(&self.settings);
        if stamps != current.stamps {
            current.stamps = stamps;
            match Credentials::read(&self.settings) {
                Ok(credentials) => {
                    credentials.tell(&self.own_host);
                    current.credentials = Arc::new(credentials);
                }
                Err(error) => {
                    let reason = with_causes(&error);
                    tracing::warn!(
                        reason,
                        "keys and certificates have changed, and the new ones are not used"
                    );
                }
            }
        }
        current.credentials.clone()
    }
}

impl Credentials {
    fn read(settings: &PeerTls) -> Result<Credentials, TlsError> {
        let provider = Arc::new(provider(settings.cipher_suites.as_deref()));
        let trusted = store::read_trusted(&settings.trust_store)?;
        let verifier = Arc::new(Verifier::new(trusted, &provider, settings.verify_called)?);
        let KeyEntry { key, chain } =
            store::read_key_entry(&settings.key_store, settings.certificates.as_deref())?;
        let unsuitable = |error: rustls::Error| TlsError::Key {
            path: settings.key_store.path.clone(),
            reason: error.to_string(),
        };
        let no_suite = |error: rustls::Error| TlsError::Versions(error.to_string());
        let versions = protocol_versions(settings.versions);
        let mut calling = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(no_suite)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(unsuitable)?;
        calling.resumption = Resumption::disabled();
        // A member has one certificate: it need not be told for which name it is called.
        calling.enable_sni = false;
        let mut called = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(no_suite)?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(chain.clone(), key)
            .map_err(unsuitable)?;
        called.session_storage = Arc::new(NoServerSessionStorage {});
        called.send_tls13_tickets = 0;
        Ok(Credentials { calling: Arc::new(calling), called: Arc::new(called), verifier, chain })
    }

    /// Tells the operator what is in use, and why others may refuse it.
    fn tell(&self, own_host: &str) {
        let certificate = self.chain.first().and_then(|own| Facts::of(own)).map(|facts| facts.to_string());
        tracing::info!(certificate, "links between members use TLS");
        if let Err(failure) = self.check(own_host) {
            tracing::warn!(
                reason = %failure,
                "this member would not take its own certificate, and the other members may not either"
            );
        }
    }

    /// True if this member's own certificate passes what it asks of the others.
    fn check(&self, own_host: &str) -> Result<(), TlsFailure> {
        let now = UnixTime::now();
        self.verifier.check_called(&self.chain, now).map_err(TlsFailure::Protocol)?;
        self.verifier.check_caller(&self.chain, now).map_err(TlsFailure::Protocol)?;
        let own = self.chain.first().ok_or(TlsFailure::Protocol(rustls::Error::NoCertificatesPresented))?;
        check_host(own, &server_name(own_host)?).map_err(TlsFailure::Protocol)
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, TlsFailure> {
    ServerName::try_from(host.to_owned()).map_err(|_| TlsFailure::Host(host.to_owned()))
}

fn stamps(settings: &PeerTls) -> Vec<Stamp> {
    let password_file = |password: &Option<Password>| match password {
        Some(Password::File(path)) => Some(path.clone()),
        _ => None,
    };
    let stores = [&settings.key_store, &settings.trust_store];
    let files =
        stores.into_iter().flat_map(|store| [Some(store.path.clone()), password_file(&store.password)]);
    files.chain([settings.certificates.clone()]).flatten().map(|path| stamp(&path)).collect()
}

fn stamp(path: &Path) -> Stamp {
    fs::metadata(path).ok().map(|metadata| (metadata.modified().ok(), metadata.len()))
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line += &format!(": {error}");
        cause = error.source();
    }
    line
}

fn protocol_versions(versions: TlsVersions) -> &'static [&'static SupportedProtocolVersion] {
    static BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
    match versions {
        TlsVersions::Both => &BOTH,
        TlsVersions::Only12 => &BOTH[..1],
        TlsVersions::Only13 => &BOTH[1..],
    }
}

/// All suites that are offered, under their names in the registry of TLS. The first is liked best.
static SUITES: [(&str, SupportedCipherSuite); 9] = [
    ("TLS_AES_256_GCM_SHA384", cipher_suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", cipher_suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

pub(crate) fn cipher_suite_names() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|(name, _)| *name)
}

fn provider(chosen: Option<&[CipherSuite]>) -> CryptoProvider {
    let named = |suite: &CipherSuite| SUITES.iter().find(|(name, _)| *name == suite.name());
    let cipher_suites = match chosen {
        Some(chosen) => chosen.iter().filter_map(named).map(|(_, suite)| *suite).collect(),
        None => SUITES.iter().map(|(_, suite)| *suite).collect(),
    };
    CryptoProvider { cipher_suites, ..aws_lc_rs::default_provider() }
}
