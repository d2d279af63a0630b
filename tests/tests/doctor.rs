//! `paddock doctor` at whole ensembles, where all is well, and at real faults, each of which its check has to name. Paddock, and Apache ZooKeeper.

use std::process::{Command, Output};
use std::time::Duration;

use paddock_client::{Client, ClientOptions, CreateMode, Multi};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::pem_stores::pem_stores_until;
use paddock_tests::server::{MemberSettings, Server, ServerKind, environment, free_port};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.arg("doctor").args(arguments).env_remove("PADDOCK_HOSTS");
    command.output().expect("run paddock doctor")
}

/// A finding: its level, and its lines about what and what to do.
#[derive(Debug)]
struct Found {
    level: String,
    check: String,
    subject: String,
    text: String,
    advice: String,
}

/// A report in JSON, with the exit code.
#[derive(Debug)]
struct DoctorReport {
    findings: Vec<Found>,
    code: i32,
}

fn report(arguments: &[&str]) -> DoctorReport {
    let output = doctor(&[arguments, &["--json"]].concat());
    let told = String::from_utf8_lossy(&output.stdout);
    let value: Value = serde_json::from_str(&told)
        .unwrap_or_else(|error| panic!("{error}: {told}{}", String::from_utf8_lossy(&output.stderr)));
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let found = |finding: &Value| Found {
        level: text(finding, "level"),
        check: text(finding, "check"),
        subject: text(finding, "subject"),
        text: text(finding, "text"),
        advice: text(finding, "advice"),
    };
    let findings = value["findings"].as_array().expect("findings").iter().map(found).collect();
    DoctorReport { findings, code: output.status.code().expect("it ended by itself") }
}

impl DoctorReport {
    /// The only finding of a check about a subject.
    #[track_caller]
    fn finding(&self, check: &str, subject: &str) -> &Found {
        let is_wanted = |found: &&Found| found.check == check && found.subject == subject;
        let found: Vec<&Found> = self.findings.iter().filter(is_wanted).collect();
        let [found] = found.as_slice() else { panic!("{check} of {subject:?} in {self:#?}") };
        found
    }

    /// Expects a finding of this level in which `part` stands, and advice where there is something to do.
    #[track_caller]
    fn expect(&self, level: &str, check: &str, subject: &str, part: &str) {
        let found = self.finding(check, subject);
        assert!(found.level == level && found.text.contains(part), "{level} {part:?} in {found:?}");
        assert_eq!(found.advice.is_empty(), level == "ok", "{found:?}");
    }
}

/// Checks to which every server of Paddock's has something to say.
const OF_PADDOCK: [&str; 15] = [
    "reach",
    "quorum",
    "lag",
    "versions",
    "settings",
    "state",
    "clocks",
    "sync",
    "room",
    "snapshots",
    "descriptors",
    "memory",
    "connections",
    "sessions",
    "tree",
];

/// All is well, but that the servers were started just now, and that the disk of this machine may be slow or full.
#[track_caller]
fn expect_whole(report: &DoctorReport, checks: &[&str]) {
    for check in checks {
        assert!(report.findings.iter().any(|found| found.check == *check), "no {check} in {report:#?}");
    }
    for found in &report.findings {
        let is_new = found.check == "reach" && found.level == "note" && found.text.contains(", since ");
        let is_of_disk = ["room", "sync"].contains(&&*found.check);
        assert!(found.level == "ok" || is_new || is_of_disk || found.check == "unknown", "{found:?}");
    }
}

struct Watched {
    ensemble: Ensemble,
    hosts: String,
    http: String,
}

impl Watched {
    /// Three members, each with an HTTP interface.
    fn start(kind: ServerKind) -> Watched {
        let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let ensemble = Ensemble::start_each_of(kind, 3, &server_lines(3), |id| {
            let line = |key: &str, value: &str| (key.to_owned(), value.to_owned());
            vec![
                line("admin.enableServer", "true"),
                line("admin.serverAddress", "127.0.0.1"),
                line("admin.serverPort", &ports[id - 1].to_string()),
                line("tickTime", "2000"),
            ]
        });
        let http: Vec<String> = ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
        Watched { hosts: ensemble.hosts(), http: http.join(","), ensemble }
    }

    fn report(&self, more: &[&str]) -> DoctorReport {
        report(&[&[&self.hosts, "--http", &self.http], more].concat())
    }

    fn address(&self, place: usize) -> String {
        self.ensemble.at(place).address().to_string()
    }
}

async fn connect(server: &Server) -> Client {
    let options = ClientOptions { session_timeout: Duration::from_secs(30), ..ClientOptions::default() };
    Client::connect(&server.address().to_string(), options).await.expect("connect")
}

