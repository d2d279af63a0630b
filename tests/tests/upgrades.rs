//! Members of this build and of the one before it in one ensemble, under kazoo and ZooKeeper's Java client: upgraded one by one, and
//! downgraded again.
//!
//! - `PADDOCK_BEFORE_BIN`: the `paddock` binary of the build before.
//! - `UPGRADE_ROUNDS` makes it longer: the number of times that all members are upgraded and downgraded.

use std::process::Command;

use paddock_client::{Client, ClientOptions, Error};
use paddock_proto::{CreateMode, ErrorCode};
use paddock_tests::ensemble::Ensemble;
use paddock_tests::rolling::Rolling;
use paddock_tests::rounds;
use paddock_tests::server::{Server, ServerKind, environment, free_port, metric};
use paddock_tests::waiting::wait_until;

/// Few, so that members write snapshots and send them to each other.
const ENTRIES_PER_SNAPSHOT: (&str, &str) = ("snapCount", "300");

/// Keeps the way back open: the level stays at what the build before knows.
const LEVEL_MAX: &str = "paddock.feature_level_max";
/// The user `super` may change the members: `super:secret`.
const SUPER: (&str, &str) =
    ("DigestAuthenticationProvider.superDigest", "super:lK75jTNcA+U9vtVEw5vB51mj/w4=");
/// Longest time until the level rises, a program that cannot go on ends, and the like.

#[test]
fn an_upgrade_and_a_downgrade_cost_no_request_no_write_and_no_session() {
    let level = known_level("PADDOCK_BEFORE_BIN").to_string();
    let settings = [ENTRIES_PER_SNAPSHOT, (LEVEL_MAX, &level)];
    let ensemble = Ensemble::start_kind(ServerKind::PaddockBefore, 3, &settings);
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
    let level = known_level("PADDOCK_BEFORE_BIN").to_string();
    let mut server = Server::start_with(ServerKind::PaddockBefore, &[(LEVEL_MAX, &level)]);
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

/// The last member that lacks the level is upgraded, and then there is no way back.
#[test]
fn the_level_rises_with_the_last_member_and_the_build_before_refuses_what_it_does_not_know() {
    let (before, after) = (known_level("PADDOCK_BEFORE_BIN"), known_level("PADDOCK_BIN"));
    let settings = [SUPER, ("reconfigEnabled", "true"), ("standaloneEnabled", "false")];
    let mut ensemble = Ensemble::start_kind(ServerKind::PaddockBefore, 3, &settings);
    for place in 0..2 {
        upgrade(&mut ensemble, place);
    }
    if before == 0 {
        // Were the level to rise now, this would begin a change of members.
        wait_until("the log says that only member 3 lacks the level", || {
            let joining = wide();
            let asked =
                at(&ensemble, 0, async |client: &Client| client.reconfig(&joining, "", None).await.map(drop));
            assert!(matches!(asked, Err(Error::Refused { code: ErrorCode::BadArguments, .. })), "{asked:?}");
            let told = "need a feature level that not all members have";
            ensemble.at(0).log().lines().any(|line| line.contains(told) && line.contains("lacking=[3]"))
        });
    }
    assert_eq!(levels(&ensemble, &[0, 1]), [before, before]);
    write_and_read(&ensemble.hosts(), 0);

    upgrade(&mut ensemble, 2);
    wait_until("the level rises", || levels(&ensemble, &[0, 1, 2]) == [after; 3]);
    write_and_read(&ensemble.hosts(), 1);
    if before == after {
        return println!("the build before knows all levels: there is nothing that it could refuse");
    }

    let member = ensemble.member(1);
    assert!(member.stop().success());
    member.forget_log();
    member.become_kind(ServerKind::PaddockBefore);
    member.spawn();
    wait_until("the build before ends", || member.ended_by_itself().is_some());
    println!("the build before says: {}", member.log());
    member.become_kind(ServerKind::Paddock);
    member.spawn();
    ensemble.leader();
    ensemble.settle();
    write_and_read(&ensemble.at(1).address().to_string(), 2);
}

fn upgrade(ensemble: &mut Ensemble, place: usize) {
    let member = ensemble.member(place);
    assert!(member.stop().success());
    member.become_kind(ServerKind::Paddock);
    member.spawn();
    ensemble.leader();
}

/// A member with a number that builds before 0.9.0 do not know.
fn wide() -> String {
    format!("server.300=127.0.0.1:{}:{};{}", free_port(), free_port(), free_port())
}

/// The highest feature level that a program knows: 0 if it knows of none.
fn known_level(binary: &str) -> u16 {
    let told = Command::new(environment(binary)).args(["version", "--verbose"]).output().expect("run it");
    let told = String::from_utf8(told.stdout).expect("it is text");
    let level = told.lines().find_map(|line| line.strip_prefix("feature level: "));
    level.map_or(0, |level| level.parse().expect("a level is a number"))
}

/// The level of the ensemble, as members tell it: each of a build that knows of levels.
fn levels(ensemble: &Ensemble, places: &[usize]) -> Vec<u16> {
    let level = |place: &usize| {
        let told = ensemble.at(*place).four_letter_word("mntr").expect("ask for the metrics");
        metric(&told, "zk_feature_level").and_then(|level| level.parse().ok()).unwrap_or_default()
    };
    places.iter().map(level).collect()
}

/// Asks one member, as `super`.
#[tokio::main(flavor = "current_thread")]
async fn at<T>(ensemble: &Ensemble, place: usize, ask: impl AsyncFnOnce(&Client) -> T) -> T {
    let hosts = ensemble.at(place).address().to_string();
    let client = Client::connect(&hosts, ClientOptions::default()).await.expect("connect");
    client.add_auth("digest", b"super:secret").await.expect("prove to be super");
    let answer = ask(&client).await;
    client.close().await.expect("close");
    answer
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
