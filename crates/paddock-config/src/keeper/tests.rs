use std::fs;

use paddock_proto::MemberNumber;
use paddock_server::{
    ClientAuth, ClientTls, Config, EnsembleMember, MemberSettings, MemoryMax, Password, PeerTls,
    PortProtocol, Role, Secret, Store, TlsMode, TlsVersions, WordList,
};

use super::super::case::{Case, environment};
use super::*;

const XML: &str = "keeper_config.xml";

/// A file with `sections` beside the keys of `keeper_server`.
fn xml(keys: &str, sections: &str) -> String {
    format!(
        "<clickhouse>\n<keeper_server><tcp_port>9181</tcp_port><storage_path>data</storage_path>\n\
         {keys}</keeper_server>\n{sections}</clickhouse>\n"
    )
}

fn alone_with(change: impl FnOnce(&mut MemberSettings)) -> Config {
    let mut config = alone();
    change(&mut config.member_settings);
    config
}

/// The settings of a member alone if only a port and a path are given.
fn alone() -> Config {
    Config {
        listen: "127.0.0.1:9181".parse().unwrap(),
        tick_ms: 500,
        session_timeout_ms_min: 10_000,
        session_timeout_ms_max: 100_000,
        connections_per_address_max: 0,
        connections_max: 1024,
        words: values::words(WORDS),
        ..Config::new("data")
    }
}

#[track_caller]
fn check(text: &str, expected: &Config) {
    let case = Case::new();
    let (config, warnings) = case.warned(case.load_as(XML, text).unwrap());
    assert_eq!((&config, warnings), (expected, Vec::new()), "{text}");
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    assert_eq!(Case::new().load_as(XML, text).unwrap_err(), expected, "{text}");
}

#[track_caller]
fn check_warned(text: &str, expected: &str) {
    let case = Case::new();
    let (_, warnings) = case.warned(case.load_as(XML, text).unwrap());
    assert_eq!(warnings, [expected], "{text}");
}

#[test]
fn what_is_not_said_is_as_in_clickhouse_keeper_or_by_default() {
    check(&xml("", ""), &alone());
}

