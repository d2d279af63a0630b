//! One client connection: bytes that have come, requests that wait, bytes to send.
//!
//! Replies stand in `output` in the order in which the client must see them, whoever makes them. A read is answered from the
//! state at once if nothing of its connection waits in the engine; else it goes to the engine too, behind what waits.

use std::cell::Cell;
use std::net::SocketAddr;

use paddock_proto::jute::Writer;
use paddock_proto::{
    ConnectResponse, ErrorCode, Id, OpCode, ReplyHeader, Request, SessionId, WatchRequest, Xid, Zxid, frame,
};
use paddock_state::{Client, ClientInput, ConnId, Now, Parcel, QueuedRead, State, contact_max_ms};
use paddock_tree::Guess;

use crate::audit::{AuditedWrite, refused_reconfig};
use crate::clickhouse::Packet;
use crate::host::{Answered, Host, Received, TracedRequest};
use crate::output::{Output, held_bytes};
use crate::protocol::{Protocol, Refusal};
use crate::queue::Queue;
use crate::watches::{Portion, WatchesToSet};
use crate::{AuditLog, Condition, LimitHit, Limits, Settings};

/// Stages of a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Open,
    /// It is closed when everything was sent. What the engine still has for it is sent too.
    Closing,
    /// It is closed when everything was sent. Nothing is added to that.
    Silenced,
}

#[derive(Debug)]
pub(crate) struct Connection<H: Host> {
    pub(crate) protocol: Protocol,
    pub(crate) stats: H::Stats,
    /// Bytes that have come and are not taken yet, as the client sent them.
    pub(crate) input: Vec<u8>,
    /// The same out of compressed blocks.
    pub(crate) unpacked: Vec<u8>,
    output: Output,
    queue: Queue<H::Span>,
    ending: Ending,
    /// The refusal of a request that ends the connection, once all requests before it have been answered.
    last_word: Option<Box<(ReplyHeader, Option<H::Span>)>>,
    /// A frame has come since the session was last reported as heard.
    pub(crate) is_heard: bool,
    /// Something else than the output has changed since this was asked last: whether input is taken, or the ending.
    has_changed: bool,
    /// Monotonic time at which the client asked for its session, in milliseconds; the end of time for a connection without one,
    /// and for one that only reads: no other member can end those.
    session_since_ms: u64,
    session_timeout_ms: i32,
    /// Watches of a long setWatches. Requests behind it have to wait.
    watches_to_set: Option<Box<WatchesToSet<H::Span>>>,
    /// Watches were set in this turn.
    has_set_watches: bool,
    /// Present if the connection holds more than little.
    holding: Option<Box<Holding>>,
    /// Somebody was told that no input is taken.
    is_held_back: Cell<bool>,
    /// The next request is a long multi that has to wait for those of other connections.
    pub(crate) waits_for_long_multis: bool,
    /// The last turn has ended so that others get theirs.
    is_cut_short: bool,
    /// Bytes that were unsent when the turn began.
    unsent_before_turn: usize,
}

/// Memory of a connection that holds more than little.
#[derive(Debug)]
struct Holding {
    /// Bytes, as they are counted among what all connections hold.
    bytes: usize,
    /// Bytes that have moved since `still_since_ms`: those that the client was sent, and those that it has sent.
    moved_bytes: usize,
    /// Monotonic time in milliseconds at which enough had moved. Present once the connection has been looked at.
    still_since_ms: Option<u64>,
}

impl Holding {
    /// A connection that moves fewer bytes within `STILL_MAX_MS` does not move.
    const MOVED_BYTES_MIN: usize = 64 << 10;
    /// Time in milliseconds for which a connection may hold memory without moving, when little is left for others.
    const STILL_MAX_MS: u64 = 2000;

    /// Returns true if too little has moved for too long.
    fn is_still(&mut self, now_ms: u64) -> bool {
        if self.moved_bytes >= Holding::MOVED_BYTES_MIN {
            (self.moved_bytes, self.still_since_ms) = (0, None);
        }
        now_ms - *self.still_since_ms.get_or_insert(now_ms) >= Holding::STILL_MAX_MS
    }
}

