//! Accepting connections on the quorum port.
//!
//! Until a hello is complete and right, a connection is a stranger's: it costs a task and 58 bytes, has a few seconds,
//! is told nothing, and only a limited number exist at a time. When there are more, the oldest has to go: a member greets at
//! once, so it is never the one that waits. With TLS a stranger costs a handshake more, within the same few seconds,
//! and is told what this member's certificate says.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::{Duration, Instant};

use paddock_os::Limiter;
use paddock_tls::TlsMode;
use paddock_tls::{Tls, TlsFailure};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{sleep, timeout};

use super::greeting::{
    Answer, GREETING_BYTES, GreetingError, GreetingKind, Hello, MAGIC_BYTES, VERSION_END, Verdict,
    check_magic, check_version, first_places, judge,
};
use super::hub::Hub;
use super::link::Greeted;
use super::peer::host;
use super::stream::Stream;

/// Number of connections that may be without a greeting.
pub(super) const STRANGERS_MAX: usize = 64;
/// Pause before the next try when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// Time that a refused member may take to read the reason.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Connections that have not greeted, and what the log has heard of them.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    next: u64,
    greeting: BTreeMap<u64, AbortHandle>,
    stranger_log: Limiter,
    member_log: Limiter,
}

/// Reasons for which there is no hello.
#[derive(Debug, thiserror::Error)]
enum HelloError {
    #[error("the connection ended before it said who it is")]
    Cut(#[source] io::Error),
    #[error("no TLS connection: {0}")]
    Tls(#[source] io::Error),
    #[error(transparent)]
    Greeting(#[from] GreetingError),
}

pub(super) async fn accept(hub: Rc<Hub>, listener: TcpListener) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listening socket can be polled");
    loop {
        match listener.accept().await {
            Ok((socket, address)) => {
                // Of IPv4, if it came so to a socket for both.
                let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                admit(&hub, socket, address);
            }
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
        strangers.log(None, &"too many connections without a greeting: closed the oldest");
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
    let Ok(mut stream) = Stream::accepted(socket) else { return };
    match timeout(hub.timing().greeting, hear(hub.tls(), &mut stream)).await {
        Ok(Ok(bytes)) => take_hello(hub, stream, address, &bytes).await,
        Ok(Err(error)) => {
            hub.strangers.borrow_mut().log(Some(address), &error);
            if let HelloError::Tls(_) = error {
                say_farewell(&stream).await;
            }
        }
        Err(_) => hub.strangers.borrow_mut().log(Some(address), &"it did not say who it is in time"),
    }
}

/// Reads as many bytes as a hello has, if they begin like one. Goes on with TLS if the other side does.
async fn hear(tls: Option<&Tls>, stream: &mut Stream) -> Result<[u8; GREETING_BYTES], HelloError> {
    if let Some(tls) = tls
        && stream.begins_with_tls().await?
    {
        stream.secure(tls.answer().map_err(io::Error::from)?).await?;
    }
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes[..MAGIC_BYTES]).await?;
    check_magic(GreetingKind::Hello, bytes[..MAGIC_BYTES].try_into().expect("eight bytes"))?;
    stream.read_exact(&mut bytes[MAGIC_BYTES..VERSION_END]).await?;
    // The caller of another version is told so, however long its hello is.
    if check_version(bytes[MAGIC_BYTES..VERSION_END].try_into().expect("two bytes")).is_ok() {
        stream.read_exact(&mut bytes[VERSION_END..]).await?;
    }
    Ok(bytes)
}

impl From<io::Error> for HelloError {
    fn from(error: io::Error) -> HelloError {
        if TlsFailure::is_in(&error) { HelloError::Tls(error) } else { HelloError::Cut(error) }
    }
}

async fn take_hello(hub: &Rc<Hub>, stream: Stream, address: SocketAddr, bytes: &[u8; GREETING_BYTES]) {
    let (hello, verdict) = match Hello::decode(bytes) {
        Ok(hello) => (Some(hello), judge_caller(hub, &stream, address, &hello)),
        // Whatever version it speaks, it has to show with TLS that it is a member.
        Err(GreetingError::OtherVersion(_)) if lacks_tls(hub, &stream) => (None, Verdict::TlsNeeded),
        Err(GreetingError::OtherVersion(_)) => (None, Verdict::OtherVersion),
        Err(error) => return hub.strangers.borrow_mut().log(Some(address), &error),
    };
    let first_at = match hello.filter(|_| matches!(verdict, Verdict::Welcome | Verdict::WillCall)) {
        Some(hello) => hub.other_process(hello.from, hello.process).await,
        None => None,
    };
    let verdict = if first_at.is_some() { Verdict::OtherProcess } else { verdict };
    // Held until there is a link.
    let caller = hello.filter(|_| verdict == Verdict::WillCall).and_then(|hello| hub.peer(hello.from));
    let taken = caller.and_then(|peer| peer.take_call());
    let verdict = if taken.is_some() { Verdict::Welcome } else { verdict };
    // Without the TLS that it needs, a caller has not shown that it is a member: the verdict is all that it is told.
    let answer = if verdict == Verdict::TlsNeeded {
        Answer { from: 0, verdict, cluster: 0, nonce: 0, process: 0, first_at: None }.encode()
    } else {
        let (from, cluster, nonce, process) = (hub.own(), hub.cluster(), hub.nonce(), hub.process());
        Answer { from, verdict, cluster, nonce, process, first_at }.encode()
    };
    let is_told = timeout(hub.timing().greeting, stream.write_all(&answer)).await;
    // The list of peers may have changed meanwhile.
    match (verdict, hello.and_then(|hello| Some((hello, hub.peer(hello.from)?))), is_told) {
        (Verdict::Welcome, Some((hello, peer)), Ok(Ok(()))) => {
            let (receiving, sending) = first_places(bytes, &answer);
            let Hello { process, cluster, .. } = hello;
            hub.link_up(&peer, Greeted { stream, address, sending, receiving, process, cluster });
        }
        (Verdict::WillCall, Some((_, peer)), _) => {
            peer.knock();
            say_farewell(&stream).await;
        }
        _ => {
            let refusal = Refusal { own: hub.cluster(), hello, verdict, first_at };
            hub.strangers.borrow_mut().log_refusal(address, &refusal);
            say_farewell(&stream).await;
        }
    }
}

/// Refusal of a member, with what the log says of it.
struct Refusal {
    /// This member's ensemble.
    own: u64,
    hello: Option<Hello>,
    verdict: Verdict,
    first_at: Option<SocketAddr>,
}

/// True if members must have TLS, and the other end of the connection has shown no certificate.
fn lacks_tls(hub: &Hub, stream: &Stream) -> bool {
    hub.tls().is_some_and(|tls| tls.mode() == TlsMode::Required) && stream.certificate().is_none()
}

/// Judges a hello by what it says and by what the connection has shown.
fn judge_caller(hub: &Hub, stream: &Stream, address: SocketAddr, hello: &Hello) -> Verdict {
    if lacks_tls(hub, stream) {
        return Verdict::TlsNeeded;
    }
    let peer = hub.peer(hello.from);
    let verdict = judge(hello, hub.own(), hub.cluster(), peer.is_some());
    let (Some(tls), certificate) = (hub.tls(), stream.certificate()) else { return verdict };
    match (certificate, peer) {
        (Some(certificate), Some(peer)) if matches!(verdict, Verdict::Welcome | Verdict::WillCall) => {
            let Err(failure) = tls.check_caller(&certificate, host(&peer.address())) else { return verdict };
            hub.strangers.borrow_mut().log(Some(address), &failure);
            Verdict::OtherHost
        }
        _ => verdict,
    }
}

async fn say_farewell(stream: &Stream) {
    // The farewell ends with the other side's end, which is an error of reading, or with the time.
    let _ = timeout(FAREWELL_TIMEOUT, stream.say_farewell()).await;
}

impl Strangers {
    fn log(&mut self, address: Option<SocketAddr>, reason: &dyn std::fmt::Display) {
        if let Some(held_back) = self.stranger_log.pass(Instant::now()) {
            let address = address.map(tracing::field::display);
            tracing::warn!(address, %reason, held_back, "rejected a connection on the quorum port");
        }
    }

    fn log_refusal(&mut self, address: SocketAddr, refusal: &Refusal) {
        let Some(held_back) = self.member_log.pass(Instant::now()) else { return };
        let Refusal { own, hello, verdict: reason, first_at } = refusal;
        let peer = hello.map(|hello| hello.from);
        match (reason, hello, first_at) {
            (Verdict::OtherCluster, Some(hello), _) => {
                let (own, theirs) = (format!("{own:016x}"), format!("{:016x}", hello.cluster));
                tracing::error!(%address, peer, own_ensemble = own, its_ensemble = theirs, %reason, held_back, "member refused");
            }
            (Verdict::OtherProcess, _, Some(first)) => {
                tracing::error!(%address, peer, first_process = %first, %reason, held_back, "member refused");
            }
            _ => tracing::warn!(%address, peer, %reason, held_back, "member refused"),
        }
    }
}
