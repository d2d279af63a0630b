//! The handshake of a connection: the connect request and its response.

use std::io;
use std::time::Duration;

use paddock_proto::{ConnectRequest, ConnectResponse, Extensions, Password, SessionId, Zxid, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::Stream;
use crate::{ClientOptions, Tls};

/// A session as the server granted it.
pub(crate) struct Granted {
    pub stream: Stream,
    pub response: ConnectResponse,
    /// Bytes that came behind the response.
    pub rest: Vec<u8>,
}

impl Granted {
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.response.timeout_ms.max(1) as u64)
    }

    /// True if the server granted a session; false if the session is over or was never there.
    pub(crate) fn is_valid(&self) -> bool {
        self.response.timeout_ms > 0
    }
}

pub(crate) fn request<'a>(
    options: &ClientOptions,
    session: SessionId,
    last_zxid_seen: Zxid,
    password: &'a Password,
) -> ConnectRequest<'a> {
    ConnectRequest {
        protocol_version: 0,
        extensions: Extensions::default(),
        last_zxid_seen,
        timeout_ms: i32::try_from(options.session_timeout.as_millis()).unwrap_or(i32::MAX),
        session,
        password: Some(&password.0),
        read_only: Some(false),
    }
}

pub(crate) async fn perform(
    server: &str,
    tls: Option<&Tls>,
    request: &ConnectRequest<'_>,
) -> io::Result<Granted> {
    /// A connect response is 37 bytes; an answer that is much longer comes from something else.
    const RESPONSE_BYTES_MAX: i32 = 1024;
    let mut stream = Stream::connect(server, tls).await?;
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    bytes.clear();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        if let Some((body, len)) = frame::split(&bytes, RESPONSE_BYTES_MAX).map_err(io::Error::other)? {
            let response = ConnectResponse::decode(body).map_err(invalid)?;
            return Ok(Granted { stream, response, rest: bytes.split_off(len) });
        }
    }
}