impl<H: Host> Connection<H> {
    pub(crate) fn new(
        conn: ConnId,
        address: SocketAddr,
        stats: H::Stats,
        ids: &[Id],
        limits: &Limits,
    ) -> Connection<H> {
        Connection {
            protocol: Protocol::new(conn, address, ids),
            stats,
            input: Vec::new(),
            unpacked: Vec::new(),
            output: Output::default(),
            queue: Queue::new(limits),
            ending: Ending::Open,
            last_word: None,
            is_heard: false,
            has_changed: false,
            session_since_ms: u64::MAX,
            session_timeout_ms: 0,
            watches_to_set: None,
            has_set_watches: false,
            holding: None,
            is_held_back: Cell::new(false),
            waits_for_long_multis: false,
            is_cut_short: false,
            unsent_before_turn: 0,
        }
    }

    pub(crate) fn client(&self) -> &Client {
        self.protocol.client()
    }

    pub(crate) fn session(&self) -> SessionId {
        self.client().session
    }

    /// True if all that was handed to the engine has been answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of long multis that wait for the engine.
    pub(crate) fn long_bytes(&self) -> usize {
        self.queue.long_bytes()
    }

    /// The long multi may be taken.
    pub(crate) fn end_wait_for_long_multis(&mut self) {
        self.waits_for_long_multis = false;
        self.has_changed = true;
    }

    /// True if frames are taken now.
    pub(crate) fn takes_input(&self, host: &H, limits: &Limits) -> bool {
        self.protocol.takes_frames()
            && self.ending == Ending::Open
            && !host.is_stopping()
            && !self.waits_for_long_multis
            && (self.watches_to_set.is_none() || self.is_idle())
            && self.has_room(limits)
    }

    pub(crate) fn begin_turn(&mut self) {
        (self.is_cut_short, self.has_set_watches) = (false, false);
        self.unsent_before_turn = self.output.unsent_bytes();
    }

    /// True if the turn goes on: frames are taken, and it has not done so much that others have to have theirs.
    #[inline]
    pub(crate) fn goes_on(&mut self, host: &H, limits: &Limits) -> bool {
        let replied_bytes = self.output.unsent_bytes().saturating_sub(self.unsent_before_turn);
        self.is_cut_short = replied_bytes >= limits.turn_bytes_max || self.has_set_watches;
        !self.is_cut_short && self.takes_input(host, limits)
    }

    /// True if the connection may hold another request, or its reply.
    #[inline]
    fn has_room(&self, limits: &Limits) -> bool {
        let room = Self::room(limits);
        let held = self.output.unsent_bytes() + self.queue.bytes();
        held < room
            && self.queue.len() < self.queue.capacity(room, limits)
            && (self.queue.is_empty() || !limits.outstanding.is_reached())
            && self.may_hold_more(limits)
    }

    /// Bytes that the connection may hold in unsent replies and unanswered requests.
    #[inline]
    fn room(limits: &Limits) -> usize {
        limits.buffers.share().max(limits.little_bytes).min(limits.unsent_bytes_max)
    }

    /// True if others leave enough for a request and its reply. Who holds little and asks for little always may.
    #[inline]
    fn may_hold_more(&self, limits: &Limits) -> bool {
        let buffers = &limits.buffers;
        // What is set needs no memory any more.
        if !buffers.is_short() || self.watches_to_set.is_some() {
            return true;
        }
        let expected = self.queue.reply_bytes_expected();
        let own = self.holding.as_ref().map_or(0, |holding| holding.bytes);
        let has_room_for_reply = expected <= limits.little_bytes || expected <= buffers.left();
        // A request may be larger than all that is left, if it is the only one.
        has_room_for_reply && (own == 0 || buffers.held().saturating_sub(own) < buffers.max())
    }

