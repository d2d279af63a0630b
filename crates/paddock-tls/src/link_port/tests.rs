//! Handshakes in memory: who takes whose certificate, and what the two sides then say.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, SanType};
use rustls::pki_types::pem::PemObject;

use super::*;
use crate::settings::{CipherSuite, Password, TlsVersions};
use crate::testing::{Authority, expired, for_loopback, named, self_signed, settings, with};

const HOST: &str = "zoo1.example.org";

/// A member with its stores.
struct SecuredMember {
    dir: tempfile::TempDir,
    tls: Tls,
}

fn member(key: &str, trusted: &str) -> SecuredMember {
    member_with(key, trusted, |_| {})
}

fn member_with(key: &str, trusted: &str, change: impl FnOnce(&mut PeerTls)) -> SecuredMember {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), key, trusted);
    change(&mut settings);
    let tls = Tls::load(settings, HOST.to_owned()).unwrap();
    SecuredMember { dir, tls }
}

/// Lets the side that calls `host` and the side that is called greet each other, and returns both results.
fn shake_hands(
    calling: &SecuredMember,
    called: &SecuredMember,
    host: &str,
) -> (Result<(), String>, Result<(), String>) {
    let mut ends = [calling.tls.call(host).unwrap(), called.tls.answer().unwrap()];
    let mut results = [Ok(()), Ok(())];
    while ends.iter().any(|end| end.wants_write()) {
        for (from, to) in [(0, 1), (1, 0)] {
            let mut bytes = Vec::new();
            while ends[from].wants_write() {
                ends[from].write_tls(&mut bytes).unwrap();
            }
            let mut unread = &bytes[..];
            while !unread.is_empty() && results[to].is_ok() {
                ends[to].read_tls(&mut unread).unwrap();
                let opened = ends[to].process_new_packets().map(drop);
                results[to] = opened.map_err(|error| TlsFailure::Protocol(error).to_string());
            }
        }
    }
    if results.iter().all(Result::is_ok) {
        assert!(ends.iter().all(|end| !end.is_handshaking() && end.peer_certificates().is_some()));
    }
    let [calling, called] = results;
    (calling, called)
}

#[track_caller]
fn check_taken(calling: &SecuredMember, called: &SecuredMember, host: &str) {
    assert_eq!(shake_hands(calling, called, host), (Ok(()), Ok(())));
}

/// Each side's words must contain what is expected of it.
#[track_caller]
fn check_refused(calling: &SecuredMember, called: &SecuredMember, host: &str, expected: (&str, &str)) {
    let (says_calling, says_called) = shake_hands(calling, called, host);
    assert!(says_calling.as_ref().is_err_and(|line| line.contains(expected.0)), "{says_calling:?}");
    assert!(says_called.as_ref().is_err_and(|line| line.contains(expected.1)), "{says_called:?}");
}

#[test]
fn members_of_one_authority_take_each_other() {
    let authority = Authority::new("authority");
    let [one, two] = [(); 2].map(|()| member(&authority.issue(&named("x", &[HOST])), &authority.pem()));
    check_taken(&one, &two, HOST);
    check_taken(&two, &one, HOST);
}

#[test]
fn both_versions_and_every_suite_work() {
    let authority = Authority::new("authority");
    let (ecdsa, rsa) = (authority.issue(&named("x", &[HOST])), authority.issue_rsa(&named("x", &[HOST])));
    for versions in [TlsVersions::Both, TlsVersions::Only12, TlsVersions::Only13] {
        for suite in CipherSuite::all() {
            let key = if suite.name().contains("_RSA_") { &rsa } else { &ecdsa };
            let is_13 = !suite.name().contains("_WITH_");
            let allowed =
                if is_13 { versions != TlsVersions::Only12 } else { versions != TlsVersions::Only13 };
            let settings = |settings: &mut PeerTls| {
                settings.versions = versions;
                settings.cipher_suites = Some(vec![suite]);
            };
            if allowed {
                let one = member_with(key, &authority.pem(), settings);
                check_taken(&one, &one, HOST);
            } else {
                let dir = tempfile::tempdir().unwrap();
                let mut impossible = crate::testing::settings(dir.path(), key, &authority.pem());
                settings(&mut impossible);
                assert!(matches!(Tls::load(impossible, HOST.to_owned()), Err(TlsError::Versions(_))));
            }
        }
    }
}

