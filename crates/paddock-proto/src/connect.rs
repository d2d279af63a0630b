//! The first packet of each side: how a session begins or goes on.

use std::fmt;

use crate::frame::{self, BadFrameLength};
use crate::jute::{DecodeError, Reader, Writer};
use crate::{SessionId, Zxid};

pub const PASSWORD_BYTES: usize = 16;

/// Password with which a client resumes its session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Password(pub [u8; PASSWORD_BYTES]);

impl Password {
    /// Password in the answer to a refused client.
    pub const ZERO: Password = Password([0; PASSWORD_BYTES]);

    /// The password that ZooKeeper gives session `id`: `new Random(id ^ 0xB3415C00L).nextBytes(passwd)`. It follows
    /// from the id.
    pub fn of_zookeeper(id: SessionId) -> Password {
        const MASK: u64 = (1 << 48) - 1;
        const MULTIPLIER: u64 = 0x5DEE_CE66D;
        let mut seed = ((id.0 as u64) ^ 0xB341_5C00 ^ MULTIPLIER) & MASK;
        let mut password = [0; PASSWORD_BYTES];
        for word in password.chunks_exact_mut(4) {
            seed = seed.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
            word.copy_from_slice(&((seed >> 16) as u32).to_le_bytes());
        }
        Password(password)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// Key of an ensemble from which the passwords of its sessions are made. None but its members may see it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionSecret(pub [u8; SessionSecret::BYTES]);

impl SessionSecret {
    pub const BYTES: usize = 32;

    /// `None` if the bytes are too many or too few.
    pub fn from_bytes(bytes: &[u8]) -> Option<SessionSecret> {
        bytes.try_into().ok().map(SessionSecret)
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSecret(..)")
    }
}

/// Extensions that a ClickHouse client asks for by the version in its greeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Xids have 64 bits, in requests and replies.
    pub wide_xids: bool,
    /// All behind the greetings is a stream of compressed blocks, in both directions.
    pub compression: bool,
    /// Each request is followed by what tells of the trace it belongs to.
    pub tracing: bool,
}

impl Extensions {
    const COMPRESSION: i32 = 10;
    const WIDE_XIDS: i32 = 11;
    const TRACING: i32 = 12;

    /// True if a greeting with this version is ClickHouse's.
    pub fn are_meant_by(version: i32) -> bool {
        (Extensions::COMPRESSION..=Extensions::TRACING).contains(&version)
    }

    /// The version of a greeting that asks for them; 0 asks for none.
    pub fn version(self) -> i32 {
        match self {
            Extensions { tracing: true, .. } => Extensions::TRACING,
            Extensions { wide_xids: true, .. } => Extensions::WIDE_XIDS,
            Extensions { compression: true, .. } => Extensions::COMPRESSION,
            _ => 0,
        }
    }

    fn decode(version: i32, reader: &mut Reader<'_>) -> Result<Extensions, DecodeError> {
        let tracing = version == Extensions::TRACING;
        let wide_xids = if tracing { reader.bool()? } else { version == Extensions::WIDE_XIDS };
        let compression = match version {
            Extensions::COMPRESSION => true,
            Extensions::WIDE_XIDS | Extensions::TRACING => reader.bool()?,
            _ => false,
        };
        Ok(Extensions { wide_xids, compression, tracing })
    }

    /// The bytes that `decode` reads. The length in front of a greeting does not count them.
    fn bytes(version: i32) -> usize {
        match version {
            Extensions::WIDE_XIDS => 1,
            Extensions::TRACING => 2,
            _ => 0,
        }
    }
}

/// The client's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest<'a> {
    pub protocol_version: i32,
    pub extensions: Extensions,
    /// The newest zxid the client has seen from any server.
    pub last_zxid_seen: Zxid,
    /// The session timeout the client asks for, in milliseconds.
    pub timeout_ms: i32,
    /// `SessionId::NONE` for a new session.
    pub session: SessionId,
    pub password: Option<&'a [u8]>,
    /// Absent from clients before 3.4, which then must not get the byte in the response either.
    pub read_only: Option<bool>,
}

