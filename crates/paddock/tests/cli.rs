//! The binary as its users meet it: exit codes, lines on standard error, signals.

#[path = "shared/process.rs"]
mod process;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Instant;

use paddock_client::{Client, ClientOptions, CreateMode};
use process::{Server, WITHIN, check_refused, directory, free_port, paddock, run};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");

#[test]
fn it_says_where_it_listens_and_where_its_data_is() {
    let dir = directory();
    let server = Server::start(dir.path(), &["--listen", "127.0.0.1:0"]);
    let (version, address) = (env!("CARGO_PKG_VERSION"), server.address);
    assert_ne!(address.port(), 0);
    let data_dir = dir.path().canonicalize().unwrap().join("paddock-data");
    assert_eq!(
        server.announced,
        [
            format!("paddock {version} listens on {address}"),
            format!("its data is in {}", data_dir.display()),
            format!("try it: echo srvr | nc 127.0.0.1 {}", address.port()),
        ]
    );
    assert!(data_dir.is_dir());
    assert!(server.ask("srvr").contains("Mode: standalone"));
    server.stop();
}

#[test]
fn a_signal_ends_it_in_good_order_and_the_port_is_free_again() {
    for signal in ["-TERM", "-INT"] {
        let dir = directory();
        let server = Server::start(dir.path(), &["--listen", "127.0.0.1:0"]);
        let address = server.address.to_string();
        server.signal(signal);
        let (status, log) = server.wait();
        assert_eq!(status.code(), Some(0), "{signal}: {log}");
        assert!(log.contains("stopping"), "{log}");
        let again = Server::start(dir.path(), &["--listen", &address]);
        assert_eq!(again.address.to_string(), address);
        again.stop();
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let dir = directory();
    let server = Server::start(dir.path(), &["--listen", "127.0.0.1:0"]);
    // Both wait while the process stands still, so it cannot come to its end between them.
    for signal in ["-STOP", "-TERM", "-INT", "-CONT"] {
        server.signal(signal);
    }
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(130), "{log}");
}

#[test]
fn the_end_of_standard_input_ends_it_if_that_was_asked_for() {
    let dir = directory();
    let mut server = Server::start(dir.path(), &["--listen", "127.0.0.1:0", "--end-with-stdin"]);
    let mut stdin = server.process.stdin.take().expect("standard input is a pipe");
    stdin.write_all(&[b'x'; 10_000]).expect("what is written is read");
    assert!(server.ask("srvr").contains("Mode: standalone"));
    drop(stdin);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("the end of standard input"), "{log}");
}

#[test]
fn without_a_standard_input_it_serves() {
    let dir = directory();
    let server = Server::start(dir.path(), &["--listen", "127.0.0.1:0"]);
    assert!(server.ask("srvr").contains("Mode: standalone"));
    let log = server.stop();
    assert!(log.contains("SIGTERM") && !log.contains("standard input"), "{log}");
}

#[test]
fn a_member_that_cannot_write_its_log_any_more_ends_with_the_reason() {
    let dir = directory();
    fs::write(dir.path().join("small.toml"), "segment_bytes = 65536\nframe_bytes_max = 1_000_000\n").unwrap();
    let server = Server::start(dir.path(), &["--config", "small.toml", "--listen", "127.0.0.1:0"]);
    fs::remove_dir_all(dir.path().join("paddock-data/log")).expect("take the log away");
    write_until_refused(server.address);
    let (status, log) = server.wait();
    let line = log.lines().last().expect("the reason");
    assert!(line.contains("paddock-data/log") && line.contains("No such file or directory"), "{log}");
    assert_eq!(status.code(), Some(1), "{log}");
}

/// Writes until the server ends the connection.
fn write_until_refused(address: SocketAddr) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&address.to_string(), ClientOptions::default()).await.expect("connect");
        let deadline = Instant::now() + WITHIN;
        while client.create("/node-", &[7; 30_000], CreateMode::PersistentSequential).await.is_ok() {
            assert!(Instant::now() < deadline, "the server goes on without a log");
        }
    });
}

#[test]
fn all_addresses_are_reached_through_the_loopback_address() {
    let dir = directory();
    fs::write(dir.path().join("zoo.cfg"), format!("dataDir=data\nclientPort={}\n", free_port("0.0.0.0")))
        .unwrap();
    let server = Server::start(dir.path(), &["--config", "zoo.cfg"]);
    assert!(server.address.ip().is_unspecified(), "{}", server.address);
    TcpStream::connect(("127.0.0.1", server.address.port())).expect("connect by IPv4");
    server.stop();
}

