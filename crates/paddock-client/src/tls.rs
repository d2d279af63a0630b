//! TLS of a client: the servers that it believes, and the certificate that it shows them.
//!
//! Files may be of any kind that a member reads. A server is believed if its certificate is in the file of authorities, or signed by one that is there, and is for the
//! host that was connected to.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use paddock_tls::{CallerIdentity, Store, Trust, calling_config};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

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
    /// [`TlsFiles::key`] is there, and [`TlsFiles::certificate`] is not.
    #[error("a private key is named, and no certificate: name both")]
    KeyAlone,
    /// [`TlsFiles::authorities`] is not there, and [`TlsFiles::skip_verification`] is false.
    #[error("TLS needs to know whom to believe: name the file of the authorities' certificates")]
    NoAuthorities,
    /// A file cannot be read, or is not of a kind that is known. The message names it.
    #[error(transparent)]
    Files(#[from] paddock_tls::TlsError),
}

impl Tls {
    /// Reads the files, once: a client whose certificates are renewed loads them again.
    ///
    /// # Errors
    /// Any [`TlsError`]: files that are missing, damaged, or do not go together.
    pub fn load(files: &TlsFiles) -> Result<Tls, TlsError> {
        let store = |path: &PathBuf| Store { path: path.clone(), password: None };
        let authorities = files.authorities.as_ref().map(store);
        let trust = match &authorities {
            _ if files.skip_verification => Trust::Anybody,
            Some(authorities) => Trust::Authorities(authorities),
            None => return Err(TlsError::NoAuthorities),
        };
        let identity = match (&files.certificate, &files.key) {
            (None, None) => None,
            (None, Some(_)) => return Err(TlsError::KeyAlone),
            (Some(certificate), key) => Some(CallerIdentity {
                key: store(key.as_ref().unwrap_or(certificate)),
                certificates: Some(certificate.clone()),
            }),
        };
        Ok(Tls { config: calling_config(trust, identity.as_ref(), &[])? })
    }

    /// The beginning of a connection to `server`, which is `host:port`.
    #[doc(hidden)]
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
    paddock_tls::server_name(host).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
