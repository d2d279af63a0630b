//! Clients that write without end while members come and go, and the account of what they were told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode};
use paddock_tests::network::enter;

/// Writers that may go to any member, and as many that stay with the first.
const WRITERS: usize = 3;
/// Pause between two writes of a writer: what was written is compared after each round.
const PAUSE: Duration = Duration::from_millis(10);
const WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    thread: JoinHandle<WriteAccount>,
}

#[derive(Debug, Default)]
pub(crate) struct WriteAccount {
    /// Names of znodes below /load.
    pub(crate) acknowledged: BTreeSet<String>,
    /// From the first try of a write to its success.
    pub(crate) longest_wait: Duration,
    /// Writes that were begun again, since their connection had ended.
    pub(crate) lost_connections: usize,
}

impl Load {
    /// Begins to write, from a thread that goes into the network's hub.
    pub(crate) fn start(hub: String, all: String, first: String) -> Load {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (of_thread, counted) = (stop.clone(), written.clone());
        let thread = thread::spawn(move || {
            enter(&hub);
            write_all(all, first, of_thread, counted)
        });
        let load = Load { stop, written, thread };
        load.wait_for_writes(20);
        load
    }

    /// Waits for more writes that begin after this.
    pub(crate) fn wait_for_writes(&self, more: usize) {
        let (goal, deadline) = (self.written.load(Ordering::Relaxed) + more, Instant::now() + WITHIN);
        while self.written.load(Ordering::Relaxed) < goal {
            assert!(!self.thread.is_finished(), "a writer has failed");
            assert!(Instant::now() < deadline, "nothing is written any more");
            thread::sleep(PAUSE);
        }
    }

    pub(crate) fn stop(self) -> WriteAccount {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("a writer has failed")
    }
}

#[tokio::main(flavor = "current_thread")]
async fn write_all(
    all: String,
    first: String,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
) -> WriteAccount {
    let client = connect(&first).await;
    match client.create("/load", b"", CreateMode::Persistent).await {
        Err(error) if error.code() != Some(ErrorCode::NodeExists) => panic!("/load: {error}"),
        _ => {}
    }
    let mut writers = Vec::new();
    for number in 0..2 * WRITERS {
        let hosts = if number < WRITERS { &all } else { &first };
        let (client, stop, written) = (connect(hosts).await, stop.clone(), written.clone());
        writers.push(tokio::spawn(write(client, number, stop, written)));
    }
    let mut sum = WriteAccount::default();
    for writer in writers {
        let account = writer.await.expect("a writer has failed");
        sum.acknowledged.extend(account.acknowledged);
        sum.longest_wait = sum.longest_wait.max(account.longest_wait);
        sum.lost_connections += account.lost_connections;
    }
    sum
}

async fn connect(hosts: &str) -> Client {
    let options = ClientOptions {
        session_timeout: Duration::from_secs(30),
        connect_timeout: Duration::from_secs(60),
        ..ClientOptions::default()
    };
    Client::connect(hosts, options).await.expect("connect")
}

/// One session for the whole time: it does not end, and no write is refused. A write whose connection ends is begun again, as every client of
/// ZooKeeper has to.
async fn write(
    client: Client,
    writer: usize,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
) -> WriteAccount {
    let mut account = WriteAccount::default();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("{writer}-{number}");
        let begun = Instant::now();
        let mut is_repeated = false;
        loop {
            match client.create(&format!("/load/{name}"), b"x", CreateMode::Persistent).await {
                Ok(_) => break,
                Err(error) if is_repeated && error.code() == Some(ErrorCode::NodeExists) => break,
                Err(Error::ConnectionLost) => is_repeated = true,
                Err(error) => panic!("writer {writer}, after {:?}: {error}", begun.elapsed()),
            }
            account.lost_connections += 1;
        }
        account.acknowledged.insert(name);
        account.longest_wait = account.longest_wait.max(begun.elapsed());
        written.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
    }
    client.close().await.expect("the session is there to its end");
    account
}
