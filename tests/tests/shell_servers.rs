//! One set of the shell's commands against every kind of server that it is for: Apache ZooKeeper 3.9.5, a member alone, an ensemble of
//! three, a listener with ClickHouse Keeper's dialect, a front end on etcd; over TLS with a client's certificate, and with a login by SASL.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use paddock_tests::ensemble::Ensemble;
use paddock_tests::etcd::EtcdCluster;
use paddock_tests::oracle::identities::Identities;
use paddock_tests::server::{Server, ServerKind, environment, free_port};
use paddock_tests::shells::in_paddocks_shell;

/// Lines with their whole answers; a part of an answer stands behind `~`. The tree is empty before and after.
const CASES: &[(&str, &str)] = &[
    ("create /t \"two words\"", "/t\n"),
    ("create /t/a 1", "/t/a\n"),
    ("create -s /t/s- 1", "/t/s-0000000001\n"),
    ("create -e /t/e 1", "/t/e\n"),
    ("create -e -s /t/es- 1", "/t/es-0000000003\n"),
    ("create -c /t/c", "/t/c\n"),
    ("create -t 600000 /t/ttl x", "/t/ttl\n"),
    ("create /t/a again", "~the znode exists already"),
    ("create /t/no/child", "~its parent /t/no does not exist"),
    ("create /t/e/child", "~an ephemeral znode has no children"),
    ("ls /t", "a\nc\ne\nes-0000000003\ns-0000000001\nttl\n"),
    ("ls -w /t", "a\nc\ne\nes-0000000003\ns-0000000001\nttl\n"),
    ("ls -R /t", "/t\n/t/a\n/t/c\n/t/e\n/t/es-0000000003\n/t/s-0000000001\n/t/ttl\n"),
    ("tree -L 1 /t", "/t\n  a\n  c\n  e\n  es-0000000003\n  s-0000000001\n  ttl\n"),
    ("find /t s-*", "/t/s-0000000001\n"),
    ("get_all_children_number /t", "6\n"),
    ("getAllChildrenNumber /t", "6\n"),
    ("getEphemerals /t", "/t/e\n/t/es-0000000003\n"),
    ("get /t", "two words\n"),
    ("get -w /t/a", "1\n"),
    ("get /t/none", "~/t/none: no such znode"),
    ("set /t/a second", ""),
    ("set -v 1 /t/a third", ""),
    ("set -v 1 /t/a late", "~the version is another one"),
    ("get /t/a", "third\n"),
    ("stat /t/a", "~dataVersion = 2\n"),
    ("stat /t", "~numChildren = 6"),
    ("exists /t/none", "0\n"),
    ("addWatch -m PERSISTENT_RECURSIVE /t", ""),
    ("create /t/a/b", "/t/a/b\n"),
    ("delete /t/a/b", ""),
    ("removewatches /t", ""),
    ("removewatches /t", "~no such watch"),
    ("getAcl /t/a", "world:anyone:cdrwa\n"),
    ("setAcl /t/c world:anyone:cdw", ""),
    ("get /t/c", "~not allowed by the ACL"),
    ("addauth digest ann:secret", ""),
    ("whoami", "~digest: ann\n"),
    ("create /t/mine x auth::cdrwa", "/t/mine\n"),
    ("getAcl /t/mine", "~digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:cdrwa\n"),
    ("multi", ""),
    ("create /t/m1 x", ""),
    ("create /t/m2 x", ""),
    ("check /t 5", ""),
    ("commit", "~operation 3 of the transaction failed, so nothing was done"),
    ("multi", ""),
    ("create /t/m1 x", ""),
    ("set /t/a fourth", ""),
    ("delete /t/s-0000000001", ""),
    ("check /t 0", ""),
    ("commit", "/t/m1\n"),
    ("get /t/a", "fourth\n"),
    ("exists /t/m2", "0\n"),
    ("cp /t/a /t/copy", ""),
    ("mv /t/copy /t/moved", ""),
    ("get /t/moved", "fourth\n"),
    ("exists /t/copy", "0\n"),
    ("setquota -n 100 /t", ""),
    ("setquota -B 100000 /t", ""),
    ("listquota /t", "~count=100,bytes=-1=;byteHardLimit=100000;countHardLimit=-1\n"),
    ("delquota /t", ""),
    ("listquota /t", "~has no quota"),
    ("sync /t", ""),
    ("delete /t", "~the znode has children"),
    ("deleteall /t", "~/t/c may not be read"),
    ("delete /t/c", ""),
    ("deleteall /t", ""),
    ("ls /", "zookeeper\n"),
    ("ruok", "imok\n"),
    ("flwc srvr", "~Mode: "),
];