#[test]
fn every_key_sets_its_field() {
    const DIGEST: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
    let coordination = |text: &str| format!("<coordination_settings>{text}</coordination_settings>");
    for (keys, expected) in [
        ("<server_id>7</server_id>", Config { member: 7, ..alone() }),
        ("<log_storage_path>/l</log_storage_path>", Config { log_dir: Some("/l".into()), ..alone() }),
        ("<snapshot_storage_path>/s</snapshot_storage_path>", Config { data_dir: "/s".into(), ..alone() }),
        (
            "<four_letter_word_white_list>*</four_letter_word_white_list>",
            Config { words: WordList::All, ..alone() },
        ),
        (
            "<four_letter_word_allow_list>ruok, mntr</four_letter_word_allow_list>",
            Config { words: WordList::Only(vec!["ruok".into(), "mntr".into()]), ..alone() },
        ),
        (
            &format!("<superdigest>{DIGEST}</superdigest>"),
            Config { super_digest: Some(DIGEST.into()), ..alone() },
        ),
        (
            "<availability_zone><value>z</value></availability_zone>",
            Config { availability_zone: Some("z".into()), ..alone() },
        ),
        (
            &coordination("<min_session_timeout_ms>5</min_session_timeout_ms>"),
            Config { session_timeout_ms_min: 5, ..alone() },
        ),
        (
            &coordination("<session_timeout_ms>30000</session_timeout_ms>"),
            Config { session_timeout_ms_max: 30_000, ..alone() },
        ),
        (
            &coordination("<dead_session_check_period_ms>100</dead_session_check_period_ms>"),
            Config { tick_ms: 100, ..alone() },
        ),
        (
            &coordination("<container_gc_period_ms>70</container_gc_period_ms>"),
            alone_with(|settings| settings.garbage_interval_ms = 70),
        ),
        (
            &coordination("<container_gc_batch_size>8</container_gc_batch_size>"),
            alone_with(|settings| settings.garbage_max = 8),
        ),
        (
            &coordination("<snapshot_distance>9</snapshot_distance>"),
            alone_with(|settings| settings.snapshot_writes = 9),
        ),
        (
            &coordination("<snapshots_to_keep>1</snapshots_to_keep>"),
            alone_with(|settings| settings.snapshots_kept = 1),
        ),
        (
            &coordination("<latest_logs_cache_size_threshold>1073741824</latest_logs_cache_size_threshold>"),
            alone_with(|settings| settings.entry_bytes_kept = 1 << 30),
        ),
        (
            &coordination("<compress_logs>true</compress_logs>"),
            alone_with(|settings| settings.log_compression = true),
        ),
        (
            &coordination("<max_log_file_size>52428801</max_log_file_size>"),
            alone_with(|settings| settings.segment_bytes = 52_428_800),
        ),
        (&coordination("<max_log_file_size>0</max_log_file_size>"), alone()),
        (&coordination("<max_request_size>0</max_request_size>"), alone()),
        (
            &coordination("<max_request_size>1024</max_request_size>"),
            Config { frame_bytes_max: 1024, ..alone() },
        ),
    ] {
        check(&xml(keys, ""), &expected);
    }
    let memory = |max| Config { memory_max: max, ..alone() };
    let limit = "<max_memory_usage_soft_limit>100000000</max_memory_usage_soft_limit>";
    let ratio = "<max_memory_usage_soft_limit_ratio>0.75</max_memory_usage_soft_limit_ratio>";
    check(&xml(limit, ""), &memory(MemoryMax::Bytes(100_000_000)));
    check(&xml(ratio, ""), &memory(MemoryMax::Percent(75)));
    check(&xml(&format!("{limit}{ratio}"), ""), &memory(MemoryMax::Bytes(100_000_000)));
    check(&xml("", "<max_connections>5</max_connections>"), &Config { connections_max: 5, ..alone() });
    let zone = "<placement><availability_zone>z</availability_zone></placement>";
    check(&xml("", zone), &Config { availability_zone: Some("z".into()), ..alone() });
    let host = "<listen_host>::1</listen_host>";
    check(&xml("", host), &Config { listen: "[::1]:9181".parse().unwrap(), ..alone() });
}

#[test]
fn any_address_among_several_is_all_of_them() {
    let hosts = "<listen_host>::</listen_host><listen_host>127.0.0.1</listen_host>";
    let loaded = Case::new().load_as(XML, xml("", hosts)).unwrap();
    assert!(loaded.config.listen.ip().is_unspecified());
    check_refused(
        &xml("", "<listen_host>::1</listen_host>\n<listen_host>127.0.0.1</listen_host>"),
        "keeper_config.xml:5: listen_host: a member listens at one address or, with 0.0.0.0 or ::, at all; keep one",
    );
}

fn member(id: MemberNumber, role: Role) -> EnsembleMember {
    let host = format!("keeper{id}.example.org");
    EnsembleMember { id, host, quorum_port: 9234, election_port: 9234, role, client: None }
}

/// The settings of the example of an ensemble.
fn three() -> Config {
    let file = |name: &str| PathBuf::from(format!("/etc/paddock/{name}"));
    let members = vec![member(1, Role::Participant), member(2, Role::Participant), member(3, Role::Observer)];
    Config {
        listen: SocketAddr::new(zoo_values::all_addresses(), 9181),
        data_dir: "/var/lib/paddock/snapshots".into(),
        log_dir: Some("/var/lib/paddock/log".into()),
        member: 2,
        connections_max: 4096,
        words: values::words("ruok,mntr,srvr,stat,conf,isro"),
        availability_zone: Some("eu-1a".into()),
        member_settings: MemberSettings { snapshot_writes: 100_000, ..MemberSettings::default() },
        ensemble: Some(Ensemble {
            members,
            listen_on_all_addresses: true,
            tls: Some(PeerTls {
                mode: TlsMode::Required,
                key_store: Store { path: file("server.key"), password: None },
                certificates: Some(file("server.crt")),
                trust_store: Store { path: file("ca.crt"), password: None },
                one_sided: paddock_server::OneSidedStores::default(),
                verify_called: false,
                verify_callers: false,
                versions: TlsVersions::Both,
                cipher_suites: None,
            }),
            ..Ensemble::default()
        }),
        ..alone()
    }
}

