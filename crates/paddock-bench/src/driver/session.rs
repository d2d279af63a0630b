//! One session: its connection, its lane, and what is in flight between them.
//!
//! Answers come in the order of requests, so the front of `in_flight` is always the next to be answered. An answer with
//! another xid means that the server, or this file, is broken: the connection ends.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use mio::{Registry, Token};
use paddock_client::LoginSteps;
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Extensions, OpCode, RequestHeader, WatchEvent, Xid, Zxid, blocks, encode, frame};

use rustls::ClientConnection;

use super::form;
use super::handshake::{self, SessionRequest};
use super::wire::{Wire, is_not_ready};
use crate::access::{Access, ShownIdentity};
use crate::measure::Slice;
use crate::workload::{Lane, NextRequest, Operation, ReplyVerdict, ServerReply, WorkloadRequest, error_name};

const REPLY_BYTES_MAX: i32 = 256 << 20;

/// State that the sessions of one thread share while they take turns.
pub(crate) struct Round {
    pub(crate) now: Instant,
    /// Start of the phase: a lane's own timetable counts from here.
    pub(crate) start: Instant,
    pub(crate) slice: Slice,
    /// Number of requests that may still be sent in this phase.
    pub(crate) budget: u64,
    pub(crate) in_flight: usize,
    pub(crate) first_failure: Option<String>,
    /// The workload's operations.
    pub(crate) names: Arc<[String]>,
    /// For what a socket has.
    pub(crate) buffer: Vec<u8>,
}

impl Round {
    fn fail(&mut self, operation: Operation, error: &str) {
        self.slice.record_error(operation, error);
        let name = &self.names[operation.0];
        self.first_failure.get_or_insert_with(|| format!("{name}: {error}"));
    }
}

/// Reasons for which a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the server closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the session has expired")]
    Expired,
    #[error("{0}")]
    Protocol(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionLink {
    Down,
    /// The connect request is on its way.
    Greeting,
    /// The session is there, and tokens of SASL are exchanged.
    LoggingIn,
    Up,
    /// The session ends; a new one follows, opened as this operation.
    Closing {
        connect: Operation,
    },
}

/// Time at which the lane is to be asked for its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionReadiness {
    Ready,
    /// Ask again when something has come for it.
    Waiting,
    /// Ask again when something has come for any session.
    Watching,
    /// Ask again then; the next request counts from there.
    Until(Instant),
    Done,
}

#[derive(Debug)]
struct Flight {
    operation: Operation,
    op: OpCode,
    xid: Xid,
    since: Instant,
}

pub(crate) struct DriverSession {
    stream: Option<Wire>,
    link: SessionLink,
    asked: SessionRequest,
    access: Arc<Access>,
    /// The login that is under way.
    login: Option<LoginSteps>,
    lane: Box<dyn Lane>,
    readiness: SessionReadiness,
    /// The appointment that `new_appointment` has told.
    told: Option<Instant>,
    in_flight: VecDeque<Flight>,
    outgoing: Vec<u8>,
    /// The part of `outgoing` that is compressed and not written yet.
    packed: Vec<u8>,
    /// The start of a frame whose rest has not come.
    partial: Vec<u8>,
    /// The start of a compressed block whose rest has not come.
    partial_block: Vec<u8>,
    last_xid: i32,
    last_sent: Instant,
    /// Since when the connection is being made, and as which operation that counts.
    connecting: (Instant, Option<Operation>),
}

