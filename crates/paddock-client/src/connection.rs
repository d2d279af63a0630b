//! The task that owns a session's socket: it writes what is in the outbox, hands answers to those who wait, pings,
//! and looks for another server when the connection breaks.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use paddock_proto::jute::Reader;
use paddock_proto::{
    ConnectResponse, ErrorCode, OpCode, Password, RequestHeader, SessionId, WatchEvent, Xid, Zxid, encode,
    frame,
};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::client::ClientShared;
use crate::handshake::{self, Granted};
use crate::outbox::{Intent, PendingRequest};
use crate::pending::Reply;
use crate::sasl::LoginFailure;
use crate::stream::{Moved, Stream};
use crate::watches::WatchTable;
use crate::writable;
use crate::{ClientOptions, Error, Event};

/// The pause after a round in which no server took us.
const RETRY: Duration = Duration::from_millis(100);

/// Time for which a server without a quorum is kept waiting while one of the others is asked.
const FALLBACK_WAITS: Duration = Duration::from_secs(1);

/// Paths in one setWatches request, in bytes at most, as in ZooKeeper's own client.
const SET_WATCHES_BYTES: usize = 128 << 10;

pub(crate) struct ServedConnection {
    servers: Vec<String>,
    next_server: usize,
    options: ClientOptions,
    shared: Arc<ClientShared>,
    password: Password,
    timeout: Duration,
    stream: Stream,
    /// True if the server has no quorum.
    is_read_only: bool,
    /// True if a quorum knows the session; one that only a server without a quorum gave ends with its connection.
    is_known_to_quorum: bool,
    /// Identities that were accepted, to be shown again.
    identities: Vec<(String, Vec<u8>)>,
    watches: WatchTable,
    /// Written, not answered.
    in_flight: VecDeque<PendingRequest>,
    /// Requests of auth, whose answers may overtake others. `None`: ours, after a reconnect.
    auth_in_flight: VecDeque<Option<PendingRequest>>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// Reasons for the end of a connection.
enum Over {
    /// Look for another server.
    Lost,
    /// The client is over too.
    For(Error),
    /// No caller holds the client any more.
    Abandoned,
}

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Over {
        Over::Lost
    }
}

impl ServedConnection {
    /// Opens a new session.
    pub(crate) async fn open(
        servers: &str,
        options: ClientOptions,
        shared: Arc<ClientShared>,
    ) -> Result<ServedConnection, Error> {
        let list: Vec<String> =
            servers.split(',').map(|server| server.trim().to_string()).filter(|s| !s.is_empty()).collect();
        if list.is_empty() {
            return Err(Error::NoServers(servers.to_string()));
        }
        let deadline = Instant::now() + options.connect_timeout;
        // A session without a quorum is taken when no other server gives a better one.
        let mut fallback: Option<(usize, Granted)> = None;
        for attempt in 0.. {
            if let Some((at, granted)) = fallback.take_if(|(at, _)| attempt >= *at + list.len()) {
                return Ok(ServedConnection::new(list, options, shared, granted, at + 1));
            }
            let server = &list[attempt % list.len()];
            let request = handshake::request(&options, SessionId::NONE, Zxid(0), &Password::ZERO);
            let until =
                if fallback.is_some() { deadline.min(Instant::now() + FALLBACK_WAITS) } else { deadline };
            let error = match timeout_at(until, handshake::perform(server, &options, &request)).await {
                Ok(Ok(granted)) if granted.is_valid() && granted.is_read_only() => {
                    fallback.get_or_insert((attempt, granted));
                    continue;
                }
                Ok(Ok(granted)) if granted.is_valid() => {
                    return Ok(ServedConnection::new(list, options, shared, granted, attempt + 1));
                }
                Ok(Ok(_)) => io::Error::other("server refuses the new session"),
                Ok(Err(LoginFailure::Io(error))) => error,
                Ok(Err(LoginFailure::Login(error))) => return Err(error.into()),
                Err(_) => io::Error::from(io::ErrorKind::TimedOut),
            };
            if fallback.is_some() {
                continue;
            }
            if Instant::now() + RETRY >= deadline {
                return Err(Error::Connect { servers: servers.to_string(), source: Arc::new(error) });
            }
            sleep(RETRY).await;
        }
        unreachable!("the attempts end at their deadline")
    }

    fn new(
        servers: Vec<String>,
        options: ClientOptions,
        shared: Arc<ClientShared>,
        granted: Granted,
        next_server: usize,
    ) -> ServedConnection {
        let response = granted.response;
        let is_read_only = granted.is_read_only();
        let connection = ServedConnection {
            servers,
            next_server,
            options,
            shared,
            password: response.password,
            timeout: granted.timeout(),
            stream: granted.stream,
            is_read_only,
            is_known_to_quorum: !is_read_only,
            identities: Vec::new(),
            watches: WatchTable::default(),
            in_flight: VecDeque::new(),
            auth_in_flight: VecDeque::new(),
            outgoing: Vec::new(),
            incoming: granted.rest,
        };
        connection.publish(&response);
        connection
    }