#[test]
fn members_without_a_version_in_common_say_so() {
    let authority = Authority::new("authority");
    let key = authority.issue(&named("x", &[HOST]));
    let [old, new] = [TlsVersions::Only12, TlsVersions::Only13]
        .map(|versions| member_with(&key, &authority.pem(), |settings| settings.versions = versions));
    check_refused(&old, &new, HOST, ("no version of TLS or no cipher suite", "allow a version of TLS"));
    check_refused(&new, &old, HOST, ("no version of TLS or no cipher suite", "allow a version of TLS"));
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    check_other_authority("theirs");
    // As if it had been made anew.
    check_other_authority("ours");
}

fn check_other_authority(name: &str) {
    let (ours, theirs) = (Authority::new("ours"), Authority::new(name));
    let member_of = |authority: &Authority, trusted: &Authority| {
        member(&authority.issue(&named("x", &[HOST])), &trusted.pem())
    };
    let one = member_of(&ours, &ours);
    let stranger = member_of(&theirs, &theirs);
    // The one that is called shows its certificate first.
    let put = "put the certificate of who signed it into the trust store";
    let signed = "who signed this member's certificate is not in its trust store";
    check_refused(&one, &stranger, HOST, (put, signed));
    check_refused(&stranger, &one, HOST, (put, signed));
    // A member that trusts us, but is not trusted.
    let trusting = member_of(&theirs, &ours);
    check_refused(&trusting, &one, HOST, (signed, put));
    check_refused(&one, &trusting, HOST, (put, signed));
}

#[test]
fn a_certificate_that_is_not_valid_now_is_refused() {
    let authority = Authority::new("authority");
    let good = member(&authority.issue(&named("x", &[HOST])), &authority.pem());
    let old = expired(named("x", &[HOST]));
    let early = with(named("x", &[HOST]), |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1));
    for params in [old, early] {
        let bad = member(&authority.issue(&params), &authority.pem());
        let renew = "renew it, or correct the clock";
        check_refused(&good, &bad, HOST, (renew, "not valid now"));
        check_refused(&bad, &good, HOST, ("not valid now", renew));
    }
}

#[test]
fn a_certificate_for_one_direction_only_is_refused_in_the_other() {
    let authority = Authority::new("authority");
    let key = |usage| {
        authority.issue(&with(named("x", &[HOST]), |params| params.extended_key_usages = vec![usage]))
    };
    let server = member(&key(ExtendedKeyUsagePurpose::ServerAuth), &authority.pem());
    let client = member(&key(ExtendedKeyUsagePurpose::ClientAuth), &authority.pem());
    check_taken(&client, &server, HOST);
    let both = "have it issued for servers and clients";
    check_refused(&server, &server, HOST, ("not issued for servers and clients", both));
    check_refused(&client, &client, HOST, (both, "not issued for servers and clients"));
}

#[test]
fn the_host_that_was_called_is_verified() {
    let authority = Authority::new("authority");
    let trusted = authority.pem();
    let one = member(&authority.issue(&named("x", &[HOST, "127.0.0.1", "::1", "*.example.net"])), &trusted);
    for host in [HOST, "ZOO1.Example.Org", "127.0.0.1", "::1", "any.example.net"] {
        check_taken(&one, &one, host);
    }
    let issued = "have it issued for the host";
    for host in ["zoo2.example.org", "127.0.0.2", "a.b.example.net", "x"] {
        check_refused(&one, &one, host, (issued, "not for its host"));
    }
    let careless = member_with(&authority.issue(&named("x", &[])), &trusted, |settings| {
        settings.verify_called = false;
    });
    check_taken(&careless, &one, "zoo2.example.org");
    assert!(matches!(one.tls.call("no host"), Err(TlsFailure::Host(_))));
}

