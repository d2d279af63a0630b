//! A client with very many watches does not hold up the others, neither while it sets them nor when it goes.

#[path = "shared/common.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{config, greeting, request, word};
use paddock_proto::{OpCode, SetWatches, Xid, encode};
use paddock_server::{Config, Server, WordList};

/// `PADDOCK_TEST_WATCHES` asks for more; the figures are printed with `--nocapture`.
const WATCHES: u64 = 300_000;
const WATCHES_IN_A_MEGABYTE: usize = 35_000;
/// Longest wait of others. In slices it is a few milliseconds on a machine that does much else; in one piece, seconds.
const LONGEST: Duration = Duration::from_millis(250);
/// Requests of the other client that have to be answered after the client with the watches has gone.
const REQUESTS_AFTER: u64 = 20_000;

/// A client with a session that waits for each answer.
struct Caller {
    stream: TcpStream,
}

impl Caller {
    fn connect(address: SocketAddr) -> Caller {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_nodelay(true).expect("it is connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is connected");
        let mut caller = Caller { stream };
        caller.send(&greeting());
        caller.receive();
        caller
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the member takes it");
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut len = [0; 4];
        self.stream.read_exact(&mut len).expect("the member answers");
        let mut frame = vec![0; u32::from_be_bytes(len) as usize];
        self.stream.read_exact(&mut frame).expect("the member answers");
        frame
    }

    fn exists(number: u64, watch: bool) -> Vec<u8> {
        request(number as i32, OpCode::Exists.code(), |out| {
            encode::path_and_watch(out, &format!("/service/instance-{number:09}"), watch);
        })
    }

    /// Watches so many znodes that do not exist yet, a hundred requests at a time.
    fn watch(&mut self, count: u64) {
        for first in (0..count).step_by(100) {
            let requests: Vec<u8> =
                (first..first + 100).flat_map(|number| Caller::exists(number, true)).collect();
            self.send(&requests);
            (0..100).for_each(|_| drop(self.receive()));
        }
    }

    /// Sets `count` watches again, in requests of a megabyte at most, as clients do that come back.
    fn watch_again(&mut self, count: u64) {
        let paths: Vec<String> = (0..count).map(|number| format!("/service/instance-{number:09}")).collect();
        for paths in paths.chunks(WATCHES_IN_A_MEGABYTE) {
            let exist = paths.iter().map(String::as_str).collect();
            let watches = SetWatches { exist, ..SetWatches::default() };
            self.send(&request(Xid::SET_WATCHES.0, OpCode::SetWatches.code(), |out| {
                encode::set_watches(out, &watches);
            }));
            self.receive();
        }
    }

    fn set_data(&mut self, path: &str) {
        self.send(&common::set_data(1, path, b"x"));
        self.receive();
    }
}

/// Waits of another client, in microseconds.
#[derive(Default)]
struct Waits {
    longest_read: AtomicU64,
    longest_write: AtomicU64,
    requests: AtomicU64,
    is_over: AtomicU64,
}

impl Waits {
    /// Reads and writes until it is over, on a thread of its own.
    fn measure(self: &Arc<Waits>, address: SocketAddr) -> std::thread::JoinHandle<()> {
        let waits = self.clone();
        std::thread::spawn(move || {
            let mut caller = Caller::connect(address);
            while waits.is_over.load(Ordering::Relaxed) == 0 {
                let start = Instant::now();
                caller.send(&Caller::exists(1, false));
                caller.receive();
                waits.longest_read.fetch_max(start.elapsed().as_micros() as u64, Ordering::Relaxed);
                if waits.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(20) {
                    let start = Instant::now();
                    caller.set_data("/");
                    waits.longest_write.fetch_max(start.elapsed().as_micros() as u64, Ordering::Relaxed);
                }
            }
        })
    }

    /// The longest waits since this was asked last.
    fn take(&self, what: &str) -> Duration {
        let read = Duration::from_micros(self.longest_read.swap(0, Ordering::Relaxed));
        let write = Duration::from_micros(self.longest_write.swap(0, Ordering::Relaxed));
        println!("{what}: longest read {read:?}, longest write {write:?}");
        read
    }
}

#[test]
fn a_client_with_very_many_watches_holds_nobody_up() {
    let count = std::env::var("PADDOCK_TEST_WATCHES").map_or(WATCHES, |text| text.parse().expect("a number"));
    let directory = tempfile::tempdir().unwrap();
    let config = Config { words: WordList::All, ..config(directory.path()) };
    let server = Server::start(config).unwrap();
    let address = server.address();
    let waits = Arc::new(Waits::default());
    let prober = waits.measure(address);
    let mut crowd = Caller::connect(address);

    let start = Instant::now();
    crowd.watch(count);
    println!("{count} watches set in {:?}", start.elapsed());
    let setting = waits.take("while they are set");
    let watches = word(address, "wchs");
    assert_eq!(watches, format!("1 connections watching {count} paths\nTotal watches:{count}\n"));

    drop(crowd);
    let start = Instant::now();
    while word(address, "wchs") != "0 connections watching 0 paths\nTotal watches:0\n" {
        assert!(start.elapsed() < Duration::from_secs(60), "the watches of who has gone still count");
    }
    println!("counted no more after {:?}", start.elapsed());
    let goal = waits.requests.load(Ordering::Relaxed) + REQUESTS_AFTER;
    while waits.requests.load(Ordering::Relaxed) < goal {
        std::thread::yield_now();
    }
    let going = waits.take("when its connection has gone");

    let mut crowd = Caller::connect(address);
    let start = Instant::now();
    crowd.watch_again(count);
    println!("{count} watches set again in {:?}", start.elapsed());
    let again = waits.take("while they are set again");
    assert_eq!(word(address, "wchs"), watches);
    waits.is_over.store(1, Ordering::Relaxed);
    prober.join().expect("the other client is served");
    server.shutdown().expect("it ends in good order");
    assert!(setting < LONGEST, "{setting:?} while watches were set");
    assert!(again < LONGEST, "{again:?} while watches were set again");
    assert!(going < LONGEST, "{going:?} when they were removed");
}
