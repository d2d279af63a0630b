//! The checker: it pairs the connections of clients with connections to the reference and compares what both are told. It has no
//! socket and no clock.

use std::collections::HashMap;
use std::sync::Arc;

use paddock_front::is_read_by_clickhouse;
use paddock_proto::jute::Reader;
use paddock_proto::{ConnectRequest, ConnectResponse, OpCode, SessionId, Zxid};
use paddock_state::ConnId;
use paddock_statistics::request_times::operation_name;

use super::answer;
use super::gate::Gate;
use super::pair::{CheckedRequest, Event, Pair};
use super::returns::Returns;
use super::sequencer::{Answered, Place, Sequencer, writes};
use super::sessions::Sessions;
use crate::metrics::CrossCheckStats;

/// Time after which the reference has no answer any more, and an event of one side no match, in milliseconds.
const PATIENCE_MS: u64 = 10_000;
/// Requests that wait for their turn at the reference.
const WAITING_MAX: usize = 50_000;
/// Lines of the log in a second.
const LINES_PER_SECOND: u64 = 20;

const NOTIFICATION: i32 = -1;
const PING: i32 = -2;

/// An order for the thread that has the sockets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Connects to the reference, and sends a greeting.
    Connect(ConnId, Vec<u8>),
    Send(ConnId, Vec<u8>),
    HangUp(ConnId),
}

#[derive(Debug)]
pub(super) struct Checker {
    pairs: HashMap<ConnId, Pair>,
    sessions: Sessions,
    returns: Returns,
    sequencer: Sequencer,
    gate: Gate,
    effects: Vec<Effect>,
    stats: Arc<CrossCheckStats>,
    now_ms: u64,
    /// Lines of the log in the second of now.
    lines: u64,
}

