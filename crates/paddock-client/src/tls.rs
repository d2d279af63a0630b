//! TLS of a client: the servers that it believes, and the certificate that it shows them.
//!
//! Files are PEM. A server is believed if its certificate is in the file of authorities, or signed by one that is there, and is for the
//! host that was connected to.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::unverified::Unverified;

/// Files of TLS. Without any of them no server can be believed, unless `skip_verification` says that all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authorities that sign those of servers, or of the servers themselves.
    pub authorities: Option<PathBuf>,
    /// The client's own certificate, with those between it and its authority.
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate; none if it is in the certificate's file.
    pub key: Option<PathBuf>,
    /// True if a server is believed whatever certificate it shows. Who is on the way can read and change everything then.
    pub skip_verification: bool,
}

/// Keys, certificates and rules with which servers are called.
#[derive(Clone)]
pub struct Tls {
    pub(crate) config: Arc<ClientConfig>,
}

/// Files with which no server can be called.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("read {path}", path = path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} has no {what} in PEM; convert it with openssl", path = path.display())]
    Missing { path: PathBuf, what: &'static str },
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("the certificate in {path} cannot be used with its key: {reason}", path = path.display())]
    Unsuitable { path: PathBuf, reason: String },
    #[error("a private key is named, and no certificate: name both")]
    KeyAlone,
    #[error("TLS needs to know whom to believe: name the file of the authorities' certificates")]
    NoAuthorities,
}

impl Tls {
    /// Reads the files.
    pub fn load(files: &TlsFiles) -> Result<Tls, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = verifier(files, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the library's own cipher suites are of these versions")
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match (&files.certificate, &files.key) {
            (None, None) => builder.with_no_client_auth(),
            (None, Some(_)) => return Err(TlsError::KeyAlone),
            (Some(certificate), key) => {
                let key = private_key(key.as_ref().unwrap_or(certificate))?;
                let unsuitable = |error: rustls::Error| TlsError::Unsuitable {
                    path: certificate.clone(),
                    reason: error.to_string(),
                };
                builder.with_client_auth_cert(certificates(certificate)?, key).map_err(unsuitable)?
            }
        };
        Ok(Tls { config: Arc::new(config) })
    }

    /// The beginning of a connection to `server`, which is `host:port`.
    pub fn call(&self, server: &str) -> io::Result<ClientConnection> {
        let connection = ClientConnection::new(Arc::clone(&self.config), server_name(server)?);
        connection.map_err(io::Error::other)
    }
}

/// Its keys are not printed.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// The host of `host:port` as certificates have it.
pub(crate) fn server_name(server: &str) -> io::Result<ServerName<'static>> {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned())
        .map_err(|_| io::Error::other(format!("{host:?} is not a host that a certificate can be for")))
}

fn verifier(
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if files.skip_verification {
        return Ok(Arc::new(Unverified(provider.signature_verification_algorithms)));
    }
    let path = files.authorities.as_ref().ok_or(TlsError::NoAuthorities)?;
    let mut roots = RootCertStore::empty();
    // Files of many authorities have some that are too old to be read. Those sign nobody.
    roots.add_parsable_certificates(certificates(path)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    Ok(verifier.map_err(|error| TlsError::Damaged { path: path.clone(), reason: error.to_string() })?)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match list {
        Ok(list) if list.is_empty() => Err(TlsError::Missing { path: path.to_owned(), what: "certificate" }),
        Ok(list) => Ok(list),
        Err(error) => Err(unreadable(path, "certificate", error)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| unreadable(path, "private key without a password", error))
}

fn unreadable(path: &Path, what: &'static str, error: PemError) -> TlsError {
    let path = path.to_owned();
    match error {
        PemError::NoItemsFound => TlsError::Missing { path, what },
        PemError::Io(source) => TlsError::Read { path, source },
        error => TlsError::Damaged { path, reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests;