#[test]
fn a_whole_ensemble_is_well_and_each_member_that_fails_is_told() {
    let mut watched = Watched::start(ServerKind::Paddock);
    watched.ensemble.settle();
    let whole = watched.report(&[]);
    expect_whole(&whole, &OF_PADDOCK);
    whole.expect("ok", "quorum", "", "3 of 3 voters work");
    whole.expect("ok", "lag", "", "3 servers");
    let text = doctor(&[&watched.hosts, "--http", &watched.http]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.starts_with("note     reach") || text.starts_with("ok       reach"), "{text}");
    assert!(text.contains("\n                           → "), "{text}");

    let leader = watched.ensemble.leader();
    let (first, second) = ((leader + 1) % 3, (leader + 2) % 3);
    watched.ensemble.member(first).kill();
    let degraded = watched.report(&[]);
    degraded.expect("error", "reach", &watched.address(first), "no answer");
    degraded.expect(
        "warning",
        "quorum",
        "",
        "2 of 3 voters work, 2 are needed: one more failure ends the service",
    );
    assert_eq!(degraded.code, 2);
    watched.ensemble.member(second).kill();
    // The leader notices within an election timeout.
    watched.ensemble.at(leader).wait_for_log("quorum lost");
    let broken = watched.report(&["--tree-within", "0s"]);
    broken.expect("error", "quorum", "", "no server serves writes");
    assert_eq!(broken.code, 2);
}

#[tokio::test]
async fn what_is_large_in_the_tree_is_named() {
    let port = free_port().to_string();
    let server = Server::start_with(ServerKind::Paddock, &[("admin.serverPort", &port)]);
    fill(&server).await;
    let http = format!("http://127.0.0.1:{port}");
    let found = report(&[&server.address().to_string(), "--http", &http, "--tree-within", "120s"]);
    expect_large(&found);
    found.expect("note", "quorum", "", "stands alone");

    // With no time there is no walk, and with little it is told that there is more.
    let none = report(&[&server.address().to_string(), "--http", &http, "--tree-within", "0s"]);
    assert!(!none.findings.iter().any(|found| ["tree", "values"].contains(&&*found.check)), "{none:#?}");
    let little = report(&[&server.address().to_string(), "--http", &http, "--tree-within", "1ms"]);
    little.expect("note", "tree", "", "and there are more");

    // A limit of open files that is too low, as a unit without LimitNOFILE has it.
    let pid = Pid::from_raw(server.pid() as i32);
    let limit = Rlimit { current: Some(256), maximum: Some(256) };
    prlimit(pid, Resource::Nofile, limit).expect("limit its descriptors");
    let low = report(&[&server.address().to_string(), "--http", &http, "--tree-within", "0s", "--local"]);
    low.expect("warning", "descriptors", &server.address().to_string(), "of 256 files and sockets are open");
    low.expect(
        "warning",
        "local-descriptors",
        &format!("Paddock (process {})", server.pid()),
        "of 256 files",
    );
    assert_ne!(low.code, 0, "{low:#?}");
}

/// A directory of 100,000 children, and a value of 900 kB.
async fn fill(server: &Server) {
    let client = connect(server).await;
    client.create("/big", &vec![b'x'; 900_000], CreateMode::Persistent).await.expect("create a large value");
    client.create("/queue", b"", CreateMode::Persistent).await.expect("create a directory");
    for batch in 0..100 {
        let step = |multi: Multi, number: u32| {
            multi.create(&format!("/queue/entry-{:07}", batch * 1000 + number), b"", CreateMode::Persistent)
        };
        client.multi(&(0..1000).fold(Multi::new(), step)).await.expect("create children");
    }
    client.close().await.expect("close");
}

#[track_caller]
fn expect_large(found: &DoctorReport) {
    found.expect("warning", "values", "/big", "878.9 KiB of data");
    found.expect("error", "directories", "/queue", "100000 children, 1.6 MiB to list them");
    assert_eq!(found.finding("tree", "").level, "ok");
    assert_eq!(found.code, 2);
}

#[test]
fn a_disk_that_is_nearly_full_is_told() {
    let port = free_port().to_string();
    let member = MemberSettings {
        kind: ServerKind::Paddock,
        id: 1,
        address: ([127, 0, 0, 1], free_port()).into(),
        namespace: None,
        disk_bytes: Some(64 << 20),
        settings: &[("admin.serverPort", &port), ("preAllocSize", "256")],
    };
    let mut server = Server::start_as(&member);
    // A start anew waits until it serves.
    server.kill();
    server.restart();
    let http = format!("http://127.0.0.1:{port}");
    let address = server.address().to_string();
    let ask = || report(&[&address, "--http", &http]);
    assert_eq!(ask().finding("room", "").level, "ok");
    server.disk().expect("it has one").fill_but(1 << 20);
    ask().expect("error", "room", &address, "are free (1%)");
    let dir = server.data_directory().display().to_string();
    let here = report(&["--local", "--data-dir", &dir]);
    here.expect("error", "filesystem", &dir, "is on tmpfs");
    here.expect("error", "room", &dir, "are free (1%)");
    assert_eq!(here.code, 2);
    let nowhere = report(&["--data-dir", "/no/such/directory"]);
    nowhere.expect("warning", "room", "/no/such/directory", "cannot be looked at");
}

