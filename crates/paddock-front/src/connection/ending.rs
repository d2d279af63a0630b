//! The end of a connection: the last packet it is sent, and the requests that will not be answered.

use paddock_proto::{ConnectResponse, ErrorCode};
use paddock_state::contact_max_ms;

use super::Connection;
use crate::host::{FrontEvent, Host};
use crate::protocol::Refusal;
use crate::{AuditLog, LimitHit, Limits};

/// Stages of a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    Open,
    /// The connection is closed when everything was sent. What the engine still has for it is sent too.
    Closing,
    /// The connection is closed when everything was sent. Nothing is added to that.
    Silenced,
}

impl<H: Host> Connection<H> {
    /// Ends the connection as the protocol wants it.
    pub(crate) fn refuse(&mut self, refusal: Refusal, span: Option<H::Span>, host: &H, limits: &Limits) {
        match refusal {
            Refusal::Reply(header) if !self.is_idle() => {
                self.last_word = Some(Box::new((header, span)));
                return;
            }
            Refusal::Reply(header) => self.reply(header, span, host),
            Refusal::AuthFailed { xid } => {
                host.note(FrontEvent::AuthFailed);
                self.reply_to_auth(xid, Some(ErrorCode::AuthFailed), span, host);
            }
            Refusal::TooManyIdentities { xid, found } => {
                self.hit(LimitHit::Identities, host.monotonic_ms(), &found, limits);
                host.note(FrontEvent::AuthFailed);
                self.reply_to_auth(xid, Some(ErrorCode::AuthFailed), span, host);
            }
            Refusal::SaslFailed { xid, error } => {
                host.note(FrontEvent::AuthFailed);
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

    /// Closes the connection if the member has had no contact to a quorum for so long that others may end the session soon:
    /// the client must not be told any more that it has one.
    pub(crate) fn close_without_contact(&mut self, now_ms: u64, host: &H) -> bool {
        let last_ms = host.confirmed_ms().max(self.session_since_ms);
        let silence_ms = now_ms.saturating_sub(last_ms);
        let is_over = silence_ms > 0 && silence_ms > contact_max_ms(self.session_timeout_ms);
        if is_over && self.ending != Ending::Silenced {
            host.note(FrontEvent::LostContact { silence_ms, session_timeout_ms: self.session_timeout_ms });
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

    /// The connection has ended: what waits will not be answered. Returns the number of these requests.
    pub(crate) fn give_up(&mut self, host: &H, audit: Option<&dyn AuditLog>) -> usize {
        let waiting = self.queue.unanswered();
        let last_word = self.last_word.take().and_then(|last_word| last_word.1);
        let long_request = self.long_request.take().and_then(|request| request.into_span());
        let mut spans: Vec<H::Span> = last_word.into_iter().chain(long_request).collect();
        for request in self.queue.drain() {
            spans.extend(request.span);
            if let (Some(audited), Some(log)) = (request.audited, audit) {
                // The write may be carried out yet.
                audited.finish(None, log);
            }
        }
        spans.into_iter().for_each(|span| host.end_span(span, None));
        waiting
    }
}

pub(super) fn end_unanswered<H: Host>(span: Option<H::Span>, host: &H) {
    if let Some(span) = span {
        host.end_span(span, None);
    }
}
