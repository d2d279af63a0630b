//! TLS of every port and of every connection: files of keys and certificates, the checks of certificates, and what a connection begins
//! with.
//!
//! A member's links (`link_port.rs`), its ports for clients and for HTTP (`client_port.rs`), a process that follows a ZooKeeper
//! ensemble (`caller.rs`), and every other caller of a server (`calling.rs`) read the same kinds of files (`store.rs`) and believe the same
//! certificates (`verifier.rs`). Settings stand in `settings.rs`.

mod caller;
mod calling;
mod causes;
mod certificate;
mod certificate_end;
mod cipher_suites;
mod client_failure;
mod client_port;
mod distinguished_name;
mod error;
mod failure;
mod handshake;
mod jks;
mod key_entry;
mod link_port;
mod pem;
mod pkcs12;
mod random;
mod secret_files;
mod server_name;
mod settings;
mod signatures;
mod stamps;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unverified;
mod verifier;
mod versions;

pub use caller::{QuorumTls, TlsSocket, TlsWriter};
pub use calling::calling_config;
pub use causes::with_causes;
pub use certificate_end::{CertificateEnd, certificate_end};
pub use client_failure::ClientFailure;
pub use client_port::ClientPort;
pub use error::{StoreError, TlsError};
pub use failure::TlsFailure;
pub use handshake::{HANDSHAKE, RawSocket, shake_hands};
pub use link_port::Tls;
pub use random::random_bytes;
pub use secret_files::warn_of_readable_file;
pub use server_name::server_name;
pub use settings::{
    CallerIdentity, CipherSuite, ClientAuth, ClientTls, OneSidedStores, Password, PeerTls, PortProtocol,
    Secret, Store, TlsMode, TlsVersions, Trust,
};
