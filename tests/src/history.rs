//! A history: what concurrent clients asked of a few znodes, when, and what they were told. `check` gives it to Porcupine
//! (tests/porcupine), which says whether one register for each znode, that does one thing after the other, could have
//! answered so.
//!
//! A read is a `sync` with a `getData` behind it on the same session, and counts from the one's start to the other's end: what
//! ZooKeeper's documentation tells those to do who want to read what was written before.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs};

use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::chance::Chance;
use crate::load::now_ns;
use crate::server::environment;

/// Few, so that clients meet.
const KEYS: usize = 4;
/// Of a client, after each request: the machine has few cores.
const PAUSE: Duration = Duration::from_millis(3);
const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// Short, so that clients soon look for another member when theirs is silent.
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Create { value: i64 },
    Set { value: i64, version: Option<i32> },
    Delete { version: Option<i32> },
    Read,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// With the version behind it, of a set or a read.
    Done {
        value: Option<i64>,
        version: Option<i32>,
    },
    Refused(ErrorCode),
}

#[derive(Clone, Debug)]
struct Operation {
    client: usize,
    key: usize,
    request: Request,
    start_ns: i64,
    /// None: nobody knows whether it was carried out, or when it will be.
    end: Option<(i64, Answer)>,
}

/// Of what is asked: another one every time, unless the environment says which.
pub fn seed() -> u64 {
    let seed = env::var("HISTORY_SEED").map(|seed| seed.parse().expect("HISTORY_SEED is a number"));
    seed.unwrap_or_else(|_| RandomState::new().hash_one(0))
}

/// Clients at work, on the runtime's own thread.
#[derive(Debug)]
pub struct Recorder {
    shared: Rc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    operations: RefCell<Vec<Operation>>,
    next_value: Cell<i64>,
    is_stopping: Cell<bool>,
}

impl Recorder {
    /// Starts a client for each connection string. To be called on a `LocalSet`; `seed` decides what they ask.
    pub fn start(seed: u64, hosts: &[String]) -> Recorder {
        let shared = Rc::new(Shared {
            operations: RefCell::default(),
            next_value: Cell::new(1),
            is_stopping: Cell::new(false),
        });
        let mut chance = Chance::from_seed(seed);
        let client = |(number, hosts): (usize, &String)| {
            let (shared, chance) = (Rc::clone(&shared), Chance::from_seed(chance.word()));
            tokio::task::spawn_local(shared.work(number, hosts.clone(), chance))
        };
        let clients = hosts.iter().enumerate().map(client).collect();
        Recorder { shared, clients }
    }

    /// Waits until each of these clients has got so many more answers.
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

    /// What a client has asked after a moment and has been answered by now.
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

impl Shared {
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
            let key = chance.below(KEYS);
            let request = self.choose(versions[key], &mut chance);
            let place = self.begin(number, key, request);
            match perform(&client, key, request).await {
                Ok(answer) => {
                    versions[key] = version_after(request, &answer);
                    self.operations.borrow_mut()[place].end = Some((now_ns(), answer));
                }
                Err(Error::ConnectionLost) => {}
                Err(Error::SessionExpired) => client = connect().await,
                Err(error) => panic!("{request:?} of {}: {error}", path(key)),
            }
            sleep(PAUSE).await;
        }
        // The session of a client that lost its member may not be closed at once.
        let _ = timeout(Duration::from_secs(1), client.close()).await;
    }

    fn choose(&self, known: Option<i32>, chance: &mut Chance) -> Request {
        let value = self.next_value.get();
        self.next_value.set(value + 1);
        let version = known.filter(|_| chance.percent(70));
        match chance.below(10) {
            0 | 1 => Request::Create { value },
            2..=4 => Request::Set { value, version },
            5 => Request::Delete { version },
            _ => Request::Read,
        }
    }

    fn begin(&self, client: usize, key: usize, request: Request) -> usize {
        let mut operations = self.operations.borrow_mut();
        operations.push(Operation { client, key, request, start_ns: now_ns(), end: None });
        operations.len() - 1
    }
}

async fn perform(client: &Client, key: usize, request: Request) -> Result<Answer, Error> {
    let path = path(key);
    let text = |value: i64| value.to_string().into_bytes();
    let result = match request {
        Request::Create { value } => {
            let created = client.create(&path, &text(value), CreateMode::Persistent).await;
            created.map(|_| Answer::Done { value: None, version: None })
        }
        Request::Set { value, version } => {
            let stat = client.set_data(&path, &text(value), version).await;
            stat.map(|stat| Answer::Done { value: None, version: Some(stat.version) })
        }
        Request::Delete { version } => {
            client.delete(&path, version).await.map(|()| Answer::Done { value: None, version: None })
        }
        Request::Read => {
            let (sync, data) = (client.sync(&path), client.get_data(&path));
            match (sync.await, data.await) {
                // Without its sync it is another kind of read.
                (Err(error), _) => Err(error),
                (Ok(_), data) => data.map(|data| {
                    let text = String::from_utf8(data.bytes.unwrap_or_default());
                    let value = text.ok().and_then(|text| text.parse().ok()).expect("all data are numbers");
                    Answer::Done { value: Some(value), version: Some(data.stat.version) }
                }),
            }
        }
    };
    match result {
        Err(Error::Refused {
            code: code @ (ErrorCode::NoNode | ErrorCode::NodeExists | ErrorCode::BadVersion),
            ..
        }) => Ok(Answer::Refused(code)),
        // The session's new connection was faster than what was on its way from the former one.
        Err(Error::Refused { code: ErrorCode::SessionMoved, .. }) => Err(Error::ConnectionLost),
        result => result,
    }
}

fn version_after(request: Request, answer: &Answer) -> Option<i32> {
    match (request, answer) {
        (Request::Create { .. }, Answer::Done { .. }) => Some(0),
        (_, Answer::Done { version, .. }) => *version,
        _ => None,
    }
}

fn path(key: usize) -> String {
    format!("/register-{key}")
}

/// What the clients have seen.
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
        let output = Command::new(environment("PORCUPINE_BIN")).arg(&file).output().expect("run Porcupine");
        let told = String::from_utf8_lossy(&output.stdout);
        println!("{name}: {}", told.trim());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {errors}");
    }
}

impl Operation {
    fn to_json(&self) -> Value {
        let (op, value, expected) = match self.request {
            Request::Create { value } => ("create", Some(value), None),
            Request::Set { value, version } => ("set", Some(value), version),
            Request::Delete { version } => ("delete", None, version),
            Request::Read => ("read", None, None),
        };
        let answer = self.end.as_ref().map(|(end_ns, answer)| match answer {
            Answer::Done { value, version } => {
                json!({"end": end_ns, "code": "ok", "value": value, "version": version})
            }
            Answer::Refused(code) => json!({"end": end_ns, "code": format!("{code:?}")}),
        });
        json!({
            "client": self.client, "key": path(self.key), "op": op, "value": value, "expected": expected,
            "start": self.start_ns, "answer": answer,
        })
    }
}