#[test]
fn a_common_name_counts_only_where_no_host_is_listed() {
    let authority = Authority::new("authority");
    let by_name = member(&authority.issue(&named(HOST, &[])), &authority.pem());
    check_taken(&by_name, &by_name, HOST);
    check_taken(&by_name, &by_name, "ZOO1.example.org");
    check_refused(&by_name, &by_name, "zoo2.example.org", ("have it issued", "not for its host"));
    let listed = member(&authority.issue(&named(HOST, &["zoo9.example.org"])), &authority.pem());
    check_refused(&listed, &listed, HOST, ("have it issued", "not for its host"));
    let addressed = member(&authority.issue(&named(HOST, &["10.0.0.1"])), &authority.pem());
    check_refused(&addressed, &addressed, HOST, ("have it issued", "not for its host"));
    // Names of workloads and of users are none of hosts.
    let uri = SanType::URI("spiffe://example.org/zoo".try_into().unwrap());
    let mail = SanType::Rfc822Name("zoo1@example.org".try_into().unwrap());
    let of_a_workload = with(named(HOST, &[]), |params| params.subject_alt_names = vec![uri, mail]);
    let workload = member(&authority.issue(&of_a_workload), &authority.pem());
    check_taken(&workload, &workload, HOST);
    check_refused(&workload, &workload, "zoo2.example.org", ("have it issued", "not for its host"));
}

#[test]
fn a_common_name_may_stand_for_the_hosts_of_a_domain() {
    let authority = Authority::new("authority");
    let with_name = |name: &str| member(&authority.issue(&named(name, &[])), &authority.pem());
    let pattern = with_name("*.Example.org");
    check_taken(&pattern, &pattern, HOST);
    check_taken(&pattern, &pattern, "zoo2.example.org");
    for other in ["example.org", "a.zoo1.example.org", "zoo1.example.com"] {
        check_refused(&pattern, &pattern, other, ("have it issued", "not for its host"));
    }
    let wide = with_name("*.org");
    check_refused(&wide, &wide, "example.org", ("have it issued", "not for its host"));
    let of_addresses = with_name("*.0.0.1");
    check_refused(&of_addresses, &of_addresses, "127.0.0.1", ("have it issued", "not for its host"));
}

#[test]
fn the_host_of_a_caller_is_verified() {
    let authority = Authority::new("authority");
    let one = member(&authority.issue(&named("x", &[HOST])), &authority.pem());
    let certificate = CertificateDer::from_pem_file(one.dir.path().join("key.pem")).unwrap();
    one.tls.check_caller(&certificate, HOST).unwrap();
    let failure = one.tls.check_caller(&certificate, "zoo2.example.org").unwrap_err().to_string();
    assert!(failure.contains("zoo2.example.org") && failure.contains(HOST), "{failure}");
    let careless = member_with(&authority.issue(&named("x", &[HOST])), &authority.pem(), |settings| {
        settings.verify_callers = false;
    });
    careless.tls.check_caller(&certificate, "zoo2.example.org").unwrap();
}