const ENSEMBLE: &str = include_str!("../../../../docs/examples/clickhouse/keeper_config.xml");
const ALONE: &str = include_str!("../../../../docs/examples/clickhouse/keeper_config.yaml");
const TWO: &str =
    "keeper_config.xml: two participants serve only while both are up; a third lets one of them fail";

/// The example with something else in the place of some of its text.
#[track_caller]
fn example(from: &str, to: &str) -> Result<(Config, Vec<String>), String> {
    assert!(ENSEMBLE.contains(from), "{from}");
    let case = Case::with_environment(&[("KEEPER_ID", "2")]);
    case.load_as(XML, ENSEMBLE.replace(from, to)).map(|loaded| case.warned(loaded))
}

#[test]
fn the_examples_can_be_used() {
    assert_eq!(example("", ""), Ok((three(), vec![TWO.to_owned()])));

    let case = Case::new();
    let (config, warnings) = case.warned(case.load_as("keeper_config.yaml", ALONE).unwrap());
    assert_eq!(warnings, [""; 0]);
    let expected = Config {
        data_dir: "paddock-data".into(),
        session_timeout_ms_max: 30_000,
        words: WordList::All,
        ..alone()
    };
    assert_eq!(config, expected);
}

#[test]
fn what_is_said_of_an_ensemble_is_honoured_or_refused() {
    let with = |to: &str| example("<secure>true</secure>", to).unwrap().0.ensemble.unwrap();
    assert_eq!(with("<secure>false</secure>").tls, None);
    let (config, _) = example(
        "</hostname_checks_enabled>",
        "</hostname_checks_enabled><enable_reconfiguration>1</enable_reconfiguration>",
    )
    .unwrap();
    assert!(config.ensemble.unwrap().reconfig_enabled);
    let (config, _) =
        example("<raft_logs_level>", "<quorum_reads>true</quorum_reads><raft_logs_level>").unwrap();
    assert!(config.ensemble.unwrap().linearizable_reads);

    for (from, to, expected) in [
        (
            "<secure>true</secure>",
            "<observers>1</observers>",
            ":30: raft_configuration.observers is not a setting that Paddock knows",
        ),
        ("<port>9234</port>", "", ":31: raft_configuration.server: port is missing"),
        (
            "<id>3</id>",
            "<id>2</id>",
            ":41: raft_configuration.server: member 2 is raft_configuration.server at keeper_config.xml:36 already; \
             give each its own number",
        ),
        (
            "<id>2</id>",
            "<id>2147483648</id>",
            ":37: raft_configuration.server.id: expected a number from 0 to 2147483647, found \"2147483648\"",
        ),
        (
            "<server_id from_env=\"KEEPER_ID\"/>",
            "<server_id>4</server_id>",
            ":14: this is member 4, but the members are 1, 2 and 3; correct this number, or name member 4 among them",
        ),
        (
            "<server_id from_env=\"KEEPER_ID\"/>",
            "",
            ": keeper_server.server_id is missing; say which of the members 1, 2 and 3 this is",
        ),
        (
            "KEEPER_ID",
            "OTHER_ID",
            ":14: keeper_server.server_id: the environment variable \"OTHER_ID\" is not set",
        ),
    ] {
        assert_eq!(example(from, to).unwrap_err(), format!("{XML}{expected}"), "{to}");
    }
}

