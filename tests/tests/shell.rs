//! `paddock shell` as its users run it, against Paddock and against Apache ZooKeeper, and beside ZooKeeper's own shell.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use paddock_tests::server::{Server, ServerKind, environment};
use serde_json::Value;

fn shell(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.args(["shell", &server.address().to_string()]).args(arguments).env_remove("PADDOCK_HOSTS");
    command.stdin(Stdio::null());
    command
}

fn run(server: &Server, arguments: &[&str]) -> Output {
    shell(server, arguments).output().expect("run paddock shell")
}

/// Carries one command out, which must succeed, and returns what it printed.
fn one(server: &Server, command: &[&str]) -> String {
    let output = run(server, &[&["--"], command].concat());
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    text(&output.stdout)
}

/// Carries a script out from standard input.
fn script(server: &Server, lines: &str, options: &[&str]) -> Output {
    let mut child = shell(server, options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run paddock shell");
    child.stdin.take().expect("it is piped").write_all(lines.as_bytes()).expect("write the script");
    child.wait_with_output().expect("wait for paddock shell")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

fn commands_do_what_they_say(kind: ServerKind) {
    let server =
        Server::start_with(kind, &[("4lw.commands.whitelist", "*"), ("extendedTypesEnabled", "true")]);
    for (command, expected) in [
        ("create /a hello", "/a\n"),
        ("get /a", "hello\n"),
        ("create /a/b", "/a/b\n"),
        ("create -s /a/s- 1", "/a/s-0000000001\n"),
        ("create -s /a/ 1", "/a/0000000002\n"),
        ("create -c /a/c", "/a/c\n"),
        ("create -t 600000 /a/t", "/a/t\n"),
        ("ls /a", "0000000002\nb\nc\ns-0000000001\nt\n"),
        ("tree /a", "/a\n  0000000002\n  b\n  c\n  s-0000000001\n  t\n"),
        ("find /a s-*", "/a/s-0000000001\n"),
        ("get_direct_children_number /a", "5\n"),
        ("get_all_children_number /a", "5\n"),
        ("getAllChildrenNumber /a", "5\n"),
        ("find_big_family / 2", "/\t9\n/a\t5\n"),
        ("find_super_nodes 5 /", "/a\t5\n"),
        ("set /a changed", ""),
        ("set -v 1 /a again", ""),
        ("set /a third 2", ""),
        ("get /a", "third\n"),
        ("exists /a", "1\n"),
        ("exists /b", "0\n"),
        ("touch /touched", ""),
        ("touch /a", ""),
        ("get /a", "third\n"),
        ("cp /a /copy", ""),
        ("get /copy", "third\n"),
        ("mv /copy /moved", ""),
        ("exists /copy", "0\n"),
        ("mvr /a /z", ""),
        ("ls -R /z", "/z\n/z/0000000002\n/z/b\n/z/c\n/z/s-0000000001\n/z/t\n"),
        ("cpr /z /y", ""),
        ("get_all_children_number /y", "5\n"),
        ("getAcl /z", "world:anyone:cdrwa\n"),
        ("setAcl -R /y world:anyone:cdra", ""),
        ("get_acl /y/b", "world:anyone:cdra\n"),
        ("setquota -n 10 -B 1000 /z", ""),
        ("delquota -n /z", ""),
        ("delquota /z", ""),
        ("delete /moved", ""),
        ("rm /touched", ""),
        ("rmr /z", ""),
        ("deleteall /y 6", ""),
        ("ls /", "zookeeper\n"),
        ("ruok", "imok\n"),
        ("flwc ruok", "imok\n"),
        ("sync /", ""),
        ("getEphemerals", ""),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(one(&server, &words), expected, "{command}");
    }
    assert!(one(&server, &["whoami"]).contains("127.0.0.1"));
    assert!(one(&server, &["help", "create"]).contains("Example: create -e -s"));
}

#[test]
fn commands_do_what_they_say_on_paddock() {
    commands_do_what_they_say(ServerKind::Paddock);
}

#[test]
fn commands_do_what_they_say_on_zookeeper() {
    commands_do_what_they_say(ServerKind::ZooKeeper);
}

#[test]
fn a_failure_is_one_line_and_a_code() {
    let server = Server::start(ServerKind::Paddock);
    one(&server, &["create", "/a", "1"]);
    one(&server, &["create", "/a/b", "1"]);
    for (command, expected) in [
        ("get /nothing", "/nothing: no such znode"),
        ("create /a", "/a: the znode exists already"),
        ("create /x/y", "its parent /x does not exist"),
        ("delete /a", "/a: the znode has children"),
        ("set -v 7 /a x", "/a: the version is another one"),
        ("rmr /a 1", "/a is 2 znodes, more than 1: nothing was removed"),
        ("deleteall /", "/ cannot be removed"),
        ("listquota /a", "/a has no quota"),
        ("gett /a", "did you mean get?"),
        ("get", "something is missing: get"),
        ("commit", "no transaction is open"),
        ("removewatches /a", "no such watch"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let output = run(&server, &[&["--"], &words[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert_eq!(text(&output.stdout), "", "{command}");
        let told = stderr(&output);
        assert!(told.contains(expected) && told.lines().count() == 1, "{command}: {told}");
    }
    let readonly = run(&server, &["--readonly", "--", "set", "/a", "2"]);
    assert_eq!(readonly.status.code(), Some(1));
    assert!(stderr(&readonly).contains("--readonly"));
    assert_eq!(one(&server, &["get", "/a"]), "1\n");
}

#[test]
fn nobody_to_talk_to_is_said_in_one_line() {
    let mut server = Server::start(ServerKind::Paddock);
    server.kill();
    let output = run(&server, &["--connect-timeout", "300ms", "--", "ls"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("check the address") && told.lines().count() == 1, "{told}");
}

#[test]
fn json_and_raw_are_for_programs() {
    let server = Server::start(ServerKind::Paddock);
    one(&server, &["create", "/a", "x y"]);
    let json = |command: &[&str]| -> Value {
        let output = run(&server, &[&["--json", "--"], command].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    };
    assert_eq!(json(&["ls", "/"]), serde_json::json!(["a", "zookeeper"]));
    assert_eq!(json(&["get", "/a"]), serde_json::json!({ "path": "/a", "data": "x y" }));
    assert_eq!(json(&["get", "-s", "/a"])["stat"]["data_length"], 3);
    assert_eq!(json(&["stat", "/a"])["version"], 0);
    assert_eq!(json(&["exists", "/b"]), Value::Bool(false));
    assert_eq!(run(&server, &["--raw", "--", "get", "/a"]).stdout, b"x y");
}

#[test]
fn a_script_ends_at_its_first_failure() {
    let server = Server::start(ServerKind::Paddock);
    let good = "# a comment\n\nmulti\ncreate /a \"two words\"\ncreate -s /s- 1\ncheck /zookeeper 0\ncommit\ncd /a\npwd\ncreate b\n";
    let output = script(&server, good, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(text(&output.stdout), "/a\n/s-0000000001\n/a\n/a/b\n");
    let output = script(&server, "get /nothing\nget /a # and more\nhistory\nnonsense\n", &["--keep-going"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "two words\n0 - get /nothing\n1 - get /a # and more\n2 - history\n");
    let told = stderr(&output);
    assert!(told.contains("line 1: /nothing") && told.contains("line 4: there is no command"), "{told}");
    assert!(told.ends_with("error: 2 of 4 lines failed\n"), "{told}");
    let output =
        script(&server, "ls /a\nmulti\nset /a new\ncreate /a/b\ncommit\ndelete /a/b\n", &["--file", "-"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "b\n");
    assert!(stderr(&output).contains("line 5: operation 2 of the transaction failed"), "{}", stderr(&output));
    assert_eq!(one(&server, &["get", "/a"]), "two words\n", "nothing of the transaction was done");
    assert_eq!(one(&server, &["exists", "/a/b"]), "1\n", "what follows a failure is not done");
}

#[test]
fn watches_are_told_as_they_fire() {
    let server = Server::start(ServerKind::Paddock);
    one(&server, &["create", "/a", "1"]);
    let output = script(&server, "get -w /a\nset /a 2\nwatch -n 0 /\n", &[]);
    assert_eq!(text(&output.stdout), "1\nwatch: NodeDataChanged /a\n", "{}", stderr(&output));
    let mut watching = shell(&server, &["--json", "--", "watch", "-n", "2", "/a"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("run paddock shell");
    // The member says when the watch is set.
    while !server.four_letter_word("wchs").is_ok_and(|answer| answer.contains("Total watches:1")) {
        std::thread::yield_now();
    }
    one(&server, &["create", "/a/b"]);
    one(&server, &["delete", "/a/b"]);
    assert!(watching.wait().expect("wait for paddock shell").success());
    let mut told = String::new();
    watching.stdout.take().expect("it is piped").read_to_string(&mut told).expect("read the events");
    let events: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(events[0]["event"], "NodeCreated");
    assert_eq!(events[1]["event"], "NodeDeleted");
    assert_eq!(events[1]["path"], "/a/b");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let server = Server::start(ServerKind::Paddock);
    // More than a pipe holds.
    let lines: String = (0..2000).map(|number| format!("create /{number:0100}\n")).collect();
    assert!(script(&server, &format!("multi\n{lines}commit\n"), &[]).status.success());
    let mut listing = shell(&server, &["--", "ls", "-R", "/"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run paddock shell");
    let mut first = String::new();
    BufReader::new(listing.stdout.take().expect("it is piped")).read_line(&mut first).expect("read a line");
    assert_eq!(first, "/\n");
    let output = listing.wait_with_output().expect("wait for paddock shell");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stderr(&output), "");
}

/// Carries a command out in `zkCli.sh`, as its script starts it.
fn zookeeper_shell(server: &Server, command: &[&str]) -> Output {
    Command::new("java")
        .args(["-cp", &environment("ZOOKEEPER_CLASSPATH"), "org.apache.zookeeper.ZooKeeperMain"])
        .args(["-server", &server.address().to_string()])
        .args(command)
        .output()
        .expect("run ZooKeeper's shell")
}

/// Time until a value is printed: the least of several tries.
fn least(mut once: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        once();
        start.elapsed()
    });
    times.min().expect("there were some")
}

#[test]
fn the_first_answer_comes_long_before_that_of_zookeepers_shell() {
    let server = Server::start(ServerKind::ZooKeeper);
    one(&server, &["create", "/a", "1"]);
    let ours = least(|| assert_eq!(one(&server, &["get", "/a"]), "1\n"));
    let theirs = least(|| assert!(zookeeper_shell(&server, &["get", "/a"]).status.success()));
    println!("start to first answer: paddock shell {ours:?}, zkCli.sh {theirs:?}");
    assert!(ours * 3 < theirs, "{ours:?} and {theirs:?}");
}
