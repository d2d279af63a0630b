//! Reaching a peer: again and again while there is no link.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use paddock_proto::MemberNumber;
use paddock_tls::TlsMode;
use paddock_tls::{Tls, TlsFailure};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::backoff::Backoff;
use super::greeting::{Answer, GREETING_BYTES, GreetingError, Hello, Verdict, first_places, same_cluster};
use super::hub::Hub;
use super::link::Greeted;
use super::peer::{Peer, host};
use super::stream::Stream;

/// Reasons for which an attempt did not make a link.
#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("look up {address}: {source}")]
    LookUp { address: String, source: io::Error },
    #[error("look up {address}: no answer")]
    LookUpTimeout { address: String },
    #[error("connect to {address}: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("connect to {address}: no answer")]
    ConnectTimeout { address: SocketAddr },
    #[error("{address} does not say who it is")]
    GreetingTimeout { address: SocketAddr },
    #[error("{address} closed the connection without a word: {source}")]
    GreetingCut { address: SocketAddr, source: io::Error },
    #[error("no TLS connection to {address}: {source}")]
    Tls { address: SocketAddr, source: io::Error },
    #[error("{address} is not understood: {source}")]
    Greeting { address: SocketAddr, source: GreetingError },
    #[error("{address} is member {id}: check the address")]
    OtherMember { address: SocketAddr, id: MemberNumber },
    #[error("{address} refuses: {verdict}")]
    Refused { address: SocketAddr, verdict: Verdict },
    #[error(
        "{address} takes the call, but belongs to another ensemble ({theirs:016x}) than this member's data directory \
         ({own:016x}): check addresses and data directories"
    )]
    OtherCluster { address: SocketAddr, own: u64, theirs: u64 },
    #[error(
        "{address} refuses: the two members belong to different ensembles, {theirs:016x} and, by its data directory, this \
         one to {own:016x}: check addresses and data directories"
    )]
    RefusedByOtherCluster { address: SocketAddr, own: u64, theirs: u64 },
    #[error(
        "{address} refuses: this member runs in another process already, which calls from {first}; this one calls from \
         {second}: stop one of the two, or give each its own number"
    )]
    OtherProcess { address: SocketAddr, first: SocketAddr, second: SocketAddr },
}

impl DialError {
    /// True if the peer did not answer: there was no answer, or that of another process.
    fn is_of_address(&self) -> bool {
        match self {
            DialError::LookUp { .. }
            | DialError::LookUpTimeout { .. }
            | DialError::Connect { .. }
            | DialError::ConnectTimeout { .. }
            | DialError::GreetingTimeout { .. }
            | DialError::GreetingCut { .. }
            | DialError::Greeting { .. }
            | DialError::OtherMember { .. } => true,
            DialError::Refused { verdict, .. } => {
                matches!(verdict, Verdict::OtherRecipient | Verdict::SameNumber)
            }
            // The peer, or one that says so: it is not to come in by another door.
            DialError::Tls { .. }
            | DialError::OtherCluster { .. }
            | DialError::RefusedByOtherCluster { .. }
            | DialError::OtherProcess { .. } => false,
        }
    }
}

/// Result of an attempt to reach a peer.
#[derive(Debug)]
enum Reached {
    Linked(Greeted),
    /// The peer has the higher number and will dial.
    Knocked,
}

/// Keeps a link to the peer, for as long as the peer is known.
pub(super) async fn keep_linked(hub: Rc<Hub>, peer: Arc<Peer>) {
    let timing = hub.timing();
    let mut backoff = Backoff::default();
    loop {
        if peer.link().is_some() {
            sit_out_link(&peer, &mut backoff, &hub).await;
        }
        let pause = hub.with_random(|random| backoff.pause(&timing, random));
        if let Some(pause) = pause {
            // Whatever is new makes it worth a look.
            let _ = timeout(pause, peer.news()).await;
        }
        peer.calls_done().await;
        if peer.link().is_some() {
            continue;
        }
        backoff.failed();
        let attempted = tokio::select! {
            // Looked at first: a call is taken only as long as nothing was said in the attempt.
            biased;
            () = peer.call_taken() => continue,
            attempted = attempt(&hub, &peer) => attempted,
        };
        peer.end_greeting();
        peer.note_reached(!attempted.as_ref().is_err_and(DialError::is_of_address));
        match attempted {
            Ok(Reached::Linked(greeted)) => hub.link_up(&peer, greeted),
            Ok(Reached::Knocked) => drop(peer.set_reason("waits for the other side to connect")),
            Err(error) => report(&peer, &error),
        }
    }
}

