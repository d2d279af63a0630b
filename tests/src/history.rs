//! A history: what concurrent clients asked of a few znodes, when, and what they were told. `check` gives it to Porcupine
//! (tests/porcupine), which says whether one register for each znode, that does one thing after the other, could have
//! answered so.
//!
//! A read is a `sync` with a `getData` behind it on the same session, and counts from the one's start to the other's end: what
//! ZooKeeper's documentation tells those to do who want to read what was written before.

mod operation;

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs};

use paddock_chance::Chance;
use paddock_client::{Client, ClientOptions, Error};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::judge::{Verdict, judge};
use crate::load::now_ns;
use crate::server::environment;
use operation::{KEYS, Operation, RecordedRequest, path, perform, version_after};

/// Pause of a client after each request: the machine has few cores.
const PAUSE: Duration = Duration::from_millis(3);
const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// Short, so that clients soon look for another member when theirs is silent.
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

/// Seed of the requests: another one every time, unless the environment says which.
pub fn seed() -> u64 {
    let seed = env::var("HISTORY_SEED").map(|seed| seed.parse().expect("HISTORY_SEED is a number"));
    seed.unwrap_or_else(|_| RandomState::new().hash_one(0))
}

/// Clients at work, on the runtime's own thread.
#[derive(Debug)]
pub struct Recorder {
    shared: Rc<SharedHistory>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct SharedHistory {
    operations: RefCell<Vec<Operation>>,
    next_value: Cell<i64>,
    is_stopping: Cell<bool>,
}

impl Recorder {
    /// Starts a client for each connection string. To be called on a `LocalSet`; `seed` decides what they ask.
    pub fn start(seed: u64, hosts: &[String]) -> Recorder {
        let shared = Rc::new(SharedHistory {
            operations: RefCell::default(),
            next_value: Cell::new(1),
            is_stopping: Cell::new(false),
        });
        let mut chance = Chance::new(seed);
        let client = |(number, hosts): (usize, &String)| {
            let (shared, chance) = (Rc::clone(&shared), Chance::new(chance.word()));
            tokio::task::spawn_local(shared.work(number, hosts.clone(), chance))
        };
        let clients = hosts.iter().enumerate().map(client).collect();
        Recorder { shared, clients }
    }

    /// Waits until each of these clients has got `more` answers.
    pub async fn wait_for_answers(&self, clients: &[usize], more: usize) {
        let counts = || clients.iter().map(|client| self.answers(*client)).collect::<Vec<_>>();
        let (before, deadline) = (counts(), Instant::now() + PATIENCE);
        while counts().iter().zip(&before).any(|(now, before)| *now < before + more) {
            assert!(
                Instant::now() < deadline,
                "clients {clients:?} have got {:?} answers, before it were {before:?}",
                counts()
            );
            assert!(!self.clients.iter().any(JoinHandle::is_finished), "a client has ended");
            sleep(POLL).await;
        }
    }

    fn answers(&self, client: usize) -> usize {
        let operations = self.shared.operations.borrow();
        operations.iter().filter(|operation| operation.client == client && operation.end.is_some()).count()
    }

    /// Requests that a client has asked after a moment and that have been answered by now.
    pub fn answered_since(&self, client: usize, moment_ns: i64) -> Vec<String> {
        let operations = self.shared.operations.borrow();
        let of_client = operations.iter().filter(|operation| operation.client == client);
        let since = of_client.filter(|operation| operation.start_ns > moment_ns && operation.end.is_some());
        since.map(|operation| format!("{operation:?}")).collect()
    }

    /// Lets the clients end. What they still wait for is taken for unknown.
    pub async fn stop(self) -> History {
        self.shared.is_stopping.set(true);
        for client in self.clients {
            let mut client = client;
            match timeout(Duration::from_secs(10), &mut client).await {
                Ok(ended) => ended.expect("a client ends well"),
                Err(_) => client.abort(),
            }
        }
        History { operations: self.shared.operations.take() }
    }
}

impl SharedHistory {
    async fn work(self: Rc<Self>, number: usize, hosts: String, mut chance: Chance) {
        let connect = async || {
            let options = ClientOptions {
                session_timeout: SESSION_TIMEOUT,
                connect_timeout: PATIENCE,
                ..ClientOptions::default()
            };
            Client::connect(&hosts, options).await.expect("connect to the ensemble")
        };
        let mut client = connect().await;
        // What the client knows of each znode, so that its requests often fit.
        let mut versions = [None; KEYS];
        while !self.is_stopping.get() {
            let key = chance.index(KEYS);
            let path = path(key);
            let request = self.choose(versions[key], &mut chance);
            let place = self.begin(number, &path, request);
            match perform(&client, &path, request).await {
                Ok(answer) => {
                    versions[key] = version_after(request, &answer);
                    self.operations.borrow_mut()[place].end = Some((now_ns(), answer));
                }
                Err(Error::ConnectionLost) => {}
                Err(Error::SessionExpired) => client = connect().await,
                Err(error) => panic!("{request:?} of {path}: {error}"),
            }
            sleep(PAUSE).await;
        }
        // The session of a client that lost its member may not be closed at once.
        let _ = timeout(Duration::from_secs(1), client.close()).await;
    }

    fn choose(&self, known: Option<i32>, chance: &mut Chance) -> RecordedRequest {
        let value = self.next_value.get();
        self.next_value.set(value + 1);
        let version = known.filter(|_| chance.percent(70));
        match chance.index(10) {
            0 | 1 => RecordedRequest::Create { value },
            2..=4 => RecordedRequest::Set { value, version },
            5 => RecordedRequest::Delete { version },
            _ => RecordedRequest::Read,
        }
    }

    fn begin(&self, client: usize, path: &str, request: RecordedRequest) -> usize {
        let mut operations = self.operations.borrow_mut();
        operations.push(Operation { client, path: path.to_owned(), request, start_ns: now_ns(), end: None });
        operations.len() - 1
    }
}

/// The lines of one client more, which reads each of some znodes at a member.
pub async fn last_reads(client: usize, member: SocketAddr, paths: &[String]) -> Vec<String> {
    let connected = Client::connect(&member.to_string(), ClientOptions::default()).await;
    let connected = connected.unwrap_or_else(|error| panic!("connect to {member}: {error}"));
    let mut lines = Vec::new();
    for path in paths {
        let (request, start_ns) = (RecordedRequest::Read, now_ns());
        let answer = perform(&connected, path, request).await;
        let answer = answer.unwrap_or_else(|error| panic!("read {path} at {member}: {error}"));
        let (path, end) = (path.clone(), Some((now_ns(), answer)));
        let operation = Operation { client, path, request, start_ns, end };
        lines.push(operation.to_json().to_string());
    }
    connected.close().await.expect("close");
    lines
}

/// All that the clients have seen.
#[derive(Debug)]
pub struct History {
    operations: Vec<Operation>,
}

impl History {
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Asks Porcupine. A history that cannot have come about is kept, with a picture of it beside it.
    pub fn check(&self, name: &str) {
        let file = PathBuf::from(environment("HISTORIES")).join(format!("{name}.jsonl"));
        let mut out = Vec::new();
        for operation in &self.operations {
            writeln!(out, "{}", operation.to_json()).expect("a vector takes everything");
        }
        fs::write(&file, out).unwrap_or_else(|error| panic!("write {}: {error}", file.display()));
        match judge(&file) {
            Verdict::Linearizable(told) => println!("{name}: {told}"),
            Verdict::Violated(told) | Verdict::None(told) => panic!("{name}: {told}"),
        }
    }
}
