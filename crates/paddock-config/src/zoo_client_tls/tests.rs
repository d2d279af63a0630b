use paddock_server::{Config, Password, Secret, Store};

use super::super::case::Case;
use super::*;

/// The lines 1 and 2, and as in ZooKeeper's guide the lines 3 to 7.
const PLAINTEXT: &str = "clientPort=2181\nclientPortAddress=127.0.0.1\n";
const GUIDE: &str = "secureClientPort=2281\nssl.keyStore.location=/path/to/keystore.jks\n\
                     ssl.keyStore.password=password\nssl.trustStore.location=/path/to/truststore.jks\n\
                     ssl.trustStore.password=password\n";

fn load(lines: &str) -> (Config, Vec<String>) {
    let case = Case::with_myid("1");
    let loaded = case.load(lines).unwrap();
    case.warned(loaded)
}

#[track_caller]
fn check(lines: &str, expected: ClientTls) {
    let (config, warnings) = load(&format!("{PLAINTEXT}{lines}"));
    assert_eq!(config.tls, Some(expected), "{lines}");
    assert!(warnings.is_empty(), "{lines}: {warnings:?}");
}

#[track_caller]
fn check_refused(lines: &str, expected: &str) {
    let refused = Case::with_myid("1").load(format!("{PLAINTEXT}{lines}")).unwrap_err();
    assert_eq!(refused, format!("zoo.cfg:{expected}"), "{lines}");
}

fn guide() -> ClientTls {
    let password = Password::Text(Secret::new("password"));
    let store = |path: &str| Store { path: path.into(), password: Some(password.clone()) };
    ClientTls {
        listen: Some(SocketAddr::new(zoo_values::all_addresses(), 2281)),
        at_listen: PortProtocol::Plaintext,
        key_store: store("/path/to/keystore.jks"),
        certificates: None,
        trust_store: Some(store("/path/to/truststore.jks")),
        client_auth: ClientAuth::Need,
        verify_addresses: false,
        revocations: None,
        versions: TlsVersions::Both,
        cipher_suites: None,
        detection_timeout_ms: 5000,
        superuser: None,
    }
}

#[test]
fn the_lines_of_zookeepers_guide_open_a_port_for_tls() {
    check(GUIDE, guide());
    check(&GUIDE.replace("ssl.", "zookeeper.ssl."), guide());
    let address = format!("{GUIDE}secureClientPortAddress=127.0.0.1\n");
    check(&address, ClientTls { listen: "127.0.0.1:2281".parse().ok(), ..guide() });
}

#[test]
fn the_port_for_tls_may_be_the_only_one() {
    let (config, warnings) = load(GUIDE);
    assert_eq!(config.listen, SocketAddr::new(zoo_values::all_addresses(), 2281));
    assert_eq!(config.tls, Some(ClientTls { listen: None, at_listen: PortProtocol::Tls, ..guide() }));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn one_port_may_take_both() {
    let unified = format!("client.portUnification=true\n{}", GUIDE.replace("secureClientPort=2281\n", ""));
    check(&unified, ClientTls { listen: None, at_listen: PortProtocol::Either, ..guide() });
    let both = format!("client.portUnification=true\n{GUIDE}");
    check(&both, ClientTls { at_listen: PortProtocol::Either, ..guide() });
    let off = format!("client.portUnification=false\n{GUIDE}");
    check(&off, guide());
}

#[test]
fn every_key_sets_its_field() {
    for (line, expected) in [
        ("ssl.clientAuth=want", ClientTls { client_auth: ClientAuth::Want, ..guide() }),
        ("ssl.clientAuth=none", ClientTls { client_auth: ClientAuth::None, ..guide() }),
        ("ssl.clientHostnameVerification=true", ClientTls { verify_addresses: true, ..guide() }),
        ("ssl.crl=true\nssl.crl.location=/c", ClientTls { revocations: Some("/c".into()), ..guide() }),
        ("ssl.protocol=TLSv1.2", ClientTls { versions: TlsVersions::Only12, ..guide() }),
        ("ssl.enabledProtocols=TLSv1.3", ClientTls { versions: TlsVersions::Only13, ..guide() }),
        ("ssl.handshakeDetectionTimeoutMillis=7", ClientTls { detection_timeout_ms: 7, ..guide() }),
        (
            "X509AuthenticationProvider.superUser=CN=root",
            ClientTls { superuser: Some("CN=root".into()), ..guide() },
        ),
        ("ssl.authProvider=x509\nssl.ocsp=false\nssl.keyStore.type=JKS\nclient.certReload=true", guide()),
    ] {
        check(&format!("{GUIDE}{line}\n"), expected);
    }
    let suite = "TLS_AES_128_GCM_SHA256";
    let expected = ClientTls { cipher_suites: Some(vec![CipherSuite::named(suite).unwrap()]), ..guide() };
    check(&format!("{GUIDE}ssl.ciphersuites={suite}\n"), expected);
}

#[test]
fn a_setting_that_would_leave_a_hole_is_refused() {
    for (line, expected) in [
        (
            "ssl.ocsp=true",
            "8: ssl.ocsp: \"true\" is not offered: certificates that were revoked would not be turned away; use ssl.crl",
        ),
        ("ssl.clientAuth=perhaps", "8: ssl.clientAuth: expected need, want or none, found \"perhaps\""),
        (
            "ssl.authProvider=other",
            "8: ssl.authProvider: expected x509, the only scheme for certificates, found \"other\"",
        ),
        (
            "ssl.crl=true",
            "3: secureClientPort: ssl.crl: lists of revoked certificates are not fetched from the network; name a file with them in ssl.crl.location",
        ),
    ] {
        check_refused(&format!("{GUIDE}{line}\n"), expected);
    }
    let missing = "3: secureClientPort: ssl.keyStore.location is missing: name a file of PEM, PKCS12 or JKS with this \
                   member's key and certificate";
    check_refused("secureClientPort=2281\n", missing);
    let untrusting = "3: secureClientPort: ssl.trustStore.location is missing: name a file with the certificates to trust, \
                      or set ssl.clientAuth=none to ask clients for no certificate";
    check_refused("secureClientPort=2281\nssl.keyStore.location=k\n", untrusting);
}

#[test]
fn without_a_port_for_it_tls_is_off() {
    let (config, warnings) = load(&format!("{PLAINTEXT}ssl.keyStore.location=k\nsecureClientPort=0\n"));
    assert_eq!((config.tls, warnings), (None, Vec::new()));
}
