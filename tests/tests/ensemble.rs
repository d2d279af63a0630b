//! Three members as processes: what their clients see while members crash and come back.

use std::time::Duration;

use paddock_client::{Client, ClientOptions, CreateMode, Error};
use paddock_tests::ensemble::Ensemble;

async fn connect(hosts: &str) -> Client {
    let options = ClientOptions { session_timeout: Duration::from_secs(30), ..ClientOptions::default() };
    Client::connect(hosts, options).await.expect("connect to the ensemble")
}

#[tokio::test]
async fn what_is_written_on_one_member_is_read_on_the_others() {
    let mut ensemble = Ensemble::start(3);
    for writer in 0..3 {
        let path = format!("/by-{writer}");
        let client = connect(&ensemble.member(writer).address().to_string()).await;
        client.create(&path, b"x", CreateMode::Persistent).await.expect("create on any member");
        for reader in 0..3 {
            let other = connect(&ensemble.member(reader).address().to_string()).await;
            other.sync("/").await.expect("a sync asks the quorum");
            let data = other.get_data(&path).await.expect("what was written before the sync is there");
            assert_eq!(data.bytes.as_deref(), Some(&b"x"[..]));
            other.close().await.expect("close");
        }
        client.close().await.expect("close");
    }
}

/// The members that stay serve their clients through it: no error, no new connection, no new session.
#[tokio::test]
async fn clients_of_the_others_do_not_notice_that_the_leader_dies() {
    let mut ensemble = Ensemble::start(3);
    for round in 0..3 {
        let leader = ensemble.leader();
        let client = connect(&ensemble.member((leader + 1) % 3).address().to_string()).await;
        let session = client.session();
        let parent = format!("/w{round}");
        client.create(&parent, b"", CreateMode::Persistent).await.expect("create the parent");
        let pending: Vec<_> = (0..200)
            .map(|number| {
                if number == 100 {
                    ensemble.member(leader).kill();
                }
                client.create(&format!("{parent}/{number}"), b"", CreateMode::Persistent)
            })
            .collect();
        for (number, created) in pending.into_iter().enumerate() {
            created.await.unwrap_or_else(|error| panic!("round {round}, write {number}: {error}"));
        }
        assert_eq!(client.session(), session);
        client.close().await.expect("close");
        ensemble.member(leader).spawn();
        ensemble.leader();
    }
    ensemble.settle();
}

/// Every member is killed again and again; what was acknowledged is there in the end, on every member.
#[tokio::test]
async fn acknowledged_writes_survive_the_crash_of_any_member() {
    let mut ensemble = Ensemble::start(3);
    let client = connect(&ensemble.hosts()).await;
    client.create("/w", b"", CreateMode::Persistent).await.expect("create the parent");
    let mut acknowledged = Vec::new();
    for round in 0..9 {
        let victim = round % 3;
        let pending: Vec<_> = (0..100)
            .map(|number| {
                if number == 50 {
                    ensemble.member(victim).kill();
                }
                let path = format!("/w/{round}-{number}");
                (path.clone(), client.create(&path, b"x", CreateMode::Persistent))
            })
            .collect();
        for (path, created) in pending {
            match created.await {
                Ok(_) => acknowledged.push(path),
                // Its own member died: the outcome is unknown.
                Err(Error::ConnectionLost) => {}
                Err(error) => panic!("{path}: {error}"),
            }
        }
        ensemble.member(victim).spawn();
        ensemble.leader();
    }
    assert!(acknowledged.len() > 200, "only {} of 900 writes were acknowledged", acknowledged.len());
    ensemble.settle();
    for number in 0..3 {
        let reader = connect(&ensemble.member(number).address().to_string()).await;
        let there = reader.get_children("/w").await.expect("list what is there");
        let missing: Vec<_> =
            acknowledged.iter().filter(|path| !there.iter().any(|name| path[3..] == **name)).collect();
        assert!(missing.is_empty(), "member {number} has lost {missing:?}");
        reader.close().await.expect("close");
    }
}

#[tokio::test]
async fn a_session_goes_on_at_another_member_with_its_ephemerals() {
    let mut ensemble = Ensemble::start(3);
    let client = connect(&ensemble.hosts()).await;
    client.create("/e", b"", CreateMode::Ephemeral).await.expect("create an ephemeral");
    let session = client.session();
    for victim in 0..3 {
        ensemble.member(victim).kill();
        ensemble.leader();
        // The first request may still be on its way to the member that died.
        let stat = loop {
            match client.exists("/e").await {
                Ok(stat) => break stat,
                Err(Error::ConnectionLost) => {}
                Err(error) => panic!("the session was lost: {error}"),
            }
        };
        assert_eq!(stat.ephemeral_owner, session);
        assert_eq!(client.session(), session);
        ensemble.member(victim).spawn();
        ensemble.leader();
    }
    client.close().await.expect("close");
}

/// A member that was away while the others took snapshots and let their logs go.
#[tokio::test]
async fn a_member_that_lags_too_far_gets_a_snapshot() {
    let mut ensemble = Ensemble::start_with(3, &[("snapCount", "2000")]);
    let away = (ensemble.leader() + 1) % 3;
    let hosts: Vec<String> =
        (0..3).filter(|number| *number != away).map(|n| ensemble.member(n).address().to_string()).collect();
    let client = connect(&hosts.join(",")).await;
    client.create("/w", b"", CreateMode::Persistent).await.expect("create the parent");
    ensemble.settle();
    ensemble.member(away).kill();
    let value = vec![b'x'; 4000];
    let mut pending = std::collections::VecDeque::new();
    for number in 0..8000 {
        pending.push_back(client.create(&format!("/w/{number}"), &value, CreateMode::Persistent));
        if pending.len() > 500 {
            pending.pop_front().expect("it was just counted").await.expect("create a znode");
        }
    }
    for created in pending {
        created.await.expect("create a znode");
    }
    ensemble.member(away).spawn();
    ensemble.leader();
    ensemble.settle();
    let reader = connect(&ensemble.member(away).address().to_string()).await;
    assert_eq!(reader.get_children("/w").await.expect("list what is there").len(), 8000);
    reader.close().await.expect("close");

    // The member has what it got for good.
    ensemble.member(away).kill();
    ensemble.member(away).spawn();
    ensemble.leader();
    ensemble.settle();
    client.close().await.expect("close");
}

#[tokio::test]
async fn without_a_quorum_nothing_is_acknowledged_and_with_one_again_all_is() {
    let mut ensemble = Ensemble::start(3);
    let leader = ensemble.leader();
    let client = connect(&ensemble.member(leader).address().to_string()).await;
    client.create("/before", b"", CreateMode::Persistent).await.expect("create with a quorum");
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    others.iter().for_each(|other| ensemble.member(*other).kill());
    let waiting = client.create("/meanwhile", b"", CreateMode::Persistent);
    let mut waiting = std::pin::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_secs(3), &mut waiting).await;
    assert!(early.is_err(), "acknowledged by one of three: {early:?}");
    others.iter().for_each(|other| ensemble.member(*other).spawn());
    waiting.await.expect("it waited for the quorum");
    client.close().await.expect("close");
}