/// Events that the watches of these lines tell.
const EVENTS: &[&str] = &["NodeDataChanged /t/a", "NodeCreated /t/a/b", "NodeDeleted /t/a/b"];

/// Runs the set, and then asks for the identities, of which one is expected.
fn check(hosts: &str, options: &[&str], identity: &str) {
    let lines: Vec<&str> = CASES.iter().map(|(line, _)| *line).collect();
    let transcript = in_paddocks_shell(hosts, options, &lines);
    for ((line, expected), answer) in CASES.iter().zip(&transcript.texts) {
        let is_told = match expected.strip_prefix('~') {
            Some(part) => answer.contains(part),
            None => answer == expected,
        };
        assert!(is_told, "{line}: {answer:?}, not {expected:?}");
    }
    assert_eq!(transcript.events, EVENTS);
    let identities = in_paddocks_shell(hosts, options, &["whoami"]).texts.remove(0);
    assert!(identities.lines().any(|line| line == identity), "{identities}");
}

const SETTINGS: &[(&str, &str)] = &[("extendedTypesEnabled", "true")];
const NOBODY: &str = "ip: 127.0.0.1";

#[test]
fn commands_do_what_they_say_on_zookeeper() {
    let server = Server::start_with(ServerKind::ZooKeeper, SETTINGS);
    check(&server.address().to_string(), &[], NOBODY);
}

#[test]
fn commands_do_what_they_say_on_a_member_alone() {
    let server = Server::start_with(ServerKind::Paddock, SETTINGS);
    check(&server.address().to_string(), &[], NOBODY);
}

#[test]
fn commands_do_what_they_say_on_a_listener_with_clickhouses_dialect() {
    let mut server = Server::prepare(ServerKind::Paddock, &[]);
    server.use_toml("dialect = \"clickhouse\"\nwords = [\"*\"]\n");
    server.restart();
    check(&server.address().to_string(), &[], NOBODY);
}

#[test]
fn commands_do_what_they_say_on_etcd() {
    let etcd = EtcdCluster::start(1);
    let mut server = etcd.front_end_with(0, SETTINGS, &[]);
    server.restart();
    check(&server.address().to_string(), &[], NOBODY);
}

fn commands_do_what_they_say_with_identities(kind: ServerKind) {
    let identities = Identities::new();
    let tls_port = free_port();
    let settings = identities.settings(tls_port);
    let settings = settings.iter().map(|(key, value)| (*key, value.as_str())).chain(SETTINGS.iter().copied());
    let server = Server::start_with(kind, &settings.collect::<Vec<_>>());
    let file = |name| identities.path(name).display().to_string();
    let tls = ["--tls-ca", &file("trust.pem"), "--tls-cert", &file("alice.pem")];
    check(&format!("127.0.0.1:{tls_port}"), &tls, "x509: CN=alice");
    check(&server.address().to_string(), &["--sasl", &format!("carol:{}", file("carol"))], "sasl: carol");
}

#[test]
fn commands_do_what_they_say_over_tls_and_sasl_on_zookeeper() {
    commands_do_what_they_say_with_identities(ServerKind::ZooKeeper);
}

#[test]
fn commands_do_what_they_say_over_tls_and_sasl_on_paddock() {
    commands_do_what_they_say_with_identities(ServerKind::Paddock);
}

/// A shell whose lines are written one by one.
struct ShellOnPipes {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl ShellOnPipes {
    fn start(hosts: &str, options: &[&str]) -> ShellOnPipes {
        let mut process = Command::new(environment("PADDOCK_BIN"))
            .args(["shell", hosts])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("run paddock shell");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        ShellOnPipes { process, input, output }
    }

    /// Carries out a line that has no answer.
    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("write a line");
    }

    /// Carries out a line that has an answer of one line.
    fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.output.next().expect("the shell answers").expect("read the answer")
    }

    /// Carries lines out, some of which may fail.
    fn answers(&mut self, lines: &[&str]) -> Vec<String> {
        const LAST: &str = "printwatches is on";
        lines.iter().chain(&["printwatches"]).for_each(|line| self.tell(line));
        let answers = self.output.by_ref().map(|line| line.expect("read an answer"));
        answers.take_while(|line| line != LAST).collect()
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.process.wait().expect("wait for the shell").success());
    }
}

