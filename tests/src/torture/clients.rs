//! The clients of a round: sessions of one library, in a process of its own, that write the history down
//! (tests/support/recorder.py, tests/java/src/paddock/Recorder.java, tests/go/recorder.go). Some take turns at a lock instead.

use std::fs::File;

use serde_json::Value;

use super::znodes::Znodes;
use crate::library::{Library, Program};
use crate::lock::Held;
use crate::teller::{Listener, Teller};

#[derive(Debug)]
pub(super) struct Clients {
    teller: Teller<ClientAccount>,
}

/// Answers and complaints of the clients of one library.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientAccount {
    is_ready: bool,
    /// For Porcupine.
    pub(super) lines: Vec<String>,
    /// Answers of each client, by its number among those of its library.
    answers: Vec<usize>,
    first: usize,
    pub(super) unknown: usize,
    pub(super) refused: usize,
    pub(super) complaints: Vec<String>,
    /// Times in which those who take turns at a lock believed that they held it.
    pub(super) held: Vec<Held>,
}

impl Clients {
    /// Opens one session for each connection string; their numbers begin with `first`. Behind them come those that take turns at a
    /// lock, one for each of `locks`.
    pub(super) fn start(
        library: Library,
        seed: u64,
        first: usize,
        znodes: &Znodes,
        hosts: &[String],
        locks: &[String],
        errors: File,
    ) -> Clients {
        let mut command = library.command(Program::Recorder);
        command.arg(seed.to_string()).arg(first.to_string()).stderr(errors);
        command.arg(znodes.keys.join(",")).arg(&znodes.lock).args(hosts);
        command.args(locks.iter().map(|member| format!("lock@{member}")));
        let told = ClientAccount { first, answers: vec![0; hosts.len()], ..ClientAccount::default() };
        Clients { teller: Teller::start(format!("the clients of {library:?}"), &mut command, told) }
    }

    pub(super) fn wait_until_ready(&self) {
        self.teller.wait("do not get their sessions", |told| told.is_ready);
    }

    pub(super) fn answers(&self) -> Vec<usize> {
        self.teller.look(|told| told.answers.clone())
    }

    /// Waits until each of them has got more answers than it had `before`, by `more`.
    pub(super) fn wait_for_answers(&self, before: &[usize], more: usize) {
        self.teller.wait(&format!("have not got {more} answers more than {before:?}"), |told| {
            told.answers.iter().zip(before).all(|(now, before)| *now >= before + more)
        });
    }

    /// Lets the sessions end.
    pub(super) fn stop(&mut self) {
        self.teller.stop();
    }

    pub(super) fn told(&self) -> ClientAccount {
        self.teller.look(ClientAccount::clone)
    }
}

impl Listener for ClientAccount {
    fn take(&mut self, line: &str) {
        if line.starts_with('{') {
            return self.take_request(line);
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => self.is_ready = true,
            "refused" => self.refused += 1,
            "held" => self.held.push(held(rest)),
            "complaint" => self.complaints.push(rest.to_owned()),
            _ => panic!("a client says {line:?}"),
        }
    }
}

impl ClientAccount {
    fn take_request(&mut self, line: &str) {
        let request: Value = serde_json::from_str(line).expect("a client writes JSON");
        let client = request["client"].as_u64().expect("a request has a client");
        match request["answer"] {
            Value::Null => self.unknown += 1,
            _ => self.answers[client as usize - self.first] += 1,
        }
        self.lines.push(line.to_owned());
    }
}

/// The client and two moments.
fn held(words: &str) -> Held {
    let numbers: Vec<i64> = words.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [client, since_ns, until_ns] = numbers[..] else { panic!("a client held the lock: {words:?}") };
    Held { client: client as usize, since_ns, until_ns }
}
