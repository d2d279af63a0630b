//! TLS settings of the ports for clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{CipherSuite, PeerTls, Store, TlsVersions};

/// TLS for clients: where it is spoken, this member's certificate, and the clients' certificates that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// A port on which clients speak TLS only. Port 0 takes any free port.
    pub listen: Option<SocketAddr>,
    /// Protocol at `Config::listen`.
    pub at_listen: PortProtocol,
    /// This member's private key, and the certificates that vouch for it.
    pub key_store: Store,
    /// File of those certificates, if the key is in a file of PEM without them.
    pub certificates: Option<PathBuf>,
    /// Certificates of clients that are trusted, and those whose signature makes another one trusted. Needed unless
    /// `client_auth` is `None`.
    pub trust_store: Option<Store>,
    /// Certificates that clients have to show.
    pub client_auth: ClientAuth,
    /// True if a client's certificate has to be for the address from which it connects.
    pub verify_addresses: bool,
    /// Lists of revoked certificates, as PEM or one as DER. With it, every authority of a client's certificate needs a list
    /// that is not outdated.
    pub revocations: Option<PathBuf>,
    /// Versions of TLS that clients may speak.
    pub versions: TlsVersions,
    /// The first is liked best. `None` is all that there are.
    pub cipher_suites: Option<Vec<CipherSuite>>,
    /// Time in milliseconds in which a connection has to send its first byte.
    pub detection_timeout_ms: u64,
    /// Subject of the certificate whose owner may do everything, as the `x509` scheme writes it.
    pub superuser: Option<String>,
}

/// Protocol below ZooKeeper's, on one port for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProtocol {
    /// No TLS.
    Plaintext,
    /// Plaintext or TLS, as the first byte of each connection tells.
    Either,
    /// TLS only.
    Tls,
}

/// Certificates of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// Clients are not asked for one.
    None,
    /// A client may show one. If it does, it must be good.
    Want,
    /// A client without one is turned away.
    Need,
}

impl ClientTls {
    /// Time in milliseconds in which a connection has to send its first byte, as in ZooKeeper.
    pub const DETECTION_TIMEOUT_MS: u64 = 5000;

    /// The keys and certificates of the links between members, for a port that asks for no certificate.
    pub fn of_peers(peers: &PeerTls) -> ClientTls {
        ClientTls {
            listen: None,
            at_listen: PortProtocol::Tls,
            key_store: peers.key_store.clone(),
            certificates: peers.certificates.clone(),
            trust_store: Some(peers.trust_store.clone()),
            client_auth: ClientAuth::None,
            verify_addresses: false,
            revocations: None,
            versions: peers.versions,
            cipher_suites: peers.cipher_suites.clone(),
            detection_timeout_ms: ClientTls::DETECTION_TIMEOUT_MS,
            superuser: None,
        }
    }
}