    /// Counts the memory that the connection holds, of whose bytes so many have moved.
    #[inline]
    pub(crate) fn count_memory(&mut self, moved_bytes: usize, limits: &Limits) {
        let buffers = held_bytes(&self.input) + held_bytes(&self.unpacked) + self.output.held_bytes();
        let held =
            buffers + self.queue.bytes() + self.watches_to_set.as_ref().map_or(0, |watches| watches.bytes());
        if held > limits.little_bytes || self.holding.is_some() {
            self.count_held(held, moved_bytes, limits);
        }
    }

    fn count_held(&mut self, held: usize, moved_bytes: usize, limits: &Limits) {
        if held <= limits.little_bytes {
            return self.let_go_of_memory(limits);
        }
        let holding = self
            .holding
            .get_or_insert_with(|| Box::new(Holding { bytes: 0, moved_bytes: 0, still_since_ms: None }));
        holding.moved_bytes += moved_bytes;
        if held.abs_diff(holding.bytes) >= limits.little_bytes {
            limits.buffers.change(holding.bytes, held);
            holding.bytes = held;
        }
    }

    /// The connection holds little, or nothing any more.
    pub(crate) fn let_go_of_memory(&mut self, limits: &Limits) {
        if let Some(holding) = self.holding.take() {
            limits.buffers.change(holding.bytes, 0);
        }
    }

    /// Looks after a connection while clients hold much together: closes it if it does not move, and lets its worker look again
    /// if it was told to wait.
    pub(crate) fn look_after_memory(&mut self, now_ms: u64, limits: &Limits) {
        let is_still = self.holding.as_mut().is_some_and(|holding| holding.is_still(now_ms));
        if is_still && limits.buffers.is_short() && self.ending != Ending::Silenced {
            let held_bytes = self.holding.as_ref().map_or(0, |holding| holding.bytes);
            let all = limits.buffers.held();
            self.hit(LimitHit::Buffers, now_ms, &format_args!("{held_bytes} bytes of {all}"), limits);
            self.abandon();
            (self.input, self.unpacked) = (Vec::new(), Vec::new());
            self.count_memory(0, limits);
        }
        self.has_changed |= self.is_held_back.take();
    }

    pub(crate) fn condition(&self, host: &H, limits: &Limits) -> Condition {
        let is_drained = host.is_stopping() && self.is_idle();
        let takes_input = self.takes_input(host, limits);
        if !takes_input && !self.is_held_back.replace(true) {
            self.note_why_held_back(host, limits);
        }
        let has_input = !self.input.is_empty() || !self.unpacked.is_empty() || self.watches_to_set.is_some();
        Condition {
            takes_input,
            has_input,
            has_more: self.is_cut_short && has_input,
            is_heavy: self.queue.reply_bytes_expected() >= limits.turn_bytes_max,
            is_greeting: self.protocol.is_greeting(),
            word: self.protocol.awaited_word(),
            unsent_bytes: self.output.unsent_bytes(),
            is_closing: self.ending != Ending::Open || is_drained,
        }
    }

    /// Counts and logs a connection that begins to wait for others.
    #[cold]
    fn note_why_held_back(&self, host: &H, limits: &Limits) {
        if !self.is_idle() && limits.outstanding.is_reached() {
            let waiting = self.queue.len();
            let detail = format_args!("{waiting} requests of this client");
            self.hit(LimitHit::Outstanding, host.monotonic_ms(), &detail, limits);
        }
    }

