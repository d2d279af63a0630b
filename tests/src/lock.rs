//! Clients that take turns at a lock, as recipes do: an ephemeral znode, held by the client that creates it. A client believes that it
//! holds the lock from the answer to its create on, until it gives it back or is told that its connection is gone: it cannot
//! know more, and needs not to.
//!
//! No two may believe so at the same time, by the clock of the machine on which all of them run.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paddock_client::{Client, ClientOptions, CreateMode, Error, Event};
use paddock_proto::ErrorCode;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::load::now_ns;

/// Time in which a client believed that it held the lock, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub client: usize,
    pub since_ns: i64,
    pub until_ns: i64,
}

/// Pause between two looks of a client that waits for a lock, should it have missed that it is free.
const LOOK: Duration = Duration::from_millis(200);

/// A request waits no longer than this for its answer, or for the end of its connection: no fault of the torture lasts as long as that.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// A client in a thread of its own, until it is told to end.
#[derive(Debug)]
pub struct Contender {
    end: Sender<()>,
    thread: JoinHandle<Vec<Held>>,
}

impl Contender {
    /// A client of these members, whose sessions have this timeout. When it has the lock it keeps it for `keep`, and each third time
    /// for `keep_long`.
    pub fn start(
        client: usize,
        hosts: &str,
        path: &str,
        session_timeout: Duration,
        (keep, keep_long): (Duration, Duration),
    ) -> Contender {
        let (end, is_over) = channel();
        let (hosts, path) = (hosts.to_owned(), path.to_owned());
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("make a runtime");
            let mut turns = Turns {
                client,
                hosts,
                path,
                session_timeout,
                keep,
                keep_long,
                is_over,
                has_ended: false,
                held: Vec::new(),
            };
            runtime.block_on(turns.take());
            turns.held
        });
        Contender { end, thread }
    }

    /// Ends it, and returns when it believed that it held the lock.
    pub fn end(self) -> Vec<Held> {
        // The task has ended already if that fails, and says why.
        let _ = self.end.send(());
        self.thread.join().expect("a contender is answered, or told that its connection is gone")
    }
}

struct Turns {
    client: usize,
    hosts: String,
    path: String,
    session_timeout: Duration,
    keep: Duration,
    keep_long: Duration,
    is_over: Receiver<()>,
    has_ended: bool,
    held: Vec<Held>,
}

impl Turns {
    fn is_over(&mut self) -> bool {
        self.has_ended |= self.is_over.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty);
        self.has_ended
    }

    /// One session after the other.
    async fn take(&mut self) {
        let mut is_over = false;
        while !is_over {
            let (events, mut heard) = unbounded_channel();
            let options = ClientOptions {
                session_timeout: self.session_timeout,
                connect_timeout: Duration::from_secs(2),
                events: Some(events),
                ..ClientOptions::default()
            };
            is_over = match Client::connect(&self.hosts, options).await {
                Ok(client) => self.compete(&client, &mut heard).await,
                Err(_) => self.is_over(),
            };
        }
    }

    /// Takes the lock and gives it back until the session is gone, or all is over.
    async fn compete(&mut self, client: &Client, heard: &mut UnboundedReceiver<Event>) -> bool {
        loop {
            if self.is_over() {
                // Without this the next one waits for the session's end.
                let _ = timeout(self.session_timeout, client.close()).await;
                return true;
            }
            while heard.try_recv().is_ok() {}
            let created = answer(client.create(&self.path, b"", CreateMode::Ephemeral)).await;
            let since_ns = now_ns();
            match created {
                Ok(_) => self.hold(client, since_ns, heard).await,
                Err(error) if error.code() == Some(ErrorCode::NodeExists) => {
                    if self.is_own(client).await {
                        self.hold(client, now_ns(), heard).await;
                    } else {
                        let _ = answer(client.watch_exists(&self.path)).await;
                        let _ = timeout(LOOK, heard.recv()).await;
                    }
                }
                Err(Error::SessionExpired | Error::Closed) => return false,
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// True if a create that was not answered has been carried out.
    async fn is_own(&self, client: &Client) -> bool {
        answer(client.exists(&self.path)).await.is_ok_and(|stat| stat.ephemeral_owner == client.session())
    }

    async fn hold(&mut self, client: &Client, since_ns: i64, heard: &mut UnboundedReceiver<Event>) {
        let keep = if self.held.len() % 3 == self.client % 3 { self.keep_long } else { self.keep };
        let give_back = tokio::time::Instant::now() + keep;
        let is_told = loop {
            let look = give_back.min(tokio::time::Instant::now() + LOOK);
            match tokio::time::timeout_at(look, heard.recv()).await {
                Ok(Some(Event::Znode { .. })) => {}
                // Perhaps of a connection before the one on which the answer came: then it finds that the lock is its own.
                Ok(_) => break true,
                Err(_) if look == give_back || self.is_over() => break false,
                Err(_) => {}
            }
        };
        self.held.push(Held { client: self.client, since_ns, until_ns: now_ns() });
        if !is_told {
            let _ = answer(client.delete(&self.path, None)).await;
        }
    }
}

async fn answer<T>(request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(ANSWERED_WITHIN, request).await.expect("a member answers, or closes the connection")
}

/// Two clients that believed at the same time that they held the lock.
pub fn overlap(held: &[Held]) -> Option<(Held, Held)> {
    let mut held = held.to_vec();
    held.sort_by_key(|held| held.since_ns);
    let pairs = held
        .iter()
        .enumerate()
        .flat_map(|(place, one)| held[place + 1..].iter().map(move |other| (*one, *other)));
    pairs.into_iter().find(|(one, other)| one.client != other.client && other.since_ns < one.until_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_holders_at_a_time_are_seen() {
        let held = |client, since_ns, until_ns| Held { client, since_ns, until_ns };
        let in_turns = [held(1, 0, 10), held(2, 10, 20), held(1, 15, 15), held(1, 20, 30)];
        assert!(overlap(&in_turns[..2]).is_none());
        assert!(overlap(&[held(1, 0, 10), held(1, 5, 20)]).is_none(), "one client knows what it has");
        let (one, other) = overlap(&in_turns).expect("client 1 believes so while client 2 does");
        assert_eq!((one.client, other.client), (2, 1));
        assert!(overlap(&[held(3, 5, 6), held(1, 0, 100), held(2, 200, 300)]).is_some());
    }
}
