//! One client connection: bytes that have come, requests that wait, bytes to send.
//!
//! Replies stand in `output` in the order in which the client must see them, whether the front or the engine makes them. A read is answered from the
//! state at once if nothing of its connection waits in the engine; else it goes to the engine too, behind what waits.

mod ending;
mod memory;
mod replies;

use std::cell::Cell;
use std::net::SocketAddr;

use bytes::Bytes;
use paddock_proto::{ErrorCode, Id, OpCode, ReplyHeader, SessionId, Xid, Zxid};
use paddock_state::{Client, ClientInput, ConnId, Now, Parcel, QueuedRead, RequestId, Slot};

use crate::audit::{AuditedWrite, refused_reconfig};
use crate::clickhouse::Packet;
use crate::host::{Answered, FrontEvent, Host, Received, TracedRequest};
use crate::long_request::{ListToCopy, LongRequest};
use crate::output::{LargeBuffers, Output, SharedEvent};
use crate::protocol::{Granted, Protocol};
use crate::queue::Queue;
use crate::rates::RateWait;
use crate::watches::{Portion, WatchesToSet};
use crate::{AuditLog, Condition, LimitHit, Limits, Settings};
use ending::Ending;
use memory::Holding;

#[derive(Debug)]
pub(crate) struct Connection<H: Host> {
    pub(crate) protocol: Protocol,
    pub(crate) stats: H::Stats,
    /// Bytes that have come and are not taken yet, as the client sent them.
    pub(crate) input: Vec<u8>,
    /// Bytes out of compressed blocks.
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
    /// A request that is done in portions. Requests behind it have to wait.
    long_request: Option<Box<LongRequest<H::Span>>>,
    /// A portion of it was done in this turn.
    has_done_portion: bool,
    /// Present if the connection holds more than little.
    holding: Option<Box<Holding>>,
    /// True while the caller does not read from the socket, since it was told that no input is taken.
    is_held_back: Cell<bool>,
    /// The next request is a long multi that has to wait for those of other connections.
    pub(crate) waits_for_long_multis: bool,
    /// The next request is paid for, and has to wait until its tenant may ask again.
    pub(crate) rate_wait: Option<RateWait>,
    /// The last turn has ended so that others get theirs.
    is_cut_short: bool,
    /// Bytes that were unsent when the turn began.
    unsent_before_turn: usize,
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
            long_request: None,
            has_done_portion: false,
            holding: None,
            is_held_back: Cell::new(false),
            waits_for_long_multis: false,
            rate_wait: None,
            is_cut_short: false,
            unsent_before_turn: 0,
        }
    }

    #[inline]
    pub(crate) fn client(&self) -> &Client {
        self.protocol.client()
    }

    #[inline]
    pub(crate) fn session(&self) -> SessionId {
        self.client().session
    }

    /// True if all that was handed to the engine has been answered.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of long multis that wait for the engine.
    #[inline]
    pub(crate) fn long_bytes(&self) -> usize {
        self.queue.long_bytes()
    }

    /// The long multi may be taken.
    pub(crate) fn end_wait_for_long_multis(&mut self) {
        self.waits_for_long_multis = false;
        self.has_changed = true;
    }

    /// True if frames are taken now.
    #[inline]
    pub(crate) fn takes_input(&self, host: &H, limits: &Limits) -> bool {
        self.protocol.takes_frames()
            && self.ending == Ending::Open
            && !host.is_stopping()
            && !self.waits_for_long_multis
            && self.rate_wait.is_none_or(|wait| wait.is_over(host.monotonic_ms()))
            && (self.long_request.is_none() || self.is_idle())
            && self.has_room(limits)
    }

    #[inline]
    pub(crate) fn begin_turn(&mut self) {
        (self.is_cut_short, self.has_done_portion) = (false, false);
        self.unsent_before_turn = self.output.unsent_bytes();
    }

    /// True if the turn goes on: frames are taken, and it has not done so much that others have to have theirs.
    #[inline]
    pub(crate) fn goes_on(&mut self, host: &H, limits: &Limits) -> bool {
        let replied_bytes = self.output.unsent_bytes().saturating_sub(self.unsent_before_turn);
        self.is_cut_short = replied_bytes >= limits.turn_bytes_max || self.has_done_portion;
        !self.is_cut_short && self.takes_input(host, limits)
    }

    #[inline]
    pub(crate) fn condition(&self, host: &H, limits: &Limits) -> Condition {
        let is_drained = host.is_stopping() && self.is_idle();
        let takes_input = self.takes_input(host, limits);
        if !takes_input && !self.is_held_back.replace(true) {
            self.note_why_held_back(host, limits);
        }
        let has_input = !self.input.is_empty() || !self.unpacked.is_empty() || self.long_request.is_some();
        Condition {
            takes_input,
            has_input,
            has_more: self.is_cut_short && has_input,
            is_heavy: self.queue.reply_bytes_expected() >= limits.turn_bytes_max,
            is_greeting: self.protocol.is_greeting(),
            word: self.protocol.awaited_word(),
            rate_wait_ms: self.rate_wait.map_or(0, |wait| wait.left_ms(host.monotonic_ms())),
            unsent_bytes: self.output.unsent_bytes(),
            is_closing: self.ending != Ending::Open || is_drained,
        }
    }

    /// Counts and logs a connection that begins to wait for others.
    #[cold]
    fn note_why_held_back(&self, host: &H, limits: &Limits) {
        if !self.is_idle() && limits.counters.outstanding.is_reached() {
            let waiting = self.queue.len();
            let detail = format_args!("{waiting} requests of this client");
            self.hit(LimitHit::Outstanding, host.monotonic_ms(), &detail, limits);
        }
    }

    /// The client has hit a limit.
    #[cold]
    pub(crate) fn hit(&self, limit: LimitHit, now_ms: u64, detail: &dyn std::fmt::Display, limits: &Limits) {
        limits.counters.hits.hit(limit, Some(self.protocol.address()), self.session(), now_ms, detail);
    }

    #[inline]
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Notes that a frame has come, and returns the code of its operation. The session may not have been reported as heard since
    /// the last report: `is_first` is called then.
    #[inline]
    pub(crate) fn hear(&mut self, frame: &[u8], host: &H, is_first: impl FnOnce()) -> i32 {
        let request = frame.get(self.protocol.xid_bytes_ahead()..).and_then(<[u8]>::split_first_chunk::<8>);
        let request = request.filter(|_| !self.protocol.is_greeting()).map(|(head, body)| {
            let number = u64::from_be_bytes(*head);
            Received { xid: Xid((number >> 32) as i32), op: number as i32, body }
        });
        host.note(FrontEvent::Received { conn: &self.stats, request });
        if !std::mem::replace(&mut self.is_heard, true) {
            is_first();
        }
        request.map_or(OpCode::CreateSession.code(), |request| request.op)
    }

    #[inline]
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

    /// A request of an operation and its bytes, about a path, is handed to the engine, which will answer it. Returns its place in the queue.
    pub(crate) fn wait(
        &mut self,
        since_us: u64,
        (op, bytes, is_long): (i32, usize, bool),
        path: &[u8],
        span: Option<H::Span>,
        audited: Option<Box<AuditedWrite>>,
        host: &H,
    ) -> Slot {
        let slot = self.queue.push(since_us, (op, bytes, is_long), path, span, audited);
        host.note(FrontEvent::Waiting { conn: &self.stats, requests: self.queue.len() });
        slot
    }

    /// The member refuses a reconfig by itself.
    pub(crate) fn audit_refused_reconfig(&self, log: &dyn AuditLog) {
        let client = self.client();
        refused_reconfig(client.session, client.ids(), self.protocol.address().ip(), log);
    }

    /// The read as an input of the engine, behind all that waits.
    pub(crate) fn queued_read(&self, xid: Xid, op: OpCode, body: Bytes) -> ClientInput {
        let request = RequestId::first(xid);
        ClientInput::Read(QueuedRead::new(self.client().clone(), request, op, body))
    }

    /// A request that is refused, as an input of the engine, behind all that waits.
    pub(crate) fn queued_refusal(&self, xid: Xid, op: OpCode, error: ErrorCode) -> ClientInput {
        let (client, request) = (self.client().clone(), RequestId::first(xid));
        let refusal = Some(error);
        ClientInput::Read(QueuedRead { client, request, op, body: Bytes::new(), refusal })
    }

    /// The next portion of the watches that are still to be set.
    pub(crate) fn next_portion(&mut self) -> Option<Portion> {
        let Some(LongRequest::Watches(watches)) = self.long_request.as_deref_mut() else { return None };
        let portion = watches.next()?;
        self.has_done_portion = true;
        Some(portion)
    }

    /// The request whose last portion was taken.
    pub(crate) fn take_whole_request(&mut self) -> Option<WatchesToSet<H::Span>> {
        let is_whole = |request: &mut Box<LongRequest<H::Span>>| matches!(&**request, LongRequest::Watches(watches) if watches.is_empty());
        match *self.long_request.take_if(is_whole)? {
            LongRequest::Watches(watches) => Some(watches),
            LongRequest::List(_) => unreachable!("it sets watches"),
        }
    }

    /// The list of which a portion is to be copied. To be put back if there is more.
    pub(crate) fn take_list(&mut self) -> Option<ListToCopy<H::Span>> {
        let request = self.long_request.take_if(|request| matches!(**request, LongRequest::List(_)))?;
        self.has_done_portion = true;
        match *request {
            LongRequest::List(list) => Some(list),
            LongRequest::Watches(_) => unreachable!("it is a list"),
        }
    }

    /// A request is to be done in portions.
    pub(crate) fn do_in_portions(&mut self, request: LongRequest<H::Span>) {
        self.long_request = Some(Box::new(request));
    }

    /// Takes a parcel of the engine. Returns true if it answers a request.
    pub(crate) fn deliver(
        &mut self,
        parcel: Parcel<'_>,
        shared: &mut SharedEvent,
        (now, host): (Now, &H),
        settings: &Settings,
    ) -> bool {
        let limits = &settings.limits;
        if let (Parcel::Connected(connected, _), Some(waiting)) = (parcel, self.queue.oldest())
            && !connected.read_only
        {
            (self.session_since_ms, self.session_timeout_ms) =
                (waiting.since_us / 1000, connected.timeout_ms);
        }
        if self.ending == Ending::Silenced || self.close_without_contact(now.monotonic_ms, host) {
            return false;
        }
        match parcel {
            Parcel::Reply(slot, bytes) if self.queue.is_first(slot) => {
                self.deliver_reply(bytes, now, host, settings);
                while let Some(reply) = self.queue.take_early() {
                    self.deliver_reply(&reply, now, host, settings);
                }
            }
            Parcel::Reply(slot, bytes) => self.queue.keep_early(slot, bytes),
            Parcel::Event(bytes) | Parcel::SharedEvent(bytes) => {
                if self.output.unsent_bytes() > Self::event_room(limits) {
                    let unsent_bytes = self.output.unsent_bytes();
                    let detail = format_args!("{unsent_bytes} bytes unsent, and another event comes");
                    self.hit(LimitHit::Buffers, now.monotonic_ms, &detail, limits);
                    self.abandon();
                } else {
                    let is_shared = matches!(parcel, Parcel::SharedEvent(_));
                    if is_shared && self.protocol.speaks_zookeeper() {
                        self.output.share(shared.of(bytes));
                    } else {
                        self.send(Packet::Unasked, bytes);
                    }
                    host.note(FrontEvent::WatchFired { conn: &self.stats, bytes: bytes.len() });
                }
            }
            Parcel::Connected(connected, password) => {
                let granted = self.protocol.on_connected(connected, password);
                if self.session() == connected.session {
                    let (session, timeout_ms) = (connected.session, connected.timeout_ms);
                    host.note(FrontEvent::Session { conn: &self.stats, session, timeout_ms });
                }
                match granted {
                    Granted::Greet(response) => self.greet(Some(&response), now, host, limits),
                    Granted::Known => self.greet(None, now, host, limits),
                    Granted::OtherMode => {
                        self.greet(None, now, host, limits);
                        self.close();
                    }
                }
            }
            Parcel::Expired => {
                let response = self.protocol.on_expired();
                self.greet(response.as_ref(), now, host, limits);
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
        matches!(parcel, Parcel::Reply(..) | Parcel::Connected(..) | Parcel::Expired)
    }

    /// Sends the reply to the oldest request with the engine.
    fn deliver_reply(&mut self, reply: &[u8], now: Now, host: &H, settings: &Settings) {
        let is_farewell = self.queue.len() == 1 && self.protocol.wants_no_farewell();
        if !is_farewell {
            self.send(Packet::Reply, reply);
        }
        let audited = self.answered(reply, now, host, &settings.limits);
        if let (Some(audited), Some(log)) = (audited, &settings.audit) {
            audited.finish(Some(reply), &**log);
        }
    }

    /// The oldest request with the engine has been answered. Returns it as the audit log wants it.
    fn answered(&mut self, reply: &[u8], now: Now, host: &H, limits: &Limits) -> Option<Box<AuditedWrite>> {
        let room = Self::room(limits);
        let was_full = self.queue.len() >= self.queue.capacity(room, limits);
        let (waiting, path) = self.queue.pop(reply.len());
        if let Some(span) = waiting.span {
            host.end_span(span, Some(reply));
        }
        let zxid = reply.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |zxid| i64::from_be_bytes(*zxid));
        let reply = Answered { op: waiting.op, zxid: Zxid(zxid), bytes: reply.len() };
        let since_us = waiting.since_us;
        host.note(FrontEvent::Answered { conn: &self.stats, reply, path, since_us, now });
        let is_half_full = self.queue.len() == self.queue.capacity(room, limits) / 2;
        let is_awaited = self.queue.is_empty() && (host.is_stopping() || self.is_held_back.take());
        self.has_changed |= is_half_full || was_full || is_awaited;
        host.note(FrontEvent::Waiting { conn: &self.stats, requests: self.queue.len() });
        if self.queue.is_empty() {
            self.queue.rest();
        }
        if let Some(last_word) = self.last_word.take_if(|_| self.queue.is_empty()) {
            let (header, span) = *last_word;
            self.reply(header, span, host);
            self.close();
        }
        waiting.audited
    }

    /// The bytes to send next.
    pub(crate) fn unsent(&mut self) -> &[u8] {
        self.output.unsent(self.protocol.is_compressed())
    }

    /// Gets a large buffer for the replies of a turn, if one is kept. Returns true if it did.
    #[inline]
    pub(crate) fn borrow_buffer(&mut self, buffers: &mut LargeBuffers) -> bool {
        self.output.borrow(buffers)
    }

    /// Gives it back if a small one is enough.
    #[inline]
    pub(crate) fn give_back_buffer(&mut self, buffers: &mut LargeBuffers) {
        self.output.give_back_unused(buffers);
    }

    /// The client was sent `bytes` of them.
    pub(crate) fn advance(&mut self, bytes: usize, buffers: &mut LargeBuffers, limits: &Limits) {
        self.output.advance(bytes, buffers);
        self.count_memory(bytes, limits);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use paddock_state::{Outbox, State};

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

    /// Most connections are idle, and there may be very many: what each takes is a decision, not an accident. The allocator rounds up to 328
    /// bytes.
    #[test]
    fn an_idle_connection_is_small() {
        let bytes = size_of::<Connection<Sized>>();
        assert!(bytes <= 328, "a connection has {bytes} bytes");
    }
}