    /// The client has hit a limit.
    #[cold]
    pub(crate) fn hit(&self, limit: LimitHit, now_ms: u64, detail: &dyn std::fmt::Display, limits: &Limits) {
        limits.hits.hit(limit, Some(self.protocol.address()), self.session(), now_ms, detail);
    }

    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Notes that a frame has come, and returns the code of its operation. The session may not have been reported as heard since
    /// the last report: `is_first` is called then.
    pub(crate) fn hear(&mut self, frame: &[u8], host: &H, is_first: impl FnOnce()) -> i32 {
        let request = frame.get(self.protocol.xid_bytes_ahead()..).and_then(<[u8]>::split_first_chunk::<8>);
        let request = request.filter(|_| !self.protocol.is_greeting()).map(|(head, body)| {
            let number = u64::from_be_bytes(*head);
            Received { xid: Xid((number >> 32) as i32), op: number as i32, body }
        });
        host.on_received(&self.stats, request);
        if !std::mem::replace(&mut self.is_heard, true) {
            is_first();
        }
        request.map_or(OpCode::CreateSession.code(), |request| request.op)
    }

    pub(crate) fn begin_span(&self, frame: &[u8], context: &[u8], host: &H) -> Option<H::Span> {
        if context.is_empty() {
            return None;
        }
        host.begin_span(&TracedRequest {
            context,
            frame,
            has_wide_xid: self.protocol.xid_bytes_ahead() > 0,
            session: self.session(),
            client: self.protocol.address(),
        })
    }

    /// A request of an operation and so many bytes is handed to the engine, which will answer it.
    pub(crate) fn wait(
        &mut self,
        since_ms: u64,
        request: (i32, usize),
        is_long: bool,
        span: Option<H::Span>,
        audited: Option<Box<AuditedWrite>>,
        host: &H,
    ) {
        let (op, bytes) = request;
        self.queue.push(since_ms, (op, bytes, is_long), span, audited);
        host.on_waiting(&self.stats, self.queue.len());
    }

    /// The member refuses a reconfig by itself.
    pub(crate) fn audit_refused_reconfig(&self, log: &dyn AuditLog) {
        let client = self.client();
        refused_reconfig(client.session, client.ids(), self.protocol.address().ip(), log);
    }

    /// The read as an input of the engine, behind all that waits.
    pub(crate) fn queued_read(&self, xid: Xid, op: OpCode, body: &[u8]) -> ClientInput {
        ClientInput::Read(QueuedRead { client: self.client().clone(), xid, op, body: body.to_vec() })
    }

    /// The next portion of the watches that are still to be set.
    pub(crate) fn next_portion(&mut self) -> Option<Portion> {
        let portion = self.watches_to_set.as_mut()?.next()?;
        self.has_set_watches = true;
        Some(portion)
    }

    /// The request whose last portion was taken.
    pub(crate) fn take_whole_request(&mut self) -> Option<Box<WatchesToSet<H::Span>>> {
        self.watches_to_set.take_if(|watches| watches.is_empty())
    }

    pub(crate) fn set_watches_later(&mut self, watches: WatchesToSet<H::Span>) {
        self.watches_to_set = Some(Box::new(watches));
    }

    /// Sets a portion of the watches of a request that is answered later.
    pub(crate) fn set_watches(&mut self, portion: &Portion, state: &State) {
        if self.ending == Ending::Silenced {
            // As below: the engine has dropped the connection's watches.
            return;
        }
        let client = self.protocol.client();
        let Ok(Request::Watch(WatchRequest::Set(watches))) =
            Request::decode(portion.op, &portion.body, client.dialect)
        else {
            unreachable!("a portion is a setWatches that was encoded here")
        };
        let out = &mut self.output.bytes;
        let before = out.len();
        state.set_watches(client, &watches, out);
        self.protocol.translate(Packet::Unasked, out, before);
    }

    /// Answers a request from the state.
    pub(crate) fn answer(
        &mut self,
        (xid, op, body): (Xid, OpCode, &[u8]),
        guess: Guess,
        state: &State,
        span: Option<H::Span>,
        host: &H,
    ) {
        if self.ending == Ending::Silenced {
            // The end came with the mail, after the request had been taken. The engine has dropped the connection's watches
            // since: whoever reads this has not been told of all that it shows.
            return end_unanswered(span, host);
        }
        let out = &mut self.output.bytes;
        let before = out.len();
        state.answer(self.protocol.client(), xid, op, body, guess, out);
        if let Some(span) = span {
            host.end_span(span, Some(&out[before..]));
        }
        self.protocol.translate(
            if op == OpCode::Ping { Packet::Unasked } else { Packet::Reply },
            out,
            before,
        );
        let reply_bytes = out.len() - before;
        self.queue.note_reply(reply_bytes);
        host.on_read(op, reply_bytes);
    }

