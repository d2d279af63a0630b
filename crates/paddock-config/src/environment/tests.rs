use std::fs;

use paddock_server::{Config, Ensemble, MemberSettings, Role, WordList};

use super::super::case::{Case, environment};
use super::super::parse_address;

const SERVERS: &str = "server.1=zoo1:2888:3888;127.0.0.1:2181 server.2=zoo2:2888:3888;127.0.0.1:2182 \
                       server.3=zoo3:2888:3888:observer;127.0.0.1:2183 server.4=zoo4:2888:3888;2184 \
                       server.5=zoo5:2888:3888;2185";

/// The settings of a process with these variables; there must be no warning.
#[track_caller]
fn config(variables: &[(&str, &str)]) -> Config {
    let case = Case::with_environment(variables);
    let loaded = case.load_environment().unwrap();
    let (config, warnings) = case.warned(loaded);
    assert_eq!(warnings, [""; 0], "{variables:?}");
    config
}

#[track_caller]
fn check_refused(variables: &[(&str, &str)], expected: &str) {
    assert_eq!(Case::with_environment(variables).load_environment().unwrap_err(), expected, "{variables:?}");
}

#[track_caller]
fn check_warned(variables: &[(&str, &str)], expected: &[&str]) {
    let case = Case::with_environment(variables);
    let loaded = case.load_environment().unwrap();
    assert_eq!(case.warned(loaded).1, expected, "{variables:?}");
}

#[test]
fn an_environment_that_says_nothing_changes_nothing() {
    let said_elsewhere: &[(&str, &str)] = &[("ZOO_CONF_DIR", "/absent"), ("ZOO_LOG_DIR", "/logs")];
    for variables in [&[][..], &[("PATH", "/bin")], &[("ZOO_SERVERS", "")], said_elsewhere] {
        assert_eq!(config(variables), Config::new("paddock-data"), "{variables:?}");
    }
}

#[test]
fn without_servers_a_member_serves_all_addresses_alone() {
    let found = config(&[("ZOO_MY_ID", "3")]);
    assert!(found.listen.ip().is_unspecified(), "{}", found.listen);
    assert_eq!(found.listen.port(), 2181);
    let expected = Config { member: 3, listen: found.listen, ..Config::new("paddock-data") };
    assert_eq!(found, expected);
}

#[test]
fn every_variable_sets_its_field() {
    let found = config(&[
        ("ZOO_DATA_DIR", "/absent/data"),
        ("ZOO_DATA_LOG_DIR", "/datalog"),
        ("ZOO_TICK_TIME", "500"),
        ("ZOO_INIT_LIMIT", "5"),
        ("ZOO_SYNC_LIMIT", "2"),
        ("ZOO_MAX_CLIENT_CNXNS", "7"),
        ("ZOO_AUTOPURGE_PURGEINTERVAL", "1"),
        ("ZOO_AUTOPURGE_SNAPRETAINCOUNT", "5"),
        ("ZOO_STANDALONE_ENABLED", "true"),
        ("ZOO_ADMINSERVER_ENABLED", "true"),
        ("ZOO_4LW_COMMANDS_WHITELIST", "srvr, ruok"),
        ("ZOO_CFG_EXTRA", "clientPortAddress=127.0.0.1 maxCnxns=9\nsnapCount=5"),
    ]);
    let expected = Config {
        listen: parse_address("127.0.0.1:2181").unwrap(),
        log_dir: Some("/datalog".into()),
        tick_ms: 500,
        session_timeout_ms_min: 1000,
        session_timeout_ms_max: 10_000,
        connections_per_address_max: 7,
        connections_max: 9,
        member_settings: MemberSettings {
            snapshots_kept: 5,
            snapshot_writes: 5,
            ..MemberSettings::default()
        },
        words: WordList::Only(vec!["srvr".into(), "ruok".into()]),
        admin_listen: Some(parse_address("127.0.0.1:8080").unwrap()),
        ..Config::new("/absent/data")
    };
    assert_eq!(found, expected);
}

#[test]
fn the_extra_lines_count_last() {
    let variables = [("ZOO_TICK_TIME", "500"), ("ZOO_CFG_EXTRA", "tickTime=700 clientPort=2182")];
    let found = config(&variables);
    assert_eq!((found.tick_ms, found.listen.port()), (700, 2182));
}