#[test]
fn a_session_goes_on_when_its_member_dies() {
    let mut ensemble = Ensemble::start_with(3, SETTINGS);
    check(&ensemble.hosts(), &[], NOBODY);
    let mut shell = ShellOnPipes::start(&ensemble.hosts(), &[]);
    assert_eq!(shell.ask("create -e /mine x"), "/mine");
    // The one that has the session's connection dies, whichever it is; each time the session is found at another one.
    for round in 0..2 {
        let connected = member_of(&ensemble, "/mine");
        ensemble.member(connected).kill();
        let next = member_of(&ensemble, "/mine");
        assert_ne!(next, connected);
        assert_eq!(shell.ask("getEphemerals"), "/mine");
        assert_eq!(shell.ask(&format!("create /round{round}")), format!("/round{round}"));
        ensemble.member(connected).spawn();
        ensemble.leader();
    }
    assert_eq!(shell.ask("ls /"), "mine");
    shell.end();
}

fn a_member_without_a_quorum_is_read(kind: ServerKind) {
    // ZooKeeper has read-only sessions only where it has local ones. Paddock has them always.
    let zookeepers = [("readonlymode.enabled", "true"), ("localSessionsEnabled", "true")];
    let settings = if kind == ServerKind::ZooKeeper { &zookeepers[..] } else { &[] };
    let mut ensemble = Ensemble::start_kind(kind, 3, settings);
    let hosts = ensemble.hosts();
    let shell = |options: &[&str], command: &[&str]| {
        let mut shell = Command::new(environment("PADDOCK_BIN"));
        shell.args(["shell", &hosts, "--connect-timeout", "3s"]).args(options).arg("--").args(command);
        shell.output().expect("run paddock shell")
    };
    assert!(shell(&[], &["create", "/a", "x"]).status.success());
    let in_contact = shell(&["-r"], &["get", "/a"]);
    assert_eq!(String::from_utf8_lossy(&in_contact.stderr), "", "a member with a quorum is as ever");
    ensemble.settle();
    ensemble.member(0).kill();
    ensemble.member(1).kill();
    let alone = ensemble.at(2);
    while !alone.four_letter_word("isro").is_ok_and(|answer| answer == "ro") {
        std::thread::yield_now();
    }
    let refused = shell(&[], &["get", "/a"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("check the address"), "{refused:?}");
    let read = shell(&["--allow-read-only"], &["get", "/a"]);
    assert_eq!(String::from_utf8_lossy(&read.stdout), "x\n", "{read:?}");
    assert!(String::from_utf8_lossy(&read.stderr).contains("no contact to a quorum"), "{read:?}");
    let written = shell(&["-r"], &["set", "/a", "y"]);
    assert_eq!(written.status.code(), Some(1), "{written:?}");
    assert!(String::from_utf8_lossy(&written.stderr).contains("the server is read-only"), "{written:?}");
    // A shell that has begun there takes writes once there is a quorum.
    let mut waiting = ShellOnPipes::start(&hosts, &["-r", "--keep-going"]);
    waiting.tell("addauth digest ann:secret");
    assert_eq!(waiting.ask("get /a"), "x");
    assert_eq!(waiting.ask("exists /b"), "0");
    ensemble.member(0).spawn();
    ensemble.member(1).spawn();
    ensemble.leader();
    // A command that is under way when the shell changes its server fails.
    while waiting.answers(&["touch /b", "exists /b"]) != ["1"] {}
    // The new session has the identities of the one before.
    assert_eq!(waiting.ask("create /mine x auth::cdrwa"), "/mine");
    assert_eq!(waiting.ask("getAcl /mine"), "digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:cdrwa");
    drop(waiting.input);
    waiting.process.wait().expect("wait for the shell");
}

#[test]
fn a_member_without_a_quorum_is_read_on_paddock() {
    a_member_without_a_quorum_is_read(ServerKind::Paddock);
}

#[test]
fn a_member_without_a_quorum_is_read_on_zookeeper() {
    a_member_without_a_quorum_is_read(ServerKind::ZooKeeper);
}

/// Place of the running member that has the connection of the session which owns the only ephemeral znode.
fn member_of(ensemble: &Ensemble, path: &str) -> usize {
    let ephemeral = |dump: &str| dump.contains(path);
    loop {
        for place in (0..ensemble.len()).filter(|place| ensemble.at(*place).is_running()) {
            let word = |word| ensemble.at(place).four_letter_word(word).unwrap_or_default();
            let dump = word("dump");
            if !ephemeral(&dump) {
                continue;
            }
            let session = dump.split_whitespace().find(|word| word.starts_with("0x")).unwrap_or_default();
            let session = session.trim_end_matches(':');
            if !session.is_empty() && word("cons").contains(&format!("sid={session}")) {
                return place;
            }
        }
        std::thread::yield_now();
    }
}