#[test]
fn what_open_ssl_says_is_honoured_or_refused() {
    let tls = |from: &str, to: &str| example(from, to).unwrap().0.ensemble.unwrap().tls.unwrap();
    let password = "<privateKeyPassphraseHandler><name>KeyFileHandler</name><options><password>p</password></options>\
                    </privateKeyPassphraseHandler><privateKeyFile>";
    assert_eq!(tls("<privateKeyFile>", password).key_store.password, Some(Password::Text(Secret::new("p"))));
    assert_eq!(tls("tlsv1,tlsv1_1", "tlsv1_2").versions, TlsVersions::Only13);
    assert_eq!(tls("tlsv1,tlsv1_1", "tlsv1_3").versions, TlsVersions::Only12);
    let verified = tls("<client>", "<client><extendedVerification>true</extendedVerification>");
    assert!(verified.verify_called && !verified.verify_callers);

    for (from, to, expected) in [
        (
            "<verificationMode>strict</verificationMode>\n        </client>",
            "<verificationMode>none</verificationMode>\n        </client>",
            ":59: openSSL.client.verificationMode: \"none\" has no effect: both sides of a link must show a certificate \
             that is trusted",
        ),
        (
            "<disableProtocols>",
            "<cipherList>ALL</cipherList><disableProtocols>",
            ":55: openSSL.server.cipherList: it has no effect: all cipher suites are offered that are not weak",
        ),
    ] {
        let warnings = example(from, to).unwrap().1;
        assert!(warnings.contains(&format!("{XML}{expected}")), "{warnings:?}");
    }
    for (from, to, expected) in [
        (
            "<certificateFile>/etc/paddock/server.crt</certificateFile>",
            "",
            ":52: openSSL: certificateFile is missing: name a file of PEM with this member's certificate",
        ),
        (
            "<client>",
            "<client><colour>1</colour>",
            ":57: openSSL.client.colour: it is not a setting that Paddock knows",
        ),
        (
            &ENSEMBLE[ENSEMBLE.find("<openSSL>").unwrap()..ENSEMBLE.find("</clickhouse>").unwrap()],
            "",
            ": openSSL: privateKeyFile is missing: name a file of PEM with this member's key",
        ),
        ("tlsv1,tlsv1_1", "tlsv1_2,tlsv1_3", ":51: openSSL: disableProtocols leaves no version of TLS"),
    ] {
        assert_eq!(example(from, to).unwrap_err(), format!("{XML}{expected}"), "{to}");
    }
}

#[test]
fn what_cannot_be_honoured_is_refused_with_its_line() {
    for (keys, expected) in [
        (
            "<tcp_port_secure>9281</tcp_port_secure>",
            ": openSSL: server.privateKeyFile is missing: name a file of PEM with this member's key",
        ),
        (
            "<client_password>secret</client_password>",
            ":3: keeper_server.client_password: it is not offered: clients without the password would not be turned away",
        ),
        (
            "\n<force_recovery>1</force_recovery>",
            ":4: keeper_server.force_recovery: \"1\" is not offered: start the member once with --recover instead",
        ),
        (
            "<tcp_port>1</tcp_port>",
            ":3: keeper_server.tcp_port: it is said at keeper_config.xml:2 already; say it once",
        ),
        (
            "<server_id incl=\"id\"/>",
            ":3: keeper_server.server_id: there is no \"id\" in the file that include_from names",
        ),
        (
            "<coordination_settings><max_request_size>1000</max_request_size></coordination_settings>",
            ":3: keeper_server.coordination_settings.max_request_size: \
             expected 0 or a number of bytes from 1024 to 2147483647, found \"1000\"",
        ),
    ] {
        check_refused(&xml(keys, ""), &format!("{XML}{expected}"));
    }
    check_refused("<clickhouse/>", "keeper_config.xml: keeper_server is missing");
    check_refused("<a><keeper_server/></a>", "keeper_config.xml: keeper_server.storage_path is missing");
    let line = Case::new().load_as(XML, "<clickhouse>\n<a>\n</clickhouse>").unwrap_err();
    assert!(line.starts_with("keeper_config.xml:3: not XML: "), "{line}");
    let line = Case::new().load_as("keeper.yml", "a: 1\nb: [1\nc: 3\n").unwrap_err();
    assert!(line.starts_with("keeper.yml:3: not YAML: "), "{line}");
    let entity = "<!DOCTYPE a [<!ENTITY e \"e\">]><a>&e;</a>";
    assert!(Case::new().load_as(XML, entity).is_err(), "an entity could be endless");
}