impl Checker {
    pub(super) fn new(stats: Arc<CrossCheckStats>) -> Checker {
        Checker {
            pairs: HashMap::new(),
            sessions: Sessions::default(),
            returns: Returns::default(),
            sequencer: Sequencer::default(),
            gate: Gate::default(),
            effects: Vec::new(),
            stats,
            now_ms: 0,
            lines: 0,
        }
    }

    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        while let Some(Answered { conn, frame, writes, .. }) = self.sequencer.next(self.now_ms) {
            self.gate.push(conn, frame, writes);
        }
        while let Some((conn, frame)) = self.next_for_reference() {
            if let Some(pair) = self.pairs.get_mut(&conn) {
                let xid = frame.first_chunk::<4>().map_or(0, |xid| i32::from_be_bytes(*xid));
                let is_it = |request: &&mut CheckedRequest| request.xid == xid && request.sent_ms.is_none();
                if let Some(request) = pair.requests.iter_mut().find(is_it) {
                    request.sent_ms = Some(self.now_ms);
                }
                self.effects.push(Effect::Send(conn, framed(&frame)));
            }
        }
        self.stats.set_pairs(self.pairs.len());
        std::mem::take(&mut self.effects)
    }

    /// The next request whose turn it is at the reference.
    fn next_for_reference(&mut self) -> Option<(ConnId, Vec<u8>)> {
        let (pairs, returns) = (&self.pairs, &self.returns);
        let session = |conn: &ConnId| pairs.get(conn)?.own_greeting.map(|greeting| greeting.session);
        let is_waited_for = |conn| session(&conn).is_some_and(|session| returns.wait_for(session));
        self.gate.next(|conn| returns.is_waiting(conn), is_waited_for)
    }

    pub(super) fn opened(&mut self, conn: ConnId) {
        self.pairs.insert(conn, Pair::default());
    }

    pub(super) fn client(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        pair.take_client(bytes);
        while let Some(pair) = self.pairs.get_mut(&conn) {
            match pair.next_of_client() {
                Ok(Some(frame)) if pair.has_greeted => self.request(conn, frame),
                Ok(Some(frame)) => self.greet(conn, &frame),
                Ok(None) => break,
                Err(reason) => self.give_up(conn, reason),
            }
        }
    }

    fn greet(&mut self, conn: ConnId, frame: &[u8]) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        pair.has_greeted = true;
        let Ok(request) = ConnectRequest::decode(frame) else {
            return self.give_up(conn, "its greeting cannot be read");
        };
        if request.protocol_version != 0 {
            return self.give_up(conn, "its client speaks ClickHouse's dialect");
        }
        let twin = self.sessions.twin(request.session.0);
        if request.session != SessionId::NONE && !self.comes_back(conn, request.session, frame) {
            return;
        }
        let (session, password) = twin.map_or((0, [0; 16]), |twin| (twin.id, twin.password.0));
        let greeting = ConnectRequest {
            last_zxid_seen: Zxid(0),
            session: SessionId(session),
            password: Some(&password),
            ..request
        };
        let mut bytes = Vec::new();
        greeting.encode(&mut bytes);
        self.effects.push(Effect::Connect(conn, bytes));
    }

    /// A client comes back to its session: true if the reference may be greeted now. Else the greeting waits, or the check ends.
    fn comes_back(&mut self, conn: ConnId, session: SessionId, greeting: &[u8]) -> bool {
        let is_left = |other: &ConnId, pair: &Pair| {
            *other != conn && pair.is_of(session) && !self.returns.is_waiting(*other)
        };
        let left = self.pairs.iter().filter(|(other, pair)| is_left(other, pair));
        let left: Vec<ConnId> = left.map(|(other, _)| *other).collect();
        let has_twin = self.sessions.twin(session.0).is_some();
        if !has_twin && left.is_empty() {
            self.give_up(conn, "its session began before the check");
            return false;
        }
        let last_place = left.iter().map(|left| self.pairs[left].last_place).max().unwrap_or_default();
        if let Some(pair) = self.pairs.get_mut(&conn) {
            pair.last_place = pair.last_place.max(last_place);
        }
        let is_answered = left.iter().all(|left| self.pairs[left].requests.is_empty());
        if !has_twin || !is_answered || !self.returns.is_first(conn, session) {
            self.returns.hold(conn, session, greeting, self.now_ms);
            return false;
        }
        self.returns.release(conn);
        for left in &left {
            self.pairs.get_mut(left).expect("it was found above").has_moved = true;
        }
        true
    }

    fn request(&mut self, conn: ConnId, mut frame: Vec<u8>) {
        let (Some(pair), Some(head)) = (self.pairs.get_mut(&conn), frame.first_chunk::<8>()) else {
            return self.give_up(conn, "a request cannot be read");
        };
        let word = |at: usize| i32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (xid, op) = (word(0), word(4));
        match OpCode::from_code(op) {
            Some(OpCode::Ping) if self.returns.is_waiting(conn) => return,
            Some(OpCode::Ping) => return self.effects.push(Effect::Send(conn, framed(&frame))),
            Some(OpCode::Sasl) => return self.give_up(conn, "its client uses SASL"),
            Some(op)
                if op.is_of_clickhouse() || op == OpCode::GetData && is_read_by_clickhouse(&frame[8..]) =>
            {
                return self.give_up(conn, "its client speaks ClickHouse's dialect");
            }
            Some(OpCode::SetWatches | OpCode::SetWatches2) => {
                let own = pair.own_greeting.map_or(0, |greeting| greeting.session.0);
                let zxid = self.sessions.twin(own).map_or(0, |twin| twin.zxid);
                if let Some(relative) = frame.get_mut(8..16) {
                    relative.copy_from_slice(&zxid.to_be_bytes());
                }
            }
            _ => {}
        }
        let about = Reader::new(&frame[8..]).string().unwrap_or_default().to_owned();
        pair.requests.push_back(CheckedRequest {
            xid,
            op,
            frame,
            about,
            own: None,
            reference: None,
            sent_ms: None,
        });
        if pair.is_overfull() || self.sequencer.len() + self.gate.len() > WAITING_MAX {
            self.give_up(conn, "the reference is too slow");
        }
    }

    pub(super) fn own(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        pair.take_own(bytes);
        while let Some(pair) = self.pairs.get_mut(&conn) {
            match pair.next_own() {
                Ok(Some(frame)) => self.told(conn, frame, true),
                Ok(None) => break,
                Err(reason) => return self.give_up(conn, reason),
            }
        }
        self.settle(conn);
    }

    pub(super) fn reference(&mut self, conn: ConnId, frame: Vec<u8>) {
        self.told(conn, frame, false);
        self.settle(conn);
    }

    /// A side has sent a frame.
    fn told(&mut self, conn: ConnId, frame: Vec<u8>, is_own: bool) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        let greeting = if is_own { &mut pair.own_greeting } else { &mut pair.reference_greeting };
        if greeting.is_none() {
            *greeting = ConnectResponse::decode(&frame).ok();
            return;
        }
        let xid = frame.first_chunk::<4>().map_or(0, |xid| i32::from_be_bytes(*xid));
        let zxid = frame.get(4..12).and_then(|zxid| zxid.try_into().ok()).map_or(0, i64::from_be_bytes);
        match xid {
            NOTIFICATION => self.event(conn, answer::event(&frame), is_own),
            PING => {}
            _ => {
                let Some((op, kind, request)) = pair.answer(frame, is_own) else { return };
                if is_own {
                    pair.last_place = pair.last_place.max(Place::new(zxid, kind));
                    self.sequencer.push(pair.last_place, (conn, request, writes(op)), self.now_ms);
                    return;
                }
                pair.has_ended |= OpCode::from_code(op) == Some(OpCode::CloseSession);
                self.gate.answered(conn, writes(op));
                let own = pair.own_greeting.map_or(0, |greeting| greeting.session.0);
                self.sessions.saw(own, zxid);
            }
        }
    }

    /// An event matches one of the other side, whichever comes first.
    fn event(&mut self, conn: ConnId, text: String, is_own: bool) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        let (this, other) = if is_own {
            (&mut pair.own_events, &mut pair.reference_events)
        } else {
            (&mut pair.reference_events, &mut pair.own_events)
        };
        match other.iter().position(|event| event.text == text) {
            Some(at) => {
                other.remove(at);
                self.stats.compared(1);
            }
            None => this.push(Event { text, since_ms: self.now_ms }),
        }
    }

    /// Compares what both sides have answered.
    fn settle(&mut self, conn: ConnId) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        let (Some(own), Some(reference)) = (pair.own_greeting, pair.reference_greeting) else { return };
        let greeted =
            |greeting: ConnectResponse| if greeting.timeout_ms > 0 { "a session" } else { "expired" };
        if greeted(own) != greeted(reference) {
            self.difference(own.session, ("connect", ""), (greeted(own), greeted(reference)));
            return self.give_up(conn, "its session is there on one side only");
        }
        if own.timeout_ms > 0
            && self.sessions.twin(own.session.0).is_none_or(|twin| twin.id != reference.session.0)
        {
            self.sessions.add(&own, &reference);
        }
        while let Some(request) = self.pairs.get_mut(&conn).and_then(Pair::next_answered) {
            self.compare(conn, own.session, &request);
        }
        let Some(pair) = self.pairs.get(&conn) else { return };
        if pair.is_overfull() {
            self.give_up(conn, "the reference is too slow");
        } else if (pair.is_closing || pair.has_ended) && pair.requests.is_empty() {
            self.end(conn);
        }
    }

    fn compare(&mut self, conn: ConnId, session: SessionId, request: &CheckedRequest) {
        let (Some(own), Some(reference)) = (&request.own, &request.reference) else { return };
        if own.is_empty() {
            // The client was gone before it had an answer.
            return;
        }
        self.stats.compared(1);
        let own = answer::reply(request.op, own, &|id| self.sessions.name_of_own(id));
        let reference = answer::reply(request.op, reference, &|id| self.sessions.name_of_twin(id));
        if own != reference {
            self.difference(session, (operation_name(request.op), &request.about), (&own, &reference));
        }
        if OpCode::from_code(request.op) == Some(OpCode::CloseSession) {
            self.sessions.end(session.0);
            // Both sides have sent the events of a session before the answer to its end.
            self.miss_events(conn, u64::MAX);
        }
    }

    fn difference(
        &mut self,
        session: SessionId,
        (operation, path): (&str, &str),
        (own, reference): (&str, &str),
    ) {
        self.stats.differed();
        self.lines += 1;
        if self.lines <= LINES_PER_SECOND {
            tracing::warn!(%session, operation, path, own, reference, "cross-check found a difference");
        }
    }

    /// The client is gone. What it asked goes to the reference all the same.
    pub(super) fn closed(&mut self, conn: ConnId) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        pair.is_closing = true;
        for request in pair.requests.iter_mut().filter(|request| request.own.is_none()) {
            // The time at which the request is carried out is unknown.
            request.own = Some(Vec::new());
            let frame = std::mem::take(&mut request.frame);
            self.sequencer.push(Place::LAST, (conn, frame, writes(request.op)), self.now_ms);
        }
        if pair.requests.is_empty() || pair.own_greeting.is_none() {
            return self.end(conn);
        }
        self.settle(conn);
    }

    pub(super) fn reference_gone(&mut self, conn: ConnId, reason: &str) {
        let is_expired =
            |pair: &Pair| pair.reference_greeting.is_some_and(|greeting| greeting.timeout_ms <= 0);
        if self.pairs.get(&conn).is_some_and(|pair| pair.has_ended || is_expired(pair)) {
            // The reference ends a connection behind the last answer, as this member does.
            return self.settle(conn);
        }
        if self.pairs.get(&conn).is_some_and(|pair| pair.has_moved) {
            // The reference ends a connection whose session goes on over another one. Here its end may be noticed later.
            return self.end(conn);
        }
        self.give_up(conn, &format!("the reference is gone: {reason}"));
    }

    /// The time now, in milliseconds since any moment.
    pub(super) fn set_now(&mut self, now_ms: u64) {
        if now_ms / 1000 != self.now_ms / 1000 {
            self.lines = 0;
        }
        self.now_ms = now_ms;
    }

    /// Looks for what has waited too long.
    pub(super) fn tick(&mut self) {
        let before_ms = self.now_ms.saturating_sub(PATIENCE_MS);
        let late: Vec<ConnId> = self
            .pairs
            .iter()
            .filter(|(_, pair)| pair.waits_since_before(before_ms))
            .map(|(conn, _)| *conn)
            .chain(self.returns.since_before(before_ms))
            .collect();
        late.into_iter().for_each(|conn| self.give_up(conn, "the reference does not answer"));
        for (conn, greeting) in self.returns.greetings() {
            self.greet(conn, &greeting);
        }
        let with_events = self.pairs.iter().filter(|(_, pair)| pair.has_events());
        let with_events: Vec<ConnId> = with_events.map(|(conn, _)| *conn).collect();
        with_events.into_iter().for_each(|conn| self.miss_events(conn, before_ms));
    }

    /// Counts events of one side, sent before that time, as differences: the other side does not send them any more.
    fn miss_events(&mut self, conn: ConnId, before_ms: u64) {
        let Some(pair) = self.pairs.get_mut(&conn) else { return };
        let session = pair.own_greeting.map_or(SessionId::NONE, |greeting| greeting.session);
        let is_late = |event: &mut Event| event.since_ms < before_ms;
        let own: Vec<Event> = pair.own_events.extract_if(.., is_late).collect();
        let reference: Vec<Event> = pair.reference_events.extract_if(.., is_late).collect();
        for event in own {
            self.difference(session, ("event", ""), (&event.text, "no event"));
        }
        for event in reference {
            self.difference(session, ("event", ""), ("no event", &event.text));
        }
    }

    /// The connection is not checked any more. Its client notices nothing.
    pub(super) fn give_up(&mut self, conn: ConnId, reason: &str) {
        let Some(pair) = self.pairs.get(&conn) else { return };
        if pair.has_greeted && !pair.is_closing {
            let session = pair.own_greeting.map_or(SessionId::NONE, |greeting| greeting.session);
            self.stats.gave_up();
            self.lines += 1;
            if self.lines <= LINES_PER_SECOND {
                tracing::warn!(%session, reason, "cross-check gave up on a connection");
            }
        }
        self.end(conn);
    }

    fn end(&mut self, conn: ConnId) {
        self.pairs.remove(&conn);
        self.returns.release(conn);
        self.sequencer.forget(conn);
        self.gate.forget(conn);
        self.effects.push(Effect::HangUp(conn));
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 4);
    paddock_proto::frame::write(&mut bytes, |out| out.extend_from_slice(body));
    bytes
}

#[cfg(test)]
mod tests;