#[test]
fn the_examples_start() {
    for name in ["zoo.cfg", "paddock.toml", "clickhouse/keeper_config.yaml"] {
        let dir = directory();
        let config = format!("{EXAMPLES}/{name}");
        let server = Server::start(dir.path(), &["--config", &config, "--listen", "127.0.0.1:0"]);
        assert!(server.ask("srvr").contains("Mode: standalone"), "{name}");
        assert!(dir.path().join("paddock-data").is_dir(), "{name}");
        let log = server.stop();
        assert!(!log.contains("WARN"), "{name}: {log}");
    }
}

#[test]
fn a_configuration_reaches_the_member() {
    let dir = directory();
    let zoo_cfg = "dataDir=data\ntickTime=700\nmaxSessionTimeout=9000\nmaxClientCnxns=7\n\
                   jute.maxbuffer=0x100000\n4lw.commands.whitelist=conf\nserver.9=localhost:2888:3888\n";
    fs::write(dir.path().join("zoo.cfg"), zoo_cfg).unwrap();
    let server = Server::start(dir.path(), &["--config", "zoo.cfg", "--listen", "127.0.0.1:0"]);
    let conf = server.ask("conf");
    for line in
        ["tickTime=700", "minSessionTimeout=1400", "maxSessionTimeout=9000", "maxClientCnxns=7", "serverId=9"]
    {
        assert!(conf.lines().any(|found| found == line), "{line} is missing:\n{conf}");
    }
    assert_eq!(server.ask("mntr"), "mntr is not executed because it is not in the whitelist.\n");
    server.stop();
}

#[test]
fn a_configuration_of_clickhouse_keeper_reaches_the_member() {
    let dir = directory();
    let xml = "<clickhouse><keeper_server><tcp_port>9181</tcp_port><server_id from_env=\"KEEPER_ID\"/>\
               <storage_path>data</storage_path><four_letter_word_white_list>conf</four_letter_word_white_list>\
               <coordination_settings><session_timeout_ms>20000</session_timeout_ms></coordination_settings>\
               <raft_configuration><server><id>9</id><hostname>localhost</hostname><port>9234</port></server>\
               </raft_configuration></keeper_server></clickhouse>";
    fs::write(dir.path().join("keeper_config.xml"), xml).unwrap();
    let arguments = ["--config", "keeper_config.xml", "--listen", "127.0.0.1:0"];
    let line =
        "keeper_config.xml:1: keeper_server.server_id: the environment variable \"KEEPER_ID\" is not set";
    check_refused(dir.path(), &[&["server"], &arguments[..]].concat(), 2, line);
    fs::write(
        dir.path().join("keeper_config.xml"),
        xml.replace(" from_env=\"KEEPER_ID\"/>", ">9</server_id>"),
    )
    .unwrap();
    let server = Server::start(dir.path(), &arguments);
    let conf = server.ask("conf");
    for line in ["minSessionTimeout=10000", "maxSessionTimeout=20000", "maxClientCnxns=0", "serverId=9"] {
        assert!(conf.lines().any(|found| found == line), "{line} is missing:\n{conf}");
    }
    server.stop();
}

#[test]
fn an_unknown_key_is_named_in_a_warning() {
    let dir = directory();
    fs::write(dir.path().join("zoo.cfg"), "dataDir=data\n\nkafka.rocks=yes\n").unwrap();
    let server = Server::start(dir.path(), &["--config", "zoo.cfg", "--listen", "127.0.0.1:0"]);
    let log = server.stop();
    let warning = log.lines().find(|line| line.contains("WARN")).expect("a warning");
    assert!(warning.contains("zoo.cfg:3: kafka"), "{warning}");
    fs::write(dir.path().join("paddock.toml"), "\n\nadmin_lisen = ':8080'\n").unwrap();
    check_refused(
        dir.path(),
        &["server", "--config", "paddock.toml"],
        2,
        "paddock.toml:3: admin_lisen is not a setting that Paddock knows; did you mean admin_listen?",
    );
}

#[test]
fn a_wrong_value_is_one_line_and_exit_code_2() {
    let dir = directory();
    fs::write(dir.path().join("zoo.cfg"), "dataDir=data\nclientPort=2181\n\n\n\n\ntickTime=2s\n").unwrap();
    check_refused(
        dir.path(),
        &["server", "--config", "zoo.cfg"],
        2,
        "zoo.cfg:7: tickTime: expected a positive number of milliseconds, found \"2s\"",
    );
    fs::write(dir.path().join("paddock.toml"), "tick_ms = \"2s\"\n").unwrap();
    check_refused(
        dir.path(),
        &["server", "--config", "paddock.toml"],
        2,
        "paddock.toml:1: tick_ms: expected a positive number of milliseconds, found \"2s\"",
    );
    assert!(!dir.path().join("data").exists(), "nothing was begun");
}

