//! `paddock bench suite` with real servers: both kinds, an interruption, and the same command again.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs, thread};

use serde_json::Value;
use tempfile::TempDir;

const SUITE: &str = r#"
name = "a small one"
repetitions = 2
baseline = "zookeeper"

[files]
"zoo.cfg" = """
dataDir={dir}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=*
"""

[[server]]
name = "zookeeper"
command = ["java", "-Xmx256m", "-cp", "${ZOOKEEPER_CLASSPATH}",
           "org.apache.zookeeper.server.quorum.QuorumPeerMain", "{dir}/zoo.cfg"]

[[server]]
name = "paddock"
command = ["${PADDOCK_BIN}", "server", "--config", "{dir}/zoo.cfg", "--log", "warn"]

[[workload]]
name = "create"
sessions = [2]
window = [1, 10]
requests = [500]
"#;

fn paddock() -> Command {
    Command::new(env::var("PADDOCK_BIN").expect("PADDOCK_BIN is not set: run `cargo xtask test process`"))
}

fn start(directory: &Path) -> Child {
    let mut command = paddock();
    command
        .args(["bench", "suite"])
        .arg(directory.join("suite.toml"))
        .arg("--out")
        .arg(directory.join("out"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("run paddock bench suite")
}

/// The steps that are done, without the line at the top.
fn done(directory: &Path) -> usize {
    let text = fs::read_to_string(directory.join("out/results.jsonl")).unwrap_or_default();
    text.lines().count().saturating_sub(1)
}

#[test]
fn an_interrupted_suite_goes_on_where_it_stopped() {
    let directory = TempDir::new().expect("make a directory");
    fs::write(directory.path().join("suite.toml"), SUITE).expect("write the suite");

    let mut first = start(directory.path());
    while done(directory.path()) < 2 {
        assert!(first.try_wait().expect("ask for the exit status").is_none(), "it ended early");
        thread::yield_now();
    }
    let sent = Command::new("kill").arg("-INT").arg(first.id().to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()), "send SIGINT");
    assert_eq!(first.wait().expect("wait for the suite").code(), Some(130));
    let before = done(directory.path());
    assert!((2..8).contains(&before), "{before} of 8 steps were done");
    let kept = fs::read_to_string(directory.path().join("out/results.jsonl")).expect("read the results");

    assert_eq!(start(directory.path()).wait().expect("wait for the suite").code(), Some(0));
    let results = fs::read_to_string(directory.path().join("out/results.jsonl")).expect("read the results");
    assert!(results.starts_with(&kept), "what was measured is not measured again");
    assert_eq!(done(directory.path()), 8);

    let summary = fs::read_to_string(directory.path().join("out/summary.json")).expect("read the summary");
    let summary: Value = serde_json::from_str(&summary).expect("the summary is JSON");
    assert_eq!(summary["failures"], Value::Array(Vec::new()), "{summary}");
    let page = fs::read_to_string(directory.path().join("out/report.html")).expect("read the page");
    assert!(page.contains("<svg") && page.contains("zookeeper"), "the page has charts");
}
