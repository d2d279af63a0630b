//! Every command of ZooKeeper's own shell, `zkCli.sh` 3.9.5, in it and in `paddock shell`: the same effect on the same tree, and the
//! same facts in the answers.
//!
//! The list of commands and flags is the one that ZooKeeper's shell prints: one that has no case here fails the test.

use std::collections::BTreeSet;
use std::fs;

use paddock_tests::ensemble::{Ensemble, MemberPlace};
use paddock_tests::server::{Server, ServerKind};
use paddock_tests::shells::{
    ShellTranscript, command_name, commands_of_list, in_paddocks_shell, in_zookeepers_shell,
    with_rfc3339_time,
};
use serde_json::Value;

/// Lines for a server alone, which starts with an empty tree. The first one gets the list of commands as its answer.
const ALONE: &[&str] = &[
    "nosuchcommand",
    "version",
    "printwatches",
    "whoami",
    "create /a hello",
    "create /empty \"\"",
    "get /empty",
    "create /a again",
    "create /a/b",
    "create /nothing/x",
    "create -s /a/s- 1",
    "create -s /a/ 1",
    "create -e /e x",
    "create -e /e/x",
    "create -e -s /es-",
    "create -c /a/c",
    "create -c -e /a/ce",
    "create -c -s /a/cs",
    "create -t 600000 /a/t x",
    "create -t 600000 -s /a/ts- x",
    "create -t 600000 -e /a/te x",
    "create -t soon /a/t2 x",
    "create /a/acl data world:anyone:cdra",
    "create /a/acl2 data world:anyone",
    "create /a/acl3 data nosuchscheme:anyone:r",
    "create /quoted 'two \"words\"'",
    "get /quoted",
    "history",
    "redo {line get /quoted}",
    "history",
    "redo 100000",
    "ls /",
    "ls -s /a",
    "ls -R /a",
    "ls -R -s /a",
    "ls -w /a",
    "ls /a/b",
    "ls /nothing",
    "get /a",
    "get -s /a",
    "get -w /a",
    "get /a/b",
    "get /nothing",
    "set -b /a aGVsbG8AAQ==",
    "get -b /a",
    "get -b -s /a",
    "get -x /a",
    "get -x -b -s /a",
    "set /a plain",
    "set -s /a changed",
    "set -v 3 /a by-version",
    "set -v 1 /a too-late",
    "set /nothing x",
    "stat /a",
    "stat -w /a",
    "stat /e",
    "stat /nothing",
    "getAcl /a/acl",
    "getAcl -s /a/acl",
    "getAcl /nothing",
    "setAcl /a/b world:anyone:cdwa",
    "get /a/b",
    "setAcl -s /a/b world:anyone:cdra",
    "setAcl -v 2 /a/b world:anyone:cdrwa",
    "setAcl -v 2 /a/b world:anyone:r",
    "setAcl /a/b world:anyone",
    "create /q",
    "create /q/r",
    "create /q/s",
    "setAcl /q/r world:anyone:cdrwa",
    "setAcl -R -v 0 /q world:anyone:cdrwa,ip:127.0.0.1:r",
    "getAcl /q",
    "getAcl /q/r",
    "getAcl /q/s",
    "setAcl -R -s /q world:anyone:cdrwa",
    "getAcl /q/s",
    "setquota -n 10 /a",
    "setquota -b 1000 /a",
    "setquota -N 20 /a",
    "setquota -B 2000 /a",
    "listquota /a",
    "setquota -n 3 /q/r",
    "listquota /q/r",
    "listquota /q",
    "setquota -n 3 /q",
    "setquota -n 3 /a/b",
    "setquota -n 3 /nothing",
    "setquota /q",
    "delquota -n /a",
    "listquota /a",
    "delquota -b /a",
    "delquota -N /a",
    "delquota -B /a",
    "listquota /a",
    "delquota /a",
    "listquota /a",
    "delquota /q",
    "delquota /q/r",
    "addWatch /a",
    "addWatch -m PERSISTENT /q",
    "addWatch -m persistent_recursive /a/c",
    "addWatch -m NEITHER /q",
    "create /a/w",
    "set /q z",
    "set /q/r z",
    "removewatches /a",
    "set /a unseen",
    "removewatches /zookeeper",
    "get -w /a",
    "ls -w /a",
    "removewatches -c /a",
    "removewatches -c /a",
    "set /a seen",
    "create /a/unseen",
    "get -w /a",
    "removewatches -d /a",
    "removewatches -d /a",
    "set /a unseen-again",
    "removewatches -a /q",
    "set /q unseen",
    "ls -w /q",
    "removewatches -c -l /q",
    "create /q/unseen",
    "removewatches -d /q",
    "printwatches off",
    "printwatches",
    "printwatches on",
    "printwatches",
    "getAllChildrenNumber /a",
    "getAllChildrenNumber /",
    "getAllChildrenNumber /nothing",
    "getEphemerals",
    "getEphemerals /es",
    "getEphemerals /nothing",
    "sync /a",
    "config",
    "config -c",
    "config -s",
    "config -w",
    "reconfig",
    "reconfig -add server.2=127.0.0.1:1:2;3",
    "reconfig -remove 1",
    "reconfig -members server.1=127.0.0.1:1:2;3",
    "reconfig -file /nothing/members",
    "reconfig -s -v 1 -add server.2=127.0.0.1:1:2;3",
    "delete -v 0 /a/s-0000000001",
    "delete -v 9 /a/b",
    "delete /a",
    "delete /a/b",
    "delete /nothing",
    "create /d",
    "create /d/e",
    "create /d/e/f",
    "deleteall /d",
    "deleteall -b 2 /q",
    "deleteall /nothing",
    "addauth digest ann:secret",
    "whoami",
    "create /secret x auth::cdrwa",
    "getAcl /secret",
    "close",
    "ls /",
    "whoami",
    "connect {server}",
    "ls /",
    "getEphemerals",
    // Until the end: an event may come later than the answer to the change.
    "printwatches off",
    "ls -w /",
    "create /unseen",
    "sync /",
    "quit",
    "create /behind-the-end",
];

