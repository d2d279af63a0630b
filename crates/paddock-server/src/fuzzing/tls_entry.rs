//! A port for TLS that is sent any bytes.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use paddock_tls::{ClientFailure, ClientPort};
use rustls::pki_types::CertificateDer;

use crate::config::{ClientAuth, ClientTls, PortProtocol, Store, TlsVersions};

#[derive(Debug)]
pub struct TlsEntry {
    port: ClientPort,
}

impl TlsEntry {
    /// A port with the key in `key.pem`, where clients need a certificate that `certificate.pem` vouches for. Both files are in `directory`.
    pub fn new(directory: &Path) -> TlsEntry {
        let store = |name: &str| Store { path: directory.join(name), password: None };
        let settings = ClientTls {
            listen: None,
            at_listen: PortProtocol::Tls,
            key_store: store("key.pem"),
            certificates: Some(directory.join("certificate.pem")),
            trust_store: Some(store("certificate.pem")),
            client_auth: ClientAuth::Need,
            verify_addresses: true,
            revocations: None,
            versions: TlsVersions::Both,
            cipher_suites: None,
            detection_timeout_ms: 1000,
            superuser: None,
        };
        TlsEntry { port: ClientPort::load(settings).expect("the files are good") }
    }

    /// Takes `data` behind an even first byte as what a client sends, and behind an odd one as the certificate that a client has shown.
    /// No client gets in, and the reason is said on one line.
    pub fn take(&self, data: &[u8]) {
        let Some((&choice, bytes)) = data.split_first() else { return };
        if choice.is_multiple_of(2) { self.shake_hands(bytes) } else { self.identify(bytes) }
    }

    fn shake_hands(&self, mut bytes: &[u8]) {
        let mut connection = self.port.answer().expect("the port has a key");
        while !bytes.is_empty() && matches!(connection.read_tls(&mut bytes), Ok(1..)) {
            if let Err(error) = connection.process_new_packets() {
                check_line(&ClientFailure::from(error));
                return;
            }
            while connection.wants_write() {
                connection.write_tls(&mut Vec::new()).expect("a vector takes everything");
            }
        }
        assert!(connection.is_handshaking(), "a handshake is over whose client knew no key");
    }

    fn identify(&self, bytes: &[u8]) {
        let certificate = CertificateDer::from(bytes);
        for id in self.port.identities(&certificate) {
            assert!(id.scheme == "x509", "a certificate proves to be {id:?}");
        }
        if let Err(failure) = self.port.check_address(&certificate, IpAddr::V4(Ipv4Addr::LOCALHOST)) {
            check_line(&failure);
        }
    }
}

fn check_line(failure: &ClientFailure) {
    let line = failure.to_string();
    assert!(!line.is_empty() && !line.contains('\n'), "{line:?} is no line for the log");
}
