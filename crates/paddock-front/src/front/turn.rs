//! A connection's turn: requests are split off what it has sent, and read from the state or handed to the engine.

use paddock_proto::{ConnectRequest, ErrorCode, OpCode, Xid, Zxid, blocks};
use paddock_state::{ClientInput, ListPortion, LongList, LongListStep, State, is_list_of_children};
use paddock_tree::{Guess, Guesses};

use super::Front;
use crate::LimitHit;
use crate::audit::AuditedWrite;
use crate::connection::Connection;
use crate::host::{FrontEvent, Host, Served, WordAnswer};
use crate::long_request::{ListToCopy, LongRequest};
use crate::output::clear;
use crate::prefetch;
use crate::protocol::{Action, BadInput, Context, Declined, Identified, SaslReply};
use crate::rates::{RateVerdict, RateWait, RatedRequest};
use crate::request_path::path_of;
use crate::watches::{self, WatchesToSet};

/// Bytes of a request in front of its body.
const HEADER_BYTES: usize = 8;

/// True if a frame is a multi.
fn is_multi<H: Host>(connection: &Connection<H>, frame: &[u8]) -> bool {
    let op = frame.get(connection.protocol.xid_bytes_ahead() + 4..).and_then(<[u8]>::first_chunk);
    !connection.protocol.is_greeting() && op.is_some_and(|op| i32::from_be_bytes(*op) == OpCode::Multi.code())
}

/// The decision about a request that does not have to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    Taken,
    /// The request is answered with an error.
    Refused,
}

/// True if limits of rate count for an operation: not for those that keep a session, or end it, and that set watches again which were there.
fn is_rated(op: i32) -> bool {
    use OpCode::{Auth, CloseSession, Ping, Sasl, SetWatches, SetWatches2};
    ![Auth, CloseSession, Ping, Sasl, SetWatches, SetWatches2].iter().any(|exempt| exempt.code() == op)
}

/// A connection's turn: the frames that have come together, taken one by one. Their reads share one lock of the state, their
/// writes one message to the engine.
pub(super) struct Turn<'a, H: Host + 'a> {
    front: &'a mut Front<H>,
    host: &'a H,
    /// Begin of the turn by the monotonic clock.
    since_ms: u64,
    state: Option<H::StateGuard<'a>>,
    /// Reads that were answered under locks of the state.
    reads: usize,
    /// Places of the znodes that the reads to come are about, as far as they were prefetched.
    guesses: Guesses,
    replies: u64,
}

