//! Packets on a client's connection, as far as a simulation tells them apart.

use std::fmt;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    ConnectRequest, ConnectResponse, Extensions, OpCode, Password, ReplyHeader, SessionId, WatchEvent, Xid,
    Zxid, blocks, encode, frame,
};

/// From a client.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Greet {
        /// `SessionId::NONE` for a new one.
        session: SessionId,
        password: Password,
        last_zxid: Zxid,
        timeout_ms: i32,
        may_only_read: bool,
        /// None for ZooKeeper's dialect.
        extensions: Extensions,
    },
    Request {
        xid: Xid,
        op: OpCode,
        body: Vec<u8>,
    },
    /// The client shows its user and password.
    Identify {
        credentials: &'static str,
    },
    /// The client has closed its end.
    Hangup,
}

/// From a member.
#[derive(Clone, Debug)]
pub(crate) enum WirePacket {
    Connected {
        session: SessionId,
        password: Password,
        timeout_ms: i32,
        read_only: bool,
    },
    Expired,
    /// A reply or a watch event: a whole frame.
    Frames(Vec<u8>),
    /// Bytes that no client understands.
    Unreadable,
    /// The member has closed its end, or its process is gone.
    Closed,
}

impl Frame {
    /// Bytes of the frame on a connection with these extensions.
    pub(crate) fn encode(&self, extensions: Extensions) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Frame::Greet { session, password, last_zxid, timeout_ms, may_only_read, .. } => {
                let request = ConnectRequest {
                    protocol_version: extensions.version(),
                    extensions,
                    last_zxid_seen: *last_zxid,
                    timeout_ms: *timeout_ms,
                    session: *session,
                    password: Some(&password.0),
                    read_only: Some(*may_only_read),
                };
                request.encode(&mut bytes);
            }
            Frame::Request { xid, op, body } => put_request(*xid, *op, body, extensions, &mut bytes),
            Frame::Identify { credentials } => {
                let mut body = Vec::new();
                encode::auth(&mut body, "digest", credentials.as_bytes());
                put_request(Xid::AUTH, OpCode::Auth, &body, extensions, &mut bytes);
            }
            Frame::Hangup => {}
        }
        bytes
    }
}

fn put_request(xid: Xid, op: OpCode, body: &[u8], extensions: Extensions, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        if extensions.wide_xids {
            out.put_i64(xid.0.into());
        } else {
            out.put_i32(xid.0);
        }
        out.put_i32(op.code());
        out.extend_from_slice(body);
    });
    if extensions.tracing {
        // There is no tracing context.
        bytes.put_bool(false);
    }
    if extensions.compression {
        blocks::pack(&bytes, out);
    } else {
        out.append(&mut bytes);
    }
}

impl WirePacket {
    /// The answer to a greeting; nothing for a client that is told to try another server.
    pub(crate) fn of_greeting(response: &ConnectResponse) -> Option<WirePacket> {
        let ConnectResponse { session, password, timeout_ms, read_only, protocol_version } = *response;
        if protocol_version == ConnectResponse::no_leader().protocol_version {
            return None;
        }
        if session == SessionId::NONE {
            return Some(WirePacket::Expired);
        }
        let read_only = read_only.unwrap_or_default();
        Some(WirePacket::Connected { session, password, timeout_ms, read_only })
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Greet { session, last_zxid, timeout_ms, may_only_read, extensions, .. } => {
                let may = if *may_only_read { ", may only read" } else { "" };
                let dialect = if extensions.version() == 0 { "" } else { ", as ClickHouse" };
                write!(
                    f,
                    "greeting: session {session}, seen {last_zxid}, timeout {timeout_ms} ms{may}{dialect}"
                )
            }
            Frame::Request { xid, op, body } => write!(f, "#{} {op:?} {}", xid.0, body.escape_ascii()),
            Frame::Identify { credentials } => write!(f, "I am {credentials}"),
            Frame::Hangup => f.write_str("hangup"),
        }
    }
}

impl fmt::Display for WirePacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WirePacket::Connected { session, timeout_ms, read_only, .. } => {
                let only = if *read_only { ", only to read" } else { "" };
                write!(f, "session {session}, timeout {timeout_ms} ms{only}")
            }
            WirePacket::Expired => f.write_str("expired"),
            WirePacket::Closed => f.write_str("closed"),
            WirePacket::Unreadable => f.write_str("(unreadable)"),
            WirePacket::Frames(bytes) => {
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
