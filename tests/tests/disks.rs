//! Processes whose directory is not theirs, not as new as it should be, or another process's, too.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::damage::files::{copy_all, falsify};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{Server, free_port};

const NOTICED_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

async fn write(ensemble: &Ensemble, name: &str, count: usize) {
    write_through(&ensemble.hosts(), name, count).await;
}

async fn write_through(hosts: &str, name: &str, count: usize) {
    let options = ClientOptions { session_timeout: Duration::from_secs(30), ..ClientOptions::default() };
    let client = Client::connect(hosts, options).await.expect("connect to the ensemble");
    let paths: Vec<String> = (0..count).map(|number| format!("/{name}-{number}")).collect();
    let pending: Vec<_> =
        paths.iter().map(|path| client.create(path, b"x", CreateMode::Persistent)).collect();
    for created in pending {
        created.await.expect("create a znode");
    }
    client.close().await.expect("close");
}

fn replace_directory(of: &Server, with: &Path) {
    fs::remove_dir_all(of.data_directory()).expect("remove the directory");
    copy_all(with, &of.data_directory());
}

fn wait(mut condition: impl FnMut() -> bool, what: impl Fn() -> String) {
    let deadline = Instant::now() + NOTICED_WITHIN;
    while !condition() {
        assert!(Instant::now() < deadline, "{}", what());
        std::thread::sleep(POLL);
    }
}

/// The id in the file `identity` of a directory.
fn cluster(directory: &Path) -> String {
    let text = fs::read_to_string(directory.join("identity")).expect("a member has written it");
    text.lines().find_map(|line| line.strip_prefix("cluster ")).expect("it knows its ensemble").to_owned()
}

fn mode(server: &Server) -> String {
    let srvr = server.four_letter_word("srvr").unwrap_or_default();
    srvr.lines().find_map(|line| line.strip_prefix("Mode: ")).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_directory_of_another_ensemble_is_refused_with_a_line_that_names_both() {
    let (mut one, mut other) = (Ensemble::start(3), Ensemble::start(3));
    write(&one, "one", 2000).await;
    write(&other, "other", 1500).await;
    one.settle();
    (0..3).for_each(|place| one.member(place).kill());
    other.member(2).kill();
    let foreign = one.member(2).data_directory();
    let ids = [cluster(&foreign), cluster(&other.member(0).data_directory())];
    replace_directory(other.member(2), &foreign);
    other.member(2).spawn();
    wait(
        || other.member(2).log().lines().any(|line| ids.iter().all(|id| line.contains(id.as_str()))),
        || "no line names both ensembles".to_owned(),
    );
    // The stranger counts in no quorum: without another member nothing is written.
    assert!(!["leader", "follower"].contains(&&*mode(other.member(2))), "it takes part");
    wait(|| other.self_declared_leader().is_some(), || "two of three do not go on".to_owned());
    let leader = other.self_declared_leader().expect("it was just there");
    other.member(1 - leader).kill();
    wait(|| other.self_declared_leader().is_none(), || "a member of another ensemble counts".to_owned());
}

#[tokio::test]
async fn a_member_with_its_own_older_directory_learns_before_it_serves() {
    let mut ensemble = Ensemble::start(3);
    write(&ensemble, "first", 1000).await;
    ensemble.settle();
    let follower = (ensemble.leader() + 1) % 3;
    let kept = tempfile::tempdir().expect("make a directory");
    copy_all(&ensemble.member(follower).data_directory(), kept.path());
    write(&ensemble, "second", 2000).await;
    ensemble.settle();
    ensemble.member(follower).kill();
    replace_directory(ensemble.member(follower), kept.path());
    let leader = ensemble.self_declared_leader().expect("two of three go on");
    ensemble.member(follower).spawn();
    ensemble.member(follower).wait_for_log("older than what it has acknowledged");
    ensemble.member(leader).wait_for_log("older than what it has acknowledged");
    ensemble.leader();
    ensemble.settle();
}

#[tokio::test]
async fn a_second_process_of_a_member_is_refused_and_both_sides_name_the_two() {
    let mut lines = server_lines(3);
    let mut ensemble = Ensemble::start_each(3, &lines, |_| Vec::new());
    write(&ensemble, "a", 100).await;
    // A copy of the third member's directory, on ports of its own.
    lines[2].1 = format!("127.0.0.1:{}:{}", free_port(), free_port());
    let settings: Vec<(&str, &str)> = lines.iter().map(|(key, value)| (&**key, &**value)).collect();
    let mut copy = Server::start_member(3, &settings);
    copy.kill();
    replace_directory(&copy, &ensemble.member(2).data_directory());
    copy.forget_log();
    copy.spawn();
    copy.wait_for_log("runs in another process already, which calls from 127.0.0.1:");
    ensemble.member(0).wait_for_log("first_process=127.0.0.1:");
    assert!(!["leader", "follower"].contains(&&*mode(&copy)), "two processes take part as one member");
    ensemble.leader();
    write(&ensemble, "b", 100).await;
    let log = ensemble.member(2).log();
    assert!(!log.contains("link down"), "the first process has lost a link: {log}");
}

#[tokio::test]
async fn a_member_whose_state_is_wrong_puts_its_files_aside_and_fetches_the_state_again() {
    let mut ensemble = Ensemble::start(3);
    write(&ensemble, "right", 200).await;
    ensemble.settle();
    let follower = usize::from(ensemble.leader() == 0);
    ensemble.member(follower).kill();
    let directory = ensemble.member(follower).data_directory();
    falsify(&directory.join("log"), b"/right-150", b"/wrong-150");
    ensemble.member(follower).forget_log();
    ensemble.member(follower).spawn();
    ensemble.settle();
    // Members compare their states at every 64th entry. Each round is at least three: a session begins, writes and ends.
    let others =
        ensemble.addresses_beside(follower).iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    for round in 0..30 {
        write_through(&others, &format!("later-{round}"), 1).await;
    }
    let server = ensemble.member(follower);
    server.wait_for_log("the state of this member was wrong: its files were put aside, and it begins anew");
    wait(|| mode(server) == "follower", || "it does not come back".to_owned());
    let address = server.address().to_string();
    let client = Client::connect(&address, ClientOptions::default()).await.expect("connect to the member");
    client.sync("/").await.expect("sync");
    assert!(client.exists("/right-150").await.is_ok(), "the state is the ensemble's");
    assert!(client.exists("/wrong-150").await.is_err(), "the state is the ensemble's");
    let names = fs::read_dir(&directory).expect("list the directory");
    let names: Vec<_> = names.map(|entry| entry.expect("list").file_name().into_string().unwrap()).collect();
    for aside in ["log.diverged-", "snapshots.diverged-"] {
        assert!(names.iter().any(|name| name.starts_with(aside)), "no {aside} in {names:?}");
    }
    assert!(server.is_running(), "the same process has begun anew");
}