impl<'a, H: Host> Turn<'a, H> {
    pub(super) fn new(front: &'a mut Front<H>, since_ms: u64, host: &'a H) -> Turn<'a, H> {
        Turn { front, host, since_ms, state: None, reads: 0, guesses: Guesses::default(), replies: 0 }
    }

    /// Takes frames out of compressed blocks. Returns the number of bytes taken.
    pub(super) fn take_blocks(&mut self, connection: &mut Connection<H>, input: &[u8]) -> usize {
        let mut taken = 0;
        let mut unpacked = std::mem::take(&mut connection.unpacked);
        loop {
            let frames = self.take_frames(connection, &unpacked);
            unpacked.drain(..frames);
            if !connection.goes_on(self.host, &self.front.settings.limits) {
                break;
            }
            match blocks::unpack(&input[taken..], &mut unpacked) {
                Ok(Some(len)) => taken += len,
                Ok(None) => break,
                Err(error) => {
                    self.hit(connection, LimitHit::BadInput, &error);
                    connection.close();
                    break;
                }
            }
        }
        if unpacked.is_empty() {
            clear(&mut unpacked);
        }
        connection.unpacked = unpacked;
        taken
    }

    /// Takes the whole frames at the front of the input, as far as the connection takes any. Returns the number of bytes taken.
    pub(super) fn take_frames(&mut self, connection: &mut Connection<H>, input: &[u8]) -> usize {
        if connection.protocol.is_greeting()
            && let Some((word, behind)) = input.split_first_chunk()
            && let Some(answer) = self.host.answer_word(*word, behind)
        {
            match answer {
                WordAnswer::Text(text) => connection.answer_word(&text),
                WordAnswer::Later => connection.protocol.await_word(*word),
            }
            return input.len();
        }
        let mut taken = 0;
        while connection.goes_on(self.host, &self.front.settings.limits) {
            if self.set_watches(connection) || self.copy_list(connection) {
                continue;
            }
            self.prefetch(connection, &input[taken..]);
            match connection.protocol.split(&input[taken..], &self.front.settings) {
                Ok(None) => break,
                Ok(Some(request)) if self.has_to_wait(connection, request.frame) => break,
                Ok(Some(request)) => {
                    let Some(admission) = self.admit(connection, request.frame) else { break };
                    self.take(connection, request.frame, request.trace, admission == Admission::Refused);
                    taken += request.len;
                }
                Err(error) => {
                    let is_large = matches!(error, BadInput::Length(_));
                    let limit = if is_large { LimitHit::RequestBytes } else { LimitHit::BadInput };
                    self.hit(connection, limit, &error);
                    connection.close();
                }
            }
        }
        taken
    }

    /// True if a request is a long multi that has to wait for those of other connections.
    fn has_to_wait(&mut self, connection: &mut Connection<H>, frame: &[u8]) -> bool {
        let limits = &self.front.settings.limits;
        if frame.len() <= limits.long_multi_bytes
            || !is_multi(connection, frame)
            || self.front.long_multis.may_add(frame.len(), limits)
        {
            return false;
        }
        self.hit(connection, LimitHit::LongMultis, &format_args!("{} bytes", frame.len()));
        self.front.long_multis.wait(connection.client().conn);
        connection.waits_for_long_multis = true;
        true
    }

    /// Decides by the limits of rate about a request that is to be taken; `None` if it has to wait.
    #[inline]
    fn admit(&mut self, connection: &mut Connection<H>, frame: &[u8]) -> Option<Admission> {
        // The request has waited, and is paid for.
        let is_paid = connection.rate_wait.take().is_some();
        if is_paid || self.front.rates.is_empty() || connection.protocol.is_greeting() {
            return Some(Admission::Taken);
        }
        self.admit_by_rate(connection, frame)
    }

    fn admit_by_rate(&self, connection: &mut Connection<H>, frame: &[u8]) -> Option<Admission> {
        let ahead = connection.protocol.xid_bytes_ahead();
        let Some((op, body)) = frame.get(ahead + 4..).and_then(<[u8]>::split_first_chunk) else {
            return Some(Admission::Taken);
        };
        let op = i32::from_be_bytes(*op);
        if !is_rated(op) {
            return Some(Admission::Taken);
        }
        let path = std::str::from_utf8(path_of(op, body)).unwrap_or_default();
        let client = connection.client();
        let address = connection.protocol.address().ip();
        let request = RatedRequest { path, ids: client.ids(), address, bytes: frame.len() };
        match self.front.rates.decide(&request, self.since_ms) {
            RateVerdict::Take => Some(Admission::Taken),
            RateVerdict::TakeAboveSoft(name) => {
                self.hit(connection, LimitHit::SoftRate, &name);
                Some(Admission::Taken)
            }
            RateVerdict::WaitUntil { ms, tenant: name } => {
                self.hit(connection, LimitHit::Rate, &name);
                connection.rate_wait = Some(RateWait::until(ms));
                None
            }
            RateVerdict::Refuse { tenant: name } => {
                self.hit(connection, LimitHit::RateRefused, &name);
                Some(Admission::Refused)
            }
        }
    }

    /// Answers that a request was not carried out, behind all that was asked before it.
    fn decline(
        &mut self,
        connection: &mut Connection<H>,
        (xid, op, error): (Xid, OpCode, ErrorCode),
        span: Option<H::Span>,
    ) {
        if connection.is_idle() && !self.lock(connection).tree().are_znodes_spread() {
            let host = self.host;
            let state = self.lock_for_answer(connection);
            connection.decline((xid, op, error), state, span, host);
            self.replies += 1;
        } else {
            let input = connection.queued_refusal(xid, op, error);
            self.submit(connection, (op.code(), HEADER_BYTES, &[]), input, span);
        }
    }

    /// Lets the state look for what is to be read next, once it is locked: to be called for all that has come.
    fn prefetch(&mut self, connection: &Connection<H>, input: &[u8]) {
        let Some(state) = self.state.as_ref().filter(|_| self.guesses.len() == 0) else { return };
        if state.tree().is_worth_looking_ahead() {
            let paths = prefetch::paths(input, connection.protocol.xid_bytes_ahead());
            self.guesses = state.tree().look_ahead(&paths);
        }
    }

    fn take(&mut self, connection: &mut Connection<H>, frame: &[u8], trace: &[u8], is_refused: bool) {
        let host = self.host;
        let span = connection.begin_span(frame, trace, host);
        let conn = connection.client().conn;
        let op = connection.hear(frame, host, || self.front.heard.push(conn));
        let action = if connection.protocol.is_greeting() {
            let state = host.lock_state();
            let (tree, is_looking, now_ms) = (Some(state.tree()), host.is_looking(), self.since_ms);
            // A client may have seen of another group what is not here yet: the engine awaits it, or closes the connection.
            let are_spread = state.tree().are_znodes_spread();
            let seen_max = if are_spread { Zxid(i64::MAX) } else { state.tree().zxid() };
            let context = Context { tree, seen_max, is_looking, now_ms };
            let action =
                connection.protocol.on_frame(frame, &context, &self.front.settings, &mut self.front.handed);
            if are_spread && matches!(action, Action::Submit(_)) {
                let zxid = ConnectRequest::decode(frame).map_or(Zxid(0), |request| request.last_zxid_seen);
                self.front.inputs.push(ClientInput::Seen { conn, zxid });
            }
            action
        } else {
            connection.protocol.on_frame(
                frame,
                &Context::default(),
                &self.front.settings,
                &mut self.front.handed,
            )
        };
        match if is_refused { action.over_rate() } else { action } {
            Action::Submit(input) => {
                if matches!(input, ClientInput::Resume { .. }) {
                    host.note(FrontEvent::Resumption);
                }
                let ahead = connection.protocol.xid_bytes_ahead() + HEADER_BYTES;
                let path = path_of(op, frame.get(ahead..).unwrap_or_default());
                self.submit(connection, (op, frame.len(), path), input, span);
            }
            Action::Read { xid, op, body } => {
                if let (OpCode::Reconfig, Some(log)) = (op, &self.front.settings.audit) {
                    connection.audit_refused_reconfig(&**log);
                }
                let watches_max = self.front.settings.limits.watches_per_turn;
                let portions = watches::portions(op, body, connection.client().dialect, watches_max);
                match portions.filter(|_| !self.lock(connection).tree().are_znodes_spread()) {
                    Some(portions) => {
                        connection
                            .do_in_portions(LongRequest::Watches(WatchesToSet::new(xid, portions, span)));
                    }
                    None if is_list_of_children(op) => {
                        self.take_list(connection, frame.len(), (xid, op, body), span);
                    }
                    None => self.read(connection, frame.len(), (xid, op, body), span),
                }
            }
            Action::Decline { xid, op, why } => {
                match why {
                    Declined::Memory => self.hit(connection, LimitHit::Memory, &op.short_name()),
                    Declined::CommandBytes(bytes) => {
                        let detail = format_args!("{}: {bytes} bytes", op.short_name());
                        self.hit(connection, LimitHit::CommandBytes, &detail);
                    }
                    // The limit was hit when the request was to be admitted.
                    Declined::Rate => {}
                }
                self.decline(connection, (xid, op, why.error()), span);
            }
            Action::Ping if self.lock(connection).tree().are_znodes_spread() => {
                // No zxid is told: what this state has applied the client may not have been shown.
                connection.reply_to_auth(Xid::PING, None, span, host);
                self.replies += 1;
            }
            Action::Ping => self.answer(connection, (Xid::PING, OpCode::Ping, &[]), span),
            Action::Identify { xid } => {
                self.lock(connection).watches().identify(connection.client());
                connection.reply_to_auth(xid, None, span, host);
                self.replies += 1;
                self.follow_identity(connection);
            }
            Action::Sasl { xid, body } => self.take_token(connection, xid, body, span),
            Action::Refuse(refusal) => {
                connection.refuse(refusal, span, host, &self.front.settings.limits);
            }
        }
    }

    /// The client of a connection has hit a limit.
    #[cold]
    fn hit(&self, connection: &Connection<H>, limit: LimitHit, detail: &dyn std::fmt::Display) {
        connection.hit(limit, self.since_ms, detail, &self.front.settings.limits);
    }

    /// Takes a request of so many bytes that changes nothing.
    fn read(
        &mut self,
        connection: &mut Connection<H>,
        bytes: usize,
        (xid, op, body): (Xid, OpCode, &[u8]),
        span: Option<H::Span>,
    ) {
        // A sync is answered behind all that the engine has under way, of other connections too, and what every read has to see
        // the engine asks of the quorum.
        let asks_quorum = op == OpCode::Sync || self.front.settings.linearizable_reads;
        if asks_quorum || !connection.is_idle() {
            let input = connection.queued_read(xid, op, self.front.handed.copy_of(body));
            self.submit(connection, (op.code(), bytes, path_of(op.code(), body)), input, span);
        } else {
            self.answer(connection, (xid, op, body), span);
        }
    }

    /// Sets a portion of the watches of a long setWatches, if there is one; the last portion is a request like others.
    fn set_watches(&mut self, connection: &mut Connection<H>) -> bool {
        let Some(portion) = connection.next_portion() else { return false };
        match connection.take_whole_request() {
            Some(request) => {
                let bytes = portion.body.len();
                self.read(connection, bytes, (request.xid, portion.op, &portion.body), request.span);
            }
            None => {
                let state = self.lock(connection);
                if state.tree().are_znodes_spread() {
                    // This state does not have all of the znodes any more: the client comes back.
                    connection.close();
                } else {
                    connection.set_watches(&portion, state);
                }
            }
        }
        true
    }

    /// Takes a request for a list of children, which is answered in portions if it is long.
    #[inline(never)]
    fn take_list(
        &mut self,
        connection: &mut Connection<H>,
        bytes: usize,
        (xid, op, body): (Xid, OpCode, &[u8]),
        span: Option<H::Span>,
    ) {
        // What every read has to see the engine asks of the quorum.
        if self.front.settings.linearizable_reads {
            return self.read(connection, bytes, (xid, op, body), span);
        }
        let guess = if prefetch::is_read_of_one(op) { self.guesses.next() } else { None };
        let path = path_of(op.code(), body);
        if !connection.is_idle() && self.front.short_lists.has(path, self.since_ms) {
            return self.read(connection, bytes, (xid, op, body), span);
        }
        let state = self.lock(connection);
        if state.tree().are_znodes_spread() {
            return self.read(connection, bytes, (xid, op, body), span);
        }
        let (long, found) = state.long_list(connection.client(), op, body, guess.unwrap_or(Guess::NONE));
        if !connection.is_idle() {
            // Others may write while this turn hands more to the engine.
            self.state = None;
        }
        match long {
            Some(expected) => {
                let list = LongList::new(xid, op, body, expected);
                connection.do_in_portions(LongRequest::List(ListToCopy { list, span, bytes }));
            }
            None if connection.is_idle() => self.answer_guessed(connection, (xid, op, body), found, span),
            None => {
                self.front.short_lists.note(path, self.since_ms);
                self.read(connection, bytes, (xid, op, body), span);
            }
        }
    }

    /// Copies a portion of a long list, if there is one, and answers it with the last one.
    fn copy_list(&mut self, connection: &mut Connection<H>) -> bool {
        let Some(list) = connection.take_list() else { return false };
        self.copy_portion(connection, list);
        true
    }

    #[inline(never)]
    fn copy_portion(&mut self, connection: &mut Connection<H>, mut list: ListToCopy<H::Span>) {
        let (host, children) = (self.host, self.front.settings.limits.children_per_turn);
        let bytes_max = self.front.settings.limits.counters.buffers.max();
        let state = self.lock(connection);
        if connection.is_silenced() {
            // The end came with the mail: the connection has no watches any more.
            return connection.do_in_portions(LongRequest::List(list));
        }
        if state.tree().are_znodes_spread() {
            // Children may have gone to other groups since the first portion.
            let ListToCopy { list, span, bytes } = list;
            return self.read(connection, bytes, (list.xid, list.op, list.body()), span);
        }
        let before = list.list.copied_bytes();
        match state.copy_long_list(connection.client(), &mut list.list, ListPortion { children, bytes_max }) {
            LongListStep::Portion => {
                let copied = list.list.copied_bytes().saturating_sub(before);
                connection.do_in_portions(LongRequest::List(list));
                // A connection whose list is being copied is not still.
                connection.count_memory(copied, &self.front.settings.limits);
            }
            LongListStep::AtOnce => {
                let ListToCopy { list, span, bytes } = list;
                self.read(connection, bytes, (list.xid, list.op, list.body()), span);
            }
            LongListStep::Reply(reply) => {
                self.reads += 1;
                self.replies += 1;
                connection.send_list(list.list.op, reply, list.span, host);
            }
            LongListStep::Refused(error, list_bytes) => {
                let ListToCopy { list, span, .. } = list;
                let detail = format_args!("{}: about {list_bytes} bytes", list.op.short_name());
                self.hit(connection, LimitHit::ListBytes, &detail);
                self.decline(connection, (list.xid, list.op, error), span);
            }
        }
    }

    fn take_token(&mut self, connection: &mut Connection<H>, xid: Xid, body: &[u8], span: Option<H::Span>) {
        let host = self.host;
        let token = match connection.protocol.on_sasl(xid, body, &self.front.settings, host) {
            Ok(SaslReply::Token(token)) => token,
            Ok(SaslReply::Identify(token)) => {
                self.lock(connection).watches().identify(connection.client());
                token
            }
            Err(refusal) => {
                return connection.refuse(refusal, span, host, &self.front.settings.limits);
            }
        };
        connection.reply_to_sasl((xid, None), token.as_deref(), span, host);
        self.replies += 1;
        self.follow_identity(connection);
    }

    /// Binds the session to an identity that its client has shown, or resumes it for who has come back.
    fn follow_identity(&mut self, connection: &mut Connection<H>) {
        let host = self.host;
        self.lock(connection);
        if connection.is_silenced() {
            return;
        }
        let tree = self.state.as_ref().expect("it was just locked").tree();
        match connection.protocol.on_identified(tree, &self.front.settings) {
            None => {}
            Some(Identified::Bind(input)) => self.front.inputs.push(input),
            Some(Identified::Resume(input)) => {
                self.submit(connection, (OpCode::CreateSession.code(), 0, &[]), input, None);
            }
            Some(Identified::Stranger) => {
                let client = connection.protocol.address();
                tracing::info!(%client, "connection closed: its client is not the one that the session is bound to");
                host.note(FrontEvent::AuthFailed);
                connection.close();
            }
        }
    }

    /// Hands a request of an operation and its bytes, about a path, to the engine, which will answer.
    fn submit(
        &mut self,
        connection: &mut Connection<H>,
        (op, frame_bytes, path): (i32, usize, &[u8]),
        mut input: ClientInput,
        span: Option<H::Span>,
    ) {
        let audited = match &input {
            ClientInput::Write { op, command, .. } if self.front.settings.audit.is_some() => {
                AuditedWrite::of(*op, command, connection.protocol.address().ip())
            }
            _ => None,
        };
        // What is held of a write has its client's identities, too.
        let bytes = match &input {
            ClientInput::Write { command, .. } => command.len(),
            _ => frame_bytes,
        };
        let is_long = frame_bytes > self.front.settings.limits.long_multi_bytes
            && matches!(input, ClientInput::Write { op: OpCode::Multi, .. });
        if is_long {
            self.front.long_multis.add(bytes);
        }
        let since_us = self.host.turn_began_us(self.since_ms);
        let slot = connection.wait(since_us, (op, bytes, is_long), path, span, audited, self.host);
        input.set_slot(slot);
        self.front.outstanding.add(1, &self.front.settings.limits.counters.outstanding);
        self.front.inputs.push(input);
    }

    fn answer(
        &mut self,
        connection: &mut Connection<H>,
        request: (Xid, OpCode, &[u8]),
        span: Option<H::Span>,
    ) {
        let guess = if prefetch::is_read_of_one(request.1) { self.guesses.next() } else { None };
        self.answer_guessed(connection, request, guess.unwrap_or(Guess::NONE), span);
    }

    #[inline]
    fn answer_guessed(
        &mut self,
        connection: &mut Connection<H>,
        request: (Xid, OpCode, &[u8]),
        guess: Guess,
        span: Option<H::Span>,
    ) {
        let host = self.host;
        let state = self.lock_for_answer(connection);
        if state.tree().are_znodes_spread() {
            return self.route(connection, request, span);
        }
        connection.answer(request, guess, state, span, host);
        self.replies += 1;
    }

    /// Hands a request to the engine, which knows the groups that have the znodes.
    #[cold]
    fn route(
        &mut self,
        connection: &mut Connection<H>,
        (xid, op, body): (Xid, OpCode, &[u8]),
        span: Option<H::Span>,
    ) {
        let input = connection.queued_read(xid, op, self.front.handed.copy_of(body));
        self.submit(connection, (op.code(), body.len(), path_of(op.code(), body)), input, span);
    }

    /// The state for the next answer, under another lock now and then.
    fn lock_for_answer(&mut self, connection: &mut Connection<H>) -> &State {
        self.reads += 1;
        if self.reads.is_multiple_of(self.front.settings.limits.reads_per_lock) {
            // A writer gets its turn.
            self.state = None;
        }
        self.lock(connection)
    }

    /// The state, locked for reading. Events of everything that it shows are in front of what is read from it: a client never
    /// reads what it has not been told of.
    fn lock(&mut self, connection: &mut Connection<H>) -> &State {
        if self.state.is_none() {
            self.state = Some(self.host.lock_state());
            self.front.deliver_beside(Some(connection), self.host);
        }
        self.state.as_ref().expect("it was just locked")
    }

    pub(super) fn end(self) -> Served {
        let zxid = self.state.as_ref().map_or(Zxid(0), |state| state.tree().zxid());
        Served { replies: self.replies, zxid }
    }
}