impl<'a> ConnectRequest<'a> {
    /// As `frame::split`, for the first frame of a connection: its version says by how much its length lies.
    pub fn split(bytes: &[u8], max: i32) -> Result<Option<(&[u8], usize)>, BadFrameLength> {
        frame::split(&bytes[..bytes.len().min(4)], max)?;
        let Some((head, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
        let version = rest.first_chunk::<4>().map_or(0, |version| i32::from_be_bytes(*version));
        let len = i32::from_be_bytes(*head) as usize + Extensions::bytes(version);
        Ok(rest.get(..len).map(|body| (body, 4 + len)))
    }

    pub fn decode(body: &'a [u8]) -> Result<ConnectRequest<'a>, DecodeError> {
        let mut reader = Reader::new(body);
        let protocol_version = reader.i32()?;
        Ok(ConnectRequest {
            protocol_version,
            extensions: Extensions::decode(protocol_version, &mut reader)?,
            last_zxid_seen: Zxid(reader.i64()?),
            timeout_ms: reader.i32()?,
            session: SessionId(reader.i64()?),
            password: reader.buffer()?,
            read_only: reader.bool().ok(),
        })
    }

    /// The whole frame, as ClickHouse sends it where the version is one of its own.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode_truly(out);
        let extra = Extensions::bytes(self.protocol_version);
        let len = i32::try_from(out.len() - start - 4 - extra).expect("a greeting is short");
        out[start..start + 4].copy_from_slice(&len.to_be_bytes());
    }

    fn encode_truly(&self, out: &mut Vec<u8>) {
        frame::write(out, |out| {
            out.put_i32(self.protocol_version);
            let extensions = [self.extensions.wide_xids, self.extensions.compression];
            let extra = Extensions::bytes(self.protocol_version);
            extensions[extensions.len() - extra..].iter().for_each(|&asked| out.put_bool(asked));
            out.put_i64(self.last_zxid_seen.0);
            out.put_i32(self.timeout_ms);
            out.put_i64(self.session.0);
            out.put_buffer(self.password);
            if let Some(read_only) = self.read_only {
                out.put_bool(read_only);
            }
        });
    }
}

/// The server's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The version of the request, if it is one of ClickHouse's; else 0.
    pub protocol_version: i32,
    /// Agreed timeout in milliseconds; 0 tells the client that its session is gone.
    pub timeout_ms: i32,
    pub session: SessionId,
    pub password: Password,
    /// Sent only to a client whose request had the byte.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    const NO_LEADER: i32 = 42;

    /// "Your session has expired", or never was.
    pub fn expired(read_only: Option<bool>) -> ConnectResponse {
        let (session, password) = (SessionId::NONE, Password::ZERO);
        ConnectResponse { protocol_version: 0, timeout_ms: 0, session, password, read_only }
    }

    /// "No leader: try another server", in a form that only ClickHouse understands.
    pub fn no_leader() -> ConnectResponse {
        ConnectResponse { protocol_version: ConnectResponse::NO_LEADER, ..ConnectResponse::expired(None) }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        frame::write(out, |out| {
            out.put_i32(self.protocol_version);
            out.put_i32(self.timeout_ms);
            out.put_i64(self.session.0);
            out.put_buffer(Some(&self.password.0));
            if let Some(read_only) = self.read_only {
                out.put_bool(read_only);
            }
        });
    }

    pub fn decode(body: &[u8]) -> Result<ConnectResponse, DecodeError> {
        let mut reader = Reader::new(body);
        let protocol_version = reader.i32()?;
        let timeout_ms = reader.i32()?;
        let session = SessionId(reader.i64()?);
        let mut password = Password::ZERO;
        if let Some(bytes) = reader.buffer()? {
            let len = bytes.len().min(PASSWORD_BYTES);
            password.0[..len].copy_from_slice(&bytes[..len]);
        }
        let read_only = reader.bool().ok();
        Ok(ConnectResponse { protocol_version, timeout_ms, session, password, read_only })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_javas() {
        // Printed by `new java.util.Random(0x100000001L ^ 0xB3415C00L).nextBytes(b)`.
        let expected = [5, 76, 90, 100, 55, 50, 20, 168, 21, 231, 77, 29, 12, 115, 223, 166];
        assert_eq!(Password::of_zookeeper(SessionId(0x1_0000_0001)).0, expected);
    }

    #[test]
    fn an_old_client_gets_a_response_without_the_read_only_byte() {
        let request = ConnectRequest {
            protocol_version: 0,
            extensions: Extensions::default(),
            last_zxid_seen: Zxid(5),
            timeout_ms: 10_000,
            session: SessionId::NONE,
            password: Some(&[0; 16]),
            read_only: None,
        };
        let mut out = Vec::new();
        request.encode(&mut out);
        assert_eq!(out.len(), 4 + 44);
        assert_eq!(ConnectRequest::decode(&out[4..]), Ok(request));

        let mut reply = Vec::new();
        ConnectResponse::expired(None).encode(&mut reply);
        assert_eq!(reply.len(), 4 + 36);
        ConnectResponse::expired(Some(false)).encode(&mut reply);
        assert_eq!(reply.len(), 4 + 36 + 4 + 37);
    }
    #[test]
    fn the_length_of_a_clickhouse_greeting_lies() {
        let ask = |wide_xids, compression, tracing| Extensions { wide_xids, compression, tracing };
        for (protocol_version, extensions, len) in [
            (0, ask(false, false, false), 45),
            (10, ask(false, true, false), 45),
            (11, ask(true, false, false), 46),
            (11, ask(true, true, false), 46),
            (12, ask(false, false, true), 47),
            (12, ask(true, false, true), 47),
            (12, ask(false, true, true), 47),
        ] {
            let request = ConnectRequest {
                protocol_version,
                extensions,
                last_zxid_seen: Zxid(5),
                timeout_ms: 30_000,
                session: SessionId::NONE,
                password: Some(&[0; 16]),
                read_only: Some(true),
            };
            assert_eq!(extensions.version(), protocol_version);
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            assert_eq!((bytes.len(), &bytes[..4]), (4 + len, &[0, 0, 0, 45][..]));
            for end in 0..bytes.len() {
                assert_eq!(ConnectRequest::split(&bytes[..end], 100), Ok(None), "cut at {end}");
            }
            bytes.extend_from_slice(b"next");
            let (body, taken) = ConnectRequest::split(&bytes, 100).unwrap().unwrap();
            assert_eq!((ConnectRequest::decode(body), taken), (Ok(request), 4 + len));
        }
        assert!(ConnectRequest::split(&[0, 1, 0, 0], 100).is_err());
    }
}