    /// Sends a reply without a body, behind those to all earlier requests.
    pub(crate) fn reply(&mut self, header: ReplyHeader, span: Option<H::Span>, host: &H) {
        if header.error == Some(ErrorCode::AuthFailed) {
            host.on_auth_failed();
        }
        self.send_header(Packet::Reply, header, span, host);
    }

    /// Answers an auth, which overtakes other requests.
    pub(crate) fn reply_to_auth(
        &mut self,
        xid: Xid,
        error: Option<ErrorCode>,
        span: Option<H::Span>,
        host: &H,
    ) {
        self.send_header(Packet::Unasked, ReplyHeader { xid, zxid: Zxid(0), error }, span, host);
    }

    /// Answers a token of SASL, which overtakes other requests.
    pub(crate) fn reply_to_sasl(
        &mut self,
        (xid, error): (Xid, Option<ErrorCode>),
        token: Option<&[u8]>,
        span: Option<H::Span>,
        host: &H,
    ) {
        let header = ReplyHeader { xid, zxid: Zxid(0), error };
        self.send_small(Packet::Unasked, span, host, |out| {
            header.encode(out);
            out.put_buffer(token);
        });
    }

    fn send_header(&mut self, packet: Packet, header: ReplyHeader, span: Option<H::Span>, host: &H) {
        self.send_small(packet, span, host, |out| header.encode(out));
    }

    /// Sends a reply that needs nothing of the state.
    fn send_small(
        &mut self,
        packet: Packet,
        span: Option<H::Span>,
        host: &H,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.ending == Ending::Silenced {
            return end_unanswered(span, host);
        }
        let out = &mut self.output.bytes;
        let before = out.len();
        frame::write(out, encode);
        if let Some(span) = span {
            host.end_span(span, Some(&out[before..]));
        }
        self.protocol.translate(packet, out, before);
    }

    /// Ends the connection as the protocol wants it.
    pub(crate) fn refuse(&mut self, refusal: Refusal, span: Option<H::Span>, host: &H, limits: &Limits) {
        match refusal {
            Refusal::Reply(header) if !self.is_idle() => {
                self.last_word = Some(Box::new((header, span)));
                return;
            }
            Refusal::Reply(header) => self.reply(header, span, host),
            Refusal::AuthFailed { xid } => {
                host.on_auth_failed();
                self.reply_to_auth(xid, Some(ErrorCode::AuthFailed), span, host);
            }
            Refusal::SaslFailed { xid, error } => {
                host.on_auth_failed();
                self.reply_to_sasl((xid, Some(error)), None, span, host);
            }
            Refusal::Silently { why } => {
                self.hit(LimitHit::BadInput, host.monotonic_ms(), &why, limits);
                end_unanswered(span, host);
            }
            Refusal::Limited(limit) => {
                self.hit(limit, host.monotonic_ms(), &"it may come back later", limits);
                end_unanswered(span, host);
            }
            Refusal::Expired { read_only } => {
                self.send_greeting(&ConnectResponse::expired(read_only.map(|_| false)));
            }
            Refusal::NoLeader => self.send_greeting(&ConnectResponse::no_leader()),
        }
        self.close();
    }

    /// Sends text in the place of a greeting, and ends the connection.
    pub(crate) fn answer_word(&mut self, text: &str) {
        self.protocol.end_word();
        self.output.bytes.extend_from_slice(text.as_bytes());
        self.close();
    }

