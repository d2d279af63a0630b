//! The audit log has the lines that Apache ZooKeeper's has for the same requests.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use paddock_client::{Acl, Client, ClientOptions, CreateMode, Id, Multi, Perms};
use paddock_tests::server::{Server, ServerKind};

/// Requests of every kind that is written down, good ones and bad ones; then the session ends with its ephemerals.
async fn ask(server: &Server) {
    let client =
        Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect");
    let everyone = [Acl::open()];
    for mode in [
        CreateMode::Persistent,
        CreateMode::Ephemeral,
        CreateMode::PersistentSequential,
        CreateMode::EphemeralSequential,
        CreateMode::Container,
    ] {
        let _ = client.create(&format!("/{}", mode.flags()), b"", mode).await;
    }
    // The second is refused, and so are those whose parent or version is not there.
    let _ = client.create("/0", b"", CreateMode::Persistent).await;
    let _ = client.create2("/none/x", b"", &everyone, CreateMode::EphemeralSequential).await;
    let _ = client.create_with_acl("/acl", b"", &[], CreateMode::Persistent).await;
    let _ = client.set_data("/0", b"1", None).await;
    let _ = client.set_data("/0", b"1", Some(9)).await;
    let bob = Acl { perms: Perms(5), id: Id::new("digest", "bob:aGFzaA==") };
    let _ = client.set_acl("/0", &[bob, everyone[0].clone()], None).await;
    let _ = client.set_acl("/none", &everyone, None).await;
    let _ = client.delete("/none", None).await;

    let good = Multi::new().create("/m", b"", CreateMode::Persistent).set_data("/m", b"1", None);
    let good = good.check("/m", None).delete("/m", None).create("/n", b"", CreateMode::Ephemeral);
    let _ = client.multi(&good).await;
    let bad = Multi::new().create("/m", b"", CreateMode::Persistent).delete("/none", None);
    let _ = client.multi(&bad).await;

    client.add_auth("digest", b"alice:secret").await.expect("prove who asks");
    let _ = client.create("/alice", b"", CreateMode::Persistent).await;
    let _ = client.reconfig("", "3", None).await;
    let _ = client.get_data("/alice").await;
    client.close().await.expect("close the session");
}

/// The lines in a log without time and session. Users, and ephemerals that went with their session, stand in the order of a hash
/// table in ZooKeeper's.
fn lines(log: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in log.lines().filter(|line| line.contains("operation=")) {
        let level = ["INFO", "ERROR"].into_iter().find(|level| line.contains(level)).expect("a level");
        let start = line.find("session=").or_else(|| line.find("user=")).expect("a user");
        let pairs: Vec<String> = line[start..].split('\t').map(comparable).collect();
        lines.push(format!("{level} {}", pairs.join(" ")));
    }
    let first_death = lines.iter().position(|line| line.contains("operation=ephemeral")).expect("a death");
    let deaths = lines[first_death..].iter().take_while(|line| line.contains("operation=ephemeral")).count();
    lines[first_death..first_death + deaths].sort();
    lines
}

fn comparable(pair: &str) -> String {
    match pair.split_once('=').expect("a pair") {
        ("session", id) => {
            assert!(id.starts_with("0x"), "{id}");
            "session".to_owned()
        }
        ("user", users) => {
            // ZooKeeper does not say that the server has not checked the user of a digest.
            let mut users: Vec<&str> =
                users.split(',').map(|user| user.trim_end_matches("(unproven)")).collect();
            users.sort_unstable();
            format!("user={}", users.join(","))
        }
        _ => pair.to_owned(),
    }
}

/// Waits for the lines about so many ephemerals that went with their session.
fn wait_for_deaths(file: &Path, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let written = || fs::read_to_string(file).expect("read the audit log");
    while written().matches("operation=ephemeral").count() < count {
        assert!(Instant::now() < deadline, "lines about ephemerals are missing:\n{}", written());
        thread::yield_now();
    }
}

#[tokio::test]
async fn lines_are_zookeepers() {
    let mut zookeeper = Server::start_with(ServerKind::ZooKeeper, &[("audit.enable", "true")]);
    ask(&zookeeper).await;
    let directory = tempfile::tempdir().expect("make a directory");
    let file = directory.path().join("audit.log");
    let settings = [("audit.enable", "true"), ("audit.file", file.to_str().expect("a path in UTF-8"))];
    let mut paddock = Server::start_with(ServerKind::Paddock, &settings);
    ask(&paddock).await;
    // Clients are answered before these lines are written, and a server that is stopped at once would be in front of them.
    wait_for_deaths(&file, 3);

    assert!(paddock.stop().success());
    zookeeper.stop();
    let expected = lines(&zookeeper.log());
    assert!(expected.len() > 20, "ZooKeeper has an audit log:\n{}", expected.join("\n"));
    let found = lines(&fs::read_to_string(&file).expect("read the audit log"));
    assert_eq!(found.join("\n"), expected.join("\n"));
}

#[tokio::test]
async fn a_renamed_file_is_left_and_the_log_can_take_the_lines() {
    let directory = tempfile::tempdir().expect("make a directory");
    let file = directory.path().join("audit.log");
    let settings = [("audit.enable", "true"), ("audit.file", file.to_str().expect("a path in UTF-8"))];
    let paddock = Server::start_with(ServerKind::Paddock, &settings);
    let client =
        Client::connect(&paddock.address().to_string(), ClientOptions::default()).await.expect("connect");
    fs::rename(&file, directory.path().join("audit.log.1")).expect("rename the audit log");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !file.exists() {
        assert!(Instant::now() < deadline, "the audit log is not opened again");
        client.create("/s", b"", CreateMode::PersistentSequential).await.expect("create");
        thread::yield_now();
    }

    let to_log = Server::start_with(ServerKind::Paddock, &[("audit.enable", "true")]);
    let client =
        Client::connect(&to_log.address().to_string(), ClientOptions::default()).await.expect("connect");
    client.create("/a", b"", CreateMode::Persistent).await.expect("create");
    client.close().await.expect("close");
    let log = to_log.log();
    assert!(log.contains("operation=serverStart") && log.contains("znode=/a"), "{log}");

    let silent = Server::start(ServerKind::Paddock);
    let client =
        Client::connect(&silent.address().to_string(), ClientOptions::default()).await.expect("connect");
    client.create("/a", b"", CreateMode::Persistent).await.expect("create");
    assert!(!silent.log().contains("operation="));
}