/// Lines for an ensemble of three, which is the same behind them. They remove always the same member, and one that does not lead: a leader
/// that is removed cuts connections, and the two others are the quorum of every new configuration.
fn of_three(lines: &[String], leader: usize, file: &str) -> Vec<String> {
    let all = lines.join(",");
    let removed = (leader + 1) % 3;
    let (id, line) = (removed + 1, &lines[removed]);
    vec![
        "config".to_owned(),
        "config -c".to_owned(),
        "config -s".to_owned(),
        "reconfig".to_owned(),
        format!("reconfig -remove {id}"),
        "config -c".to_owned(),
        format!("reconfig -s -add {line}"),
        format!("reconfig -v 1 -add {line}"),
        "config -w".to_owned(),
        format!("reconfig -remove {id}"),
        format!("reconfig -members {all}"),
        format!("reconfig -remove {id}"),
        format!("reconfig -file {file}"),
        format!("reconfig -add {line} -members {all}"),
        "reconfig -add server.3=nonsense".to_owned(),
        format!("reconfig -remove {id},9"),
        format!("reconfig -add {all}"),
        "config".to_owned(),
    ]
}

/// Panics with every line that was not answered alike.
fn compare(lines: &[&str], theirs: &ShellTranscript, ours: &ShellTranscript) {
    let mut differences = String::new();
    for (place, line) in lines.iter().enumerate() {
        if theirs.answers[place] != ours.answers[place] {
            let (their_text, our_text) = (&theirs.texts[place], &ours.texts[place]);
            differences.push_str(&format!(
                "{line}\n--- zkCli.sh:\n{their_text}\n--- paddock shell:\n{our_text}\n\n"
            ));
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert_eq!(theirs.events, ours.events);
}

/// Every znode with its ACL, data and Stat, but for times; of zxids their order counts, for one shell may ask in fewer requests what
/// the other asks in many. Data that are null are not empty.
fn tree(server: &Server) -> Vec<Value> {
    let hosts = server.address().to_string();
    let ask = |lines: &[&str]| {
        in_paddocks_shell(&hosts, &["--json"], &[&["addauth digest ann:secret"], lines].concat())
    };
    let paths = ask(&["ls -R /"]).texts.remove(1);
    let paths: Vec<String> =
        paths.lines().map(|line| serde_json::from_str(line).expect("a path in JSON")).collect();
    assert!(paths.len() > 5, "{paths:?}");
    let asked: Vec<String> =
        paths.iter().flat_map(|path| [format!("get -s {path}"), format!("getAcl {path}")]).collect();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let texts = ask(&asked).texts.split_off(1);
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut values: Vec<Value> = texts.iter().map(value).collect();
    let mut stats: Vec<&mut Value> = values.iter_mut().filter_map(|value| value.get_mut("stat")).collect();
    let zxids = ["czxid", "mzxid", "pzxid"];
    let order: BTreeSet<i64> =
        stats.iter().flat_map(|stat| zxids.map(|name| stat[name].as_i64().expect("a zxid"))).collect();
    for stat in &mut stats {
        for name in zxids {
            let place = order.iter().position(|zxid| stat[name] == *zxid);
            stat[name] = place.into();
        }
        for name in ["ctime_ms", "mtime_ms"] {
            stat[name] = Value::Null;
        }
    }
    values
}

/// A case for each command and flag that ZooKeeper's shell lists.
fn check_that_all_have_cases(list: &str, cases: &[&str]) {
    let commands = commands_of_list(list);
    assert!(commands.len() >= 28, "that is not the whole list: {list}");
    let mut missing = BTreeSet::new();
    for (name, flags) in commands {
        let of_command: Vec<&&str> = cases.iter().filter(|line| command_name(line) == name).collect();
        if of_command.is_empty() {
            missing.insert(name.clone());
        }
        for flag in flags {
            if !of_command.iter().any(|line| line.split(' ').any(|word| word == flag)) {
                missing.insert(format!("{name} {flag}"));
            }
        }
    }
    assert!(missing.is_empty(), "without a case: {missing:?}");
}

#[test]
fn every_command_has_the_effect_and_the_answer_that_it_has_in_zookeepers_shell() {
    let settings = [("extendedTypesEnabled", "true"), ("reconfigEnabled", "true")];
    let [their, our] = [0; 2].map(|_| Server::start_with(ServerKind::ZooKeeper, &settings));
    let theirs = in_zookeepers_shell(&their.address().to_string(), ALONE);
    check_that_all_have_cases(&theirs.texts[0], ALONE);
    let ours = in_paddocks_shell(&our.address().to_string(), &[], ALONE);
    compare(ALONE, &theirs, &ours);
    assert_eq!(tree(&their), tree(&our));
    for kind in ["NodeDataChanged", "NodeChildrenChanged", "NodeCreated"] {
        assert!(ours.events.iter().any(|event| event.starts_with(kind)), "{kind}: {:?}", ours.events);
    }
}

#[test]
fn a_znode_is_shown_with_the_times_that_zookeepers_shell_shows() {
    let server = Server::start(ServerKind::ZooKeeper);
    let hosts = server.address().to_string();
    let asked = ["create /a x", "set /a y", "stat /a", "stat /zookeeper"];
    let theirs = in_zookeepers_shell(&hosts, &asked);
    let ours = in_paddocks_shell(&hosts, &[], &asked[2..]);
    for (their, our) in theirs.texts[2..].iter().zip(&ours.texts) {
        // Ours have milliseconds.
        let to_the_second = |line: &str| match line.split_once('.') {
            Some((time, _)) if line.contains("time = ") => time.to_owned(),
            _ => line.to_owned(),
        };
        let our: Vec<String> = our.lines().map(to_the_second).collect();
        let their: Vec<String> = their.lines().map(with_rfc3339_time).collect();
        assert_eq!(their, our);
        assert_eq!(our.len(), 11);
    }
}

/// Both shells ask the same ensemble, one after the other.
#[test]
fn an_ensemble_is_shown_and_changed_as_by_zookeepers_shell() {
    let places: Vec<MemberPlace> = (0..3).map(|_| MemberPlace::on_loopback_with_clients()).collect();
    // ACLs are not looked at: only an administrator may change the configuration else.
    let settings = [("reconfigEnabled", "true"), ("standaloneEnabled", "false"), ("skipACL", "yes")];
    let mut ensemble = Ensemble::start_at(ServerKind::ZooKeeper, &places, &settings);
    let directory = tempfile::tempdir().expect("make a directory");
    let file = directory.path().join("members");
    let members: Vec<String> =
        (1..).zip(&places).map(|(id, place)| format!("server.{id}={}", place.peers)).collect();
    fs::write(&file, format!("{}\n", members.join("\n"))).expect("write the list of members");
    let leader = ensemble.leader();
    let lines = of_three(&members, leader, &file.display().to_string());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let hosts = ensemble.at(leader).address().to_string();
    let theirs = in_zookeepers_shell(&hosts, &lines);
    let ours = in_paddocks_shell(&hosts, &[], &lines);
    compare(&lines, &without_versions(theirs), &without_versions(ours));
}

/// The version of a configuration is the zxid of its change, and so are fields of its Stat: no two changes share them.
fn without_versions(mut transcript: ShellTranscript) -> ShellTranscript {
    for answer in &mut transcript.answers {
        for fact in answer {
            if let Some(version) = fact.strip_prefix("version=") {
                assert!(i64::from_str_radix(version, 16).is_ok(), "{version} is no version");
                *fact = "version=some".to_owned();
            }
            if let Some((version, clients)) = fact.split_once(' ')
                && i64::from_str_radix(version, 16).is_ok()
            {
                // Theirs come in any order.
                let mut clients: Vec<&str> = clients.split(',').collect();
                clients.sort_unstable();
                *fact = format!("some {}", clients.join(","));
            }
            if let Some((name @ ("mZxid" | "dataVersion"), _)) = fact.split_once(" = ") {
                *fact = format!("{name} = some");
            }
        }
    }
    transcript
}
