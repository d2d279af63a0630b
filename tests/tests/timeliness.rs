//! A client knows before another client can take what its session held: a member that loses contact to a quorum closes its
//! clients' connections while their sessions still live.

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, Event};
use paddock_tests::ensemble::Ensemble;
use paddock_tests::network::Network;
use paddock_tests::rounds;
use paddock_tests::server::ServerKind;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

/// The shortest that servers with the usual `tickTime` of 2 s give.
const SHORT: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(30);
/// A member is without contact for a third of the session's timeout and 300 ms before it closes the connection; its contact
/// was 200 ms old, it looks each 100 ms, and machines on which tests run are busy.
const TOLD_WITHIN: Duration = Duration::from_millis(1333 + 300 + 200 + 100 + 500);
const WAIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
const LOCK: &str = "/lock";

#[test]
fn the_client_of_a_follower_that_is_cut_off_knows_before_its_lock_is_taken() {
    in_networks(ServerKind::Paddock, async |network, ensemble| {
        let victim = (ensemble.leader() + 1) % 3;
        check_told_in_time(lock_moves(ServerKind::Paddock, "a follower", network, ensemble, victim).await);
    });
}

#[test]
fn the_client_of_a_leader_that_is_cut_off_knows_before_its_lock_is_taken() {
    in_networks(ServerKind::Paddock, async |network, ensemble| {
        let victim = ensemble.leader();
        check_told_in_time(lock_moves(ServerKind::Paddock, "the leader", network, ensemble, victim).await);
    });
}

/// Apache ZooKeeper promises no order of the two, so only its times are printed, beside Paddock's.
#[test]
fn a_lock_moves_on_apache_zookeeper_too() {
    in_networks(ServerKind::ZooKeeper, async |network, ensemble| {
        let victim = (ensemble.leader() + 1) % 3;
        lock_moves(ServerKind::ZooKeeper, "a follower", network, ensemble, victim).await;
    });
    in_networks(ServerKind::ZooKeeper, async |network, ensemble| {
        let victim = ensemble.leader();
        lock_moves(ServerKind::ZooKeeper, "the leader", network, ensemble, victim).await;
    });
}

#[tokio::test]
async fn idle_clients_are_disconnected_when_two_of_three_members_are_killed() {
    let mut ensemble = Ensemble::start(3);
    let survivor = (ensemble.leader() + 1) % 3;
    let (client, mut events) = connect(&mut ensemble, survivor, SHORT).await;
    let (patient, mut patient_events) = connect(&mut ensemble, survivor, LONG).await;
    client.create("/e", b"", CreateMode::Ephemeral).await.expect("create with a quorum");
    [1, 2].iter().for_each(|step| ensemble.member((survivor + step) % 3).kill());
    let since = Instant::now();
    assert_eq!(next(&mut events).await, Event::Disconnected);
    assert!(since.elapsed() < TOLD_WITHIN, "told after {:?}", since.elapsed());
    patient.exists("/e").await.expect("a session with time left is served");
    assert_eq!(next(&mut patient_events).await, Event::Disconnected);
    assert!(since.elapsed() < LONG / 3, "told after {:?}", since.elapsed());

    // No leader could end their sessions meanwhile.
    [1, 2].iter().for_each(|step| ensemble.member((survivor + step) % 3).spawn());
    assert_eq!(next(&mut events).await, Event::Reconnected);
    assert_eq!(next(&mut patient_events).await, Event::Reconnected);
    client.exists("/e").await.expect("its ephemeral is there");
    let count = |ensemble: &mut Ensemble, what| ensemble.member(survivor).log().matches(what).count();
    while count(&mut ensemble, "regained contact to a quorum") == 0 {
        assert!(since.elapsed() < 2 * WAIT, "{}", ensemble.member(survivor).log());
        sleep(POLL).await;
    }
    assert_eq!(count(&mut ensemble, "lost contact to a quorum"), 1, "one line, however many connections");
}

/// Times since a lock holder's member was cut off.
struct Moved {
    /// Until the holder was told that its connection was gone.
    told: Duration,
    /// Until another client had the lock.
    taken: Duration,
}

fn check_told_in_time(Moved { told, taken }: Moved) {
    assert!(told < TOLD_WITHIN, "told after {told:?}");
    assert!(told < taken, "told after {told:?}, and the lock was taken after {taken:?}");
}

/// A client of the victim holds a lock, another one of another member waits for it and gets it. When the first finds its way back
/// its session is over.
async fn lock_moves(
    kind: ServerKind,
    role: &str,
    network: &Network,
    ensemble: &mut Ensemble,
    victim: usize,
) -> Moved {
    let (holder, mut events) = connect(ensemble, victim, SHORT).await;
    holder.create(LOCK, b"", CreateMode::Ephemeral).await.expect("take the lock");
    let (waiting, mut released) = connect(ensemble, (victim + 1) % 3, LONG).await;
    waiting.sync("/").await.expect("a sync asks the quorum");
    waiting.watch_exists(LOCK).await.expect("the lock is held");
    network.isolate(victim);
    let since = Instant::now();
    let told = async { (next(&mut events).await, since.elapsed()) };
    let taken = async {
        // A follower of Apache ZooKeeper's that loses its leader closes all connections; the watch outlives that.
        loop {
            match next(&mut released).await {
                Event::Znode { .. } => break,
                Event::Disconnected | Event::Reconnected if kind == ServerKind::ZooKeeper => {}
                event => panic!("{event:?}"),
            }
        }
        waiting.create(LOCK, b"", CreateMode::Ephemeral).await.expect("take the lock");
        since.elapsed()
    };
    let ((event, told), taken) = tokio::join!(told, taken);
    println!("{role} of {kind:?} is cut off: told after {told:?}, the lock is taken after {taken:?}");
    assert_eq!(event, Event::Disconnected);
    network.heal();
    assert_eq!(next(&mut events).await, Event::SessionExpired);
    waiting.close().await.expect("close");
    Moved { told, taken }
}

async fn connect(
    ensemble: &mut Ensemble,
    member: usize,
    session_timeout: Duration,
) -> (Client, UnboundedReceiver<Event>) {
    let (events, heard) = unbounded_channel();
    let options = ClientOptions { session_timeout, events: Some(events), ..ClientOptions::default() };
    let address = ensemble.member(member).address().to_string();
    (Client::connect(&address, options).await.expect("connect to a member"), heard)
}

async fn next(events: &mut UnboundedReceiver<Event>) -> Event {
    timeout(WAIT, events.recv()).await.expect("something happens").expect("the client lives")
}

/// Plays a story of three servers of a kind in a network of their own, some times, if that is allowed.
fn in_networks(kind: ServerKind, story: impl AsyncFn(&Network, &mut Ensemble) + Sync) {
    for _ in 0..rounds("TIMELINESS_ROUNDS", 2) {
        let network = match Network::new(3) {
            Ok(network) => network,
            Err(reason) => return println!("skipped: {reason}"),
        };
        // A thread that has entered a network does not come back.
        let played = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                network.enter();
                let mut ensemble = Ensemble::start_at(kind, &network.places(), &[]);
                let runtime = Builder::new_current_thread().enable_all().build().expect("make a runtime");
                runtime.block_on(story(&network, &mut ensemble));
            });
            thread.join()
        });
        if let Err(panic) = played {
            // Not before the network is gone.
            drop(network);
            resume_unwind(panic);
        }
    }
}
