//! Members of this build and of the one before it in one ensemble, under kazoo and ZooKeeper's Java client: upgraded one by one, and
//! downgraded again.
//!
//! - `PADDOCK_BEFORE_BIN`: the `paddock` binary of the build before.
//! - `UPGRADE_ROUNDS` makes it longer: the number of times that all members are upgraded and downgraded.

use paddock_client::{Client, ClientOptions};
use paddock_proto::CreateMode;
use paddock_tests::ensemble::Ensemble;
use paddock_tests::rolling::Rolling;
use paddock_tests::rounds;
use paddock_tests::server::{Server, ServerKind};

/// Few, so that members write snapshots and send them to each other.
const ENTRIES_PER_SNAPSHOT: (&str, &str) = ("snapCount", "300");

#[test]
fn an_upgrade_and_a_downgrade_cost_no_request_no_write_and_no_session() {
    let ensemble = Ensemble::start_kind(ServerKind::PaddockBefore, 3, &[ENTRIES_PER_SNAPSHOT]);
    let mut rolling = Rolling::begin(ensemble);
    for round in 0..rounds("UPGRADE_ROUNDS", 1) {
        rolling.restart_all(&format!("round {round}, upgrade"), |member| {
            member.become_kind(ServerKind::Paddock)
        });
        rolling.restart_all(&format!("round {round}, downgrade"), |member| {
            member.become_kind(ServerKind::PaddockBefore)
        });
    }
    rolling.end();
}

#[test]
fn a_member_alone_goes_on_with_the_data_of_the_build_before_and_back() {
    let mut server = Server::start(ServerKind::PaddockBefore);
    let kinds = [ServerKind::Paddock, ServerKind::PaddockBefore, ServerKind::Paddock];
    for (count, kind) in (0..).zip(kinds) {
        let hosts = server.address().to_string();
        write_and_read(&hosts, count);
        assert!(server.stop().success());
        server.become_kind(kind);
        server.restart();
    }
    write_and_read(&server.address().to_string(), kinds.len());
}

/// Creates one child more than the `count` that are there.
#[tokio::main(flavor = "current_thread")]
async fn write_and_read(hosts: &str, count: usize) {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    let there = client.get_children("/").await.expect("list the root");
    let there = there.iter().filter(|child| child.starts_with("child")).count();
    assert_eq!(there, count, "what was written before is there");
    client.create("/child-", b"data", CreateMode::PersistentSequential).await.expect("create a child");
    client.close().await.expect("close");
}
