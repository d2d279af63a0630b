//! ClickHouse's dialect, as far as it differs on the wire.
//!
//! Within the member there is one form of requests and replies, ZooKeeper's. Here requests are brought into it, and
//! what goes out is brought out of it: a connection that speaks ZooKeeper's dialect has none of this.

use std::collections::VecDeque;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, Dialect, ErrorCode, Extensions, OpCode, RequestHeader, Xid, Zxid};

/// Beginning of the paths that ClickHouse reads before anything else, so that it is known by them.
const COMPUTED: &[u8] = b"/keeper/";
const FIRST_QUESTIONS: [&[u8]; 2] = [b"/keeper/feature_flags", b"/keeper/api_version"];
/// A trace is never as long as this.
const TRACE_BYTES_MAX: usize = 4096;
/// An identifier, a span, a state, flags.
const TRACE_LINES: usize = 4;

/// Kind of a packet that goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// The answer to the oldest request, perhaps with events in front of it.
    Reply,
    /// The answer to a ping or to auth, which overtakes others, or an event.
    Unasked,
}

/// The trace behind a request is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed tracing context")]
pub(crate) struct BadTrace;

#[derive(Debug, Default)]
pub(crate) struct ClickHouse {
    pub(crate) extensions: Extensions,
    /// Version in the answer to the greeting.
    pub(crate) version: i32,
    /// Wide xids of the requests that wait for their replies: a member knows 32 bits of them only.
    wide_xids: VecDeque<i64>,
    /// The client has closed its session, and takes an answer to that for an error.
    pub(crate) wants_no_farewell: bool,
}

impl ClickHouse {
    /// Greeted by this version, which the answer repeats if it is one of ClickHouse's.
    pub(crate) fn new(extensions: Extensions, greeted: i32) -> ClickHouse {
        let version = if Extensions::are_meant_by(greeted) { greeted } else { 0 };
        ClickHouse { extensions, version, ..ClickHouse::default() }
    }

    pub(crate) fn decode_header(&mut self, reader: &mut Reader<'_>) -> Result<RequestHeader, DecodeError> {
        if !self.extensions.wide_xids {
            return RequestHeader::decode(reader);
        }
        let (xid, op) = (reader.i64()?, reader.i32()?);
        // Their answers overtake others.
        if op != OpCode::Ping.code() && op != OpCode::Auth.code() {
            self.wide_xids.push_back(xid);
        }
        Ok(RequestHeader { xid: Xid(xid as i32), op })
    }

    /// True if a close with this xid is one that ClickHouse wants no answer to.
    pub(crate) fn is_farewell(&self, xid: Xid) -> bool {
        match self.wide_xids.back() {
            Some(wide) => *wide == i64::MAX,
            None => xid.0 == i32::MAX,
        }
    }

    /// Brings the whole frames from `start` on into the client's form.
    pub(crate) fn translate(&mut self, packet: Packet, out: &mut Vec<u8>, start: usize) {
        let mut at = start;
        while at < out.len() {
            let len = i32::from_be_bytes(array(out, at)) as usize;
            let end = at + 4 + len;
            let is_reply = packet == Packet::Reply && end == out.len();
            let xid = i32::from_be_bytes(array(out, at + 4));
            if !is_reply && xid == Xid::NOTIFICATION.0 {
                out[at + 8..at + 16].copy_from_slice(&Zxid::NONE.0.to_be_bytes());
            }
            let error = ErrorCode::from_code(i32::from_be_bytes(array(out, at + 16)));
            let code = error.map_or(0, |error| Dialect::ClickHouse.error(error).code());
            out[at + 16..at + 20].copy_from_slice(&code.to_be_bytes());
            at = end;
            if self.extensions.wide_xids {
                let wide = if is_reply { self.wide_xids.pop_front() } else { None };
                self.widen(wide.unwrap_or(xid.into()), out, end - 4 - len);
                at += 4;
            }
        }
    }

    /// Translates the head of a reply that is no refusal, without the rest of its frame.
    pub(crate) fn translate_head(&mut self, out: &mut Vec<u8>, start: usize) {
        if self.extensions.wide_xids {
            let xid = i32::from_be_bytes(array(out, start + 4));
            let wide = self.wide_xids.pop_front();
            self.widen(wide.unwrap_or(xid.into()), out, start);
        }
    }

    fn widen(&self, xid: i64, out: &mut Vec<u8>, at: usize) {
        let len = i32::from_be_bytes(array(out, at)) + 4;
        let (mut head, xid) = (Vec::with_capacity(12), xid);
        head.put_i32(len);
        head.put_i64(xid);
        out.splice(at..at + 8, head);
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("a reply is as long as its header")
}

/// True if this body of a getData asks for what none but a client of ClickHouse's reads.
pub fn is_read_by_clickhouse(body: &[u8]) -> bool {
    let path = body.get(4..).unwrap_or_default();
    path.starts_with(COMPUTED) && FIRST_QUESTIONS.iter().any(|question| path.starts_with(question))
}

/// The size of the trace at the front of `bytes`; `None` while it is incomplete. Its content is not looked at.
pub(crate) fn trace_bytes(bytes: &[u8]) -> Result<Option<usize>, BadTrace> {
    match bytes.split_first() {
        None => Ok(None),
        Some((0, _)) => Ok(Some(1)),
        Some((1, trace)) => {
            let trace = &trace[..trace.len().min(TRACE_BYTES_MAX)];
            let mut ends = trace.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
            match ends.nth(TRACE_LINES - 1) {
                Some(end) => Ok(Some(1 + end + 1)),
                None if trace.len() == TRACE_BYTES_MAX => Err(BadTrace),
                None => Ok(None),
            }
        }
        Some(_) => Err(BadTrace),
    }
}
