use std::fs;

use paddock_proto::MemberNumber;
use paddock_server::{
    CipherSuite, ClientAddress, ClientAuth, ClientLimits, ClientTls, Config, Dialect, DigestAlgorithm,
    Ensemble, EnsembleMember, MemberSettings, MemoryMax, Password, PeerTls, PortProtocol, Role, SaslUsers,
    Secret, SplitPaths, Store, TlsMode, TlsVersions, WordList,
};

use super::super::case::Case;
use super::super::overrides::Overrides;
use super::super::{Environment, Loaded, load};

fn load_text(text: &str) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("paddock.toml");
    fs::write(&file, text).unwrap();
    load(Some(&file), &Overrides::default(), &Environment::default())
        .map_err(|fault| fault.to_string().replace(&format!("{}/", dir.path().display()), ""))
}

#[track_caller]
fn check(text: &str, expected: Config) {
    let loaded = load_text(text).unwrap();
    assert_eq!(loaded.config, expected, "{text}");
    assert_eq!(loaded.remarks, [], "{text}");
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    assert_eq!(load_text(text).unwrap_err(), expected, "{text}");
}

fn defaults() -> Config {
    Config::new("paddock-data")
}

#[test]
fn an_empty_file_says_nothing() {
    check("", defaults());
    check("# comment\n", defaults());
}

fn limited(limit: impl FnOnce(&mut ClientLimits)) -> Config {
    let mut config = defaults();
    limit(&mut config.client_limits);
    config
}

fn of_member(change: impl FnOnce(&mut MemberSettings)) -> Config {
    let mut config = defaults();
    change(&mut config.member_settings);
    config
}

#[test]
fn every_key_sets_its_field() {
    const DIGEST: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
    for (text, expected) in [
        ("listen = 'localhost:2182'", Config { listen: "127.0.0.1:2182".parse().unwrap(), ..defaults() }),
        ("data_dir = '/d'", Config::new("/d")),
        ("log_dir = '/l'", Config { log_dir: Some("/l".into()), ..defaults() }),
        ("member = 0", Config { member: 0, ..defaults() }),
        ("member = 2147483647", Config { member: 2147483647, ..defaults() }),
        ("session_timeout_ms_min = 5", Config { session_timeout_ms_min: 5, ..defaults() }),
        ("session_timeout_ms_max = 90_000", Config { session_timeout_ms_max: 90_000, ..defaults() }),
        ("connections_per_address_max = 0", Config { connections_per_address_max: 0, ..defaults() }),
        ("connections_max = 9", Config { connections_max: 9, ..defaults() }),
        ("frame_bytes_max = 0xfffff", Config { frame_bytes_max: 0xfffff, ..defaults() }),
        ("client_buffers_max = 1_048_576", Config { client_buffers_max: 1 << 20, ..defaults() }),
        ("memory_max = 67_108_864", Config { memory_max: MemoryMax::Bytes(64 << 20), ..defaults() }),
        ("memory_max = '75%'", Config { memory_max: MemoryMax::Percent(75), ..defaults() }),
        ("memory_max = 'unlimited'", Config { memory_max: MemoryMax::None, ..defaults() }),
        ("accepts_per_second_max = 3", limited(|limits| limits.accepts_per_second_max = 3)),
        ("handshakes_max = 3", limited(|limits| limits.handshakes_max = 3)),
        ("connect_tokens_max = 3", limited(|limits| limits.connect_rate.tokens_max = 3)),
        ("connect_token_fill_ms = 3", limited(|limits| limits.connect_rate.fill_interval_ms = 3)),
        ("connect_token_fill_count = 3", limited(|limits| limits.connect_rate.fill_tokens = 3)),
        ("connect_tokens_of_new_session = 3", limited(|limits| limits.connect_rate.new_session_tokens = 3)),
        (
            "connect_tokens_of_resumed_session = 3",
            limited(|limits| limits.connect_rate.resumed_session_tokens = 3),
        ),
        ("sessions_max = 3", limited(|limits| limits.sessions_max = 3)),
        ("watches_per_session_max = 3", limited(|limits| limits.watches_per_session_max = 3)),
        ("watches_max = 3", limited(|limits| limits.watches_max = 3)),
        ("outstanding_max = 3", limited(|limits| limits.outstanding_max = 3)),
        ("rate_wait_ms_max = 3", limited(|limits| limits.rate_wait_ms_max = 3)),
        (
            "rate_limits = ['path:requests=3', 'user=ann:bytes=4']",
            limited(|limits| limits.rate_limits = "path:requests=3;user=ann:bytes=4".parse().unwrap()),
        ),
        (
            "split_points = ['/a/b', '/c']",
            of_member(|settings| settings.split_points = SplitPaths::of(["/a/b", "/c"]).unwrap()),
        ),
        ("dialect = 'each'", defaults()),
        ("dialect = 'zookeeper'", Config { dialect: Some(Dialect::ZooKeeper), ..defaults() }),
        ("dialect = 'clickhouse'", Config { dialect: Some(Dialect::ClickHouse), ..defaults() }),
        ("availability_zone = 'a'", Config { availability_zone: Some("a".into()), ..defaults() }),
        ("words = ['ruok']", Config { words: WordList::Only(vec!["ruok".into()]), ..defaults() }),
        ("words = []", Config { words: WordList::Only(vec![]), ..defaults() }),
        ("words = ['*']", Config { words: WordList::All, ..defaults() }),
        (&format!("super_digest = '{DIGEST}'"), Config { super_digest: Some(DIGEST.into()), ..defaults() }),
        ("digest_algorithm = 'SHA-256'", Config { digest_algorithm: DigestAlgorithm::Sha256, ..defaults() }),
        ("garbage_interval_ms = 100", of_member(|settings| settings.garbage_interval_ms = 100)),
        ("garbage_max = 5", of_member(|settings| settings.garbage_max = 5)),
        ("snapshot_writes = 7", of_member(|settings| settings.snapshot_writes = 7)),
        ("snapshot_log_bytes = 8", of_member(|settings| settings.snapshot_log_bytes = 8)),
        ("snapshots_kept = 1", of_member(|settings| settings.snapshots_kept = 1)),
        ("segment_bytes = 65536", of_member(|settings| settings.segment_bytes = 65536)),
        ("entry_bytes_kept = 0", of_member(|settings| settings.entry_bytes_kept = 0)),
        ("log_compression = true", of_member(|settings| settings.log_compression = true)),
        ("workers = 4", Config { workers: 4, ..defaults() }),
    ] {
        check(text, expected);
    }
}

