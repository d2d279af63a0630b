//! Clients with good certificates and bad ones, at the ports of a member, over sockets.

use std::fs;
use std::sync::Arc;

use paddock_tls::testing::{
    Authority, client_port_settings, expired, for_loopback, named, revocation_list, self_signed, with,
};
use paddock_tls::{RawSocket, shake_hands};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;
use crate::config::{ClientAuth, ClientTls};

/// A member's port and the authority that its clients know.
struct WelcomeStage {
    dir: tempfile::TempDir,
    port: ClientPort,
    servers: Authority,
    clients: Authority,
}

impl WelcomeStage {
    fn new(change: impl FnOnce(&mut ClientTls)) -> WelcomeStage {
        let dir = tempfile::tempdir().unwrap();
        let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
        let key = servers.issue(&for_loopback());
        let mut settings = client_port_settings(dir.path(), &key, &clients.pem());
        change(&mut settings);
        let port = ClientPort::load(settings).unwrap();
        WelcomeStage { dir, port, servers, clients }
    }

    /// Lets a client connect that does `act`, and returns what the member makes of it.
    async fn welcome<F: Future<Output = ()>>(
        &self,
        protocol: PortProtocol,
        act: impl FnOnce(TcpStream) -> F,
    ) -> Result<Welcome, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async { act(TcpStream::connect(address).await.unwrap()).await };
        let member = async {
            let (socket, _) = listener.accept().await.unwrap();
            welcome(&socket, protocol, &self.port).await.map_err(|failure| failure.to_string())
        };
        tokio::join!(client, member).1
    }

    /// Lets a client connect with TLS. It shows `own`, if that is something.
    async fn welcome_tls(&self, own: Option<&str>) -> Result<Welcome, String> {
        let config = Arc::new(client_config(&self.servers.pem(), own));
        self.welcome(PortProtocol::Tls, |socket| async move {
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let mut connection = ClientConnection::new(config, name).unwrap().into();
            // With TLS 1.3 a client hears after its handshake that its certificate was not taken, if at all.
            if shake_hands(&mut connection, &socket).await.is_err() {
                let _ = connection.write_tls(&mut RawSocket(&socket));
            }
        })
        .await
    }

    async fn check_refused(&self, own: Option<&str>, expected: &str) {
        let reason = self.welcome_tls(own).await.unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }

    async fn check_taken(&self, own: Option<&str>, expected: &[(&str, &str)]) {
        let Welcome::Tls { ids, .. } = self.welcome_tls(own).await.unwrap() else { panic!("it spoke TLS") };
        let expected: Vec<Id> = expected.iter().map(|(scheme, id)| Id::new(*scheme, *id)).collect();
        assert_eq!(ids, expected);
    }
}