/// Waits for the link's end. If it lasted, the next attempt is made at once; one that breaks soon has to wait like one
/// that was never made.
async fn sit_out_link(peer: &Peer, backoff: &mut Backoff, hub: &Hub) {
    let up_at = Instant::now();
    while peer.link().is_some() {
        peer.news().await;
    }
    if up_at.elapsed() >= hub.timing().pause_max {
        backoff.reset();
    }
}

/// An operator is told once for each reason.
fn report(peer: &Peer, error: &DialError) {
    let reason = error.to_string();
    use DialError::{OtherCluster, OtherMember, OtherProcess, RefusedByOtherCluster};
    let is_for_operator = matches!(
        error,
        OtherCluster { .. } | RefusedByOtherCluster { .. } | OtherProcess { .. } | OtherMember { .. }
    );
    if !peer.set_reason(&reason) {
        tracing::debug!(peer = peer.id, reason, "no link");
    } else if is_for_operator {
        tracing::error!(peer = peer.id, reason, "no link");
    } else {
        tracing::warn!(peer = peer.id, reason, "no link");
    }
}

async fn attempt(hub: &Hub, peer: &Peer) -> Result<Reached, DialError> {
    let mut last = None;
    let name = peer.address();
    for address in look_up(hub, &name).await? {
        peer.end_greeting();
        match reach(hub, peer, host(&name), address).await {
            Err(error) => last = Some(error),
            reached => return reached,
        }
    }
    Err(last.unwrap_or_else(|| DialError::LookUp { address: name, source: io::ErrorKind::NotFound.into() }))
}

async fn look_up(hub: &Hub, address: &str) -> Result<Vec<SocketAddr>, DialError> {
    match timeout(hub.timing().connect, lookup_host(address)).await {
        Ok(Ok(addresses)) => Ok(addresses.collect()),
        Ok(Err(source)) => Err(DialError::LookUp { address: address.to_owned(), source }),
        Err(_) => Err(DialError::LookUpTimeout { address: address.to_owned() }),
    }
}

async fn reach(hub: &Hub, peer: &Peer, host: &str, address: SocketAddr) -> Result<Reached, DialError> {
    let mut stream = match timeout(hub.timing().connect, Stream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => return Err(DialError::Connect { address, source }),
        Err(_) => return Err(DialError::ConnectTimeout { address }),
    };
    peer.begin_greeting();
    let (id, hello) = (peer.id, hub.hello(peer.id));
    match timeout(hub.timing().greeting, greet(hub.tls(), host, &mut stream, &hello)).await {
        Ok(Ok(answer)) => conclude(hub, id, address, stream, &hello, &answer),
        Ok(Err(source)) if TlsFailure::is_in(&source) => Err(DialError::Tls { address, source }),
        Ok(Err(source)) => Err(DialError::GreetingCut { address, source }),
        Err(_) => Err(DialError::GreetingTimeout { address }),
    }
}

async fn greet(
    tls: Option<&Tls>,
    host: &str,
    stream: &mut Stream,
    hello: &Hello,
) -> io::Result<[u8; GREETING_BYTES]> {
    if let Some(tls) = tls.filter(|tls| tls.mode() != TlsMode::Accepted) {
        stream.secure(tls.call(host)?).await?;
    }
    stream.write_all(&hello.encode()).await?;
    let mut answer = [0; GREETING_BYTES];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Judges the answer.
fn conclude(
    hub: &Hub,
    id: MemberNumber,
    address: SocketAddr,
    stream: Stream,
    hello: &Hello,
    bytes: &[u8; GREETING_BYTES],
) -> Result<Reached, DialError> {
    let answer = Answer::decode(bytes).map_err(|source| DialError::Greeting { address, source })?;
    let (own, theirs) = (hub.cluster(), answer.cluster);
    match answer.verdict {
        Verdict::Welcome | Verdict::WillCall if answer.from != id => {
            Err(DialError::OtherMember { address, id: answer.from })
        }
        Verdict::Welcome | Verdict::WillCall if !same_cluster(theirs, own) => {
            Err(DialError::OtherCluster { address, own, theirs })
        }
        Verdict::WillCall => Ok(Reached::Knocked),
        Verdict::Welcome => {
            let (sending, receiving) = first_places(&hello.encode(), bytes);
            let process = answer.process;
            Ok(Reached::Linked(Greeted { stream, address, sending, receiving, process, cluster: theirs }))
        }
        Verdict::OtherCluster => Err(DialError::RefusedByOtherCluster { address, own, theirs }),
        Verdict::OtherProcess
            if let (Some(first), Ok(second)) = (answer.first_at, stream.local_address()) =>
        {
            Err(DialError::OtherProcess { address, first, second })
        }
        verdict => Err(DialError::Refused { address, verdict }),
    }
}
