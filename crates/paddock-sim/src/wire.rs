//! What goes over a client's connection, as far as a simulation tells it apart.

use std::fmt;

use paddock_proto::jute::Reader;
use paddock_proto::{Id, OpCode, ReplyHeader, SessionId, WatchEvent, Xid, Zxid, frame};

/// From a client.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Greet {
        /// `SessionId::NONE` for a new one.
        session: SessionId,
        last_zxid: Zxid,
        timeout_ms: i32,
        may_only_read: bool,
    },
    Request {
        xid: Xid,
        op: OpCode,
        body: Vec<u8>,
    },
    /// The client has proved to be somebody.
    Identify {
        id: Id,
    },
    /// The client has closed its end.
    Hangup,
}

/// From a member.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Connected {
        session: SessionId,
        timeout_ms: i32,
        read_only: bool,
    },
    Expired,
    /// Replies and watch events: whole frames.
    Frames(Vec<u8>),
    /// The member has closed its end, or its process is gone.
    Closed,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Greet { session, last_zxid, timeout_ms, may_only_read } => {
                let may = if *may_only_read { ", may only read" } else { "" };
                write!(f, "greeting: session {session}, seen {last_zxid}, timeout {timeout_ms} ms{may}")
            }
            Frame::Request { xid, op, body } => write!(f, "#{} {op:?} {}", xid.0, body.escape_ascii()),
            Frame::Identify { id } => write!(f, "I am {} {}", id.scheme, id.id),
            Frame::Hangup => f.write_str("hangup"),
        }
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Packet::Connected { session, timeout_ms, read_only } => {
                let only = if *read_only { ", only to read" } else { "" };
                write!(f, "session {session}, timeout {timeout_ms} ms{only}")
            }
            Packet::Expired => f.write_str("expired"),
            Packet::Closed => f.write_str("closed"),
            Packet::Frames(bytes) => {
                let mut rest = &bytes[..];
                while let Ok(Some((body, len))) = frame::split(rest, i32::MAX) {
                    write_frame(body, f)?;
                    rest = &rest[len..];
                }
                Ok(())
            }
        }
    }
}

fn write_frame(body: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut reader = Reader::new(body);
    let Ok(header) = ReplyHeader::decode(&mut reader) else { return f.write_str("(unreadable)") };
    if header.xid == Xid::NOTIFICATION
        && let Ok(event) = WatchEvent::decode(header.zxid, reader.rest())
    {
        return write!(f, "(event {} {:?} {})", event.zxid, event.kind, event.path);
    }
    let ReplyHeader { xid, zxid, error } = header;
    match error {
        Some(error) => write!(f, "(#{} {zxid} {error:?})", xid.0),
        None => write!(f, "(#{} {zxid} {})", xid.0, reader.rest().escape_ascii()),
    }
}
