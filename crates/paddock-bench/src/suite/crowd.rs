//! Sessions that are open and do nothing but stay alive, and the watches that they have set.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use paddock_client::{Client, ClientOptions, Error};
use paddock_proto::{OpCode, encode};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::process::{open_files_max, system};
use crate::BenchError;
use crate::prepare::all;

/// As long as the servers of a suite grant by their defaults.
const SESSION_TIMEOUT: Duration = Duration::from_secs(40);
/// Sessions that are opened at once: more would overflow the queue of a listener, which is 50 long in ZooKeeper, and
/// each that does not fit waits for a second.
const OPENING_MAX: usize = 32;
/// Time for the answers of all sessions, when they are asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// Files that a server or this program has open besides.
const OTHER_FILES: u64 = 200;

/// A thread keeps the sessions alive until the value is dropped.
#[derive(Debug)]
pub(super) struct Crowd {
    hosts: Vec<String>,
    clients: Vec<Client>,
    runtime: Handle,
    _stop: oneshot::Sender<()>,
}

impl Crowd {
    pub(super) fn new(hosts: &[String]) -> Result<Crowd, BenchError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system("start the clients of idle sessions"))?;
        let (handle, (stop, stopped)) = (runtime.handle().clone(), oneshot::channel());
        let thread = thread::Builder::new().name("bench-idle".to_owned());
        // The channel ends with an error when the sender is dropped, and all connections end with the runtime.
        let thread = thread.spawn(move || {
            let _ = runtime.block_on(stopped);
        });
        thread.map_err(system("start a thread of the bench"))?;
        Ok(Crowd { hosts: hosts.to_vec(), clients: Vec::new(), runtime: handle, _stop: stop })
    }

    /// Opens sessions until there are `count`, spread over the members; false if the user stopped it.
    pub(super) fn grow(&mut self, count: usize, stop: &AtomicBool) -> Result<bool, BenchError> {
        let most = open_files_max().saturating_sub(OTHER_FILES);
        if count as u64 > most {
            return Err(BenchError::Usage(format!(
                "{count} connections need more open files than the {most} that the system allows: raise `ulimit -n`"
            )));
        }
        while self.clients.len() < count {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let first = self.clients.len();
            let opening: Vec<_> =
                (first..count.min(first + OPENING_MAX)).map(|number| self.open(number)).collect();
            for client in opening {
                let client = self.runtime.block_on(client).expect("a client that connects does not panic");
                self.clients.push(client.map_err(|source| self.failed(source))?);
            }
        }
        Ok(true)
    }

    fn open(&self, number: usize) -> tokio::task::JoinHandle<Result<Client, Error>> {
        let host = self.hosts[number % self.hosts.len()].clone();
        let options = ClientOptions { session_timeout: SESSION_TIMEOUT, ..ClientOptions::default() };
        self.runtime.spawn(async move { Client::connect(&host, options).await })
    }

    /// Lets each of the sessions from `first` on watch znodes of these `numbers`: `path` names them by session and number. False if the
    /// user stopped it.
    pub(super) fn watch(
        &self,
        first: usize,
        numbers: Range<usize>,
        path: impl Fn(usize, usize) -> String,
        stop: &AtomicBool,
    ) -> Result<bool, BenchError> {
        let is_stopped = || stop.load(Ordering::Relaxed);
        for (session, client) in self.clients.iter().enumerate().skip(first) {
            let watch = |number| {
                client.send(OpCode::GetData, |out| {
                    encode::path_and_watch(out, &path(session, number), true);
                })
            };
            let requests = numbers.clone().take_while(|_| !is_stopped()).map(watch);
            self.runtime.block_on(all(requests, Err)).map_err(|source| self.failed(source))?;
        }
        Ok(!is_stopped())
    }

    /// An error if any of the sessions was lost.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let read =
            |client: &Client| client.send(OpCode::Exists, |out| encode::path_and_watch(out, "/", false));
        let answers = async { timeout(ANSWERS_WITHIN, all(self.clients.iter().map(read), Err)).await };
        match self.runtime.block_on(answers) {
            Ok(answered) => answered.map_err(|source| self.failed(source)),
            Err(_) => Err(BenchError::Unfinished(format!(
                "idle sessions have had no answer for {} s",
                ANSWERS_WITHIN.as_secs()
            ))),
        }
    }

    fn failed(&self, source: Error) -> BenchError {
        BenchError::Client { hosts: self.hosts.join(","), source }
    }
}