    /// Takes a parcel of the engine. Returns true if it answers a request.
    pub(crate) fn deliver(&mut self, parcel: Parcel<'_>, now: Now, host: &H, settings: &Settings) -> bool {
        let limits = &settings.limits;
        if let (Parcel::Connected { timeout_ms, read_only: false, .. }, Some(waiting)) =
            (parcel, self.queue.oldest())
        {
            (self.session_since_ms, self.session_timeout_ms) = (waiting.since_ms, timeout_ms);
        }
        if self.ending == Ending::Silenced || self.close_without_contact(now.monotonic_ms, host) {
            return false;
        }
        match parcel {
            Parcel::Reply(bytes) => {
                let is_farewell = self.queue.len() == 1 && self.protocol.wants_no_farewell();
                if !is_farewell {
                    self.send(Packet::Reply, bytes);
                }
                let waiting = self.answered(bytes, now, host, limits);
                if let (Some(audited), Some(log)) = (waiting, &settings.audit) {
                    audited.finish(Some(bytes), &**log);
                }
            }
            Parcel::Event(bytes) => {
                if self.output.unsent_bytes() > Self::event_room(limits) {
                    let unsent_bytes = self.output.unsent_bytes();
                    let detail = format_args!("{unsent_bytes} bytes unsent, and another event comes");
                    self.hit(LimitHit::Buffers, now.monotonic_ms, &detail, limits);
                    self.abandon();
                } else {
                    self.send(Packet::Unasked, bytes);
                    host.on_event(&self.stats);
                }
            }
            Parcel::Connected { session, timeout_ms, read_only } => {
                let response = self.protocol.on_connected(session, timeout_ms, read_only);
                host.on_session(&self.stats, session, timeout_ms);
                self.greet(&response, now, host, limits);
            }
            Parcel::Expired => {
                let response = self.protocol.on_expired();
                self.greet(&response, now, host, limits);
                self.close();
            }
            Parcel::Close => {
                if let Some(response) = self.protocol.on_turned_away() {
                    self.send_greeting(&response);
                }
                // What was asked before may never be answered: an answer behind that would look like the missing one.
                self.ending = Ending::Silenced;
                self.has_changed = true;
            }
        }
        matches!(parcel, Parcel::Reply(_) | Parcel::Connected { .. } | Parcel::Expired)
    }

    /// Bytes that may be unsent when an event comes: events cannot be held back.
    fn event_room(limits: &Limits) -> usize {
        (2 * limits.buffers.share()).max(limits.little_bytes).min(limits.event_bytes_max)
    }

    fn send(&mut self, packet: Packet, frames: &[u8]) {
        let out = &mut self.output.bytes;
        let before = out.len();
        out.extend_from_slice(frames);
        self.protocol.translate(packet, out, before);
    }

    fn send_greeting(&mut self, response: &ConnectResponse) {
        response.encode(self.output.greeting(self.protocol.is_compressed()));
    }

    fn greet(&mut self, response: &ConnectResponse, now: Now, host: &H, limits: &Limits) {
        self.send_greeting(response);
        // A greeting is no write.
        let _ = self.answered(&[], now, host, limits);
        self.has_changed = true;
    }

