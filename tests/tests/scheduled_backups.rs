//! Backups that a server makes by itself: they go on through restarts and changes of the leader, the oldest go, and what fails is told and does no harm.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use paddock_client::{Client, CreateMode};
use paddock_tests::administered::{Administered, connect, files, identity_file, paddock, succeed, text};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{Server, ServerKind, free_port};
use paddock_tests::waiting::wait_until;
use serde_json::Value;

/// Settings of a server that looks at the place of its backups each second.
fn schedule(to: &Path, full_interval_ms: u64, keep: usize) -> Vec<(String, String)> {
    [
        ("paddock.backup.to", text(to).to_owned()),
        ("paddock.backup.full_interval_ms", full_interval_ms.to_string()),
        ("paddock.backup.log_interval_ms", "1000".to_owned()),
        ("paddock.backup.keep", keep.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .to_vec()
}

fn borrowed(settings: &[(String, String)]) -> Vec<(&str, &str)> {
    settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

/// Names of the backups, the oldest first.
fn backups(place: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let entries = entries.map(|entry| entry.expect("list a directory"));
    let whole = entries.filter(|entry| entry.path().join("manifest.json").is_file());
    let mut names: Vec<String> = whole.map(|entry| entry.file_name().into_string().expect("text")).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Zxid up to which the newest backup goes.
fn end(place: &Path) -> i64 {
    let Some(name) = backups(place).pop() else { return 0 };
    let Ok(manifest) = fs::read(place.join(name).join("manifest.json")) else { return 0 };
    let manifest: Value = serde_json::from_slice(&manifest).expect("a manifest is JSON");
    let last = manifest["logs"].as_array().expect("a list").last();
    last.unwrap_or(&manifest["snapshot"])["zxid"].as_i64().expect("a zxid")
}

/// Writes, and waits until the newest backup has it.
async fn write_and_wait(client: &Client, path: &str, place: &Path) {
    // The server that the client is connected to may just have been killed.
    let zxid = loop {
        let _ = client.create(path, b"x", CreateMode::Persistent).await;
        if let Ok(stat) = client.exists(path).await {
            break stat.czxid.0;
        }
    };
    wait_until("a backup has the last write", || end(place) >= zxid);
}

/// Restores what the place has, and returns the paths of the root's children.
async fn restored(place: &Path) -> Vec<String> {
    let temp = tempfile::tempdir().expect("temporary directory");
    let dir = temp.path().join("restored");
    succeed(&["restore", "--from", text(place), "--data-dir", text(&dir)]);
    let mut server = Server::prepare(ServerKind::Paddock, &[]);
    fs::remove_dir_all(server.data_directory()).expect("make room");
    let moved =
        std::process::Command::new("mv").arg(&dir).arg(server.data_directory()).status().expect("run mv");
    assert!(moved.success());
    server.restart();
    let client = connect(&server.address().to_string()).await;
    let mut children = client.get_children("/").await.expect("list");
    children.retain(|child| child != "zookeeper");
    children.sort();
    children
}

fn metric(metrics: SocketAddr, name: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(metrics).expect("connect");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").expect("ask");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("read");
    page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

fn metrics_settings(port: u16) -> Vec<(String, String)> {
    let provider = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";
    let settings = [
        ("metricsProvider.className", provider.to_owned()),
        ("metricsProvider.httpHost", "127.0.0.1".to_owned()),
        ("metricsProvider.httpPort", port.to_string()),
    ];
    settings.map(|(key, value)| (key.to_owned(), value)).to_vec()
}

#[tokio::test]
async fn a_member_goes_on_with_its_backups_and_the_oldest_go() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let place = temp.path().join("backups");
    let port = free_port();
    let settings = [schedule(&place, 3_600_000, 2), metrics_settings(port)].concat();
    let mut server = Server::start_with(ServerKind::Paddock, &borrowed(&settings));
    let client = connect(&server.address().to_string()).await;
    write_and_wait(&client, "/a", &place).await;
    write_and_wait(&client, "/b", &place).await;
    let first = backups(&place);
    assert_eq!(first.len(), 1, "the log was added to the one that there is: {first:?}");
    assert_eq!(restored(&place).await, ["a", "b"]);
    let metrics = SocketAddr::from(([127, 0, 0, 1], port));
    assert_eq!(metric(metrics, "paddock_backups_made"), Some(1.0));
    assert_eq!(metric(metrics, "paddock_backup_failures"), Some(0.0));
    assert_eq!(metric(metrics, "paddock_backup_zxid"), Some(end(&place) as f64));

    // A member that starts again adds to the same backup.
    drop(client);
    server.stop();
    server.restart();
    let client = connect(&server.address().to_string()).await;
    write_and_wait(&client, "/c", &place).await;
    assert_eq!(backups(&place), first);

    // New ones are made when the newest is old enough, and two are left.
    let often = [schedule(&place, 1000, 2), metrics_settings(port)].concat();
    server.write_config(&borrowed(&often));
    wait_until("the first backup goes", || !backups(&place).contains(&first[0]));
    write_and_wait(&client, "/d", &place).await;
    assert!(backups(&place).len() <= 3, "one that was just made may stand beside two: {:?}", backups(&place));
    assert_eq!(restored(&place).await, ["a", "b", "c", "d"]);

    // Without the setting there are no more.
    server.write_config(&borrowed(&metrics_settings(port)));
    wait_until("the metrics say nothing of backups", || metric(metrics, "paddock_backups_made").is_none());
    let last = backups(&place);
    client.create("/e", b"", CreateMode::Persistent).await.expect("create");
    assert_eq!(backups(&place), last);
    assert!(files(&place).iter().all(|file| !text(file).contains("unfinished")), "{:?}", files(&place));
}

#[tokio::test]
async fn whoever_leads_goes_on_in_a_place_that_all_share() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let place = temp.path().join("backups");
    let settings = schedule(&place, 3_600_000, 2);
    let mut ensemble = Ensemble::start_each(3, &server_lines(3), |_| settings.clone());
    let client = connect(&ensemble.hosts()).await;
    write_and_wait(&client, "/a", &place).await;
    let first = backups(&place);
    for path in ["/b", "/c"] {
        let leader = ensemble.leader();
        ensemble.member(leader).kill();
        write_and_wait(&client, path, &place).await;
        ensemble.member(leader).restart();
        ensemble.settle();
    }
    assert_eq!(backups(&place), first, "the same backup goes on");
    assert_eq!(restored(&place).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn backups_of_other_data_are_left_alone() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let place = temp.path().join("backups");
    let settings = schedule(&place, 1000, 1);
    let owner = Server::start_with(ServerKind::Paddock, &borrowed(&settings));
    let client = connect(&owner.address().to_string()).await;
    for number in 0..20 {
        client.create(&format!("/{number}"), b"", CreateMode::Persistent).await.expect("create");
    }
    write_and_wait(&client, "/owner", &place).await;
    drop(owner);
    let before = backups(&place);

    let other = Server::start_with(ServerKind::Paddock, &borrowed(&settings));
    other.wait_for_log("name another place, or move the backups away");
    assert_eq!(backups(&place), before, "nothing was removed");
    assert!(restored(&place).await.contains(&"owner".to_owned()));
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_told_and_tried_again() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let place = temp.path().join("backups");
    // A file stands where the directory is to be.
    fs::write(&place, "").expect("write");
    let port = free_port();
    let settings = [schedule(&place, 3_600_000, 2), metrics_settings(port)].concat();
    let server = Server::start_with(ServerKind::Paddock, &borrowed(&settings));
    server.wait_for_log("no backup was made; it is tried again");
    let client = connect(&server.address().to_string()).await;
    client.create("/a", b"", CreateMode::Persistent).await.expect("the member serves");
    fs::remove_file(&place).expect("make room");
    write_and_wait(&client, "/b", &place).await;
    let metrics = SocketAddr::from(([127, 0, 0, 1], port));
    assert!(metric(metrics, "paddock_backup_failures") > Some(0.0));

    // A manifest that is damaged is no reason to make no more backups.
    let [name] = backups(&place).try_into().expect("one backup");
    fs::write(place.join(&name).join("manifest.json"), "{}").expect("write");
    server.wait_for_log("this one does not go on");
    wait_until("a new backup is there", || backups(&place).len() == 2);
    assert_eq!(restored(&place).await, ["a", "b"]);
}

#[test]
fn settings_that_cannot_be_are_refused_and_those_that_can_are_shown() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let file = temp.path().join("paddock.toml");
    let check = |text: &str| {
        fs::write(&file, text).expect("write");
        paddock(&["server", "--check", "--config", file.to_str().expect("text")])
            .output()
            .expect("run paddock")
    };
    let output = check("[backup]\nkeep = 3\n");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("backup: to is missing"), "{told}");
    let output = check("[backup]\nto = 's3://bucket/paddock'\n");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.contains("[backup]\nto = \"s3://bucket/paddock\"") && shown.contains("keep = 7"),
        "{shown}"
    );
}

/// While znodes are spread over groups there is no log that could be added to a backup: each is one of all groups.
#[tokio::test]
async fn backups_of_a_schedule_have_the_znodes_of_all_groups() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let place = temp.path().join("backups");
    let groups = [("paddock.group_count", "3"), ("paddock.split_points", "/app")];
    let groups = groups.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let settings = [schedule(&place, 1000, 9), groups.to_vec()].concat();
    let Administered { server, admin } = Administered::start(&borrowed(&settings)).await;
    let (host, auth) = (admin.to_string(), identity_file(temp.path()));
    let client = connect(&server.address().to_string()).await;
    write_and_wait(&client, "/app", &place).await;
    wait_until("the groups are there", || {
        server.four_letter_word("mntr").is_ok_and(|told| told.contains("zk_groups\t3"))
    });
    succeed(&["groups", "move", &host, "/app", "--evenly", "--auth", &auth]);
    for number in 0..9 {
        client.create(&format!("/app/{number}"), b"x", CreateMode::Persistent).await.expect("create");
    }
    write_and_wait(&client, "/app/last", &place).await;
    let copy = temp.path().join("copy");
    succeed(&["restore", "--from", text(&place), "--data-dir", text(&copy)]);
    let znodes = succeed(&["dump", text(&copy)]);
    assert_eq!(znodes.matches("/app/").count(), 10, "{znodes}");
    succeed(&["groups", "move", &host, "/app", "--to", "0", "--auth", &auth]);
    write_and_wait(&client, "/after", &place).await;
    assert_eq!(restored(&place).await, ["after", "app"]);
    drop(client);
}
