//! The handshake of a connection: the connect request and its response.

use std::io;
use std::time::Duration;

use paddock_proto::{
    ConnectRequest, ConnectResponse, ErrorCode, Extensions, Password, SessionId, Zxid, frame,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ClientOptions;
use crate::sasl::{self, LoginFailure};
use crate::stream::Stream;

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

    /// True if the server has no quorum, and takes no writes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.response.read_only == Some(true)
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// The body of the next frame.
    pub(crate) async fn receive(&mut self, bytes_max: i32) -> io::Result<Vec<u8>> {
        receive(&mut self.stream, &mut self.rest, bytes_max).await
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
        read_only: Some(options.allow_read_only),
    }
}

/// Connects, greets and logs in.
pub(crate) async fn perform(
    server: &str,
    options: &ClientOptions,
    request: &ConnectRequest<'_>,
) -> Result<Granted, LoginFailure> {
    let mut granted = greet(server, options, request).await?;
    if let Some(login) = options.sasl.as_ref().filter(|_| granted.is_valid()) {
        sasl::log_in(&mut granted, login).await?;
    }
    Ok(granted)
}

async fn greet(server: &str, options: &ClientOptions, request: &ConnectRequest<'_>) -> io::Result<Granted> {
    /// A connect response is 37 bytes; an answer that is much longer comes from something else.
    const RESPONSE_BYTES_MAX: i32 = 1024;
    let mut stream = Stream::connect(server, options.tls.as_ref()).await?;
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    let mut rest = Vec::new();
    let body = receive(&mut stream, &mut rest, RESPONSE_BYTES_MAX).await?;
    Ok(Granted { stream, response: response(&body)?, rest })
}

/// The response of a frame. A ZooKeeper without a quorum that grants no local sessions answers with the header of a reply.
fn response(body: &[u8]) -> io::Result<ConnectResponse> {
    /// A reply's header: xid, zxid and error.
    const HEADER_BYTES: usize = 16;
    if let (HEADER_BYTES, Some(code)) = (body.len(), body.last_chunk())
        && i32::from_be_bytes(*code) == ErrorCode::NotReadOnly.code()
    {
        return Err(io::Error::other(
            "the server has no quorum, and grants no session without one (localSessionsEnabled)",
        ));
    }
    ConnectResponse::decode(body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads until `rest` has a whole frame, and takes its body out.
async fn receive(stream: &mut Stream, rest: &mut Vec<u8>, bytes_max: i32) -> io::Result<Vec<u8>> {
    loop {
        if let Some((body, len)) = frame::split(rest, bytes_max).map_err(io::Error::other)? {
            let body = body.to_vec();
            rest.drain(..len);
            return Ok(body);
        }
        if stream.read_buf(rest).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_a_quorum_is_told_apart_from_nonsense() {
        // As ZooKeeper 3.9.5 sends it with `readonlymode.enabled` alone.
        let refusal = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0x89];
        let error = response(&refusal).unwrap_err().to_string();
        assert!(error.contains("grants no session without one"), "{error}");
        let mut nonsense = refusal;
        nonsense[15] = 0;
        assert_eq!(response(&nonsense).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let mut frame = Vec::new();
        ConnectResponse::expired(Some(true)).encode(&mut frame);
        assert_eq!(response(&frame[4..]).unwrap(), ConnectResponse::expired(Some(true)));
    }
}
