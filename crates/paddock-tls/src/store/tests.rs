//! The fixtures come from Java's keytool and OpenSSL; `fixtures/make.sh` tells how. All hold the same certificate.

use std::path::PathBuf;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;

use super::*;
use crate::settings::Secret;

const PASSWORD: Option<&str> = Some("changeit");

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/fixtures").join(name)
}

fn store(name: &str, password: Option<&str>) -> Store {
    Store { path: fixture(name), password: password.map(|text| Password::Text(Secret::new(text))) }
}

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_file(fixture("certificate.pem")).unwrap()
}

#[track_caller]
fn check_key_entry(name: &str, password: Option<&str>) {
    let entry = read_key_entry(&store(name, password), None).unwrap();
    assert_eq!(entry.chain, [certificate()], "{name}");
    // This also compares the key with the certificate.
    CertifiedKey::from_der(entry.chain, entry.key, &aws_lc_rs::default_provider()).unwrap();
}

#[test]
fn certificates_may_be_in_a_file_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let both = fs::read_to_string(fixture("key.pem")).unwrap();
    let key: String = both
        .split_inclusive("-----END PRIVATE KEY-----")
        .filter(|part| part.contains("PRIVATE KEY"))
        .map(|part| &part[part.find("-----BEGIN PRIVATE").unwrap()..])
        .collect();
    let path = directory.path().join("key.pem");
    // Without a line's end behind it, as some tools write it.
    fs::write(&path, key).unwrap();
    let store = Store { path: path.clone(), password: None };
    check_refused(read_key_entry(&store, None), &StoreError::NoChain);
    check_refused(read_key_entry(&store, Some(&path)), &StoreError::NoChain);
    let entry = read_key_entry(&store, Some(&fixture("certificate.pem"))).unwrap();
    assert_eq!(entry.chain, [certificate()]);
}

#[track_caller]
fn check_trusted(name: &str, password: Option<&str>) {
    assert_eq!(read_trusted(&store(name, password)).unwrap(), [certificate()], "{name}");
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(read: Result<T, TlsError>, expected: &StoreError) {
    match read {
        Err(TlsError::Store { source, .. }) => assert_eq!(source, *expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_of_all_formats_are_read() {
    check_key_entry("key.pem", None);
    check_key_entry("key.pem", PASSWORD);
    check_key_entry("key-sec1.pem", None);
    check_key_entry("key-encrypted.pem", PASSWORD);
    check_key_entry("key-encrypted-scrypt.pem", PASSWORD);
    check_key_entry("key-encrypted-3des-sha1.pem", PASSWORD);
    check_key_entry("key.jks", PASSWORD);
    check_key_entry("key-as-pkcs12.jks", PASSWORD);
    check_key_entry("key-openssl.p12", PASSWORD);
    check_key_entry("key-openssl-legacy.p12", PASSWORD);
}

#[test]
fn trusted_certificates_of_all_formats_are_read() {
    check_trusted("certificate.pem", None);
    check_trusted("trust.jks", PASSWORD);
    check_trusted("trust.p12", PASSWORD);
    check_trusted("trust-openssl.p12", PASSWORD);
    // Beside a key or not.
    check_trusted("key.pem", None);
}

#[test]
fn a_key_store_vouches_for_nobody_else() {
    check_refused(read_trusted(&store("key.jks", PASSWORD)), &StoreError::NoCertificate);
    check_refused(read_trusted(&store("key-openssl.p12", PASSWORD)), &StoreError::NoCertificate);
}

#[test]
fn a_wrong_or_missing_password_is_told() {
    for name in
        ["key.jks", "key-as-pkcs12.jks", "key-openssl.p12", "key-openssl-legacy.p12", "key-encrypted.pem"]
    {
        check_refused(read_key_entry(&store(name, Some("wrong")), None), &StoreError::Password);
    }
    for name in ["key.jks", "key-openssl.p12"] {
        check_refused(read_key_entry(&store(name, None), None), &StoreError::Password);
    }
    check_refused(read_key_entry(&store("key-encrypted.pem", None), None), &StoreError::PasswordMissing);
    check_refused(read_key_entry(&store("key-encrypted.pem", Some("")), None), &StoreError::PasswordMissing);
    check_refused(read_trusted(&store("trust.jks", None)), &StoreError::Password);
}

#[test]
fn what_is_not_offered_is_told() {
    for name in ["key-encrypted-pbes1.pem", "key-encrypted-traditional.pem"] {
        check_refused(read_key_entry(&store(name, PASSWORD), None), &StoreError::Encryption);
    }
    check_refused(read_key_entry(&store("make.sh", PASSWORD), None), &StoreError::Format);
    check_refused(read_trusted(&store("make.sh", PASSWORD)), &StoreError::Format);
    check_refused(read_key_entry(&store("certificate.pem", None), None), &StoreError::NoKey);
    for name in ["trust.jks", "trust.p12"] {
        check_refused(read_key_entry(&store(name, PASSWORD), None), &StoreError::NoKey);
    }
}

#[test]
fn a_missing_file_is_named() {
    match read_key_entry(&store("none.pem", None), None) {
        Err(TlsError::Read { path, .. }) => assert_eq!(path, fixture("none.pem")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_password_stands_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password");
    let store = Store { path: fixture("key.jks"), password: Some(Password::File(path.clone())) };
    for text in ["changeit", "changeit\n", "changeit\r\n"] {
        fs::write(&path, text).unwrap();
        read_key_entry(&store, None).unwrap();
    }
    fs::write(&path, "changeit\n\n").unwrap();
    check_refused(read_key_entry(&store, None), &StoreError::Password);
    fs::write(&path, [0xFF]).unwrap();
    assert!(matches!(read_key_entry(&store, None), Err(TlsError::PasswordText { .. })));
}

/// Whatever a file holds, it is read or refused.
#[test]
fn damage_is_told() {
    for name in ["key.jks", "trust.jks", "key-as-pkcs12.jks", "key-encrypted.pem", "key.pem"] {
        let whole = fs::read(fixture(name)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let damaged = Store { path: dir.path().join(name), ..store(name, PASSWORD) };
        for length in 0..whole.len() {
            fs::write(&damaged.path, &whole[..length]).unwrap();
            let read = (read_key_entry(&damaged, None), read_trusted(&damaged));
            assert!(name.ends_with(".pem") || matches!(read, (Err(_), Err(_))), "{name} cut at {length}");
        }
    }
}

/// The checksum of a JKS file is right here, as it would be in a forged one.
#[test]
fn a_forged_jks_reserves_no_memory() {
    let forged = |content: &[u8]| {
        use sha1::Digest;
        let password: Vec<u8> = "changeit".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let checksum = sha1::Sha1::new()
            .chain_update(password)
            .chain_update("Mighty Aphrodite")
            .chain_update(content)
            .finalize();
        [content, &checksum[..]].concat()
    };
    let word = u32::to_be_bytes;
    let header = [jks::MAGIC, word(2), word(u32::MAX)].concat();
    let entry = [&word(1)[..], &[0; 2], &[0; 8], &word(0), &word(u32::MAX)].concat();
    for content in [header.clone(), [header, entry].concat()] {
        assert!(matches!(jks::key_entry(&forged(&content), "changeit"), Err(StoreError::Damaged(_))));
    }
}
