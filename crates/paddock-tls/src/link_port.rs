//! TLS of the links between members: from files of keys and certificates to what a connection is made with.
//!
//! The files are read when the member starts, and again when a connection is made and one of them has changed since.
//! Files that cannot be used then are named, and those read before stay in use: a file may be half written.
//!
//! Always true: each side of a connection has shown a certificate, and has it verified by the other in this very
//! handshake. Sessions are not resumed: a certificate that is no longer good is not taken by way of an earlier one.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, Connection, ServerConfig};

use crate::causes::with_causes;
use crate::certificate::Facts;
use crate::certificate_end::CertificateEnd;
use crate::error::TlsError;
use crate::failure::TlsFailure;
use crate::key_entry::KeyEntry;
use crate::server_name::server_name;
use crate::settings::{OneSidedStores, PeerTls, Store, TlsMode};
use crate::stamps::Stamps;
use crate::verifier::{Verifier, check_host};
use crate::versions::protocol_versions;
use crate::{cipher_suites, store};

/// Keys, certificates and rules for TLS on a member's links.
#[derive(Debug)]
pub struct Tls {
    settings: PeerTls,
    /// Address where the other members find this one.
    own_host: String,
    certificate_end: CertificateEnd,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    credentials: Arc<Credentials>,
    stamps: Stamps,
}

/// Content of the files.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) calling: Arc<ClientConfig>,
    called: Arc<ServerConfig>,
    /// Verifies those that are called.
    verifier: Arc<Verifier>,
    callers_verifier: Arc<Verifier>,
    /// This member's certificates when it is called.
    chain: Vec<CertificateDer<'static>>,
    /// Certificates with which it calls.
    calling_chain: Vec<CertificateDer<'static>>,
}

impl Tls {
    pub fn load(settings: PeerTls, own_host: String) -> Result<Tls, TlsError> {
        let stamps = stamps(&settings);
        let credentials = Arc::new(Credentials::read(&settings)?);
        credentials.tell(&own_host);
        let certificate_end = CertificateEnd::default();
        certificate_end.set(credentials.chain.first());
        Ok(Tls { settings, own_host, certificate_end, current: Mutex::new(Current { credentials, stamps }) })
    }

    /// The end of this member's certificate, which goes on to be told when the files have been read again.
    pub fn certificate_end(&self) -> CertificateEnd {
        self.certificate_end.clone()
    }

    pub fn mode(&self) -> TlsMode {
        self.settings.mode
    }

    /// The beginning of a connection to a member.
    pub fn call(&self, host: &str) -> Result<Connection, TlsFailure> {
        let name = server_name(host)?;
        let connection = rustls::ClientConnection::new(self.credentials().calling.clone(), name);
        Ok(connection.map_err(TlsFailure::Protocol)?.into())
    }

    /// The beginning of a connection from a caller.
    pub fn answer(&self) -> Result<Connection, TlsFailure> {
        let connection = rustls::ServerConnection::new(self.credentials().called.clone());
        Ok(connection.map_err(TlsFailure::Protocol)?.into())
    }

    /// True if a caller that says to be the member at `host` has a certificate for it, as far as that is asked for.
    pub fn check_caller(&self, certificate: &CertificateDer<'_>, host: &str) -> Result<(), TlsFailure> {
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
                    self.certificate_end.set(credentials.chain.first());
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
    pub(crate) fn read(settings: &PeerTls) -> Result<Credentials, TlsError> {
        let chosen = settings.cipher_suites.as_ref();
        let chosen = chosen.map(|suites| suites.iter().map(|suite| suite.name()).collect::<Vec<_>>());
        let provider = Arc::new(cipher_suites::provider(chosen.as_deref()));
        let OneSidedStores { calling_key_store, calling_certificates, callers_trust_store } =
            &settings.one_sided;
        let verifier_of = |store: &Store| {
            let verifier = Verifier::new(store::read_trusted(store)?, Vec::new(), &provider)?;
            Ok::<_, TlsError>(Arc::new(verifier.with_verified_hosts(settings.verify_called)))
        };
        let verifier = verifier_of(&settings.trust_store)?;
        let callers_verifier = match callers_trust_store {
            Some(store) => verifier_of(store)?,
            None => verifier.clone(),
        };
        let KeyEntry { key, chain } =
            store::read_key_entry(&settings.key_store, settings.certificates.as_deref())?;
        let (calling_store, KeyEntry { key: calling_key, chain: calling_chain }) = match calling_key_store {
            Some(store) => (store, store::read_key_entry(store, calling_certificates.as_deref())?),
            None => (&settings.key_store, KeyEntry { key: key.clone_key(), chain: chain.clone() }),
        };
        let unsuitable = |store: &Store, error: rustls::Error| TlsError::Key {
            path: store.path.clone(),
            reason: error.to_string(),
        };
        let no_suite = |error: rustls::Error| TlsError::Versions(error.to_string());
        let versions = protocol_versions(settings.versions);
        let mut calling = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(no_suite)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_auth_cert(calling_chain.clone(), calling_key)
            .map_err(|error| unsuitable(calling_store, error))?;
        calling.resumption = Resumption::disabled();
        // A member has one certificate: it need not be told for which name it is called.
        calling.enable_sni = false;
        let mut called = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(no_suite)?
            .with_client_cert_verifier(callers_verifier.clone())
            .with_single_cert(chain.clone(), key)
            .map_err(|error| unsuitable(&settings.key_store, error))?;
        called.session_storage = Arc::new(NoServerSessionStorage {});
        called.send_tls13_tickets = 0;
        let (calling, called) = (Arc::new(calling), Arc::new(called));
        Ok(Credentials { calling, called, verifier, callers_verifier, chain, calling_chain })
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
        self.callers_verifier.check_caller(&self.calling_chain, now).map_err(TlsFailure::Protocol)?;
        for chain in [&self.chain, &self.calling_chain] {
            let own = chain.first().ok_or(TlsFailure::Protocol(rustls::Error::NoCertificatesPresented))?;
            check_host(own, &server_name(own_host)?).map_err(TlsFailure::Protocol)?;
        }
        Ok(())
    }
}

fn stamps(settings: &PeerTls) -> Stamps {
    let OneSidedStores { calling_key_store, calling_certificates, callers_trust_store } = &settings.one_sided;
    let stores = [Some(&settings.key_store), Some(&settings.trust_store)];
    let stores = stores.into_iter().chain([calling_key_store.as_ref(), callers_trust_store.as_ref()]);
    let certificates = [settings.certificates.as_deref(), calling_certificates.as_deref()];
    Stamps::of(stores.flatten(), certificates.into_iter().flatten())
}