#[test]
fn a_configuration_that_cannot_be_read_is_one_line_and_exit_code_2() {
    let dir = directory();
    fs::create_dir(dir.path().join("dir.toml")).unwrap();
    for (file, why) in [
        ("absent.cfg", "No such file or directory (os error 2)"),
        ("absent.toml", "No such file or directory (os error 2)"),
        (".", "Is a directory (os error 21)"),
        ("dir.toml", "Is a directory (os error 21)"),
    ] {
        let line = format!("{file}: cannot be read: {why}");
        check_refused(dir.path(), &["server", "--config", file], 2, &line);
    }
}

#[test]
fn nothing_is_recovered_by_accident() {
    let dir = directory();
    let refused = |args: &[&str], line: &str| {
        check_refused(dir.path(), &[&["server", "--recover"], args].concat(), 2, line);
    };
    refused(
        &[],
        "--recover: the configuration names no ensemble, so no quorum can be lost; start without it",
    );
    let others = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = others.local_addr().unwrap().port();
    let zoo_cfg = format!(
        "dataDir=.\nclientPort=2181\nserver.1=127.0.0.1:1:2\nserver.2=127.0.0.1:{port}:3888\nserver.3=127.0.0.1:4:5\n"
    );
    fs::write(dir.path().join("zoo.cfg"), zoo_cfg).unwrap();
    fs::write(dir.path().join("myid"), "1").unwrap();
    let config = &["--config", "zoo.cfg"];
    refused(config, "--recover: . holds no data of a member; name the directory of the survivor");
    fs::write(dir.path().join("identity"), "member 1\n").unwrap();
    refused(
        config,
        &format!(
            "--recover: member 2 answers at 127.0.0.1:{port}, so the quorum may not be lost; start this member without \
             --recover, or stop that one first"
        ),
    );
    drop(others);
    refused(
        config,
        "--recover makes member 1 an ensemble of its own with the data in .. What members [2, 3] had acknowledged and this \
         one never got is lost for good, and they can join again only with empty directories. If several members \
         survive, recover the one with the highest zxid. If that is what you want, add --yes",
    );
}

#[test]
fn the_variables_of_zookeepers_image_count_without_a_file() {
    let dir = directory();
    let output = paddock(dir.path(), &["server"]).env("ZOO_MY_ID", "zoo1").output().expect("run paddock");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "ZOO_MY_ID: expected a number from 0 to 2147483647, found \"zoo1\"\n");
}