#[test]
fn session_timeouts_follow_the_tick_unless_they_are_said() {
    let timeouts =
        Config { tick_ms: 500, session_timeout_ms_min: 1000, session_timeout_ms_max: 10_000, ..defaults() };
    check("tick_ms = 500", timeouts.clone());
    check("session_timeout_ms_min = 1\ntick_ms = 500", Config { session_timeout_ms_min: 1, ..timeouts });
    check_refused(
        "session_timeout_ms_max = 3999",
        "paddock.toml: the shortest session timeout, 4000 ms, is longer than the longest, 3999 ms",
    );
}

#[test]
fn a_wrong_value_is_named_with_its_line() {
    for (text, expected) in [
        (
            "\n\ntick_ms = '2s'",
            "paddock.toml:3: tick_ms: expected a positive number of milliseconds, found '2s'",
        ),
        (
            "memory_max = 1000",
            "paddock.toml:1: memory_max: expected a number of bytes of at least 67108864, a share such as \"80%\", or \
             \"unlimited\", found 1000",
        ),
        ("tick_ms = 0", "paddock.toml:1: tick_ms: expected a positive number of milliseconds, found 0"),
        ("tick_ms = '5'", "paddock.toml:1: tick_ms: expected a positive number of milliseconds, found '5'"),
        ("tick_ms = 2.5", "paddock.toml:1: tick_ms: expected a positive number of milliseconds, found 2.5"),
        (
            "member = 2147483648",
            "paddock.toml:1: member: expected a number from 0 to 2147483647, found 2147483648",
        ),
        (
            "listen = 2181",
            "paddock.toml:1: listen: expected ADDRESS:PORT, such as 127.0.0.1:2181, found 2181",
        ),
        ("data_dir = ''", "paddock.toml:1: data_dir: expected a path, found ''"),
        (
            "words = [\n  'ruok',\n  4,\n]",
            "paddock.toml:1: words: expected a list of words, such as [\"srvr\", \"ruok\"] or [\"*\"], \
             found [ 'ruok', 4, ]",
        ),
        (
            "segment_bytes = 65537",
            "paddock.toml:1: segment_bytes: expected a multiple of 4096 from 65536 to 1073741824, found 65537",
        ),
        ("workers = 1025", "paddock.toml:1: workers: expected a number of threads up to 1024, found 1025"),
    ] {
        check_refused(text, expected);
    }
}