impl DriverSession {
    pub(crate) fn new(asked: SessionRequest, access: Arc<Access>, lane: Box<dyn Lane>) -> DriverSession {
        let now = Instant::now();
        DriverSession {
            stream: None,
            link: SessionLink::Down,
            asked,
            access,
            login: None,
            lane,
            readiness: SessionReadiness::Done,
            told: None,
            in_flight: VecDeque::new(),
            outgoing: Vec::new(),
            packed: Vec::new(),
            partial: Vec::new(),
            partial_block: Vec::new(),
            last_xid: 0,
            last_sent: now,
            connecting: (now, None),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.link == SessionLink::Up
    }

    /// True while its connection is being made.
    pub(crate) fn is_greeting(&self) -> bool {
        matches!(self.link, SessionLink::Greeting | SessionLink::LoggingIn)
    }

    pub(crate) fn is_down(&self) -> bool {
        self.link == SessionLink::Down
    }

    pub(crate) fn readiness(&self) -> SessionReadiness {
        self.readiness
    }

    /// The time for which the lane has put off its next request, told once.
    pub(crate) fn new_appointment(&mut self) -> Option<Instant> {
        let SessionReadiness::Until(time) = self.readiness else { return None };
        (self.told != Some(time)).then(|| *self.told.insert(time))
    }

    pub(crate) fn begin(&mut self, phase: usize) {
        self.lane.begin(phase);
        self.readiness = SessionReadiness::Ready;
    }

    /// Starts to connect, with the session it had if it had one.
    pub(crate) fn connect(
        &mut self,
        address: SocketAddr,
        tls: Option<ClientConnection>,
        registry: &Registry,
        token: Token,
        now: Instant,
    ) -> Result<(), Broken> {
        self.stream = Some(Wire::connect(address, tls, registry, token)?);
        self.link = SessionLink::Greeting;
        self.clear_buffers();
        self.asked.encode(&mut self.outgoing);
        self.connecting.0 = now;
        Ok(())
    }

    /// The connection is gone: so is what was in flight on it.
    pub(crate) fn disconnect(&mut self, why: &Broken, round: &mut Round) {
        self.stream = None;
        self.link = SessionLink::Down;
        self.clear_buffers();
        round.in_flight -= self.in_flight.len();
        for flight in self.in_flight.drain(..) {
            round.fail(flight.operation, "ConnectionLost");
        }
        if matches!(why, Broken::Expired) {
            self.renew();
        }
        if self.readiness != SessionReadiness::Done {
            self.readiness = SessionReadiness::Ready;
        }
    }

    fn clear_buffers(&mut self) {
        [&mut self.outgoing, &mut self.packed, &mut self.partial, &mut self.partial_block]
            .into_iter()
            .for_each(Vec::clear);
    }

    /// The next session is a new one.
    fn renew(&mut self) {
        self.asked = SessionRequest::new(self.asked.timeout, self.asked.extensions);
    }

    /// True if compressed blocks go over the connection now.
    fn is_compressed(&self) -> bool {
        self.asked.extensions.compression && self.link != SessionLink::Greeting
    }

    /// Ends the session when the run is over. Best effort: it would expire anyway.
    pub(crate) fn close(&mut self) {
        self.write_request(Xid(self.last_xid), OpCode::CloseSession);
        let _ = self.write();
    }

    fn write_request(&mut self, xid: Xid, op: OpCode) {
        let start = self.outgoing.len();
        frame::write(&mut self.outgoing, |out| RequestHeader { xid, op: op.code() }.encode(out));
        form::dress(self.asked.extensions, &mut self.outgoing, start);
    }

    /// Keeps an idle session alive.
    pub(crate) fn ping_if_idle(&mut self, now: Instant) {
        if self.link == SessionLink::Up && now.duration_since(self.last_sent) > self.asked.timeout / 3 {
            self.write_request(Xid::PING, OpCode::Ping);
            self.last_sent = now;
        }
    }

    /// Sends requests until the window is full or the lane has none.
    pub(crate) fn fill(&mut self, window: usize, round: &mut Round) {
        while self.in_flight.len() < window && self.ask(round.now, round) {}
    }

    /// Asks the lane for a request that should have been sent at `since`; false if there is none now.
    pub(crate) fn ask(&mut self, since: Instant, round: &mut Round) -> bool {
        if self.link != SessionLink::Up || round.budget == 0 || self.readiness == SessionReadiness::Done {
            return false;
        }
        let since = match self.readiness {
            SessionReadiness::Waiting => return false,
            SessionReadiness::Until(time) if time > round.now => return false,
            SessionReadiness::Until(time) => time,
            _ => since,
        };
        let xid = Xid(if self.last_xid == i32::MAX { 1 } else { self.last_xid + 1 });
        let start = self.outgoing.len();
        let mut request = WorkloadRequest::new(&mut self.outgoing, xid, round.now);
        let next = self.lane.next(&mut request);
        let op = request.op;
        form::dress(self.asked.extensions, &mut self.outgoing, start);
        self.readiness = match next {
            NextRequest::Send(operation) => {
                let op = op.expect("a lane that says Send has written a request");
                self.launch(Flight { operation, op, xid, since }, round);
                SessionReadiness::Ready
            }
            NextRequest::Renew { close, connect } => {
                self.write_request(xid, OpCode::CloseSession);
                self.launch(Flight { operation: close, op: OpCode::CloseSession, xid, since }, round);
                self.link = SessionLink::Closing { connect };
                SessionReadiness::Ready
            }
            NextRequest::At(time) => SessionReadiness::Until(round.start + time),
            NextRequest::Wait => SessionReadiness::Waiting,
            NextRequest::WaitForOthers => SessionReadiness::Watching,
            NextRequest::Done => SessionReadiness::Done,
        };
        match self.readiness {
            // Its time may have come already.
            SessionReadiness::Until(time) => time <= round.now && self.ask(time, round),
            readiness => readiness == SessionReadiness::Ready,
        }
    }

    fn launch(&mut self, flight: Flight, round: &mut Round) {
        self.last_xid = flight.xid.0;
        self.last_sent = round.now;
        self.in_flight.push_back(flight);
        round.in_flight += 1;
        round.budget -= 1;
    }

    /// Writes what there is to write, as far as the socket takes it.
    pub(crate) fn flush(&mut self, slice: &mut Slice) -> Result<(), Broken> {
        slice.bytes_sent += self.write()?;
        Ok(())
    }

    fn write(&mut self) -> Result<u64, Broken> {
        let is_compressed = self.is_compressed();
        let Some(stream) = &mut self.stream else { return Ok(0) };
        let outgoing = if is_compressed {
            blocks::pack(&self.outgoing, &mut self.packed);
            self.outgoing.clear();
            &mut self.packed
        } else {
            &mut self.outgoing
        };
        let mut written = 0;
        while written < outgoing.len() {
            match stream.write(&outgoing[written..]) {
                Ok(len) => written += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_not_ready(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        outgoing.drain(..written);
        Ok(written as u64)
    }

    /// Takes what the socket has. Returns whether anything came for the lane.
    pub(crate) fn receive(&mut self, round: &mut Round) -> Result<bool, Broken> {
        let mut any = false;
        loop {
            let Some(stream) = &mut self.stream else { return Ok(any) };
            let len = match stream.read(&mut round.buffer) {
                Ok(0) => return Err(Broken::Closed),
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_not_ready(&error) => return Ok(any),
                Err(error) => return Err(error.into()),
            };
            round.now = Instant::now();
            round.slice.bytes_received += len as u64;
            any |= self.take(len, round)?;
            let is_all = self.stream.as_ref().is_some_and(Wire::short_read_is_all);
            if is_all && len < round.buffer.len() {
                return Ok(any);
            }
        }
    }

    /// Handles the frames in the compressed blocks that are whole now.
    fn take_blocks(&mut self, len: usize, round: &mut Round) -> Result<bool, Broken> {
        self.partial_block.extend_from_slice(&round.buffer[..len]);
        let (mut frames, mut taken) = (std::mem::take(&mut self.partial), 0);
        while let Some(len) = blocks::unpack(&self.partial_block[taken..], &mut frames)
            .map_err(|error| Broken::Protocol(error.to_string()))?
        {
            taken += len;
        }
        self.partial_block.drain(..taken);
        let used = self.handle(&frames, round)?;
        frames.drain(..used);
        self.partial = frames;
        Ok(used > 0)
    }

    /// Handles the frames in the first `len` bytes of the buffer, behind those that were left from before.
    fn take(&mut self, len: usize, round: &mut Round) -> Result<bool, Broken> {
        if self.is_compressed() {
            return self.take_blocks(len, round);
        }
        let mut partial = std::mem::take(&mut self.partial);
        if partial.is_empty() {
            // The buffer goes aside while its frames are handled with the rest of the round.
            let buffer = std::mem::take(&mut round.buffer);
            let used = self.handle(&buffer[..len], round);
            if let Ok(used) = used {
                partial.extend_from_slice(&buffer[used..len]);
            }
            round.buffer = buffer;
            self.partial = partial;
            return used.map(|used| used > 0);
        }
        partial.extend_from_slice(&round.buffer[..len]);
        let used = self.handle(&partial, round)?;
        partial.drain(..used);
        self.partial = partial;
        Ok(used > 0)
    }

    /// Handles the whole frames of `bytes` and returns how many bytes they took.
    fn handle(&mut self, bytes: &[u8], round: &mut Round) -> Result<usize, Broken> {
        let mut used = 0;
        if self.link == SessionLink::Greeting {
            match handshake::response(bytes).map_err(Broken::Protocol)? {
                None => return Ok(0),
                Some((response, len)) => {
                    self.greeted(response, round)?;
                    used = len;
                }
            }
        }
        loop {
            let split = frame::split(&bytes[used..], REPLY_BYTES_MAX);
            let Some((body, len)) = split.map_err(|error| Broken::Protocol(error.to_string()))? else {
                return Ok(used);
            };
            used += len;
            if self.link == SessionLink::LoggingIn {
                self.take_token(body, round).map_err(Broken::Protocol)?;
                continue;
            }
            self.reply(body, round).map_err(|error| Broken::Protocol(format!("bad reply: {error}")))?;
            if self.link == SessionLink::Down {
                return Ok(used);
            }
        }
    }

    fn greeted(&mut self, response: paddock_proto::ConnectResponse, round: &mut Round) -> Result<(), Broken> {
        if response.timeout_ms <= 0 {
            return Err(Broken::Expired);
        }
        if response.protocol_version != self.asked.extensions.version() {
            return Err(Broken::Protocol(refused(self.asked.extensions)));
        }
        self.asked.id = response.session;
        self.asked.password = response.password;
        let Some(login) = &self.access.login else {
            self.open(round);
            return Ok(());
        };
        let steps = self.login.insert(LoginSteps::new(login));
        let token = steps.first();
        self.link = SessionLink::LoggingIn;
        self.write_token(&token);
        Ok(())
    }

    /// Takes a reply of the login.
    fn take_token(&mut self, frame: &[u8], round: &mut Round) -> Result<(), String> {
        let mut reader = Reader::new(frame);
        let xid = form::read_xid(self.asked.extensions, &mut reader);
        let mut code = || xid.and_then(|_| reader.i64()).and_then(|_| reader.i32());
        let error = code().map_err(|error| format!("bad reply to SASL: {error}"))?;
        let steps = self.login.as_mut().expect("a login is under way");
        match steps.take(error, reader.rest()).map_err(|error| error.to_string())? {
            Some(token) => self.write_token(&token),
            None => {
                self.login = None;
                self.open(round);
            }
        }
        Ok(())
    }

    fn write_token(&mut self, token: &[u8]) {
        let start = self.outgoing.len();
        frame::write(&mut self.outgoing, |out| {
            RequestHeader { xid: Xid(0), op: OpCode::Sasl.code() }.encode(out);
            out.put_buffer(Some(token));
        });
        form::dress(self.asked.extensions, &mut self.outgoing, start);
    }

    /// The session can be used.
    fn open(&mut self, round: &mut Round) {
        self.link = SessionLink::Up;
        self.show_identities();
        if let (since, Some(operation)) = self.connecting {
            round.slice.record(operation, round.now.duration_since(since));
            self.connecting.1 = None;
        }
    }

    /// Shows who this is, ahead of the first request.
    fn show_identities(&mut self) {
        for ShownIdentity { scheme, auth } in &self.access.identities {
            let start = self.outgoing.len();
            frame::write(&mut self.outgoing, |out| {
                RequestHeader { xid: Xid::AUTH, op: OpCode::Auth.code() }.encode(out);
                encode::auth(out, scheme, auth.as_bytes());
            });
            form::dress(self.asked.extensions, &mut self.outgoing, start);
        }
    }

    fn reply(&mut self, frame: &[u8], round: &mut Round) -> Result<(), paddock_proto::DecodeError> {
        let mut reader = Reader::new(frame);
        let xid = form::read_xid(self.asked.extensions, &mut reader)?;
        let (zxid, error) = (Zxid(reader.i64()?), reader.i32()?);
        self.asked.last_zxid = self.asked.last_zxid.max(zxid);
        if xid == Xid::NOTIFICATION {
            let event = WatchEvent::decode(zxid, reader.rest())?;
            if let Some((operation, latency)) = self.lane.notified(&event, round.now) {
                round.slice.record(operation, latency);
            }
        } else if xid == Xid::AUTH && error != 0 {
            return Err(paddock_proto::DecodeError::UnknownValue {
                field: "answer to an identity",
                value: error,
            });
        } else if xid != Xid::PING && xid != Xid::AUTH {
            let expected = self.in_flight.front().map(|flight| flight.xid);
            if expected != Some(xid) {
                return Err(paddock_proto::DecodeError::UnknownValue {
                    field: "xid of an answer",
                    value: xid.0,
                });
            }
            let flight = self.in_flight.pop_front().expect("its xid was just looked at");
            round.in_flight -= 1;
            self.answer(&flight, error, reader.rest(), round);
        }
        if self.readiness == SessionReadiness::Waiting {
            self.readiness = SessionReadiness::Ready;
        }
        Ok(())
    }

    fn answer(&mut self, flight: &Flight, error: i32, body: &[u8], round: &mut Round) {
        if let SessionLink::Closing { connect } = self.link
            && flight.op == OpCode::CloseSession
        {
            round.slice.record(flight.operation, round.now.duration_since(flight.since));
            self.stream = None;
            self.link = SessionLink::Down;
            self.renew();
            self.connecting.1 = Some(connect);
            return;
        }
        let error = if flight.op == OpCode::Multi && error == 0 { multi_error(body) } else { error };
        let answer = ServerReply { operation: flight.operation, error, body, now: round.now };
        match self.lane.answered(&answer) {
            ReplyVerdict::Good => {
                round.slice.record(flight.operation, round.now.duration_since(flight.since))
            }
            ReplyVerdict::Bad if error == 0 => round.fail(flight.operation, "UnexpectedSuccess"),
            ReplyVerdict::Bad => round.fail(flight.operation, &error_name(error)),
        }
    }
}

/// Names the options to leave out.
fn refused(extensions: Extensions) -> String {
    let asked = [
        (extensions.compression, "compress"),
        (extensions.wide_xids, "have 64-bit xids"),
        (extensions.tracing, "take traces"),
    ];
    let asked: Vec<&str> =
        asked.into_iter().filter_map(|(is_asked, what)| is_asked.then_some(what)).collect();
    format!("it does not {}; leave that out", asked.join(" and "))
}

/// The code of the operation that made a multi fail; 0 if none did.
fn multi_error(body: &[u8]) -> i32 {
    const ERROR_RESULT: i32 = -1;
    let mut reader = Reader::new(body);
    // In front of the culprit stand operations without a fault of their own.
    while let (Ok(ERROR_RESULT), Ok(false), Ok(_), Ok(code)) =
        (reader.i32(), reader.bool(), reader.i32(), reader.i32())
    {
        if code != 0 {
            return code;
        }
    }
    0
}