    /// The oldest request with the engine has been answered. Returns it as the audit log wants it.
    fn answered(&mut self, reply: &[u8], now: Now, host: &H, limits: &Limits) -> Option<Box<AuditedWrite>> {
        let room = Self::room(limits);
        let was_full = self.queue.len() >= self.queue.capacity(room, limits);
        let waiting = self.queue.pop(reply.len());
        if let Some(span) = waiting.span {
            host.end_span(span, Some(reply));
        }
        let is_half_full = self.queue.len() == self.queue.capacity(room, limits) / 2;
        let is_awaited = self.queue.is_empty() && (host.is_stopping() || self.is_held_back.take());
        self.has_changed |= is_half_full || was_full || is_awaited;
        host.on_waiting(&self.stats, self.queue.len());
        if let Some(last_word) = self.last_word.take_if(|_| self.queue.is_empty()) {
            let (header, span) = *last_word;
            self.reply(header, span, host);
            self.close();
        }
        let zxid = reply.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |zxid| i64::from_be_bytes(*zxid));
        let reply = Answered { op: waiting.op, zxid: Zxid(zxid), bytes: reply.len() };
        host.on_answered(&self.stats, reply, waiting.since_ms, now);
        waiting.audited
    }

    /// Closes the connection if the member has had no contact to a quorum for so long that others may end the session soon:
    /// the client must not be told any more that it has one.
    pub(crate) fn close_without_contact(&mut self, now_ms: u64, host: &H) -> bool {
        let last_ms = host.confirmed_ms().max(self.session_since_ms);
        let silence_ms = now_ms.saturating_sub(last_ms);
        let is_over = silence_ms > 0 && silence_ms > contact_max_ms(self.session_timeout_ms);
        if is_over && self.ending != Ending::Silenced {
            host.on_lost_contact(silence_ms, self.session_timeout_ms);
            self.abandon();
        }
        is_over
    }

    /// Closes the connection when everything was sent.
    pub(crate) fn close(&mut self) {
        self.ending = self.ending.max(Ending::Closing);
        self.has_changed = true;
    }

    /// Closes the connection without sending what is left.
    pub(crate) fn abandon(&mut self) {
        self.output.drop_all();
        self.ending = Ending::Silenced;
        self.has_changed = true;
    }

    /// The bytes to send next.
    pub(crate) fn unsent(&mut self) -> &[u8] {
        self.output.unsent(self.protocol.is_compressed())
    }

    /// The client was sent so many of them.
    pub(crate) fn advance(&mut self, bytes: usize, limits: &Limits) {
        self.output.advance(bytes, self.protocol.is_compressed());
        self.count_memory(bytes, limits);
    }

    /// The connection has ended: what waits will not be answered. Returns the number of these requests.
    pub(crate) fn give_up(&mut self, host: &H, audit: Option<&dyn AuditLog>) -> usize {
        let waiting = self.queue.len();
        let last_word = self.last_word.take().and_then(|last_word| last_word.1);
        let watches = self.watches_to_set.take().and_then(|watches| watches.span);
        let mut spans: Vec<H::Span> = last_word.into_iter().chain(watches).collect();
        for request in self.queue.drain() {
            spans.extend(request.span);
            if let (Some(audited), Some(log)) = (request.audited, audit) {
                // It may be carried out yet.
                audited.finish(None, log);
            }
        }
        spans.into_iter().for_each(|span| host.end_span(span, None));
        waiting
    }
}

fn end_unanswered<H: Host>(span: Option<H::Span>, host: &H) {
    if let Some(span) = span {
        host.end_span(span, None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use paddock_state::Outbox;

    use crate::WordAnswer;

    use super::*;

    /// A host with statistics and spans as a server has them.
    struct Sized;

    impl Host for Sized {
        type StateGuard<'a> = &'a State;
        type Stats = Arc<()>;
        type Span = Box<()>;

        fn now(&self) -> Now {
            unreachable!("only sizes count here")
        }

        fn lock_state(&self) -> &State {
            unreachable!("only sizes count here")
        }

        fn take_mail(&self, _: &mut Outbox) -> bool {
            false
        }

        fn confirmed_ms(&self) -> u64 {
            u64::MAX
        }

        fn is_looking(&self) -> bool {
            false
        }

        fn is_stopping(&self) -> bool {
            false
        }

        fn nonce(&self) -> u128 {
            unreachable!("only sizes count here")
        }

        fn answer_word(&self, _: [u8; 4], _: &[u8]) -> Option<WordAnswer> {
            None
        }
    }

    /// Most connections are idle, and there may be very many: what each takes is a decision, not an accident.
    #[test]
    fn an_idle_connection_is_small() {
        let bytes = size_of::<Connection<Sized>>();
        assert!(bytes <= 320, "a connection has {bytes} bytes");
    }
}