#[test]
fn what_has_no_effect_is_warned_of() {
    check_warned(
        &xml("<feature_flags><multi_read>0</multi_read></feature_flags>", ""),
        "keeper_config.xml:3: keeper_server.feature_flags.multi_read: \"0\" has no effect: \
         ClickHouse is told of every feature that Paddock has, and of all that it has",
    );
    check_warned(
        &xml("<storage_pth>/d</storage_pth>", ""),
        "keeper_config.xml:3: keeper_server.storage_pth is not a setting that Paddock knows; it is ignored",
    );
    // The rest of a file of a ClickHouse server is not about the keeper.
    check(&xml("", "<users><default/></users><tcp_port>9000</tcp_port>"), &alone());
}

#[test]
fn certificates_may_have_one_purpose_each() {
    let client = "<client><privateKeyFile>/calling.key</privateKeyFile><certificateFile>/calling.crt</certificateFile>\
                  <caConfig>/called-ca.crt</caConfig></client>";
    let server = "<server><privateKeyFile>/called.key</privateKeyFile><certificateFile>/called.crt</certificateFile>\
                  <privateKeyPassphraseHandler><options><password>p</password></options></privateKeyPassphraseHandler>\
                  <caConfig>/calling-ca.crt</caConfig></server>";
    let member =
        |id| format!("<server><id>{id}</id><hostname>keeper{id}</hostname><port>9234</port></server>");
    let members: String = (1..=3).map(member).collect();
    let raft = format!(
        "<server_id>1</server_id><raft_configuration><secure>1</secure>{members}</raft_configuration>"
    );
    let text = xml(&raft, &format!("<openSSL>{server}{client}</openSSL>"));
    let tls = Case::new().load_as(XML, text).unwrap().config.ensemble.unwrap().tls.unwrap();
    let store = |path: &str| Store { path: path.into(), password: None };
    let password = Some(Password::Text(Secret::new("p")));
    assert_eq!(tls.key_store, Store { password, ..store("/called.key") });
    assert_eq!((tls.certificates, tls.trust_store), (Some("/called.crt".into()), store("/called-ca.crt")));
    let one_sided = paddock_server::OneSidedStores {
        calling_key_store: Some(store("/calling.key")),
        calling_certificates: Some("/calling.crt".into()),
        callers_trust_store: Some(store("/calling-ca.crt")),
    };
    assert_eq!(tls.one_sided, one_sided);
}

#[test]
fn files_beside_are_merged_in_the_order_of_their_paths() {
    let case = Case::new();
    for directory in ["keeper_config.d", "conf.d"] {
        fs::create_dir(case.path().join(directory)).unwrap();
    }
    case.write("conf.d/notes.txt", "not read");
    case.write("conf.d/.hidden.xml", "not read");
    case.write(
        "conf.d/10.xml",
        "<clickhouse><keeper_server><tcp_port>1111</tcp_port><coordination_settings>\n<snapshots_to_keep>7</snapshots_to_keep>\
         </coordination_settings></keeper_server></clickhouse>",
    );
    case.write("conf.d/20.yaml", "keeper_server:\n  tcp_port: 2222\nmax_connections: 5\n");
    case.write(
        "keeper_config.d/10.xml",
        "<clickhouse><keeper_server><tcp_port>3333</tcp_port></keeper_server>\n<max_connections remove=\"1\"/>\
         <logger replace=\"1\"><console>1</console></logger></clickhouse>",
    );
    let text = xml("", "<logger><level>debug</level></logger><listen_host>127.0.0.1</listen_host>");
    let loaded = case.load_as(XML, text).unwrap();
    assert_eq!(loaded.config.listen.port(), 3333);
    assert_eq!(loaded.config.member_settings.snapshots_kept, 7);
    assert_eq!(loaded.config.connections_max, CONNECTIONS_MAX, "the key was removed");
    assert_eq!(loaded.log, None, "the section was replaced");
    case.write("conf.d/20.yaml", "keeper_server:\n  - tcp_port: many\n");
    let remove =
        "<clickhouse><keeper_server>\n<tcp_port replace='1' remove='1'/></keeper_server></clickhouse>";
    case.write("keeper_config.d/10.xml", remove);
    let line = case.load_as(XML, xml("", "")).unwrap_err();
    assert_eq!(line, "keeper_config.d/10.xml:2: tcp_port: it has both replace and remove; keep one");
    fs::remove_file(case.path().join("keeper_config.d/10.xml")).unwrap();
    let line = case.load_as(XML, xml("", "")).unwrap_err();
    assert_eq!(
        line, "conf.d/20.yaml:2: keeper_server.tcp_port: expected a port from 1 to 65535, found \"many\"",
        "a file beside is named with its line"
    );
}

