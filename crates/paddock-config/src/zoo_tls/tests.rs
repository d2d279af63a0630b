use paddock_server::Config;

use super::super::case::Case;
use super::*;

/// The lines 1 to 6.
const THREE: &str = "dataDir=data\nclientPort=2181\nclientPortAddress=127.0.0.1\nserver.1=zoo1:2888:3888\n\
                     server.2=zoo2:2888:3888\nserver.3=zoo3:2888:3888\n";
/// As in ZooKeeper's guide: the lines 7 to 11.
const GUIDE: &str = "sslQuorum=true\nssl.quorum.keyStore.location=/path/to/keystore.jks\n\
                     ssl.quorum.keyStore.password=password\nssl.quorum.trustStore.location=/path/to/truststore.jks\n\
                     ssl.quorum.trustStore.password=password\n";

fn load(lines: &str) -> (Option<PeerTls>, Vec<String>) {
    let case = Case::with_myid("2");
    let loaded = case.load(format!("{THREE}{lines}")).unwrap();
    let (Config { ensemble, .. }, warnings) = case.warned(loaded);
    (ensemble.expect("an ensemble").tls, warnings)
}

#[track_caller]
fn check(lines: &str, expected: Option<PeerTls>) {
    let (tls, warnings) = load(lines);
    assert_eq!(tls, expected, "{lines}");
    assert!(warnings.is_empty(), "{lines}: {warnings:?}");
}

#[track_caller]
fn check_warned(lines: &str, expected: &str) -> Option<PeerTls> {
    let (tls, warnings) = load(lines);
    assert_eq!(warnings, [format!("zoo.cfg:{expected}")], "{lines}");
    tls
}

#[track_caller]
fn check_refused(lines: &str, expected: &str) {
    let refused = Case::with_myid("2").load(format!("{THREE}{lines}")).unwrap_err();
    assert_eq!(refused, format!("zoo.cfg:{expected}"), "{lines}");
}

fn guide() -> PeerTls {
    let password = Password::Text(Secret::new("password"));
    let store = |path: &str| Store { path: path.into(), password: Some(password.clone()) };
    PeerTls {
        mode: TlsMode::Required,
        key_store: store("/path/to/keystore.jks"),
        certificates: None,
        trust_store: store("/path/to/truststore.jks"),
        one_sided: paddock_server::OneSidedStores::default(),
        verify_called: true,
        verify_callers: true,
        versions: TlsVersions::Both,
        cipher_suites: None,
    }
}

#[test]
fn the_lines_of_zookeepers_guide_turn_tls_on() {
    check(GUIDE, Some(guide()));
    check(&GUIDE.replace("ssl.quorum", "zookeeper.ssl.quorum"), Some(guide()));
    let backwards: Vec<&str> = GUIDE.lines().rev().collect();
    check(&backwards.join("\n"), Some(guide()));
    check(
        &format!("{GUIDE}serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"),
        Some(guide()),
    );
}

#[test]
fn the_steps_of_zookeepers_guide_are_modes() {
    let step = |ssl_quorum: bool, port_unification: bool| {
        let lines = GUIDE.replace("sslQuorum=true", &format!("sslQuorum={ssl_quorum}"));
        format!("{lines}portUnification={port_unification}\n")
    };
    check(&step(false, false), None);
    check(&step(false, true), Some(PeerTls { mode: TlsMode::Accepted, ..guide() }));
    check(&step(true, true), Some(PeerTls { mode: TlsMode::Preferred, ..guide() }));
    check(&step(true, false), Some(guide()));
    check("ssl.quorum.crl=true\nssl.quorum.anything=1", None);
}

#[test]
fn every_key_sets_its_field() {
    let suite = |name| CipherSuite::named(name).unwrap();
    let (gcm, chacha) = (suite("TLS_AES_128_GCM_SHA256"), suite("TLS_CHACHA20_POLY1305_SHA256"));
    let file = |path: &str| Some(Password::File(path.into()));
    for (line, expected) in [
        (
            "keyStore.passwordPath=/p",
            PeerTls { key_store: Store { password: file("/p"), ..guide().key_store }, ..guide() },
        ),
        (
            "trustStore.passwordPath=/p",
            PeerTls { trust_store: Store { password: file("/p"), ..guide().trust_store }, ..guide() },
        ),
        (
            "client.keyStore.location=/c\nssl.quorum.client.keyStore.passwordPath=/p\nssl.quorum.server.trustStore.location=/s\n\
             ssl.quorum.server.trustStore.type=PEM",
            PeerTls {
                one_sided: paddock_server::OneSidedStores {
                    calling_key_store: Some(Store { path: "/c".into(), password: file("/p") }),
                    calling_certificates: None,
                    callers_trust_store: Some(Store { path: "/s".into(), password: None }),
                },
                ..guide()
            },
        ),
        ("keyStore.type=pkcs12", guide()),
        ("trustStore.type=PEM", guide()),
        ("hostnameVerification=true", guide()),
        ("hostnameVerification=false", PeerTls { verify_called: false, verify_callers: false, ..guide() }),
        ("clientHostnameVerification=false", PeerTls { verify_callers: false, ..guide() }),
        ("protocol=TLSv1.3", guide()),
        ("protocol=TLS", guide()),
        ("protocol=TLSv1.2", PeerTls { versions: TlsVersions::Only12, ..guide() }),
        ("enabledProtocols=TLSv1.2,TLSv1.3", guide()),
        ("enabledProtocols=TLSv1.3", PeerTls { versions: TlsVersions::Only13, ..guide() }),
        (
            "protocol=TLSv1.3\nssl.quorum.enabledProtocols=TLSv1.2",
            PeerTls { versions: TlsVersions::Only12, ..guide() },
        ),
        (
            "ciphersuites=TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256",
            PeerTls { cipher_suites: Some(vec![chacha, gcm]), ..guide() },
        ),
        ("clientAuth=NEED", guide()),
        ("crl=false", guide()),
        ("ocsp=false", guide()),
        ("handshakeDetectionTimeoutMillis=1000", guide()),
        ("allowReverseDnsLookup=true", guide()),
    ] {
        check(&format!("{GUIDE}ssl.quorum.{line}"), Some(expected));
    }
    check(&format!("{GUIDE}sslQuorumReloadCertFiles=true\nfips-mode=true"), Some(guide()));
}