#[test]
fn a_file_that_is_no_toml_is_one_line() {
    for text in ["listen = \n", "x = 1\ntickTime 2000\n", "a = 1\na = 2\n", "words = ["] {
        let line = load_text(text).unwrap_err();
        assert!(line.starts_with("paddock.toml:"), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn keys_that_nobody_knows_are_refused_with_the_one_that_may_be_meant() {
    let unknown = "is not a setting that Paddock knows";
    for (text, key, meant) in [
        ("admin_lisen = ':1'", "admin_lisen", "; did you mean admin_listen?"),
        ("tickTime = 2000", "tickTime", ""),
        ("[server]\nmember = 3", "server", ""),
        ("[admin]\nhost = ['a']", "admin.host", "; did you mean hosts?"),
        ("[sasl]\nuser = 'a'", "sasl.user", "; did you mean users?"),
        ("[sasl.kerberos]\nkeytabs = 'a'", "sasl.kerberos.keytabs", "; did you mean keytab?"),
        ("[tracing]\nendpiont = 'a'", "tracing.endpiont", "; did you mean endpoint?"),
        ("[tls]\nkeystore = 'a'", "tls.keystore", "; did you mean key_store?"),
        (
            "[ensemble]\nreconfig_enable = true",
            "ensemble.reconfig_enable",
            "; did you mean reconfig_enabled?",
        ),
        ("[[ensemble.member]]\nport = 1", "ensemble.member.port", ""),
        ("[etcd]\nendpoint = 'a'", "etcd.endpoint", "; did you mean endpoints?"),
    ] {
        let line = if text.starts_with('[') && key != "server" { 2 } else { 1 };
        check_refused(text, &format!("paddock.toml:{line}: {key} {unknown}{meant}"));
    }
}

/// The names of keys, by which the nearest one is found, are those that are read.
#[test]
fn every_key_that_is_suggested_is_known() {
    for key in crate::rows::keys() {
        let fault = load_text(&format!("{key} = {{ x = 1 }}")).expect_err(key);
        assert!(!fault.contains(&format!("{key} is not a setting")), "{fault}");
    }
}

#[test]
fn every_error_of_a_file_is_told() {
    let case = Case::new();
    let text = "tick_ms = 0\nlistn = ':1'\n[admin]\nhost = 1\nsnapshots = 1\n[[ensemble.member]]\nid = -1\nhost = 'a'\n\
                [[ensemble.member]]\nid = 2\nport = 1\n";
    case.write("paddock.toml", text);
    let error =
        load(Some(&case.path().join("paddock.toml")), &case.overrides, &case.environment).unwrap_err();
    let lines: Vec<String> = error.lines().map(|line| case.local(&line)).collect();
    let places: Vec<&str> = lines.iter().map(|line| line.split(": ").next().unwrap()).collect();
    let numbers = ["1", "2", "4", "5", "7", "11"].map(|number| format!("paddock.toml:{number}"));
    assert_eq!(places, numbers, "{lines:?}");
    assert!(error.to_string().ends_with(" (and 5 more: --check shows all)"), "{error}");
}

#[test]
fn members_on_one_host_need_no_election_ports() {
    let text = "member = 1\n[[ensemble.member]]\nid = 1\nhost = 'a'\nquorum_port = 2888\n[[ensemble.member]]\nid = 2\nhost = 'a'\n\
                quorum_port = 2889\n[[ensemble.member]]\nid = 3\nhost = 'a'\nquorum_port = 3888\n[[ensemble.member]]\nid = 4\n\
                host = 'a'\nquorum_port = 65535\n";
    let members = load_text(text).unwrap().config.ensemble.unwrap().members;
    let ports: Vec<u16> = members.iter().map(|member| member.election_port).collect();
    assert_eq!(ports, [3888, 3889, 4888, 65535]);
    let line = load_text(&text.replace("= 2889", "= 2888")).unwrap_err();
    assert!(line.ends_with("its quorum address a:2888 is the quorum address a:2888 of member 1"), "{line}");
}

#[test]
fn the_example_says_every_key_and_its_default() {
    let example = include_str!("../../../../docs/examples/paddock.toml");
    check(example, defaults());
    // What has no default stands there as a comment.
    check(
        &example.replace("# log_dir", "log_dir"),
        Config { log_dir: Some("/fast-disk/paddock".into()), ..defaults() },
    );
    let page = include_str!("../../../../docs/configuration.md");
    for line in example.lines() {
        let Some((key, _)) = line.trim_start_matches(['#', ' ']).split_once(" = ") else { continue };
        // A star marks those that change while the member runs.
        let rows = [format!("| `{key}` |"), format!("| `{key}` * |")];
        assert!(rows.iter().any(|row| page.contains(row)), "{key} is missing in docs/configuration.md");
    }
}

const THREE: &str = "member = 2\n\n[[ensemble.member]]\nid = 1\nhost = 'zoo1'\n\n[[ensemble.member]]\nid = 2\n\
                     host = 'zoo2'\n\n[[ensemble.member]]\nid = 3\nhost = 'zoo3'\n";

fn member(id: MemberNumber, host: &str) -> EnsembleMember {
    EnsembleMember {
        id,
        host: host.into(),
        quorum_port: 2888,
        election_port: 3888,
        role: Role::Participant,
        client: None,
    }
}

fn three() -> Config {
    let members = vec![member(1, "zoo1"), member(2, "zoo2"), member(3, "zoo3")];
    let ensemble = Ensemble { members, ..Ensemble::default() };
    Config { member: 2, ensemble: Some(ensemble), ..defaults() }
}

#[test]
fn tables_name_the_members_of_an_ensemble() {
    check(THREE, three());
    let inline = "member = 2\nensemble.member = [{id = 3, host = 'zoo3'}, {id = 2, host = 'zoo2'}, \
                  {id = 1, host = 'zoo1'}]";
    check(inline, three());
    let mut one = three();
    one.ensemble.as_mut().unwrap().members.retain(|member| member.id == 2);
    check("member = 2\n[[ensemble.member]]\nid = 2\nhost = 'zoo2'\n", one);
}

#[test]
fn every_key_of_an_ensemble_sets_its_field() {
    let keys =
        "quorum_port = 1\nelection_port = 2\nrole = 'observer'\nclient_address = '::1'\nclient_port = 2182\n";
    let mut expected = three();
    let ensemble = expected.ensemble.as_mut().unwrap();
    ensemble.members[2] = EnsembleMember {
        quorum_port: 1,
        election_port: 2,
        role: Role::Observer,
        client: Some(ClientAddress { address: Some("::1".into()), port: 2182 }),
        ..member(3, "zoo3")
    };
    ensemble.members.push(member(4, "zoo4"));
    ensemble.listen_on_all_addresses = true;
    ensemble.reconfig_enabled = true;
    ensemble.linearizable_reads = true;
    ensemble.lease_clock_bound_ms = Some(100);
    let text = format!(
        "{THREE}{keys}[[ensemble.member]]\nid = 4\nhost = 'zoo4'\n\
         [ensemble]\nlisten_on_all_addresses = true\nreconfig_enabled = true\n\
         linearizable_reads = true\nlease_clock_bound_ms = 100\n"
    );
    check(&text, expected);
}

#[test]
fn clients_connect_where_the_ensemble_is_told_that_they_do() {
    let client = "host = 'zoo2'\nclient_address = '127.0.0.2'\nclient_port = 2182";
    let text = THREE.replace("host = 'zoo2'", client);
    assert_eq!(load_text(&text).unwrap().config.listen, "127.0.0.2:2182".parse().unwrap());
    let text = format!("listen = '127.0.0.1:2183'\n{text}");
    assert_eq!(load_text(&text).unwrap().config.listen, "127.0.0.1:2183".parse().unwrap());
    let text = THREE.replace("host = 'zoo2'", "host = 'zoo2'\nclient_port = 2182");
    let listen = load_text(&text).unwrap().config.listen;
    assert!(listen.ip().is_unspecified() && listen.port() == 2182, "{listen}");
}

#[test]
fn what_is_wrong_with_an_ensemble_is_named_with_its_line() {
    let own = |number: &str| THREE.replace("member = 2", number);
    for (text, expected) in [
        ("ensemble = 3".to_owned(), "1: ensemble: expected a table [ensemble] or [[ensemble.member]]"),
        ("[ensemble]\nmember = 3".to_owned(), "2: ensemble.member: expected tables [[ensemble.member]]"),
        ("\n[ensemble]".to_owned(), "2: ensemble: there is no participant"),
        (
            "[ensemble]\nmembers = []".to_owned(),
            "2: ensemble.members is not a setting that Paddock knows; did you mean member?",
        ),
        (
            "[ensemble]\nreconfig_enabled = 1".to_owned(),
            "2: ensemble.reconfig_enabled: expected true or false, found 1",
        ),
        (
            "[ensemble]\nlease_clock_bound_ms = 501".to_owned(),
            "2: ensemble.lease_clock_bound_ms: expected a number of milliseconds from 0 to 500, found 501",
        ),
        (format!("{THREE}name = 'x'"), "14: ensemble.member.name is not a setting that Paddock knows"),
        (
            format!("{THREE}role = 'learner'"),
            "14: ensemble.member.role: expected \"participant\" or \"observer\", found 'learner'",
        ),
        (
            format!("{THREE}quorum_port = 0"),
            "14: ensemble.member.quorum_port: expected a port from 1 to 65535, found 0",
        ),
        (
            format!("{THREE}client_address = 'zoo3'"),
            "11: ensemble.member: client_port is missing beside client_address",
        ),
        (THREE.replace("id = 2\n", ""), "7: ensemble.member: id is missing"),
        (THREE.replace("host = 'zoo2'\n", ""), "7: ensemble.member: host is missing"),
        (
            THREE.replace("id = 2", "id = -1"),
            "8: ensemble.member.id: expected a number from 0 to 2147483647, found -1",
        ),
        (
            THREE.replace("zoo2", "zoo2:2888"),
            "9: ensemble.member.host: expected a name or an address without a port, found 'zoo2:2888'",
        ),
        (
            THREE.replace("id = 3", "id = 2"),
            "11: ensemble.member: member 2 is ensemble.member at paddock.toml:7 already; give each its own number",
        ),
        (
            THREE.replace("zoo3", "zoo2"),
            "11: ensemble.member: its quorum address zoo2:2888 is the quorum address zoo2:2888 of member 2",
        ),
        (
            own("member = 7"),
            "1: this is member 7, but the members are 1, 2 and 3; correct this number, or name member 7 among them",
        ),
    ] {
        check_refused(&text, &format!("paddock.toml:{expected}"));
    }
    check_refused(
        &own(""),
        "paddock.toml: member is missing; say there, or by ZOO_MY_ID, which of the members 1, 2 and 3 this is",
    );
}

#[test]
fn members_are_told_where_this_one_is_not_among_them() {
    let own = |number: &str| THREE.replace("member = 2", number);
    let members_of = |text: &str| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("paddock.toml");
        fs::write(&file, text).unwrap();
        let error = load(Some(&file), &Overrides::default(), &Environment::default()).unwrap_err();
        let ids = |members: &[EnsembleMember]| members.iter().map(|member| member.id).collect::<Vec<_>>();
        error.members_without_this().map(ids)
    };
    assert_eq!(members_of(&own("member = 7")), Some(vec![1, 2, 3]));
    assert_eq!(members_of(&own("member = 7\nconnections_max = 'many'")), None, "there is another mistake");
    assert_eq!(members_of(&own("")), None, "nobody says which one this is");
}

const TLS: &str = "[ensemble.tls]\nkey_store = '/k'\ntrust_store = '/t'\n";

fn tls() -> PeerTls {
    PeerTls {
        mode: TlsMode::Required,
        key_store: Store { path: "/k".into(), password: None },
        certificates: None,
        trust_store: Store { path: "/t".into(), password: None },
        one_sided: paddock_server::OneSidedStores::default(),
        verify_called: true,
        verify_callers: true,
        versions: TlsVersions::Both,
        cipher_suites: None,
    }
}

#[test]
fn every_key_of_tls_sets_its_field() {
    let text = |password: &str| Some(Password::Text(Secret::new(password)));
    let file = |path: &str| Some(Password::File(path.into()));
    let key = |password| Store { path: "/k".into(), password };
    let trust = |password| Store { path: "/t".into(), password };
    let suite = CipherSuite::named("TLS_AES_128_GCM_SHA256").unwrap();
    for (line, expected) in [
        ("", tls()),
        ("mode = 'required'", tls()),
        ("mode = 'preferred'", PeerTls { mode: TlsMode::Preferred, ..tls() }),
        ("mode = 'accepted'", PeerTls { mode: TlsMode::Accepted, ..tls() }),
        ("key_store_password = 'p'", PeerTls { key_store: key(text("p")), ..tls() }),
        ("key_store_password_file = '/p'", PeerTls { key_store: key(file("/p")), ..tls() }),
        ("certificates = '/c'", PeerTls { certificates: Some("/c".into()), ..tls() }),
        ("trust_store_password = 'p'", PeerTls { trust_store: trust(text("p")), ..tls() }),
        ("trust_store_password_file = '/p'", PeerTls { trust_store: trust(file("/p")), ..tls() }),
        (
            "calling_key_store = '/c'\ncalling_key_store_password = 'p'\ncalling_certificates = '/cc'\ncallers_trust_store = '/s'\n\
             callers_trust_store_password_file = '/p'",
            PeerTls {
                one_sided: paddock_server::OneSidedStores {
                    calling_key_store: Some(Store { path: "/c".into(), password: text("p") }),
                    calling_certificates: Some("/cc".into()),
                    callers_trust_store: Some(Store { path: "/s".into(), password: file("/p") }),
                },
                ..tls()
            },
        ),
        ("verify_called = false", PeerTls { verify_called: false, ..tls() }),
        ("verify_callers = false", PeerTls { verify_callers: false, ..tls() }),
        ("versions = ['1.2', '1.3']", tls()),
        ("versions = ['1.2']", PeerTls { versions: TlsVersions::Only12, ..tls() }),
        ("versions = ['1.3']", PeerTls { versions: TlsVersions::Only13, ..tls() }),
        ("cipher_suites = ['TLS_AES_128_GCM_SHA256']", PeerTls { cipher_suites: Some(vec![suite]), ..tls() }),
    ] {
        let mut config = three();
        config.ensemble.as_mut().unwrap().tls = Some(expected);
        check(&format!("{THREE}{TLS}{line}"), config);
    }
}

#[test]
fn what_is_wrong_with_tls_is_named_with_its_line() {
    for (lines, expected) in [
        ("ensemble.tls = 1", "1: ensemble.tls: expected a table [ensemble.tls]"),
        ("[ensemble.tls]\ntrust_store = 't'", "1: ensemble.tls: key_store is missing"),
        ("[ensemble.tls]\nkey_store = 'k'", "1: ensemble.tls: trust_store is missing"),
        (
            "[ensemble.tls]\nkey_store = 'k'\ntrust_store = 't'\ncalling_key_store_password = 'p'",
            "1: ensemble.tls: calling_key_store is missing",
        ),
        ("[ensemble.tls]\nkey = 'k'", "2: ensemble.tls.key is not a setting that Paddock knows"),
        (
            "[ensemble.tls]\nmode = 'on'",
            "2: ensemble.tls.mode: expected \"accepted\", \"preferred\" or \"required\", found 'on'",
        ),
        ("[ensemble.tls]\nkey_store = 1", "2: ensemble.tls.key_store: expected a path, found 1"),
        ("[ensemble.tls]\nkey_store_password = 123", "2: ensemble.tls.key_store_password: expected a text"),
        (
            "[ensemble.tls]\nkey_store = 'k'\nkey_store_password = 'p'\nkey_store_password_file = 'f'",
            "1: ensemble.tls: key_store_password and key_store_password_file are both given; keep one",
        ),
        (
            "[ensemble.tls]\nversions = ['1.1']",
            "2: ensemble.tls.versions: expected a list of \"1.2\" and \"1.3\", found ['1.1']",
        ),
        (
            "[ensemble.tls]\nversions = []",
            "2: ensemble.tls.versions: expected a list of \"1.2\" and \"1.3\", found []",
        ),
    ] {
        check_refused(lines, &format!("paddock.toml:{expected}"));
    }
    let refused = load_text("[ensemble.tls]\ncipher_suites = ['TLS_NULL']").unwrap_err();
    assert!(refused.contains("expected a list of some of TLS_AES_256_GCM_SHA384, "), "{refused}");
}

#[test]
fn the_example_of_an_ensemble_is_three_members() {
    let example = include_str!("../../../../docs/examples/ensemble/paddock.toml");
    let loaded = load_text(example).unwrap();
    assert_eq!(loaded.remarks, []);
    let ensemble = loaded.config.ensemble.expect("an ensemble");
    assert_eq!(ensemble.members.iter().map(|member| member.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(ensemble.tls.is_none());
    // What needs files stands there as a comment.
    let with_tls =
        load_text(&example.replace("# [ensemble.tls]", "[ensemble.tls]").replace("#   ", "")).unwrap();
    assert_eq!(with_tls.remarks, []);
    assert!(with_tls.config.ensemble.and_then(|ensemble| ensemble.tls).is_some());
    let page = include_str!("../../../../docs/configuration.md");
    for line in example.lines() {
        let Some((key, _)) = line.trim_start_matches(['#', ' ']).split_once(" = ") else { continue };
        // A star marks those that change while the member runs.
        let rows = [format!("| `{key}` |"), format!("| `{key}` * |")];
        assert!(rows.iter().any(|row| page.contains(row)), "{key} is missing in docs/configuration.md");
    }
}

#[test]
fn users_of_sasl_stand_in_a_table_or_in_a_jaas_file() {
    let case = Case::new();
    case.write(
        "jaas.conf",
        "Zk { org.apache.zookeeper.server.auth.DigestLoginModule required user_ann=a; };",
    );
    let file = case.path().join("jaas.conf");
    let text = format!(
        "required_schemes = ['sasl', 'digest']\n[sasl]\njaas_file = '{}'\njaas_section = 'Zk'\nsuper_users = ['ann']\n\
         keep_failed_clients = true\n[sasl.users]\nbob = 'b'\n",
        file.display()
    );
    let (config, warnings) = case.warned(case.load_as("paddock.toml", text).unwrap());
    assert_eq!(warnings, [""; 0]);
    let users = [("ann", "a"), ("bob", "b")].map(|(user, password)| (user.to_owned(), password.to_owned()));
    let expected =
        SaslUsers { passwords: users.into(), super_users: vec!["ann".into()], keeps_failed_clients: true };
    assert_eq!(config.sasl, Some(expected));
    assert_eq!(config.required_schemes, ["sasl", "digest"]);
}

#[test]
fn a_table_of_users_without_users_is_refused_and_no_password_is_shown() {
    for (text, expected) in [
        ("[sasl]", "paddock.toml:1: sasl: no users; add [sasl.users], [sasl.kerberos] or jaas_file"),
        ("[sasl.users]\nbob = 12345", "paddock.toml:2: sasl.users.bob: expected a password in quotes"),
        ("[sasl]\nusers = 7", "paddock.toml:2: sasl.users: expected a table with each user's password"),
        ("sasl = 7", "paddock.toml:1: sasl: expected a table [sasl]"),
        (
            "required_schemes = ['sasl']",
            "paddock.toml: clients are to show who they are by SASL, and there are neither users nor Kerberos",
        ),
    ] {
        assert_eq!(Case::new().load_as("paddock.toml", text).unwrap_err(), expected, "{text}");
    }
}

fn client_tls() -> ClientTls {
    let store = |path: &str| Store { path: path.into(), password: None };
    ClientTls {
        listen: None,
        at_listen: PortProtocol::Tls,
        key_store: store("k"),
        certificates: None,
        trust_store: Some(store("t")),
        client_auth: ClientAuth::Need,
        verify_addresses: false,
        revocations: None,
        versions: TlsVersions::Both,
        cipher_suites: None,
        detection_timeout_ms: 5000,
        superuser: None,
    }
}

/// The keys that `[tls]` needs at least.
const CLIENT_TLS: &str = "[tls]\nkey_store = 'k'\ntrust_store = 't'\n";

#[test]
fn every_key_of_tls_for_clients_sets_its_field() {
    let password = Some(Password::Text(Secret::new("p")));
    let store = |path: &str| Store { path: path.into(), password: password.clone() };
    let listen = "127.0.0.1:2281".parse().ok();
    let suite = CipherSuite::named("TLS_AES_128_GCM_SHA256").unwrap();
    for (text, expected) in [
        ("", client_tls()),
        (
            "listen = '127.0.0.1:2281'",
            ClientTls { listen, at_listen: PortProtocol::Plaintext, ..client_tls() },
        ),
        ("mode = 'unified'", ClientTls { at_listen: PortProtocol::Either, ..client_tls() }),
        ("mode = 'required'", client_tls()),
        ("key_store_password = 'p'", ClientTls { key_store: store("k"), ..client_tls() }),
        ("trust_store_password = 'p'", ClientTls { trust_store: Some(store("t")), ..client_tls() }),
        ("certificates = 'c'", ClientTls { certificates: Some("c".into()), ..client_tls() }),
        ("client_auth = 'want'", ClientTls { client_auth: ClientAuth::Want, ..client_tls() }),
        ("verify_addresses = true", ClientTls { verify_addresses: true, ..client_tls() }),
        ("revocations = 'r'", ClientTls { revocations: Some("r".into()), ..client_tls() }),
        ("versions = ['1.3']", ClientTls { versions: TlsVersions::Only13, ..client_tls() }),
        (
            "cipher_suites = ['TLS_AES_128_GCM_SHA256']",
            ClientTls { cipher_suites: Some(vec![suite]), ..client_tls() },
        ),
        ("detection_timeout_ms = 7", ClientTls { detection_timeout_ms: 7, ..client_tls() }),
        ("superuser = 'CN=root'", ClientTls { superuser: Some("CN=root".into()), ..client_tls() }),
    ] {
        check(&format!("{CLIENT_TLS}{text}\n"), Config { tls: Some(expected), ..defaults() });
    }
    let open = ClientTls { client_auth: ClientAuth::None, trust_store: None, ..client_tls() };
    check("[tls]\nkey_store = 'k'\nclient_auth = 'none'\n", Config { tls: Some(open), ..defaults() });
}

#[test]
fn half_of_tls_for_clients_is_refused() {
    for (text, expected) in [
        (
            "",
            ":1: tls: trust_store is missing: name a file with the certificates to trust, or set client_auth = \"none\"",
        ),
        ("client_auth = 'none'", ":1: tls: key_store is missing"),
        ("mode = 'separate'", ":1: tls: mode \"separate\" needs tls.listen, the port for TLS"),
        ("mode = 'both'", ":2: tls.mode: expected \"separate\", \"unified\" or \"required\", found 'both'"),
        ("colour = 1", ":2: tls.colour is not a setting that Paddock knows"),
        (
            "superuser = 'root'",
            ":2: tls.superuser: expected a subject, such as \"CN=admin,O=example\", found 'root'",
        ),
    ] {
        check_refused(&format!("[tls]\n{text}\n"), &format!("paddock.toml{expected}"));
    }
}

#[test]
fn the_log_has_a_filter_as_on_the_command_line() {
    let loaded = Case::new().load_as("paddock.toml", "log = 'info,paddock_server=debug'").unwrap();
    assert_eq!(loaded.log.as_deref(), Some("info,paddock_server=debug"));
    let refused = Case::new().load_as("paddock.toml", "log = 'loud'").unwrap_err();
    assert!(refused.starts_with("paddock.toml:1: log: expected a level (error, "), "{refused}");
}

#[test]
fn the_http_interface_has_names_and_tls() {
    let text = "admin_listen = '127.0.0.1:0'\n[tls]\nkey_store = 'k.pem'\nlisten = '127.0.0.1:0'\nclient_auth = 'none'\n[admin]\nhosts = ['a', 'b']\n\
                tls = 'optional'\nneeds_certificate = false\n";
    let loaded = Case::new().load_as("paddock.toml", text).unwrap();
    assert_eq!(loaded.config.admin.hosts, ["a", "b"]);
    assert_eq!(loaded.config.admin.tls.protocol, PortProtocol::Either);
    let refused = Case::new().load_as("paddock.toml", "[admin]\ntls = 'yes'\n").unwrap_err();
    assert_eq!(
        refused,
        "paddock.toml:2: admin.tls: expected \"off\", \"optional\" or \"required\", found 'yes'"
    );
}