fn client_config(trusted: &str, own: Option<&str>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    match own {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect();
            let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

fn with_serial(serial: u64) -> CertificateParams {
    with(named("client", &[]), |params| params.serial_number = Some(serial.into()))
}

#[tokio::test]
async fn a_certificate_proves_its_subject() {
    let stage = WelcomeStage::new(|tls| tls.superuser = Some("CN=root".to_owned()));
    stage.check_taken(Some(&stage.clients.issue(&named("client", &[]))), &[("x509", "CN=client")]).await;
    let root = stage.clients.issue(&named("root", &[]));
    stage.check_taken(Some(&root), &[("x509", "CN=root"), ("super", "CN=root")]).await;
}

#[tokio::test]
async fn bad_certificates_are_refused_with_the_reason() {
    let stage = WelcomeStage::new(|_| {});
    let issue = |params| stage.clients.issue(&params);
    stage.check_refused(None, "it shows no certificate").await;
    let early = with(named("client", &[]), |params| params.not_before = date_time_ymd(2999, 1, 1));
    stage.check_refused(Some(&issue(early)), "renew it, or correct the clock").await;
    stage.check_refused(Some(&issue(expired(named("client", &[])))), "renew it, or correct the clock").await;
    let for_servers = with(named("client", &[]), |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    stage.check_refused(Some(&issue(for_servers)), "have it issued for clients").await;
    let other = Authority::new("other").issue(&named("client", &[]));
    stage.check_refused(Some(&other), "put the certificate of who signed it into the trust store").await;
    let own = self_signed(&named("client", &[]));
    stage.check_refused(Some(&own), "put the certificate of who signed it into the trust store").await;
    // None of them has harmed the next one.
    stage.check_taken(Some(&issue(named("client", &[]))), &[("x509", "CN=client")]).await;
}

#[tokio::test]
async fn a_client_need_not_show_a_certificate_where_none_is_needed() {
    let wanted = WelcomeStage::new(|tls| tls.client_auth = ClientAuth::Want);
    wanted.check_taken(None, &[]).await;
    wanted.check_taken(Some(&wanted.clients.issue(&named("client", &[]))), &[("x509", "CN=client")]).await;
    wanted.check_refused(Some(&self_signed(&named("client", &[]))), "not taken").await;
    let none = WelcomeStage::new(|tls| (tls.client_auth, tls.trust_store) = (ClientAuth::None, None));
    none.check_taken(Some(&none.clients.issue(&named("client", &[]))), &[]).await;
}

#[tokio::test]
async fn a_revoked_certificate_is_refused() {
    let mut stage = WelcomeStage::new(|_| {});
    let list = stage.dir.path().join("revoked.pem");
    fs::write(&list, revocation_list(&stage.clients, &[7])).unwrap();
    let settings = ClientTls { revocations: Some(list.clone()), ..(*stage.port.settings()).clone() };
    stage.port = ClientPort::load(settings).unwrap();
    stage.check_refused(Some(&stage.clients.issue(&with_serial(7))), "it was revoked").await;
    let good = stage.clients.issue(&with_serial(8));
    stage.check_taken(Some(&good), &[("x509", "CN=client")]).await;

    // A list that has changed is read again,
    fs::write(&list, revocation_list(&stage.clients, &[7, 8])).unwrap();
    stage.check_refused(Some(&good), "it was revoked").await;
    // and one of another authority vouches for no client.
    fs::write(&list, revocation_list(&Authority::new("other"), &[])).unwrap();
    stage.check_refused(Some(&good), "add the list of revoked certificates").await;
}

#[tokio::test]
async fn an_address_is_verified_if_that_is_asked_for() {
    let stage = WelcomeStage::new(|tls| tls.verify_addresses = true);
    let here = stage.clients.issue(&named("client", &["127.0.0.1"]));
    stage.check_taken(Some(&here), &[("x509", "CN=client")]).await;
    let elsewhere = stage.clients.issue(&named("client", &["10.0.0.1"]));
    stage.check_refused(Some(&elsewhere), "is not for 127.0.0.1").await;
}

#[tokio::test]
async fn the_first_byte_tells_plaintext_from_tls() {
    let stage = WelcomeStage::new(|tls| tls.detection_timeout_ms = 20);
    let say = |bytes: &'static [u8]| {
        move |mut socket: TcpStream| async move { socket.write_all(bytes).await.unwrap() }
    };
    let outcome = stage.welcome(PortProtocol::Either, say(b"ruok")).await;
    assert!(matches!(outcome, Ok(Welcome::Plaintext)), "{outcome:?}");
    let reason = stage.welcome(PortProtocol::Tls, say(b"ruok")).await.unwrap_err();
    assert!(reason.contains("plaintext on a port for TLS"), "{reason}");
    let reason = stage.welcome(PortProtocol::Tls, say(&[HANDSHAKE, 9, 9, 0, 1, 0])).await;
    assert!(reason.unwrap_err().contains("not TLS"));
    let reason = stage.welcome(PortProtocol::Either, say(b"")).await.unwrap_err();
    assert_eq!(reason, "it left without a byte");
    let silent = |socket: TcpStream| async move {
        // Returns when the member has closed its side.
        socket.readable().await.unwrap();
    };
    let reason = stage.welcome(PortProtocol::Either, silent).await.unwrap_err();
    assert_eq!(reason, "it sent nothing within 20 ms");
}

#[tokio::test]
async fn a_certificate_that_has_changed_is_shown_to_the_next_client() {
    let stage = WelcomeStage::new(|_| {});
    let good = stage.clients.issue(&named("client", &[]));
    stage.check_taken(Some(&good), &[("x509", "CN=client")]).await;
    let key = &stage.port.settings().key_store.path;
    let next = Authority::new("next");
    fs::write(key, "half").unwrap();
    stage.check_taken(Some(&good), &[("x509", "CN=client")]).await;
    fs::write(key, next.issue(&for_loopback())).unwrap();
    stage.check_refused(Some(&good), "it does not trust this member's certificate").await;
    let stage = WelcomeStage { servers: next, ..stage };
    stage.check_taken(Some(&good), &[("x509", "CN=client")]).await;
}