#[test]
fn members_of_several_files_are_those_of_one() {
    let case = Case::new();
    fs::create_dir(case.path().join("keeper_config.d")).unwrap();
    let server =
        |id| format!("<server><id>{id}</id><hostname>keeper{id}</hostname><port>9234</port></server>");
    let raft = format!("<raft_configuration>{}{}{}</raft_configuration>", server(1), server(2), server(3));
    // A file beside that names the members anew is about the same elements, one after the other.
    let other = format!(
        "<server><port>9235</port></server>{0}<server><port>9235</port></server>",
        "<server><port>9235</port></server>"
    );
    case.write(
        "keeper_config.d/ports.xml",
        format!("<clickhouse><keeper_server><server_id>2</server_id><raft_configuration>{other}</raft_configuration></keeper_server></clickhouse>"),
    );
    let config = case.load_as(XML, xml(&raft, "")).unwrap().config;
    let members = config.ensemble.unwrap().members;
    let told: Vec<(MemberNumber, u16)> =
        members.iter().map(|member| (member.id, member.quorum_port)).collect();
    assert_eq!((config.member, told), (2, vec![(1, 9235), (2, 9235), (3, 9235)]));
}

#[test]
fn content_is_included_from_another_file() {
    let mut case = Case::new();
    case.environment = environment(&[("INCLUDED", "more.xml"), ("PORT", "4444")]);
    case.write(
        "more.xml",
        "<clickhouse><id>1</id><limits><snapshots_to_keep>8</snapshots_to_keep></limits>\n<port from_env=\"PORT\"/>\
         <own><endless incl=\"own\"/></own></clickhouse>",
    );
    let keys = "<server_id incl=\"id\"/><superdigest incl=\"none\" optional=\"1\"/><tcp_port incl=\"port\"/>\
                <coordination_settings><include incl=\"limits\"/></coordination_settings>";
    let included = "<include_from from_env=\"INCLUDED\"/>";
    let text = xml(keys, included).replace("<tcp_port>9181</tcp_port>", "");
    let others = "<remote_servers incl=\"clickhouse_remote_servers\"/>";
    let text = text.replace("</clickhouse>", &format!("{others}</clickhouse>"));
    let config = case.load_as(XML, text).unwrap().config;
    assert_eq!((config.member, config.listen.port(), config.member_settings.snapshots_kept), (1, 4444, 8));
    for (key, expected) in [
        (
            "<server_id incl=\"id\" from_env=\"PORT\"/>",
            "server_id: of incl, from_env and from_zk it can have one",
        ),
        (
            "<server_id from_zk=\"/id\"/>",
            "server_id: the attribute from_zk is not offered; write the value itself",
        ),
        ("<include/>", "include: it has neither incl nor from_env"),
        ("<server_id incl=\"ids\"/>", "server_id: there is no \"ids\" in the file that include_from names"),
    ] {
        let line = case.load_as(XML, xml(key, included)).unwrap_err();
        assert!(line.ends_with(&format!("keeper_server.{expected}")), "{line}");
    }
    let line = case.load_as(XML, xml("<a incl=\"own\"/>", included)).unwrap_err();
    assert!(line.contains("too much is included"), "{line}");
    let missing = "<include_from>/nowhere/more.xml</include_from>";
    let line = case.load_as(XML, xml("<server_id incl=\"id\"/>", missing)).unwrap_err();
    assert!(line.starts_with("/nowhere/more.xml: cannot be read: "), "{line}");
}