#[test]
fn what_is_not_all_honoured_is_told() {
    let check = |line: &str, expected: &str| {
        check_warned(&format!("{GUIDE}ssl.quorum.{line}"), &format!("12: ssl.quorum.{expected}")).unwrap()
    };
    let no_effect = "has no effect: every member must show a certificate";
    assert_eq!(check("clientAuth=none", &format!("clientAuth: \"none\" {no_effect}")), guide());
    assert_eq!(check("clientAuth=want", &format!("clientAuth: \"want\" {no_effect}")), guide());
    let tls = check(
        "enabledProtocols=TLSv1.2,TLSv1.1",
        "enabledProtocols: without TLSv1.1, which Paddock does not offer",
    );
    assert_eq!(tls.versions, TlsVersions::Only12);
    let tls = check(
        "ciphersuites=TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ciphersuites: without TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, which Paddock does not offer",
    );
    assert_eq!(tls.cipher_suites.unwrap().len(), 1);
    let tls =
        check("keyStore.format=x", "keyStore.format is not a setting that Paddock knows; it is ignored");
    assert_eq!(tls, guide());
}

#[test]
fn what_would_be_less_safe_than_asked_for_is_refused() {
    let check = |line: &str, expected: &str| {
        check_refused(&format!("{GUIDE}ssl.quorum.{line}"), &format!("12: ssl.quorum.{expected}"));
    };
    let revoked = "\"true\" is not offered: certificates that were revoked would not be turned away";
    check("crl=true", &format!("crl: {revoked}"));
    check("ocsp=true", &format!("ocsp: {revoked}"));
    check(
        "context.supplier.class=com.example.Supplier",
        "context.supplier.class: it is not offered: keys and certificates come from the two stores only",
    );
    check(
        "keyStore.type=BCFKS",
        "keyStore.type: \"BCFKS\" is not offered; convert the store: keytool -importkeystore -srcstoretype BCFKS \
         -srckeystore FILE -destkeystore NEW.p12 -deststoretype PKCS12",
    );
    check("keyStore.type=PFX", "keyStore.type: expected PEM, PKCS12 or JKS, found \"PFX\"");
    check("hostnameVerification=yes", "hostnameVerification: expected true or false, found \"yes\"");
    check("protocol=TLSv1.1", "protocol: expected TLSv1.3 or TLSv1.2, found \"TLSv1.1\"");
    check("enabledProtocols=TLSv1", "enabledProtocols: expected TLSv1.3, TLSv1.2 or both, found \"TLSv1\"");
    check(
        "enabledProtocols=TLSv1.3,TLSv9",
        "enabledProtocols: expected TLSv1.3, TLSv1.2 or both, found \"TLSv1.3,TLSv9\"",
    );
    check("clientAuth=no", "clientAuth: expected need, want or none, found \"no\"");
    let refused =
        Case::with_myid("2").load(format!("{THREE}{GUIDE}ssl.quorum.ciphersuites=TLS_NULL")).unwrap_err();
    assert!(refused.contains("expected some of TLS_AES_256_GCM_SHA384, "), "{refused}");
    assert!(refused.ends_with("found \"TLS_NULL\""), "{refused}");
}

#[test]
fn stores_are_needed() {
    let key = "ssl.quorum.keyStore.location is missing: name a file of PEM, PKCS12 or JKS with this member's key \
               and certificate";
    let trust = "ssl.quorum.trustStore.location is missing: name a file of PEM, PKCS12 or JKS with the certificates \
                 to trust";
    check_refused("sslQuorum=true", &format!("7: sslQuorum: {key}"));
    check_refused("sslQuorum=true\nssl.quorum.keyStore.location=/k", &format!("7: sslQuorum: {trust}"));
    check_refused("sslQuorum=perhaps", "7: sslQuorum: expected true or false, found \"perhaps\"");
    let tls = check_warned(
        "portUnification=true",
        &format!("7: portUnification: no calls with TLS are taken: {key}"),
    );
    assert_eq!(tls, None);
}

#[test]
fn the_documentation_lists_every_key() {
    const KEYS: [&str; 18] = [
        "keyStore.location",
        "keyStore.password",
        "keyStore.passwordPath",
        "keyStore.type",
        "trustStore.location",
        "trustStore.password",
        "trustStore.passwordPath",
        "trustStore.type",
        "hostnameVerification",
        "clientHostnameVerification",
        "protocol",
        "enabledProtocols",
        "ciphersuites",
        "clientAuth",
        "crl",
        "ocsp",
        "context.supplier.class",
        "allowReverseDnsLookup",
    ];
    let page = include_str!("../../../../docs/configuration.md");
    for key in KEYS {
        let said = ZooTlsDraft::default().set_value(key, &Text("true"));
        assert!(!matches!(said, Ok(Said::Unknown)), "{key}");
        assert!(page.contains(&format!("`ssl.quorum.{key}`")), "{key} is missing in docs/configuration.md");
    }
    for key in ["sslQuorum", "portUnification", "sslQuorumReloadCertFiles"] {
        assert!(page.contains(&format!("`{key}`")), "{key} is missing in docs/configuration.md");
    }
}
