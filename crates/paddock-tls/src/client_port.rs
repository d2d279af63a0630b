//! TLS on the ports for clients, and for HTTP: from files of keys and certificates to what a connection begins with.
//!
//! The files are read when the member starts, and again when a client connects and one of them has changed since. Files
//! that cannot be used then are named, and those read before stay in use. Connections that are up go on as they are.
//!
//! TLS sessions are not resumed: a certificate that is no longer good is not taken by way of an earlier one.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use paddock_proto::Id;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::{Connection, ServerConfig, ServerConnection};

use crate::causes::with_causes;
use crate::certificate::Facts;
use crate::certificate_end::CertificateEnd;
use crate::client_failure::ClientFailure;
use crate::error::TlsError;
use crate::key_entry::KeyEntry;
use crate::settings::{ClientAuth, ClientTls};
use crate::stamps::Stamps;
use crate::verifier::{Verifier, check_host};
use crate::versions::protocol_versions;
use crate::{cipher_suites, pem, store};

/// Keys, certificates and rules for TLS with clients.
#[derive(Debug)]
pub struct ClientPort {
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    settings: Arc<ClientTls>,
    accepting: Arc<ServerConfig>,
    certificate_end: CertificateEnd,
    stamps: Stamps,
}

impl ClientPort {
    pub fn load(settings: ClientTls) -> Result<ClientPort, TlsError> {
        Ok(ClientPort { current: Mutex::new(Current::read(settings)?) })
    }

    /// Takes over what was loaded by other settings, or by the same ones again, for the connections that come from now on.
    pub fn take_over(&self, loaded: ClientPort) {
        *self.current.lock() = loaded.current.into_inner();
    }

    pub fn settings(&self) -> Arc<ClientTls> {
        self.current.lock().settings.clone()
    }

    /// The beginning of a connection from a client.
    pub fn answer(&self) -> Result<Connection, ClientFailure> {
        Ok(ServerConnection::new(self.accepting())?.into())
    }

    /// Checks the certificate of a client against its address, as far as that is asked for.
    pub fn check_address(
        &self,
        certificate: &CertificateDer<'_>,
        address: IpAddr,
    ) -> Result<(), ClientFailure> {
        let address = address.to_canonical();
        if self.settings().verify_addresses && check_host(certificate, &ServerName::from(address)).is_err() {
            return Err(ClientFailure::Address(address));
        }
        Ok(())
    }

    /// The identities that a client's certificate proves.
    pub fn identities(&self, certificate: &CertificateDer<'_>) -> Vec<Id> {
        let Some(subject) = Facts::of(certificate).map(|facts| facts.subject()) else { return Vec::new() };
        let is_superuser = self.settings().superuser.as_ref() == Some(&subject);
        let superuser = is_superuser.then(|| Id::new("super", subject.clone()));
        std::iter::once(Id::new("x509", subject)).chain(superuser).collect()
    }

    /// The end of the own certificate, in seconds since 1970, after the files are read again if they have changed.
    pub fn certificate_end(&self) -> Option<u64> {
        self.accepting();
        self.current.lock().certificate_end.seconds()
    }

    /// Reads the files again if they have changed.
    pub fn accepting(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock();
        let stamps = stamps(&current.settings);
        if stamps != current.stamps {
            current.stamps = stamps;
            match read(&current.settings, &current.certificate_end) {
                Ok(accepting) => current.accepting = accepting,
                Err(error) => {
                    let reason = with_causes(&error);
                    tracing::warn!(
                        reason,
                        "keys and certificates for clients have changed, and the new ones are not used"
                    );
                }
            }
        }
        current.accepting.clone()
    }
}

impl Current {
    fn read(settings: ClientTls) -> Result<Current, TlsError> {
        let stamps = stamps(&settings);
        let certificate_end = CertificateEnd::default();
        let accepting = read(&settings, &certificate_end)?;
        Ok(Current { settings: Arc::new(settings), accepting, certificate_end, stamps })
    }
}

fn stamps(settings: &ClientTls) -> Stamps {
    let stores = [Some(&settings.key_store), settings.trust_store.as_ref()];
    let others = [settings.certificates.as_deref(), settings.revocations.as_deref()];
    Stamps::of(stores.into_iter().flatten(), others.into_iter().flatten())
}

/// Reads the files; `end` is told of the own certificate in them if all can be used.
fn read(settings: &ClientTls, end: &CertificateEnd) -> Result<Arc<ServerConfig>, TlsError> {
    let chosen = settings.cipher_suites.as_ref();
    let chosen = chosen.map(|suites| suites.iter().map(|suite| suite.name()).collect::<Vec<_>>());
    let provider = Arc::new(cipher_suites::provider(chosen.as_deref()));
    let verifier = match settings.client_auth {
        ClientAuth::None => None,
        ClientAuth::Want => Some(verifier(settings, &provider)?.optional()),
        ClientAuth::Need => Some(verifier(settings, &provider)?),
    };
    let KeyEntry { key, chain } =
        store::read_key_entry(&settings.key_store, settings.certificates.as_deref())?;
    let certificate = chain.first().and_then(|own| Facts::of(own)).map(|facts| facts.to_string());
    let unsuitable = |error: rustls::Error| TlsError::Key {
        path: settings.key_store.path.clone(),
        reason: error.to_string(),
    };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(protocol_versions(settings.versions))
        .map_err(|error| TlsError::Versions(error.to_string()))?;
    let builder = match verifier {
        None => builder.with_no_client_auth(),
        Some(verifier) => {
            builder.with_client_cert_verifier(Arc::new(verifier) as Arc<dyn ClientCertVerifier>)
        }
    };
    let own = chain.first().cloned();
    let mut accepting = builder.with_single_cert(chain, key).map_err(unsuitable)?;
    accepting.session_storage = Arc::new(NoServerSessionStorage {});
    accepting.send_tls13_tickets = 0;
    end.set(own.as_ref());
    tracing::info!(certificate, "clients can connect with TLS");
    Ok(Arc::new(accepting))
}

fn verifier(
    settings: &ClientTls,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Verifier, TlsError> {
    let trusted = store::read_trusted(settings.trust_store.as_ref().ok_or(TlsError::NoTrustStore)?)?;
    let revoked = settings.revocations.as_deref().map(read_revocations).transpose()?;
    Verifier::new(trusted, revoked.unwrap_or_default(), provider)
}

fn read_revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let bytes = fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })?;
    if !pem::is_pem(&bytes) {
        return Ok(vec![CertificateRevocationListDer::from(bytes)]);
    }
    let unusable = |reason: String| TlsError::Revocations { path: path.to_owned(), reason };
    let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
    let lists = lists.map_err(|error| unusable(error.to_string()))?;
    if lists.is_empty() { Err(unusable("there is none in it".to_owned())) } else { Ok(lists) }
}