/// ClickHouse's ConfigProcessor logs "Include not found" or "Env variable is not set", and goes on with the element as it stands.
#[test]
fn content_that_is_not_there_is_warned_of() {
    let case = Case::new();
    case.write("more.xml", "<clickhouse><id>1</id></clickhouse>");
    let included = "<include_from>more.xml</include_from>";
    let nothing = "in the file that include_from names; nothing is included";
    for (keys, expected) in [
        ("<include incl=\"keys\"/>", format!("include: there is no \"keys\" {nothing}")),
        (
            "<max_connections incl=\"most\">7</max_connections>",
            format!("max_connections: there is no \"most\" {nothing}"),
        ),
        (
            "<max_connections from_env=\"MOST\" replace=\"1\">7</max_connections>",
            "max_connections: the environment variable \"MOST\" is not set; nothing is included".to_owned(),
        ),
        (
            "<coordination_settings incl=\"limits\"><snapshots_to_keep>8</snapshots_to_keep></coordination_settings>",
            format!("coordination_settings: there is no \"limits\" {nothing}"),
        ),
    ] {
        let (config, warnings) = case.warned(case.load_as(XML, xml(keys, included)).unwrap());
        assert_eq!(warnings, [format!("{XML}:3: keeper_server.{expected}")], "{keys}");
        let has_kept = config.connections_max == 7 || config.member_settings.snapshots_kept == 8;
        assert_eq!(has_kept, !keys.contains("include "), "{keys}: what stands in the element counts");
    }
}

#[test]
fn the_data_of_clickhouse_keeper_is_not_passed_over() {
    for name in ["log/changelog_1_100000.bin.zstd", "snapshots/snapshot_100.bin.zstd", "snapshot_1.bin"] {
        let mut case = Case::new();
        let data_dir = case.path().join("data");
        let file = data_dir.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        case.overrides.data_dir = Some(data_dir);
        let expected = format!(
            "{XML}: data/{name} is ClickHouse Keeper's data, which this version does not read; name an empty directory"
        );
        assert_eq!(case.load_as(XML, xml("", "")).unwrap_err(), expected);
    }
}

#[test]
fn the_list_of_keys_has_every_key_that_the_code_lists() {
    let page = include_str!("../../../../docs/configuration-keys.md");
    let keys = keys::MEANINGLESS.iter().map(|(key, _)| *key).chain(keys::FIXED.iter().map(|fixed| fixed.key));
    for key in keys.map(|key| key.trim_end_matches('*')) {
        let is_row = |of: &&str| page.contains(&format!("\n| `{of}{key}"));
        assert!(["", "keeper_server."].iter().any(is_row), "{key} is missing in docs/configuration-keys.md");
    }
}

