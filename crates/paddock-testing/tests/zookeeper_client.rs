//! The examples that zookeeper-client shows, on servers of this crate.

use paddock_testing::{TestEnsemble, TestServer};
use zookeeper_client as zk;

fn persistent() -> zk::CreateOptions<'static> {
    zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all())
}

#[tokio::test]
async fn its_first_example() {
    let server = TestServer::start().unwrap();
    basics(&server.hosts()).await;
}

#[tokio::test]
async fn its_first_example_on_an_ensemble() {
    let ensemble = TestEnsemble::start().unwrap();
    basics(&ensemble.hosts()).await;
}

/// The section "Basics" of its README.
async fn basics(cluster: &str) {
    let path = "/abc";
    let data = "path_data".as_bytes().to_vec();
    let child_path = "/abc/efg";
    let child_data = "child_path_data".as_bytes().to_vec();
    let create_options = persistent();

    let client = zk::Client::connect(cluster).await.unwrap();
    let (_, stat_watcher) = client.check_and_watch_stat(path).await.unwrap();

    let (stat, _) = client.create(path, &data, &create_options).await.unwrap();
    assert_eq!((data.clone(), stat), client.get_data(path).await.unwrap());

    let event = stat_watcher.changed().await;
    assert_eq!(event.event_type, zk::EventType::NodeCreated);
    assert_eq!(event.path, path);

    let path_client = client.clone().chroot(path).unwrap();
    assert_eq!((data, stat), path_client.get_data("/").await.unwrap());

    let (_, _, child_watcher) = client.get_and_watch_children(path).await.unwrap();

    let (child_stat, _) = client.create(child_path, &child_data, &create_options).await.unwrap();

    let child_event = child_watcher.changed().await;
    assert_eq!(child_event.event_type, zk::EventType::NodeChildrenChanged);
    assert_eq!(child_event.path, path);

    let relative_child_path = child_path.strip_prefix(path).unwrap();
    assert_eq!((child_data.clone(), child_stat), path_client.get_data(relative_child_path).await.unwrap());

    let (_, _, event_watcher) = client.get_and_watch_data("/").await.unwrap();
    drop(client);
    drop(path_client);

    let session_event = event_watcher.changed().await;
    assert_eq!(session_event.event_type, zk::EventType::Session);
    assert_eq!(session_event.session_state, zk::SessionState::Closed);
}

/// The section "Recipes" of its README.
#[tokio::test]
async fn its_lock() {
    let server = TestServer::start().unwrap();
    let client = zk::Client::connect(&server.hosts()).await.unwrap();
    client.create("/app", b"", &persistent()).await.unwrap();

    let prefix = zk::LockPrefix::new_curator("/app/locks", "latch-").unwrap();
    let options = zk::LockOptions::new(zk::Acls::anyone_all()).with_ancestor_options(persistent()).unwrap();
    let latch = client.lock(prefix, b"", options).await.unwrap();
    let ephemeral = zk::CreateMode::Ephemeral.with_acls(zk::Acls::anyone_all());
    latch.create("/app/data", b"data", &ephemeral).await.unwrap();

    let (data, _) = client.get_data("/app/data").await.unwrap();
    assert_eq!(data, b"data");
    let holders = client.list_children("/app/locks").await.unwrap();
    assert_eq!(holders.len(), 1, "{holders:?}");
}

#[tokio::test]
async fn a_session_outlives_the_leader_and_a_restart() {
    let mut ensemble = TestEnsemble::start().unwrap();
    let client = zk::Client::connect(&ensemble.hosts()).await.unwrap();
    let ephemeral = zk::CreateMode::Ephemeral.with_acls(zk::Acls::anyone_all());
    client.create("/here", b"", &ephemeral).await.unwrap();
    let session = client.session_id();

    let leader = ensemble.leader().unwrap();
    ensemble.member_mut(leader).stop().unwrap();
    assert_ne!(ensemble.leader().unwrap(), leader);
    // Its connection may have been at the member that is gone: the client tells so, and comes back.
    while client.check_stat("/here").await.is_err() {}
    assert_eq!(client.session_id(), session);
    ensemble.member_mut(leader).restart().unwrap();
    ensemble.wait_until_agreed().unwrap();
    assert!(ensemble.members().iter().all(TestServer::is_running));
}
