//! Clients of a running ensemble of Apache ZooKeeper move to Paddock one server after another, while it follows and forwards, and stay
//! connected when it goes on without the ensemble: no request is refused, none is lost, and every session goes on.

use paddock_client::{Client, ClientOptions, CreateMode, Event};
use paddock_relay::Relay;
use paddock_tests::following::{Follower, PATIENCE, Story, Totals};
use paddock_tests::load::{Load, SessionAccount, longest_gap, now_ns, spread};
use paddock_tests::server::ServerKind;
use tokio::sync::mpsc;

/// Sessions of each library that write all the time.
const SESSIONS: usize = 3;

/// A client that watches a znode at Paddock.
struct ForwardedWatcher {
    client: Client,
    events: mpsc::UnboundedReceiver<Event>,
}

impl ForwardedWatcher {
    async fn connect(hosts: &str) -> ForwardedWatcher {
        let (sender, events) = mpsc::unbounded_channel();
        let options = ClientOptions { events: Some(sender), ..ClientOptions::default() };
        let client = Client::connect(hosts, options).await.expect("connect");
        ForwardedWatcher { client, events }
    }

    async fn is_told_of(&mut self, path: &str) {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("the watch fires");
        assert!(matches!(&event, Some(Event::Znode { path: of, .. }) if of == path), "{event:?}");
    }
}

/// Brings the clients of one relay to Paddock. The writers of the story have nothing under way then; what others have may be lost with the
/// connection, as at every change of servers.
async fn move_clients(story: &Story, relay: &Relay) {
    let _closed = story.gate.write().await;
    relay.move_to(story.paddock.address());
}

/// Another member leads, and the sessions that were served here are served again.
async fn lose_the_leader(story: &mut Story, follower: &mut Follower) {
    let gate = story.gate.clone();
    let _closed = gate.write().await;
    let leader = story.zookeeper.leader();
    story.zookeeper.member(leader).kill();
    follower.says(2, "following ").await;
    story.zookeeper.member(leader).restart();
}

/// A client that stays at the ensemble, and holds the cut-over up.
async fn stray(story: &Story) -> Client {
    Client::connect(&story.zookeeper.hosts(), ClientOptions::default()).await.expect("connect")
}

/// Checks the accounts of the real clients: from then on each write went well, and none was ever lost or carried out twice.
fn check(accounts: &[SessionAccount], from_ns: i64) {
    for account in accounts {
        assert_eq!(account.faults(), Vec::<String>::new(), "{}", account.path);
        let after = account.writes.iter().filter(|write| write.start_ns >= from_ns);
        let failed: Vec<&String> = after.filter_map(|write| write.result.as_ref().err()).collect();
        assert!(failed.is_empty(), "{}: {failed:?}", account.path);
    }
}

#[tokio::test]
async fn clients_move_without_a_refused_request() {
    let (mut story, relays) = Story::begin_behind_relays(ServerKind::ZooKeeper);
    let servers: Vec<_> = relays.iter().map(Relay::address).collect();
    let loads = Load::start_all("/real", &spread(&servers, SESSIONS));
    let (config, address) = (story.paddock.config_path(), story.paddock.address().to_string());
    let config = config.to_str().expect("paths of tests are text");
    let arguments = ["--serve", &address, "--cutover", "--config", config];
    let mut follower = Follower::start(&story.from, &story.to(), &arguments);
    follower.says(1, "serving clients at ").await;
    let stray = stray(&story).await;
    follower.order_cutover();
    follower.says(1, "sessions whose clients are not here").await;
    for relay in &relays {
        loads.iter().for_each(|load| load.wait_for_writes(20));
        move_clients(&story, relay).await;
    }
    loads.iter().for_each(|load| load.wait_for_writes(20));
    lose_the_leader(&mut story, &mut follower).await;
    loads.iter().for_each(|load| load.wait_for_writes(20));

    // Sessions that begin, watch and sync here are the ensemble's as well.
    let mut watcher = ForwardedWatcher::connect(&address).await;
    watcher.client.create("/watched", b"1", CreateMode::Persistent).await.expect("create");
    watcher.client.sync("/").await.expect("sync");
    watcher.client.watch_data("/watched").await.expect("watch");
    let from_ns = now_ns();
    assert!(!follower.log().contains("took over in "), "a client is elsewhere");
    stray.close().await.expect("close");
    follower.says(1, "took over in ").await;
    watcher.client.set_data("/watched", b"2", None).await.expect("the connection stays");
    watcher.is_told_of("/watched").await;
    loads.iter().for_each(|load| load.wait_for_writes(100));
    let to_ns = now_ns();

    story.stop_zookeeper().await;
    let Totals { acknowledged, lost, .. } = story.end_of_load().await;
    let accounts: Vec<SessionAccount> = loads.into_iter().flat_map(Load::stop).collect();
    check(&accounts, from_ns);
    assert_eq!(lost, 0, "a writer of the story was not told what became of a write");
    assert!(!follower.log().contains("LOST"), "{}", follower.log());
    let pause = longest_gap(&accounts, from_ns, to_ns);
    let log = follower.log();
    assert!(log.contains("digest    as ZooKeeper wrote it"), "{log}");
    let told = log.lines().find(|line| line.starts_with("took over in ")).expect("it was said");
    println!("{acknowledged} creates acknowledged, none lost, none refused; {told}; longest pause {pause:?}");
}
