//! Who connects: members, and strangers.
//!
//! Until a hello is complete and right, a connection is a stranger's: it costs a task and 32 bytes, has a few seconds,
//! is told nothing, and only so many exist at a time. When there are more, the oldest has to go: a member greets at
//! once, so it is never the one that waits.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{sleep, timeout};

use super::greeting::{
    Answer, GREETING_BYTES, GreetingError, Hello, Kind, MAGIC_BYTES, Verdict, check_magic, first_places,
    judge,
};
use super::hub::Hub;
use super::limiter::Limiter;
use super::link::Greeted;
use super::stream::Stream;

/// How many connections may be without a greeting.
pub(super) const STRANGERS_MAX: usize = 64;
/// How long to wait when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// How long a refused member may take to read why.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Connections that have not greeted, and what the log has heard of them.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    next: u64,
    greeting: BTreeMap<u64, AbortHandle>,
    stranger_log: Limiter,
    member_log: Limiter,
}

/// Why there is no hello.
#[derive(Debug, thiserror::Error)]
enum HelloError {
    #[error("the connection ended before it said who it is")]
    Cut(#[source] io::Error),
    #[error(transparent)]
    Greeting(#[from] GreetingError),
}

pub(super) async fn accept(hub: Rc<Hub>, listener: TcpListener) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listening socket can be polled");
    loop {
        match listener.accept().await {
            Ok((socket, address)) => admit(&hub, socket, address),
            Err(error) => {
                hub.strangers.borrow_mut().log(None, &error);
                sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

fn admit(hub: &Rc<Hub>, socket: TcpStream, address: SocketAddr) {
    let mut strangers = hub.strangers.borrow_mut();
    if strangers.greeting.len() >= STRANGERS_MAX
        && let Some((_, oldest)) = strangers.greeting.pop_first()
    {
        oldest.abort();
        strangers.log(None, &"too many connections that do not say who they are: the oldest was closed");
    }
    strangers.next += 1;
    let number = strangers.next;
    let hub_of_task = hub.clone();
    let task = spawn_local(async move {
        greet(&hub_of_task, socket, address).await;
        hub_of_task.strangers.borrow_mut().greeting.remove(&number);
    });
    strangers.greeting.insert(number, task.abort_handle());
}

/// Hears the greeting, answers it, and makes a link of the connection or ends it.
async fn greet(hub: &Rc<Hub>, socket: TcpStream, address: SocketAddr) {
    // Only a socket that is gone already cannot be set up.
    let Ok(stream) = Stream::accepted(socket) else { return };
    match timeout(hub.timing().greeting, hear(&stream)).await {
        Ok(Ok(bytes)) => take_hello(hub, stream, address, &bytes).await,
        Ok(Err(error)) => hub.strangers.borrow_mut().log(Some(address), &error),
        Err(_) => hub.strangers.borrow_mut().log(Some(address), &"it did not say who it is in time"),
    }
}

/// Reads as many bytes as a hello has, if they begin like one.
async fn hear(stream: &Stream) -> Result<[u8; GREETING_BYTES], HelloError> {
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes[..MAGIC_BYTES]).await.map_err(HelloError::Cut)?;
    check_magic(Kind::Hello, bytes[..MAGIC_BYTES].try_into().expect("eight bytes"))?;
    stream.read_exact(&mut bytes[MAGIC_BYTES..]).await.map_err(HelloError::Cut)?;
    Ok(bytes)
}

async fn take_hello(hub: &Rc<Hub>, stream: Stream, address: SocketAddr, bytes: &[u8; GREETING_BYTES]) {
    let (from, verdict) = match Hello::decode(bytes) {
        Ok(hello) => {
            (Some(hello.from), judge(&hello, hub.own(), hub.cluster(), hub.peer(hello.from).is_some()))
        }
        Err(GreetingError::OtherVersion(_)) => (None, Verdict::OtherVersion),
        Err(error) => return hub.strangers.borrow_mut().log(Some(address), &error),
    };
    let answer = Answer { from: hub.own(), verdict, cluster: hub.cluster(), nonce: hub.nonce() }.encode();
    let is_told = timeout(hub.timing().greeting, stream.write_all(&answer)).await;
    // The list of peers may have changed meanwhile.
    match (verdict, from.and_then(|from| hub.peer(from)), is_told) {
        (Verdict::Welcome, Some(peer), Ok(Ok(()))) => {
            let (receiving, sending) = first_places(bytes, &answer);
            hub.link_up(&peer, Greeted { stream, sending, receiving });
        }
        (Verdict::WillCall, Some(peer), _) => {
            peer.knock();
            say_farewell(&stream).await;
        }
        _ => {
            hub.strangers.borrow_mut().log_refusal(address, from, verdict);
            say_farewell(&stream).await;
        }
    }
}

async fn say_farewell(stream: &Stream) {
    // It ends with the other side's end, which is an error of reading, or with the time.
    let _ = timeout(FAREWELL_TIMEOUT, stream.say_farewell()).await;
}

impl Strangers {
    fn log(&mut self, address: Option<SocketAddr>, reason: &dyn std::fmt::Display) {
        if let Some(held_back) = self.stranger_log.pass(Instant::now()) {
            let address = address.map(tracing::field::display);
            tracing::warn!(address, %reason, held_back, "stranger on the members' port");
        }
    }

    fn log_refusal(&mut self, address: SocketAddr, peer: Option<u8>, reason: Verdict) {
        if let Some(held_back) = self.member_log.pass(Instant::now()) {
            tracing::warn!(%address, peer, %reason, held_back, "member refused");
        }
    }
}