    pub(crate) async fn run(mut self) {
        loop {
            let over = match self.serve().await {
                Err(over) => over,
                Ok(never) => match never {},
            };
            let error = match over {
                Over::Lost => Error::ConnectionLost,
                Over::Abandoned => Error::Closed,
                Over::For(error) => error,
            };
            self.fail_in_flight(&error);
            if !matches!(error, Error::ConnectionLost) {
                return self.end(error);
            }
            self.tell(Event::Disconnected);
            match self.reconnect().await {
                Ok(()) => self.tell(Event::Reconnected),
                Err(Over::For(error)) => return self.end(error),
                Err(_) => return self.end(Error::Closed),
            }
        }
    }

    /// Carries bytes both ways until the connection breaks.
    async fn serve(&mut self) -> Result<std::convert::Infallible, Over> {
        let mut written = 0;
        let mut last_sent = Instant::now();
        let mut last_heard = Instant::now();
        self.on_bytes()?;
        let (servers, tls) = (self.servers.clone(), self.options.tls.clone());
        let mut better_server = pin!(writable::find(servers, tls, self.next_server));
        loop {
            if written == self.outgoing.len() {
                self.outgoing.clear();
                written = 0;
                self.take_requests()?;
            }
            let ping_at = last_sent + self.timeout / 3;
            let dead_at = last_heard + self.timeout * 2 / 3;
            tokio::select! {
                moved = self.stream.exchange(&mut self.incoming, &self.outgoing[written..]) => match moved? {
                    Moved::Received(0) => return Err(Over::Lost),
                    Moved::Received(_) => {
                        last_heard = Instant::now();
                        self.on_bytes()?;
                    }
                    Moved::Sent(len) => {
                        written += len;
                        last_sent = Instant::now();
                    }
                },
                () = self.shared.outbox.wake.notified(), if self.outgoing.is_empty() => {}
                // Nothing waits for an answer, so that nothing is lost.
                place = &mut better_server, if self.is_read_only && self.outgoing.is_empty() && self.in_flight.is_empty() => {
                    self.next_server = place;
                    return Err(Over::Lost);
                }
                () = sleep_until(ping_at.min(dead_at)) => {
                    if Instant::now() >= dead_at {
                        return Err(Over::Lost);
                    }
                    put_request(&mut self.outgoing, Xid::PING, OpCode::Ping, |_| {});
                    last_sent = Instant::now();
                }
            }
        }
    }

    /// Moves what callers left in the outbox to the socket's side.
    fn take_requests(&mut self) -> Result<(), Over> {
        let mut state = self.shared.outbox.lock();
        if state.abandoned && state.waiting.is_empty() {
            return Err(Over::Abandoned);
        }
        std::mem::swap(&mut self.outgoing, &mut state.bytes);
        for request in state.waiting.drain(..) {
            match request.intent {
                Intent::Auth { .. } => self.auth_in_flight.push_back(Some(request)),
                _ => self.in_flight.push_back(request),
            }
        }
        Ok(())
    }

    /// Takes every whole frame out of `incoming`.
    fn on_bytes(&mut self) -> Result<(), Over> {
        let incoming = std::mem::take(&mut self.incoming);
        let mut at = 0;
        let max = self.options.reply_bytes_max;
        while let Some((body, len)) = frame::split(&incoming[at..], max).map_err(|_| Over::Lost)? {
            self.on_frame(body)?;
            at += len;
        }
        self.incoming = incoming;
        self.incoming.drain(..at);
        Ok(())
    }

    fn on_frame(&mut self, body: &[u8]) -> Result<(), Over> {
        let mut reader = Reader::new(body);
        let mut header = || Ok((Xid(reader.i32()?), Zxid(reader.i64()?), reader.i32()?));
        let (xid, zxid, code) = header().map_err(|_: paddock_proto::DecodeError| Over::Lost)?;
        match xid {
            Xid::NOTIFICATION => return self.on_event(zxid, reader.rest()),
            Xid::PING => return Ok(()),
            Xid::AUTH => return self.on_auth(code),
            _ => {}
        }
        self.shared.last_zxid.fetch_max(zxid.0, Ordering::AcqRel);
        if xid == Xid::SET_WATCHES {
            return if code == 0 { Ok(()) } else { Err(Over::Lost) };
        }
        let request = self.in_flight.pop_front().ok_or(Over::Lost)?;
        if request.xid != xid {
            self.in_flight.push_front(request);
            return Err(Over::Lost);
        }
        self.on_answer(request, Reply { zxid, code, body: reader.rest().to_vec() })
    }

    fn on_answer(&mut self, request: PendingRequest, reply: Reply) -> Result<(), Over> {
        let PendingRequest { answer, intent, .. } = request;
        let code = reply.code;
        let mut over = Ok(());
        match intent {
            Intent::Watch(watch) if code == 0 => self.watches.set(watch),
            Intent::Watch(watch) if code == ErrorCode::NoNode.code() => self.watches.set_on_missing(watch),
            Intent::Close if code == 0 => over = Err(Over::For(Error::Closed)),
            _ => {}
        }
        // A caller who dropped its `Pending` does not want to know.
        let _ = answer.send(Ok(reply));
        over
    }

