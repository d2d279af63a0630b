//! Packets that a connection puts into its output, in the order in which the client must see them.

use paddock_proto::jute::Writer;
use paddock_proto::{
    ConnectResponse, ErrorCode, OpCode, ReplyHeader, Request, WatchRequest, Xid, Zxid, frame,
};
use paddock_state::{Client, ListReply, Now, State};
use paddock_tree::Guess;

use super::Connection;
use super::ending::{Ending, end_unanswered};
use crate::Limits;
use crate::clickhouse::Packet;
use crate::host::{FrontEvent, Host};
use crate::watches::Portion;

impl<H: Host> Connection<H> {
    /// Answers a request from the state.
    pub(crate) fn answer(
        &mut self,
        (xid, op, body): (Xid, OpCode, &[u8]),
        guess: Guess,
        state: &State,
        span: Option<H::Span>,
        host: &H,
    ) {
        self.answer_by(op, span, host, |client, out| state.answer(client, xid, op, body, guess, out));
    }

    /// Answers a request with an error, as of the state.
    pub(crate) fn decline(
        &mut self,
        (xid, op, error): (Xid, OpCode, ErrorCode),
        state: &State,
        span: Option<H::Span>,
        host: &H,
    ) {
        self.answer_by(op, span, host, |_, out| state.refuse(xid, error, out));
    }

    /// Answers a request with the frames that `write` appends.
    #[inline]
    fn answer_by(
        &mut self,
        op: OpCode,
        span: Option<H::Span>,
        host: &H,
        write: impl FnOnce(&Client, &mut Vec<u8>),
    ) {
        if self.ending == Ending::Silenced {
            // The end came with the mail, after the request had been taken. The engine has dropped the connection's watches
            // since: whoever reads this has not been told of all that it shows.
            return end_unanswered(span, host);
        }
        let out = &mut self.output.bytes;
        let before = out.len();
        write(self.protocol.client(), out);
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
        host.note(FrontEvent::Read { op, reply_bytes });
    }

    /// Sends the reply to a long list. Its names have megabytes: they are copied once more only to be compressed.
    pub(crate) fn send_list(&mut self, op: OpCode, reply: ListReply, span: Option<H::Span>, host: &H) {
        if let Some(span) = span {
            host.end_span(span, Some(&reply.head));
        }
        let out = &mut self.output.bytes;
        let before = out.len();
        let mut reply_bytes = reply.bytes();
        if self.protocol.is_compressed() {
            reply.append_to(out);
            self.protocol.translate(Packet::Reply, out, before);
            reply_bytes = out.len() - before;
        } else {
            out.extend_from_slice(&reply.head);
            self.protocol.translate_head(out, before);
            reply_bytes += out.len() - before - reply.head.len();
            reply.names.into_iter().for_each(|names| self.output.share_names(names));
            self.output.bytes.extend_from_slice(&reply.tail);
        }
        self.queue.note_reply(reply_bytes);
        host.note(FrontEvent::Read { op, reply_bytes });
    }

    /// True if nothing more is sent over the connection.
    pub(crate) fn is_silenced(&self) -> bool {
        self.ending == Ending::Silenced
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

    /// Sends a reply without a body, behind those to all earlier requests.
    pub(crate) fn reply(&mut self, header: ReplyHeader, span: Option<H::Span>, host: &H) {
        if header.error == Some(ErrorCode::AuthFailed) {
            host.note(FrontEvent::AuthFailed);
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

    /// Sends text in the place of a greeting, and ends the connection.
    pub(crate) fn answer_word(&mut self, text: &str) {
        self.protocol.end_word();
        self.output.bytes.extend_from_slice(text.as_bytes());
        self.close();
    }

    pub(super) fn send(&mut self, packet: Packet, frames: &[u8]) {
        let out = &mut self.output.bytes;
        let before = out.len();
        out.extend_from_slice(frames);
        self.protocol.translate(packet, out, before);
    }

    pub(super) fn send_greeting(&mut self, response: &ConnectResponse) {
        response.encode(self.output.greeting(self.protocol.is_compressed()));
    }

    /// Answers who waits for its session, by a packet unless it has had one.
    pub(super) fn greet(&mut self, response: Option<&ConnectResponse>, now: Now, host: &H, limits: &Limits) {
        if let Some(response) = response {
            self.send_greeting(response);
        }
        // A greeting is no write.
        let _ = self.answered(&[], now, host, limits);
        self.has_changed = true;
    }
}