#[test]
fn a_secure_port_takes_the_server_section() {
    let server = "<server><certificateFile>c</certificateFile><privateKeyFile>k</privateKeyFile>\
                  <caConfig>a</caConfig><verificationMode>strict</verificationMode></server>";
    let load = |ports: &str, server: &str| {
        let text = format!(
            "<clickhouse><keeper_server>{ports}<storage_path>data</storage_path></keeper_server>\
             <openSSL>{server}</openSSL></clickhouse>"
        );
        Case::new().load_as(XML, text).unwrap().config
    };
    let store = |path: &str| Store { path: path.into(), password: None };
    let both = "<tcp_port>9181</tcp_port><tcp_port_secure>9281</tcp_port_secure>";
    let expected = ClientTls {
        listen: "127.0.0.1:9281".parse().ok(),
        at_listen: PortProtocol::Plaintext,
        key_store: store("k"),
        certificates: Some("c".into()),
        trust_store: Some(store("a")),
        client_auth: ClientAuth::Need,
        verify_addresses: false,
        revocations: None,
        versions: TlsVersions::Both,
        cipher_suites: None,
        detection_timeout_ms: 5000,
        superuser: None,
    };
    let config = load(both, server);
    assert_eq!((config.listen, config.tls), ("127.0.0.1:9181".parse().unwrap(), Some(expected.clone())));
    let config = load("<tcp_port_secure>9281</tcp_port_secure>", server);
    let only = ClientTls { listen: None, at_listen: PortProtocol::Tls, ..expected.clone() };
    assert_eq!((config.listen, config.tls), ("127.0.0.1:9281".parse().unwrap(), Some(only)));
    for (mode, client_auth) in [("relaxed", ClientAuth::Want), ("once", ClientAuth::Need)] {
        let config = load(both, &server.replace("strict", mode));
        assert_eq!(config.tls, Some(ClientTls { client_auth, ..expected.clone() }), "{mode}");
    }
    let config = load(both, &server.replace("strict", "none"));
    let nobody = ClientTls { client_auth: ClientAuth::None, trust_store: None, ..expected };
    assert_eq!(config.tls, Some(nobody));
}

#[test]
fn levels_of_the_log_are_clickhouses() {
    for (level, expected) in
        [("information", "info"), ("trace", "debug"), ("Warning", "warn"), ("none", "off")]
    {
        let text = xml("", &format!("<logger><level>{level}</level></logger>"));
        assert_eq!(Case::new().load_as(XML, text).unwrap().log.as_deref(), Some(expected));
    }
    let text = xml("", "\n<logger><level>loud</level></logger>");
    let expected = "keeper_config.xml:5: logger.level: expected a level of ClickHouse's logs, such as information, found \"loud\"";
    check_refused(&text, expected);
}

#[test]
fn prometheus_finds_its_metrics_where_clickhouse_keeper_had_them() {
    let prometheus = "<prometheus><endpoint>/keeper/metrics</endpoint><port>9363</port></prometheus>";
    let config = Case::new().load_as(XML, xml("", prometheus)).unwrap().config;
    assert_eq!(config.metrics_listen, "127.0.0.1:9363".parse().ok());
    assert_eq!((&*config.admin.metrics_path, config.admin.has_keeper_names), ("/keeper/metrics", true));
    let flags = xml("", "<prometheus><metrics>true</metrics></prometheus>");
    let config = Case::new().load_as(XML, flags).unwrap().config;
    assert_eq!((config.metrics_listen, config.admin.has_keeper_names), (None, false));
}

#[test]
fn the_http_control_has_names_that_the_file_gives_it() {
    let control = "<http_control><port>9182</port><hosts>keeper,keeper.example.org</hosts></http_control>";
    let config = Case::new().load_as(XML, xml(control, "")).unwrap().config;
    assert_eq!(config.admin.hosts, ["keeper", "keeper.example.org"]);
}

#[test]
fn a_secure_port_for_http_is_the_only_one_or_none() {
    let secure = "<http_control><secure_port>9183</secure_port></http_control>";
    let ssl = "<openSSL><server><certificateFile>/c</certificateFile><privateKeyFile>/k</privateKeyFile></server></openSSL>";
    let text = xml(&format!("<tcp_port_secure>9281</tcp_port_secure>{secure}"), ssl);
    let config = Case::new().load_as(XML, &text).unwrap().config;
    assert_eq!(config.admin_listen, "127.0.0.1:9183".parse().ok());
    assert_eq!(config.admin.tls.protocol, PortProtocol::Tls);
    check_warned(
        &xml(&secure.replace("<secure_port>", "<port>9182</port><secure_port>"), ""),
        "keeper_config.xml:3: keeper_server.http_control.secure_port: it has no effect: the HTTP interface has one port, \
         http_control.port",
    );
}
