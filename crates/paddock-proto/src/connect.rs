//! The first packet of each side: how a session begins or goes on.

use std::fmt;

use crate::frame;
use crate::jute::{DecodeError, Reader, Writer};
use crate::{SessionId, Zxid};

pub const PASSWORD_BYTES: usize = 16;

/// What a client shows to resume its session.
///
/// ZooKeeper derives it from the session's id with Java's `Random`; so do we, so that the sessions of an imported
/// ensemble live on and any member can check it. It is an identifier, not a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Password(pub [u8; PASSWORD_BYTES]);

impl Password {
    /// What a refused client gets.
    pub const ZERO: Password = Password([0; PASSWORD_BYTES]);

    /// The password of session `id`: `new Random(id ^ 0xB3415C00L).nextBytes(passwd)`.
    pub fn of(id: SessionId) -> Password {
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

/// The client's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest<'a> {
    pub protocol_version: i32,
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
    pub fn decode(body: &'a [u8]) -> Result<ConnectRequest<'a>, DecodeError> {
        let mut reader = Reader::new(body);
        Ok(ConnectRequest {
            protocol_version: reader.i32()?,
            last_zxid_seen: Zxid(reader.i64()?),
            timeout_ms: reader.i32()?,
            session: SessionId(reader.i64()?),
            password: reader.buffer()?,
            read_only: reader.bool().ok(),
        })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        frame::write(out, |out| {
            out.put_i32(self.protocol_version);
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
    /// What was agreed, in milliseconds; 0 tells the client that its session is gone.
    pub timeout_ms: i32,
    pub session: SessionId,
    pub password: Password,
    /// Sent only to a client whose request had the byte.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// "Your session has expired", or never was.
    pub fn expired(read_only: Option<bool>) -> ConnectResponse {
        ConnectResponse { timeout_ms: 0, session: SessionId::NONE, password: Password::ZERO, read_only }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        frame::write(out, |out| {
            out.put_i32(0);
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
        reader.i32()?;
        let timeout_ms = reader.i32()?;
        let session = SessionId(reader.i64()?);
        let mut password = Password::ZERO;
        if let Some(bytes) = reader.buffer()? {
            let len = bytes.len().min(PASSWORD_BYTES);
            password.0[..len].copy_from_slice(&bytes[..len]);
        }
        Ok(ConnectResponse { timeout_ms, session, password, read_only: reader.bool().ok() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_javas() {
        // Printed by `new java.util.Random(0x100000001L ^ 0xB3415C00L).nextBytes(b)`.
        let expected = [5, 76, 90, 100, 55, 50, 20, 168, 21, 231, 77, 29, 12, 115, 223, 166];
        assert_eq!(Password::of(SessionId(0x1_0000_0001)).0, expected);
    }

    #[test]
    fn an_old_client_gets_a_response_without_the_read_only_byte() {
        let request = ConnectRequest {
            protocol_version: 0,
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
}
