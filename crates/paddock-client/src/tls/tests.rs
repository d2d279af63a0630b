//! Tests of the files that TLS is made of. Connections are tested where there is a server.

use std::fs;

use super::*;

fn check(files: &TlsFiles, expected: &str) {
    let error = Tls::load(files).expect_err("these files are no good");
    let line = paddock_tls::with_causes(&error);
    assert!(line.contains(expected), "{line}");
}

#[test]
fn files_that_are_no_good_are_named() {
    let dir = tempfile::tempdir().expect("make a directory");
    let path = |name: &str| Some(dir.path().join(name));
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("make a certificate");
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("make a certificate");
    fs::write(dir.path().join("own.pem"), own.cert.pem()).expect("write a certificate");
    fs::write(dir.path().join("own.key"), own.signing_key.serialize_pem()).expect("write a key");
    fs::write(dir.path().join("other.key"), other.signing_key.serialize_pem()).expect("write a key");
    let good = TlsFiles {
        authorities: path("own.pem"),
        certificate: path("own.pem"),
        key: path("own.key"),
        ..TlsFiles::default()
    };
    Tls::load(&good).expect("these files are good");
    check(&TlsFiles::default(), "name the file of the authorities");
    check(&TlsFiles { certificate: None, ..good.clone() }, "name both");
    check(&TlsFiles { authorities: path("absent"), ..good.clone() }, "read ");
    check(
        &TlsFiles { authorities: path("own.key"), ..good.clone() },
        "own.key cannot be used: it has no certificate to trust",
    );
    check(&TlsFiles { key: None, ..good.clone() }, "own.pem cannot be used: it has no private key");
    check(&TlsFiles { key: path("other.key"), ..good }, "the key and the certificate in");
}

#[test]
fn a_certificate_is_for_the_host_of_an_address() {
    for (server, expected) in [
        ("zk.example.org:2281", "zk.example.org"),
        ("127.0.0.1:2281", "127.0.0.1"),
        ("[::1]:2281", "::1"),
        ("zk", "zk"),
    ] {
        assert_eq!(server_name(server).expect("it is a host").to_str(), expected);
    }
    assert!(server_name("a b:1").is_err());
}