#[test]
fn servers_are_parted_by_blanks_and_line_ends() {
    for servers in [SERVERS.to_owned(), SERVERS.replace(' ', "\n  ")] {
        let found =
            Case::with_environment(&[("ZOO_SERVERS", &servers), ("ZOO_MY_ID", "2")]).load_environment();
        let config = found.unwrap().config;
        assert_eq!((config.member, config.listen), (2, parse_address("127.0.0.1:2182").unwrap()));
        let Ensemble { members, .. } = config.ensemble.expect("an ensemble");
        let found: Vec<_> =
            members.iter().map(|member| (member.id, member.host.as_str(), member.role)).collect();
        let expected = [
            (1, "zoo1", Role::Participant),
            (2, "zoo2", Role::Participant),
            (3, "zoo3", Role::Observer),
            (4, "zoo4", Role::Participant),
            (5, "zoo5", Role::Participant),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn one_server_may_stand_alone() {
    let servers = ("ZOO_SERVERS", "server.4=zoo4:2888:3888;127.0.0.1:2184");
    assert_eq!(config(&[servers]).ensemble, None);
    assert_eq!(config(&[servers]).member, 4);
    let ensemble = config(&[servers, ("ZOO_STANDALONE_ENABLED", "false")]).ensemble;
    assert_eq!(ensemble.map(|ensemble| ensemble.members.len()), Some(1));
}

#[test]
fn a_fault_names_its_variable() {
    check_refused(
        &[("ZOO_TICK_TIME", "2s")],
        "ZOO_TICK_TIME: tickTime: expected a positive number of milliseconds, found \"2s\"",
    );
    check_refused(
        &[("ZOO_SERVERS", "server.1=zoo1:2888")],
        "ZOO_SERVERS: server.1: expected HOST:PORT:PORT[:participant|observer][;[ADDRESS:]PORT], \
         found \"zoo1:2888\"",
    );
    check_refused(
        &[("ZOO_SERVERS", "zoo1:2888:3888::1,zoo2:2888:3888::2")],
        "ZOO_SERVERS: expected server.N=HOST:PORT:PORT;PORT for each member, with spaces between, \
         found \"zoo1:2888:3888::1,zoo2:2888:3888::2\"",
    );
    check_refused(
        &[("ZOO_SERVERS", SERVERS), ("ZOO_MY_ID", "6")],
        "ZOO_MY_ID: this is member 6, but the members are 1, 2, 3, 4 and 5; \
         correct this number, or name member 6 among them",
    );
    check_refused(&[("ZOO_MY_ID", "-1")], "ZOO_MY_ID: expected a number from 0 to 2147483647, found \"-1\"");
    check_refused(
        &[("ZOO_MY_ID", "zoo1")],
        "ZOO_MY_ID: expected a number from 0 to 2147483647, found \"zoo1\"",
    );
    check_refused(
        &[("ZOO_SERVERS", SERVERS), ("ZOO_DATA_DIR", "/absent")],
        "/absent/myid: missing; write into it which of the members 1, 2, 3, 4 and 5 this is, or set ZOO_MY_ID",
    );
    check_refused(
        &[("ZOO_SERVERS", "server.1=zoo1:2888:3888")],
        "ZOO_SERVERS: server.1: clients have no port; add one behind a semicolon, or set clientPort",
    );
}

#[test]
fn an_unknown_variable_is_named() {
    check_warned(
        &[("ZOO_SERVER", "x"), ("ZOO_LOG_DIR", "/logs"), ("ZOO_MY_ID", "1")],
        &["ZOO_SERVER: it is not a variable that Paddock knows; it is ignored"],
    );
    check_warned(
        &[("ZOO_CFG_EXTRA", "kafka.rocks=yes")],
        &["ZOO_CFG_EXTRA: kafka.rocks is not a setting that Paddock knows; it is ignored"],
    );
}

#[test]
fn of_the_variables_only_the_number_counts_beside_a_file() {
    let variables = [("ZOO_TICK_TIME", "500"), ("ZOO_SERVERS", SERVERS), ("ZOO_MY_ID", "5"), ("ZOO_X", "1")];
    let case = Case::with_environment(&variables);
    for (name, text) in [("zoo.cfg", "dataDir=data\nclientPort=2181\n"), ("paddock.toml", "")] {
        let loaded = case.load_as(name, text).unwrap();
        let (config, warnings) = case.warned(loaded);
        assert_ne!(config.tick_ms, 500, "{name}");
        assert_eq!((config.member, config.ensemble), (5, None), "{name}");
        assert_eq!(warnings, ["ZOO_X: it is not a variable that Paddock knows; it is ignored"]);
    }
    assert_eq!(case.load_as("paddock.toml", "member = 6").unwrap().config.member, 6);
}

#[test]
fn a_file_in_the_directory_that_the_environment_names_counts_before_the_variables() {
    let mut case = Case::new();
    let directory = case.path().display().to_string();
    case.environment = environment(&[("ZOO_CONF_DIR", &directory), ("ZOO_TICK_TIME", "500")]);
    assert_eq!(case.load_environment().unwrap().config.tick_ms, 500);
    let keeper = "<clickhouse><keeper_server><tcp_port>9181</tcp_port><storage_path>k</storage_path></keeper_server></clickhouse>";
    case.write("keeper_config.xml", keeper);
    assert_eq!(case.load_environment().unwrap().config.listen.port(), 9181);
    case.write("paddock.toml", "tick_ms = 600\n");
    assert_eq!(case.load_environment().unwrap().config.tick_ms, 600);
    case.write("zoo.cfg", "dataDir=data\nclientPort=2181\ntickTime=700\n");
    assert_eq!(case.load_environment().unwrap().config.tick_ms, 700);
    assert_eq!(case.load_as("other.cfg", "dataDir=data\nclientPort=2181\n").unwrap().config.tick_ms, 3000);
}

#[test]
fn myid_counts_before_the_variable() {
    let mut case = Case::new();
    let data_dir = case.path().display().to_string();
    case.environment =
        environment(&[("ZOO_DATA_DIR", &data_dir), ("ZOO_MY_ID", "2"), ("ZOO_SERVERS", SERVERS)]);
    case.write("myid", "1\n");
    let loaded = case.load_environment().unwrap();
    let (config, warnings) = case.warned(loaded);
    assert_eq!(config.member, 1);
    assert_eq!(warnings[0], "ZOO_MY_ID: myid says 1, which counts");
}

#[test]
fn the_command_line_counts_before_the_environment() {
    let mut case = Case::with_environment(&[("ZOO_DATA_DIR", "/data"), ("ZOO_MY_ID", "1")]);
    case.overrides.data_dir = Some(case.path().to_owned());
    case.overrides.listen = Some(parse_address("127.0.0.1:0").unwrap());
    let config = case.load_environment().unwrap().config;
    assert_eq!(
        (Some(config.data_dir), Some(config.listen)),
        (case.overrides.data_dir, case.overrides.listen)
    );
}

#[test]
fn zookeepers_data_is_refused_here_too() {
    let mut case = Case::new();
    fs::create_dir(case.path().join("version-2")).unwrap();
    case.environment = environment(&[("ZOO_DATA_DIR", &case.path().display().to_string())]);
    let line = case.load_environment().unwrap_err();
    assert!(line.starts_with("environment: "), "{line}");
}

#[test]
fn the_example_of_an_environment_is_three_members() {
    let example = include_str!("../../../../docs/examples/ensemble/ensemble.env");
    let lines = example.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    for number in ["1", "2", "3"] {
        let variables: Vec<_> = lines.clone().chain([("ZOO_MY_ID", number)]).collect();
        let mut case = Case::with_environment(&variables);
        // On this machine the directory of the example may be someone's.
        case.overrides.data_dir = Some(case.path().to_owned());
        let loaded = case.load_environment().unwrap();
        let (config, warnings) = case.warned(loaded);
        assert_eq!(warnings, [""; 0]);
        assert_eq!(config.member.to_string(), number);
        assert_eq!(config.ensemble.map(|ensemble| ensemble.members.len()), Some(3));
        assert_eq!(config.listen.port(), 2181);
    }
}

#[test]
fn the_documentation_lists_every_variable() {
    let page = include_str!("../../../../docs/configuration.md");
    let keys = super::KEYS.iter().map(|(variable, ..)| *variable);
    let others = [super::MY_ID, super::SERVERS, super::CFG_EXTRA, super::CONF_DIR];
    let meaningless = super::MEANINGLESS.iter().map(|(variable, _)| *variable);
    for variable in keys.chain(others).chain(meaningless) {
        let row = format!("| `{variable}` |");
        assert!(
            page.lines().any(|line| line.starts_with(&row)),
            "{variable} is missing in docs/configuration.md"
        );
    }
}