#[test]
fn a_wrong_argument_is_exit_code_2() {
    let dir = directory();
    for args in [
        &["server", "--listen", "2181"][..],
        &["server", "--data-dir"],
        &["server", "--log-format", "xml"],
        &["serve"],
        &[],
    ] {
        let output = run(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    check_refused(
        dir.path(),
        &["server", "--log", "verbose"],
        2,
        "--log: expected a level (error, warn, info, debug, trace, off) or TARGET=LEVEL,…, found \"verbose\"",
    );
}

#[test]
fn a_cross_check_that_lets_the_reference_answer_is_refused_with_the_reason() {
    let dir = directory();
    let listen = format!("127.0.0.1:{}", free_port("0.0.0.0"));
    for side in ["reference", "paddock"] {
        let args =
            ["server", "--listen", &listen, "--cross-check", "127.0.0.1:1", "--cross-check-answer", side];
        check_refused(
            dir.path(),
            &args,
            2,
            "--cross-check-answer is not there: clients are always answered by this server. The reference is asked afterwards, in \
             sessions of its own whose ids and zxids are others, and may be lost at any time; leave the option out, and see decision 0047",
        );
    }
    assert!(!dir.path().join("paddock-data").exists(), "nothing has begun");
}

#[test]
fn a_data_directory_serves_one_process() {
    let dir = directory();
    let server = Server::start(dir.path(), &["--data-dir", "data", "--listen", "127.0.0.1:0"]);
    check_refused(
        dir.path(),
        &["server", "--data-dir", "data", "--listen", "127.0.0.1:0", "--log", "off"],
        1,
        "data directory data is in use by another process",
    );
    server.stop();
}

#[test]
fn a_data_directory_that_is_a_file_is_named() {
    let dir = directory();
    fs::write(dir.path().join("data"), "").unwrap();
    let output =
        run(dir.path(), &["server", "--data-dir", "data", "--listen", "127.0.0.1:0", "--log", "off"]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.starts_with("lock data directory data: ") && line.lines().count() == 1, "{line}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_port_in_use_is_named_with_its_address() {
    let dir = directory();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check_refused(
        dir.path(),
        &["server", "--listen", &address, "--log", "off"],
        1,
        &format!("listen on {address}: Address already in use (os error 98)"),
    );
}

#[test]
fn a_json_log_is_json_to_the_last_line() {
    let dir = directory();
    fs::write(dir.path().join("zoo.cfg"), "dataDir=data\nno.such.key=\n").unwrap();
    let args = ["--config", "zoo.cfg", "--listen", "127.0.0.1:0", "--log-format", "json"];
    let server = Server::start(dir.path(), &args);
    let ready = parse_json(&server.announced[0]);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!((&ready["message"], &ready["version"]), (&"ready for clients".into(), &version.into()));
    assert_eq!(ready["address"], server.address.to_string());
    let refused = run(dir.path(), &[&["server"], &args[..]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let refused = String::from_utf8(refused.stderr).unwrap();
    let last = parse_json(refused.lines().last().expect("the reason"));
    assert_eq!(last["level"], "ERROR");
    assert_eq!(last["message"], "data directory data is in use by another process");
    let log = server.stop();
    let lines: Vec<serde_json::Value> = log.lines().map(parse_json).collect();
    assert!(lines.iter().all(|line| line["timestamp"].is_string()), "{log}");
    let begins = &lines[0];
    assert_eq!((&begins["message"], &begins["version"]), (&"paddock starts".into(), &version.into()));
    assert_eq!((&begins["member"], &begins["target"]), (&1.into(), &"paddock".into()));
    assert!(
        lines.iter().any(|line| line["message"] == "ready for clients" && line["data"].is_string()),
        "{log}"
    );
    let warning = lines.iter().find(|line| line["level"] == "WARN").expect("a warning");
    assert_eq!(warning["target"], "paddock::config");
    assert_eq!(
        warning["message"],
        "zoo.cfg:2: no.such.key is not a setting that Paddock knows; it is ignored"
    );
}

fn parse_json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn what_is_logged_is_chosen_by_argument_or_environment() {
    let dir = directory();
    fs::write(dir.path().join("zoo.cfg"), "tickTime=2s\ninitLimit=5\n").unwrap();
    fs::write(dir.path().join("good.cfg"), "dataDir=data\ninitLimit=5\n").unwrap();
    let args = ["--config", "good.cfg", "--listen", "127.0.0.1:0", "--log"];
    let debug = Server::start(dir.path(), &[&args[..], &["debug"]].concat()).stop();
    assert!(debug.contains("good.cfg:2: initLimit changes nothing: members watch each other"), "{debug}");
    assert!(!debug.contains('\u{1b}'), "no colours where there is no terminal: {debug}");
    let off = Server::start(dir.path(), &[&args[..], &["off"]].concat()).stop();
    assert_eq!(off, "");
    let wrong = paddock(dir.path(), &["server"]).env("PADDOCK_LOG", "loud").output().unwrap();
    assert_eq!(
        String::from_utf8(wrong.stderr).unwrap(),
        "PADDOCK_LOG: expected a level (error, warn, info, debug, trace, off) or TARGET=LEVEL,…, found \"loud\"\n"
    );
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn help_and_version_are_on_standard_output() {
    let dir = directory();
    let version = run(dir.path(), &["--version"]);
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        format!("paddock {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = run(dir.path(), &["server", "--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    for part in [
        "--config <FILE>",
        "--data-dir <DIR>",
        "--listen <[ADDR]:PORT>",
        "--admin-listen",
        ".xml, .yaml or .yml",
        "Examples:",
        "zoo.cfg",
    ] {
        assert!(help.contains(part), "{part} is missing:\n{help}");
    }
}

#[test]
fn settings_are_checked_without_a_start() {
    let dir = directory();
    let lines = "clientPort=2181\ndataDir=data\nforceSync=no\ninitLimit=10\n";
    fs::write(dir.path().join("zoo.cfg"), lines).unwrap();
    let output = run(dir.path(), &["server", "--check", "--config", "zoo.cfg"]);
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("# zoo.cfg:3: forceSync: \"no\" has no effect: "), "{told}");
    assert!(told.contains("\n# zoo.cfg:4: initLimit changes nothing: "), "{told}");
    assert!(told.contains("\ndata_dir = \"data\"  # zoo.cfg:2: dataDir\n"), "{told}");
    assert!(!dir.path().join("data").exists(), "nothing is started");
    fs::write(dir.path().join("zoo.cfg"), "dataDir=data\n").unwrap();
    check_refused(
        dir.path(),
        &["server", "--check", "--config", "zoo.cfg"],
        2,
        "zoo.cfg: clientPort is missing",
    );
    fs::write(dir.path().join("zoo.cfg"), "dataDir=data\nclientPort=x\ntickTime=2s\n").unwrap();
    check_refused(
        dir.path(),
        &["server", "--check", "--config", "zoo.cfg"],
        2,
        "zoo.cfg:2: clientPort: expected a port from 1 to 65535, found \"x\"\n\
         zoo.cfg:3: tickTime: expected a positive number of milliseconds, found \"2s\"",
    );
}

#[test]
fn a_check_says_where_each_value_comes_from() {
    let dir = directory();
    let lines = "clientPort=2181\ndataDir=data\nsnapCount=7\nlog.level=warn\nserver.2=a:2888:3888\nserver.3=b:2888:3888\n\
                 server.1=c:2888:3888\nsslQuorum=true\nssl.quorum.keyStore.location=k\nssl.quorum.trustStore.location=t\n";
    fs::write(dir.path().join("zoo.cfg"), lines).unwrap();
    let args = ["server", "--check", "--config", "zoo.cfg", "--admin-listen", "127.0.0.1:8080"];
    let flags = "-Dzookeeper.snapCount=9 -Dzookeeper.maxCnxns=5";
    let output = paddock(dir.path(), &args).env("JVMFLAGS", flags).env("ZOO_MY_ID", "2").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    for line in [
        "log = \"warn\"  # zoo.cfg:4: log.level",
        "data_dir = \"data\"  # zoo.cfg:2: dataDir",
        "member = 2  # ZOO_MY_ID",
        "snapshot_writes = 7  # zoo.cfg:3: snapCount",
        "connections_max = 5  # JVMFLAGS: maxCnxns",
        "admin_listen = \"127.0.0.1:8080\"  # --admin-listen",
        "mode = \"required\"  # zoo.cfg:8: sslQuorum",
        "id = 3  # zoo.cfg:6: server.3",
        "snapshots_kept = 3",
    ] {
        assert!(told.lines().any(|told| told == line), "{line} is missing:\n{told}");
    }
    fs::write(dir.path().join("again.toml"), &told).unwrap();
    let again = run(dir.path(), &["server", "--check", "--config", "again.toml"]);
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.contains("snapshot_writes = 7  # again.toml:"), "{again}");
    assert!(again.contains("\nid = 3  # again.toml:"), "{again}");
}

#[test]
fn the_page_is_turned_on_by_a_flag() {
    let dir = directory();
    let args = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let server = Server::start(dir.path(), &args);
    let log = server.logged("serving the page and the HTTP interface for administrators");
    let page = log.split("page=http://").nth(1).expect("its address").split('/').next().unwrap();
    assert_ne!(page.parse::<SocketAddr>().expect("an address").port(), 0);
    TcpStream::connect(page).expect("connect to the page");
    server.stop();
}

#[test]
fn an_address_may_leave_out_the_host() {
    let dir = directory();
    let server = Server::start(dir.path(), &["--listen", ":0"]);
    assert!(server.address.ip().is_unspecified(), "{}", server.address);
    TcpStream::connect(("127.0.0.1", server.address.port())).expect("connect by IPv4");
    server.stop();
}

#[test]
fn a_member_serves_while_the_name_of_a_port_is_not_known() {
    let dir = directory();
    let toml = |tries: u32| {
        format!("listen = 'late.invalid:2181'\nadmin_listen = '127.0.0.1:0'\nbind_tries = {tries}\n")
    };
    fs::write(dir.path().join("for_ever.toml"), toml(0)).unwrap();
    fs::write(dir.path().join("once.toml"), toml(1)).unwrap();
    let mut process = paddock(dir.path(), &["server", "--config", "for_ever.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut announced = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut announced).unwrap();
    assert!(announced.ends_with(" listens on late.invalid:2181\n"), "{announced}");
    let mut log = String::new();
    let mut lines = BufReader::new(process.stderr.take().unwrap());
    while !log.contains("page=http://") {
        assert_ne!(lines.read_line(&mut log).unwrap(), 0, "{log}");
    }
    assert!(log.contains("cannot listen yet: trying again"), "{log}");
    let page = log.split("page=http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    TcpStream::connect(page).expect("the rest is served");
    process.kill().unwrap();
    process.wait().unwrap();
    let ended = run(dir.path(), &["server", "--config", "once.toml", "--log", "off"]);
    let line = String::from_utf8(ended.stderr).unwrap();
    assert!(line.starts_with("look up late.invalid:2181, at which to listen: "), "{line}");
    assert_eq!(ended.status.code(), Some(1));
}