#[test]
fn a_certificate_that_ends_soon_is_told_by_the_server_and_by_its_files() {
    let stores = tempfile::tempdir().expect("make a directory");
    pem_stores_until(stores.path(), "ours", 1, Duration::from_secs(25 * 43_200));
    let [store, trust] = ["1.pem", "trust.pem"].map(|name| stores.path().join(name).display().to_string());
    let (port, secure) = (free_port(), free_port());
    let server = Server::start_with(
        ServerKind::Paddock,
        &[
            ("admin.serverPort", &port.to_string()),
            ("secureClientPort", &secure.to_string()),
            ("ssl.keyStore.location", &store),
            ("ssl.trustStore.location", &trust),
            ("ssl.clientAuth", "none"),
        ],
    );
    let address = server.address().to_string();
    let by_metrics = report(&[&address, "--http", &format!("http://127.0.0.1:{port}")]);
    by_metrics.expect("warning", "certificates", &format!("{address} of its client port"), "ends in 12 days");
    assert_ne!(by_metrics.code, 0, "{by_metrics:#?}");
    let secure = format!("127.0.0.1:{secure}");
    // No HTTP interface answers there.
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    let by_handshake = report(&[&secure, "--tls-ca", &trust, "--http", &nowhere]);
    by_handshake.expect("warning", "certificates", &format!("{secure} that it shows"), "ends in 12 days");
    by_handshake.expect("note", "unknown", &secure, "clock, disk and descriptors not known");
    let config = server.config_path().display().to_string();
    let by_file = report(&["--local", "--config", &config]);
    by_file.expect("warning", "certificates", "file for clients", "ends in 12 days");
}

#[tokio::test]
async fn apache_zookeeper_is_asked_what_it_tells() {
    let mut watched = Watched::start(ServerKind::ZooKeeper);
    // Members of a new ensemble tell different zxids until something is written.
    let client = connect(watched.ensemble.at(0)).await;
    client.create("/first", b"", CreateMode::Persistent).await.expect("create");
    client.close().await.expect("close");
    watched.ensemble.settle();
    let whole = watched.report(&[]);
    let told = [
        "reach",
        "quorum",
        "lag",
        "versions",
        "settings",
        "clocks",
        "sync",
        "descriptors",
        "connections",
        "sessions",
    ];
    expect_whole(&whole, &told);
    whole.expect("ok", "versions", "", "every server is 3.9.5");
    whole.expect("ok", "quorum", "", "3 of 3 voters work");
    // By words alone, as where the AdminServer is off.
    let nowhere = ["http://127.0.0.1:1"; 3].join(",");
    let by_words = report(&[&watched.hosts, "--http", &nowhere]);
    expect_whole(&by_words, &["reach", "quorum", "lag", "sync", "descriptors", "connections", "sessions"]);

    let leader = watched.ensemble.leader();
    fill(watched.ensemble.at(leader)).await;
    expect_large(&watched.report(&["--tree-within", "120s"]));
    let other = (leader + 1) % 3;
    watched.ensemble.member(other).kill();
    let degraded = watched.report(&["--tree-within", "0s"]);
    degraded.expect("error", "reach", &watched.address(other), "no answer");
    degraded.expect("warning", "quorum", "", "2 of 3 voters work");
}

#[test]
fn what_cannot_be_asked_is_an_error_that_says_so() {
    let nobody = format!("127.0.0.1:{}", free_port());
    let found = report(&[&nobody]);
    found.expect("error", "reach", &nobody, "no answer");
    assert_eq!(found.code, 2);
    for (arguments, told) in [
        (vec!["zk1"], "\"zk1\" is no server: expected host:port"),
        (vec!["a:1,b:1", "--http", "http://a:1"], "--http names 1 addresses for 2 servers"),
        (vec!["--config", "/no/such/file"], "/no/such/file"),
    ] {
        let output = doctor(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(told), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let here = report(&[]);
    for check in ["local-descriptors", "swap", "local-clock"] {
        assert!(here.findings.iter().any(|found| found.check == check), "no {check} in {here:#?}");
    }
}
