//! `paddock inspect` on directories of members that have ended, and of Apache ZooKeeper. Damaged ones are those of `damage.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::administered::text;
use paddock_tests::damage::files::DataDir;
use paddock_tests::damage::history::DamagedHistory;
use paddock_tests::keeper_directories::keeper_directories;
use paddock_tests::server::{Server, ServerKind, environment};
use serde_json::Value;

fn inspect(arguments: &[&str], path: &Path) -> Output {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.arg("inspect").args(&arguments[..1]).arg(path).args(&arguments[1..]);
    command.output().expect("run paddock inspect")
}

/// Output of a look that succeeds.
fn looked(arguments: &[&str], path: &Path) -> String {
    let output = inspect(arguments, path);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("what it prints is text")
}

fn json_lines(arguments: &[&str], path: &Path) -> Vec<Value> {
    let text = looked(&[arguments, &["--json"]].concat(), path);
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

async fn client(server: &Server) -> Client {
    Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect")
}

/// A few changes, one of them refused.
async fn write(server: &Server) {
    let client = client(server).await;
    client.create("/app", b"first", CreateMode::Persistent).await.expect("create");
    client.set_data("/app", b"second!", None).await.expect("set");
    client.create("/app/job-", b"", CreateMode::PersistentSequential).await.expect("create a child");
    client.create("/app", b"", CreateMode::Persistent).await.expect_err("it is there");
    client.delete("/app/job-0000000000", None).await.expect("delete the child");
    client.create("/heavy", &[b'x'; 5000], CreateMode::Persistent).await.expect("create");
    client.create("/heavy/child", &[b'y'; 100], CreateMode::Persistent).await.expect("create");
    client.close().await.expect("close");
}

#[tokio::test]
async fn every_change_of_a_stopped_member_is_shown_with_its_outcome() {
    let mut server = Server::start(ServerKind::Paddock);
    write(&server).await;
    let data = server.data_directory();
    let refused = inspect(&["state"], &data);
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("a process runs on") && told.lines().count() == 1, "{told}");

    server.stop();
    let before = contents(&data);
    let changes = json_lines(&["log"], &data);
    let shown: Vec<_> = changes
        .iter()
        .filter(|change| change["path"].is_string())
        .map(|change| {
            [&change["operation"], &change["path"], &change["outcome"]].map(|part| part.as_str().unwrap())
        })
        .collect();
    let expected = [
        ["create", "/app", "ok"],
        ["setData", "/app", "ok"],
        ["create", "/app/job-", "ok /app/job-0000000000"],
        ["create", "/app", "NodeExists"],
        ["delete", "/app/job-0000000000", "ok"],
        ["create", "/heavy", "ok"],
        ["create", "/heavy/child", "ok"],
    ];
    assert_eq!(shown, expected);

    // A znode's history has what changed it, and nothing else: its children, too, and not what was refused.
    let history = json_lines(&["log", "--path", "/app"], &data);
    let operations: Vec<_> = history.iter().map(|change| change["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["create", "setData", "create", "delete"]);
    assert_eq!(history[1]["znode_after"]["data_length"], 7);
    let index = history[1]["index"].to_string();
    let range = json_lines(&["log", "--from", &index, "--to", &index], &data);
    assert_eq!(range.len(), 1);
    assert_eq!(range[0]["zxid"], history[1]["zxid"]);
    let alone = json_lines(&["log", "--from", &index, "--to", &index], &data.join("log"));
    assert_eq!((&alone[0]["operation"], &alone[0]["outcome"]), (&"setData".into(), &Value::Null));

    let state = json_lines(&["state"], &data).remove(0);
    assert_eq!(state["member"], 1);
    assert_eq!(state["znodes_by_bytes"][0], serde_json::json!(["/heavy", 5000]));
    assert_eq!(state["subtrees_by_bytes"][0], serde_json::json!(["/", 5107]));
    assert_eq!(state["subtrees_by_bytes"][1], serde_json::json!(["/heavy", 5100]));
    assert!(looked(&["state"], &data).contains("Znodes with most children"));
    assert!(looked(&["identity"], &data).starts_with("member    1\n"));
    assert!(looked(&["log"], &data).contains("setData /app 7 bytes → ok"));
    assert!(before == contents(&data), "a look writes nothing");
}

#[tokio::test]
async fn snapshots_are_verified_and_the_log_is_applied_behind_them() {
    let history = DamagedHistory::with_snapshots(2, 10).await;
    let dir = history.copy();
    let snapshots = json_lines(&["snapshot"], &dir.path());
    assert!(snapshots.len() >= 2 && snapshots.iter().all(|file| file["is_whole"] == true), "{snapshots:?}");
    let state = json_lines(&["state"], &dir.path()).remove(0);
    assert_eq!(state["snapshots_entry"], snapshots.last().unwrap()["index"]);
    // Of the tree that clients saw, the root and what is below it.
    let alone = json_lines(&["state"], &dir.snapshots()[0]).remove(0);
    assert!(alone["znodes"].as_u64() <= state["znodes"].as_u64(), "{alone}");
    let one = looked(&["snapshot"], &dir.snapshots()[0]);
    assert!(one.contains("whole") && one.contains("voters 1"), "{one}");

    let damaged = history.copy();
    let oldest: &Path = &damaged.snapshots()[0];
    let length = fs::metadata(oldest).expect("look at a snapshot").len();
    paddock_tests::damage::files::flip(oldest, length / 2);
    let name = oldest.file_name().unwrap().to_str().unwrap().to_owned();
    for what in ["snapshot", "state"] {
        let output = inspect(&[what], &damaged.path());
        assert_eq!(output.status.code(), Some(1), "{what}");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains(&name) && shown.contains("is damaged at offset"), "{what}: {shown}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("1 of ") && told.contains("snapshots cannot be used"), "{told}");
    }
}

#[tokio::test]
async fn a_damaged_identity_is_said() {
    let history = DamagedHistory::without_snapshot(5).await;
    let dir: DataDir = history.copy();
    let file = dir.path().join("identity");
    paddock_tests::damage::files::flip(&file, 8);
    let output = inspect(&["identity"], &dir.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("its checksum does not fit"));
    let output = inspect(&["state"], Path::new("/proc/sys"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a data directory"), "{output:?}");
}

#[tokio::test]
async fn files_of_zookeeper_are_read_too() {
    let mut server = Server::start(ServerKind::ZooKeeper);
    write(&server).await;
    server.stop();
    let data = server.data_directory();
    let state = json_lines(&["state"], &data).remove(0);
    assert_eq!(state["files"], "ZooKeeper");
    assert_eq!(state["znodes_by_bytes"][0], serde_json::json!(["/heavy", 5000]));
    let lines = json_lines(&["log"], &data);
    let (files, changes): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| line.get("file").is_some());
    assert!(files.iter().any(|file| file["transactions"].as_u64() > Some(5)), "{files:?}");
    let is_of_heavy = |change: &&&Value| change["operations"][0]["path"] == "/heavy";
    let heavy: Vec<&Value> = changes.iter().copied().filter(|change| is_of_heavy(&change)).collect();
    assert_eq!(heavy[0]["operations"][0]["operation"], "create");
    assert_eq!(heavy[0]["operations"][0]["detail"], "Persistent, 5000 bytes");
    let zxid = heavy[0]["zxid"].as_i64().expect("a zxid");
    let one = looked(&["log", "--from", &format!("0x{zxid:x}"), "--to", &zxid.to_string()], &data);
    let line =
        one.lines().find(|line| line.contains("create /heavy Persistent, 5000 bytes")).expect("it is shown");
    assert!(line.trim_start().starts_with(&format!("0x{zxid:x} ")), "{one}");
    assert!(looked(&["log", "--path", "/heavy"], &data).lines().count() < lines.len(), "only what names it");

    // A record that is damaged is named, behind what stands before it.
    let before = contents(&data);
    let log = before.keys().find(|path| path.contains("/log.")).expect("there is a log");
    let mut bytes = before[log].clone();
    let at = bytes.windows(6).position(|window| window == b"/heavy").expect("the path is in the log");
    bytes[at + 2] ^= 1;
    fs::write(log, &bytes).expect("write");
    let output = inspect(&["log"], &data);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("checksum is wrong") && told.contains("at offset"), "{told}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("createSession"), "what is whole is shown");
}

#[test]
fn files_of_clickhouse_keeper_are_read_and_what_is_damaged_is_named() {
    let root = tempfile::tempdir().expect("a directory");
    let [snapshots, logs] = keeper_directories(root.path());
    let before = contents(root.path());
    let state = json_lines(&["state"], root.path()).remove(0);
    assert_eq!(
        (&state["files"], &state["digest"]),
        (&"ClickHouse Keeper".into(), &"right".into()),
        "{state}"
    );
    let lines = json_lines(&["log"], root.path());
    let (files, changes): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| line.get("file").is_some());
    assert_eq!(files[0]["transactions"], changes.len());
    let of_a = |change: &&&Value| {
        change["operations"].as_array().expect("a list").iter().any(|one| one["path"] == "/a")
    };
    let set = changes.iter().find(|change| of_a(change) && change["operations"][0]["operation"] == "setData");
    let set = set.expect("/a was written");
    let index = set["index"].as_u64().expect("an entry has a number").to_string();
    let shown = looked(&["log", "--from", &index, "--to", &index], root.path());
    assert!(shown.contains("setData /a 2 bytes"), "{shown}");
    let shown = looked(&["log", "--log-dir", text(&logs), "--path", "/a"], &snapshots);
    let (heading, rest) = shown.split_once('\n').expect("several lines");
    let (rest, _) = rest.split_once(text(&logs)).expect("the files stand behind the requests");
    assert!(heading.contains("zxid") && rest.contains("setData /a"), "{shown}");
    assert!(rest.lines().filter(|line| !line.is_empty()).all(|line| line.contains("/a")), "{shown}");
    assert!(looked(&["snapshot"], root.path()).contains("whole"));
    assert_eq!(contents(root.path()), before, "nothing was written");

    // A bit that is wrong, and an end that is missing, in each file.
    for path in before.keys() {
        let whole = &before[path];
        for at in [whole.len() / 4, whole.len() / 2, whole.len() - 3] {
            let mut wrong = whole.clone();
            wrong[at] ^= 0x10;
            fs::write(path, &wrong).expect("write");
            let output = inspect(&["state"], root.path());
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            // Keeper's snapshots have no checksum of their own, but for the digest of all znodes: a session's timeout is not part of it.
            if output.status.success() && path.contains("snapshot_") {
                assert!(String::from_utf8_lossy(&output.stdout).contains("  right\n"), "{output:?}");
                continue;
            }
            assert_eq!(output.status.code(), Some(1), "{path}, a bit at {at}: {output:?}");
            let name = Path::new(path).file_name().expect("a name").to_string_lossy();
            let is_named = told.contains(&*name) || told.contains("the digest is wrong");
            assert!(told.lines().count() == 1 && is_named, "{path}, a bit at {at}: {told}");
        }
        fs::write(path, &whole[..whole.len() - 3]).expect("write");
        let output = inspect(&["state"], root.path());
        let told = format!("{output:?}");
        let is_log = path.contains("changelog");
        assert_eq!(output.status.success(), is_log, "an unfinished record ends a log: {told}");
        if is_log {
            assert!(looked(&["log"], root.path()).contains("one that was never finished"));
        }
        fs::write(path, whole).expect("write");
    }
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("list a directory") {
        let path = entry.expect("list a directory").path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.display().to_string(), fs::read(&path).expect("read a file"))),
        }
    }
    found
}