/// As ZooKeeper's guide has it: each member signs for itself, and all trust stores hold all certificates.
#[test]
fn what_a_trust_store_holds_needs_no_signature() {
    let keytool = self_signed(&named(HOST, &[]));
    // OpenSSL makes such a certificate one of an authority.
    let openssl = with(named(HOST, &[HOST]), |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    for key in [keytool, self_signed(&openssl)] {
        let one = member(&key, &key);
        check_taken(&one, &one, HOST);
    }
    let old = self_signed(&expired(named(HOST, &[])));
    let one = member(&old, &old);
    check_refused(&one, &one, HOST, ("renew it", "not valid now"));
}

#[test]
fn a_caller_without_a_certificate_is_refused() {
    let authority = Authority::new("authority");
    let one = member(&authority.issue(&named("x", &[HOST])), &authority.pem());
    let anonymous =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(one.tls.credentials().verifier.clone())
            .with_no_client_auth();
    let anonymous = SecuredMember {
        dir: tempfile::tempdir().unwrap(),
        tls: Tls {
            certificate_end: CertificateEnd::default(),
            current: Mutex::new(Current {
                credentials: Arc::new(Credentials {
                    calling: Arc::new(anonymous),
                    called: one.tls.credentials().called.clone(),
                    verifier: one.tls.credentials().verifier.clone(),
                    callers_verifier: one.tls.credentials().callers_verifier.clone(),
                    calling_chain: Vec::new(),
                    chain: Vec::new(),
                }),
                stamps: stamps(&one.tls.settings),
            }),
            settings: one.tls.settings.clone(),
            own_host: HOST.to_owned(),
        },
    };
    check_refused(&anonymous, &one, HOST, ("it wants a certificate", "it shows no certificate"));
}

/// As in ZooKeeper after 3.9: a certificate for calling, one for being called, and an authority for each.
#[test]
fn certificates_with_one_purpose_each_are_taken() {
    let (calling, called) = (Authority::new("calling"), Authority::new("called"));
    let with_purpose =
        |purpose| with(named("x", &[HOST]), |params| params.extended_key_usages = vec![purpose]);
    let server = called.issue(&with_purpose(ExtendedKeyUsagePurpose::ServerAuth));
    let client = calling.issue(&with_purpose(ExtendedKeyUsagePurpose::ClientAuth));
    let stores = tempfile::tempdir().unwrap();
    let store = |name: &str, text: &str| {
        let path = stores.path().join(name);
        fs::write(&path, text).unwrap();
        Some(crate::settings::Store { path, password: None })
    };
    let one_sided = OneSidedStores {
        calling_key_store: store("calling.pem", &client),
        calling_certificates: None,
        callers_trust_store: store("callers.pem", &calling.pem()),
    };
    let one = member_with(&server, &called.pem(), |settings| settings.one_sided = one_sided.clone());
    one.tls.credentials().check(HOST).unwrap();
    check_taken(&one, &one, HOST);
    // Without them a certificate for servers is not one to call with.
    let plain = member(&server, &called.pem());
    assert!(plain.tls.credentials().check(HOST).is_err());
    assert!(shake_hands(&plain, &one, HOST).1.is_err());
    // A store of one side is read again, too.
    fs::write(stores.path().join("callers.pem"), Authority::new("other").pem() + "\n").unwrap();
    let (_, called_says) = shake_hands(&one, &one, HOST);
    assert!(called_says.is_err_and(|line| line.contains("put the certificate")));
}

#[test]
fn files_that_have_changed_are_read_again() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let one = member(&old.issue(&for_loopback()), &old.pem());
    let two = member(&new.issue(&for_loopback()), &new.pem());
    check_refused(&two, &one, "127.0.0.1", ("put the certificate", ""));

    fs::write(one.dir.path().join("trust.pem"), new.pem() + &old.pem()).unwrap();
    fs::write(one.dir.path().join("key.pem"), "half").unwrap();
    // What cannot be read changes nothing, not even for what can.
    check_refused(&two, &one, "127.0.0.1", ("put the certificate", ""));
    fs::write(one.dir.path().join("key.pem"), new.issue(&for_loopback())).unwrap();
    check_taken(&two, &one, "127.0.0.1");
    check_taken(&one, &two, "127.0.0.1");
}

#[test]
fn what_a_member_itself_would_refuse_is_known_at_once() {
    let authority = Authority::new("authority");
    let check = |params: &CertificateParams, trusted: &str, expected: &str| {
        let one = member(&authority.issue(params), trusted);
        let failure = one.tls.credentials().check(HOST).unwrap_err().to_string();
        assert!(failure.contains(expected), "{failure}");
    };
    check(&named("x", &["zoo2.example.org"]), &authority.pem(), "have it issued for the host");
    check(&expired(named("x", &[HOST])), &authority.pem(), "renew it");
    check(&named("x", &[HOST]), &Authority::new("other").pem(), "put the certificate");
    let one = member(&authority.issue(&named("x", &[HOST])), &authority.pem());
    one.tls.credentials().check(HOST).unwrap();
}

#[test]
fn a_key_that_is_not_the_certificates_is_refused() {
    let authority = Authority::new("authority");
    let (one, other) = (authority.issue(&for_loopback()), authority.issue(&for_loopback()));
    let certificate = one.split_once("-----BEGIN PRIVATE").unwrap().0;
    let key = &other[other.find("-----BEGIN PRIVATE").unwrap()..];
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), &format!("{certificate}{key}"), &authority.pem());
    assert!(matches!(Tls::load(settings, HOST.to_owned()), Err(TlsError::Key { .. })));
}

#[test]
fn passwords_are_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), "", "");
    settings.key_store.password = Some(Password::Text(crate::settings::Secret::new("sesame")));
    let shown = format!("{settings:?}");
    assert!(shown.contains("***") && !shown.contains("sesame"), "{shown}");
}