    fn on_auth(&mut self, code: i32) -> Result<(), Over> {
        match self.auth_in_flight.pop_front().ok_or(Over::Lost)? {
            None if code == 0 => Ok(()),
            None => Err(Over::For(Error::AuthFailed)),
            Some(request) => {
                if let (Intent::Auth { scheme, auth }, 0) = (request.intent, code) {
                    self.identities.push((scheme, auth));
                }
                let _ = request.answer.send(Ok(Reply { zxid: Zxid(0), code, body: Vec::new() }));
                Ok(())
            }
        }
    }

    fn on_event(&mut self, zxid: Zxid, body: &[u8]) -> Result<(), Over> {
        let event = WatchEvent::decode(zxid, body).map_err(|_| Over::Lost)?;
        self.watches.fired(&event);
        self.tell(Event::Znode { kind: event.kind, path: event.path.to_string(), zxid });
        Ok(())
    }

    /// Finds a server that goes on with the session.
    async fn reconnect(&mut self) -> Result<(), Over> {
        let known = (SessionId(self.shared.session.load(Ordering::Acquire)), self.password);
        let (session, password) =
            if self.is_known_to_quorum { known } else { (SessionId::NONE, Password::ZERO) };
        for attempt in 1.. {
            if self.shared.outbox.lock().abandoned {
                return Err(Over::Abandoned);
            }
            let server = &self.servers[self.next_server % self.servers.len()];
            self.next_server += 1;
            let last_zxid = Zxid(self.shared.last_zxid.load(Ordering::Acquire));
            let request = handshake::request(&self.options, session, last_zxid, &password);
            // Another server may answer where this one hangs.
            let handshake = handshake::perform(server, &self.options, &request);
            match timeout(self.timeout / 3, handshake).await {
                Ok(Ok(granted)) => return self.resume(granted),
                Ok(Err(LoginFailure::Login(error))) => return Err(Over::For(error.into())),
                Ok(Err(LoginFailure::Io(_))) | Err(_) => {}
            }
            if attempt % self.servers.len() == 0 {
                sleep(RETRY).await;
            }
        }
        unreachable!("reconnecting goes on until it succeeds or the client is dropped")
    }

    fn resume(&mut self, granted: Granted) -> Result<(), Over> {
        if !granted.is_valid() {
            return Err(Over::For(Error::SessionExpired));
        }
        if !self.is_known_to_quorum {
            self.password = granted.response.password;
        }
        self.is_read_only = granted.is_read_only();
        self.is_known_to_quorum |= !self.is_read_only;
        self.publish(&granted.response);
        self.timeout = granted.timeout();
        self.stream = granted.stream;
        self.incoming = granted.rest;
        self.outgoing.clear();
        self.renew();
        Ok(())
    }

    /// Shows the identities again and registers the watches, ahead of all that waits in the outbox.
    fn renew(&mut self) {
        for (scheme, auth) in &self.identities {
            put_request(&mut self.outgoing, Xid::AUTH, OpCode::Auth, |out| encode::auth(out, scheme, auth));
            self.auth_in_flight.push_back(None);
        }
        let last_zxid = Zxid(self.shared.last_zxid.load(Ordering::Acquire));
        for watches in self.watches.portions(last_zxid, SET_WATCHES_BYTES) {
            let op =
                if encode::needs_set_watches2(&watches) { OpCode::SetWatches2 } else { OpCode::SetWatches };
            put_request(&mut self.outgoing, Xid::SET_WATCHES, op, |out| encode::set_watches(out, &watches));
        }
    }

    fn publish(&self, response: &ConnectResponse) {
        self.shared.session.store(response.session.0, Ordering::Release);
        self.shared.is_read_only.store(self.is_read_only, Ordering::Release);
        *self.shared.password.lock().expect("no holder of the password panics") = Some(self.password);
        self.shared.timeout_ms.store(response.timeout_ms.max(0) as u64, Ordering::Release);
    }

    fn fail_in_flight(&mut self, error: &Error) {
        let auths = self.auth_in_flight.drain(..).flatten();
        for request in self.in_flight.drain(..).chain(auths) {
            let _ = request.answer.send(Err(error.clone()));
        }
    }

    fn end(&self, error: Error) {
        if matches!(error, Error::SessionExpired) {
            self.tell(Event::SessionExpired);
        }
        self.shared.outbox.end(error);
    }

    fn tell(&self, event: Event) {
        if let Some(events) = &self.options.events {
            // The receiver is gone: that is the caller's choice.
            let _ = events.send(event);
        }
    }
}

fn put_request(out: &mut Vec<u8>, xid: Xid, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
    frame::write(out, |out| {
        RequestHeader { xid, op: op.code() }.encode(out);
        body(out);
    });
}
