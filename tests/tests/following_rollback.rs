//! Members of an ensemble of Apache ZooKeeper are put back to a backup while they are followed.

use std::path::Path;
use std::process::Command;

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::ensemble::{Ensemble, MemberPlace};
use paddock_tests::following::{Follower, compare_with_copy, quorum_ports};
use paddock_tests::server::ServerKind;

async fn make_znodes(hosts: &str, name: &str) {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    for number in 0..50 {
        let path = format!("/{name}-{number}");
        client.create(&path, b"made", CreateMode::Persistent).await.expect("make a znode");
    }
    client.close().await.expect("close the session");
}

fn copy_directory(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "copy {}", from.display());
}

/// All members are given back what they held earlier, as from a backup: the follower has more than they do.
#[tokio::test]
async fn an_ensemble_that_was_rolled_back_is_read_again() {
    let places: Vec<MemberPlace> = (0..3).map(|_| MemberPlace::on_loopback()).collect();
    let mut zookeeper = Ensemble::start_at(ServerKind::ZooKeeper, &places, &[("tickTime", "1000")]);
    let hosts = zookeeper.hosts();
    make_znodes(&hosts, "before").await;
    let directory = tempfile::tempdir().expect("make a directory");
    let to = directory.path().join("paddock");
    let copy = format!("{}.following", to.display());
    let mut follower = Follower::start(&quorum_ports(&places), &to, &[]);
    follower.says(1, "following ").await;

    let backup = |place: usize| directory.path().join(format!("backup-{place}"));
    (0..3).for_each(|place| zookeeper.member(place).kill());
    for place in 0..3 {
        copy_directory(&zookeeper.member(place).data_directory(), &backup(place));
    }
    (0..3).for_each(|place| zookeeper.member(place).spawn());
    zookeeper.leader();
    follower.says(2, "following ").await;
    make_znodes(&hosts, "lost").await;
    compare_with_copy(&hosts, &copy).await;

    (0..3).for_each(|place| zookeeper.member(place).kill());
    for place in 0..3 {
        let data = zookeeper.member(place).data_directory();
        std::fs::remove_dir_all(&data).expect("remove what the member holds");
        copy_directory(&backup(place), &data);
    }
    (0..3).for_each(|place| zookeeper.member(place).spawn());
    zookeeper.leader();
    follower.says(1, "was rolled back behind what it sent before").await;
    follower.says(3, "following ").await;
    make_znodes(&hosts, "after").await;
    compare_with_copy(&hosts, &copy).await;
}
