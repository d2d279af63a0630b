//! With TLS: who is kept out, what it is told, and what comes of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use paddock_tls::Tls;
use paddock_tls::testing::for_loopback;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, StreamOwned};

use super::certificates::{Certificates, reason, start_with};
use super::node::{CLUSTER, Node, PATIENCE, TIMING, any_port, link};
use super::speaker::{HELLO, connect, read_answer, read_to_end};
use crate::Timing;
use crate::accept::STRANGERS_MAX;
use crate::greeting::{Answer, GREETING_BYTES, Hello, VERSION, Verdict, first_places};

/// A member that expects member 2.
fn expecting(certificates: &Certificates) -> Node {
    expecting_with(certificates, TIMING)
}

fn expecting_with(certificates: &Certificates, timing: Timing) -> Node {
    let one = start_with(1, timing, certificates.settings(1));
    one.set_peers(&[(2, one.address())]);
    one
}

#[test]
fn strangers_without_tls_are_told_nothing() {
    // Short only here, where no stranger is let in: a handshake takes its time on a busy machine.
    let timing = Timing { greeting: Duration::from_millis(500), ..TIMING };
    let one = expecting_with(&Certificates::new(), timing);
    for bytes in
        [&b""[..], b"PAD", b"GET / HTTP/1.1\r\n\r\n", &(-65536_i64).to_be_bytes(), &[0xFF; 100], &[22]]
    {
        let mut socket = connect(one.address());
        socket.write_all(bytes).unwrap();
        assert_eq!(read_to_end(&socket), b"", "after {bytes:?}");
    }
    assert!(one.events.is_empty());
}

#[test]
fn a_member_without_tls_is_told_why_and_no_more() {
    let one = expecting(&Certificates::new());
    let mut other_version = HELLO.encode();
    other_version[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let other_ensemble = Hello { cluster: CLUSTER + 1, ..HELLO }.encode();
    let unknown = Hello { from: 4, to: 3, ..HELLO }.encode();
    for hello in [HELLO.encode(), other_version, other_ensemble, unknown] {
        let mut socket = connect(one.address());
        socket.write_all(&hello).unwrap();
        let answer = Answer::decode(&read_answer(&socket)).unwrap();
        let verdict = Verdict::TlsNeeded;
        let nothing = Answer { from: 0, verdict, cluster: 0, nonce: 0, process: 0, first_at: None };
        assert_eq!(answer, nothing);
        assert_eq!(read_to_end(&socket), b"");
    }
    assert!(one.events.is_empty());
}

/// A handshake as it is begun by a stranger that trusts the authority, and perhaps has a certificate.
fn stranger(
    certificates: &Certificates,
    address: SocketAddr,
    key: Option<&str>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::from_pem_slice(certificates.authority.pem().as_bytes()));
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match key {
        None => builder.with_no_client_auth(),
        Some(key) => {
            let chain = CertificateDer::from_pem_slice(key.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![chain], key).unwrap()
        }
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), connect(address))
}

#[test]
fn a_stranger_without_a_certificate_gets_nothing() {
    let certificates = Certificates::new();
    let one = expecting(&certificates);
    let mut stranger = stranger(&certificates, one.address(), None);
    stranger.write_all(&HELLO.encode()).unwrap();
    let mut answer = Vec::new();
    let error = stranger.read_to_end(&mut answer).unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    assert_eq!(answer, b"");
    assert!(one.events.is_empty());
}

/// A certificate makes no member of a stranger that does not speak like one.
#[test]
fn what_is_not_a_frame_ends_the_link() {
    let certificates = Certificates::new();
    let one = expecting(&certificates);
    let key = certificates.authority.issue(&for_loopback());
    for (hello, garbage) in
        [(&b"GET / HTTP/1.1\r\n\r\n, GET / HTTP/1.1"[..], false), (&HELLO.encode()[..], true)]
    {
        let mut two = stranger(&certificates, one.address(), Some(&key));
        two.write_all(hello).unwrap();
        if garbage {
            let mut answer = [0; GREETING_BYTES];
            two.read_exact(&mut answer).unwrap();
            let answer = Answer::decode(&answer).unwrap();
            assert_eq!((answer.verdict, answer.cluster), (Verdict::Welcome, CLUSTER));
            one.expect_up(2);
            two.write_all(&[0xFF; 100]).unwrap();
            one.expect_down(2);
        }
        let mut rest = Vec::new();
        // However the connection ends, there is nothing more in it.
        let _ = two.read_to_end(&mut rest);
        assert_eq!(rest, b"");
    }
    assert!(one.events.is_empty());
}

#[test]
fn a_crowd_in_the_handshake_does_not_keep_a_member_out() {
    let certificates = Certificates::new();
    let one = start_with(1, Timing { greeting: PATIENCE * 10, ..TIMING }, certificates.settings(1));
    let crowd: Vec<TcpStream> = (0..STRANGERS_MAX * 2)
        .map(|_| {
            let mut socket = connect(one.address());
            // The first record says that 256 bytes follow.
            socket.write_all(&[22, 3, 1, 1, 0, 1]).unwrap();
            socket
        })
        .collect();
    let two = certificates.start(2);
    link(&one, &two, one.address());
    two.send(1, b"through the crowd");
    assert_eq!(&*one.expect_message(2), b"through the crowd");
    // The first ones had to go.
    assert_eq!(read_to_end(&crowd[0]), b"");
    drop(crowd);
}

/// The first message may lie in the same record as the answer, and nothing else comes to wake its reader.
#[test]
fn what_comes_with_the_answer_is_read() {
    let certificates = Certificates::new();
    let called = TcpListener::bind(any_port()).unwrap();
    let two = certificates.start(2);
    two.set_peers(&[(1, called.local_addr().unwrap())]);
    let (mut socket, _) = called.accept().unwrap();
    let tls = Tls::load(certificates.settings(1), "127.0.0.1".to_owned()).unwrap();
    let Connection::Server(mut connection) = tls.answer().unwrap() else { panic!("it calls") };
    let mut one = rustls::Stream::new(&mut connection, &mut socket);
    let mut hello = [0; GREETING_BYTES];
    one.read_exact(&mut hello).unwrap();
    let answer =
        Answer { from: 1, verdict: Verdict::Welcome, cluster: CLUSTER, nonce: 1, process: 7, first_at: None }
            .encode();
    let (_, mut sending) = first_places(&hello, &answer);
    let message = b"together with the answer";
    one.write_all(&[&answer[..], &sending.header(message), message].concat()).unwrap();
    two.expect_up(1);
    assert_eq!(&*two.expect_message(1), message);
}

#[test]
fn a_member_that_gets_no_answer_to_its_handshake_says_so() {
    let silent = TcpListener::bind(any_port()).unwrap();
    let certificates = Certificates::new();
    let timing = Timing { greeting: Duration::from_millis(200), ..TIMING };
    let two = start_with(2, timing, certificates.settings(2));
    two.set_peers(&[(1, silent.local_addr().unwrap())]);
    let held = silent.accept().unwrap();
    assert!(reason(&two, 1).contains("does not say who it is"), "{}", reason(&two, 1));
    drop(held);
}
