//! The first packets of a connection, and the question whether a host is one to talk to at all.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use paddock_client::Tls;
use paddock_proto::{
    ConnectRequest, ConnectResponse, Extensions, OpCode, Password, RequestHeader, SessionId, Xid, Zxid, frame,
};
use rustls::{ClientConnection, StreamOwned};

use crate::BenchError;

/// A connect response has 37 bytes; an answer that is much longer comes from something else.
const RESPONSE_BYTES_MAX: i32 = 1024;

/// A session that a connection asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionRequest {
    pub(crate) id: SessionId,
    pub(crate) password: Password,
    pub(crate) last_zxid: Zxid,
    pub(crate) timeout: Duration,
    /// Extensions of ClickHouse's protocol.
    pub(crate) extensions: Extensions,
}

impl SessionRequest {
    /// A new session.
    pub(crate) fn new(timeout: Duration, extensions: Extensions) -> SessionRequest {
        SessionRequest {
            id: SessionId::NONE,
            password: Password::ZERO,
            last_zxid: Zxid(0),
            timeout,
            extensions,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        ConnectRequest {
            protocol_version: self.extensions.version(),
            extensions: self.extensions,
            last_zxid_seen: self.last_zxid,
            timeout_ms: i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX),
            session: self.id,
            password: Some(&self.password.0),
            read_only: Some(false),
        }
        .encode(out);
    }
}

/// The response at the start of `bytes` and its length, `None` while it is incomplete, or why it is none.
pub(crate) fn response(bytes: &[u8]) -> Result<Option<(ConnectResponse, usize)>, String> {
    let strange = || format!("it answered {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(24)]));
    match frame::split(bytes, RESPONSE_BYTES_MAX) {
        Err(_) => Err(strange()),
        Ok(None) => Ok(None),
        Ok(Some((body, len))) => match ConnectResponse::decode(body) {
            Ok(response) => Ok(Some((response, len))),
            Err(_) => Err(strange()),
        },
    }
}

/// Opens a session on `host` and closes it; returns the host's address.
pub(crate) fn probe(host: &str, tls: Option<&Tls>, within: Duration) -> Result<SocketAddr, BenchError> {
    let unreachable = |source| BenchError::Connect { host: host.to_owned(), source };
    let refused = |reason: String| BenchError::Protocol { host: host.to_owned(), reason };
    let (address, socket) = connect(host, within).map_err(unreachable)?;
    let deadline = Instant::now() + within;
    let mut stream = ProbeStream::new(socket, host, tls).map_err(unreachable)?;
    match greet(&mut stream, deadline) {
        Ok(bytes) => match response(&bytes).map_err(refused)? {
            Some((response, _)) if response.timeout_ms > 0 => {}
            Some(_) => return Err(refused("it refuses new sessions".into())),
            None => {
                return Err(refused(
                    "it closed the connection; it may not be serving yet, or have no quorum".into(),
                ));
            }
        },
        Err(error) if is_timeout(&error) => {
            return Err(refused(format!("no answer to a connect request within {} s", within.as_secs_f64())));
        }
        Err(error) => return Err(unreachable(error)),
    }
    let mut close = Vec::new();
    frame::write(&mut close, |out| {
        RequestHeader { xid: Xid(1), op: OpCode::CloseSession.code() }.encode(out)
    });
    // Whether the session ends now or by its timeout is all the same.
    let _ = stream.write_all(&close).and_then(|()| stream.read(&mut [0; 64]));
    Ok(address)
}

fn connect(host: &str, within: Duration) -> io::Result<(SocketAddr, TcpStream)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => return Ok((address, stream)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection that waits for what it reads.
enum ProbeStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl ProbeStream {
    fn new(socket: TcpStream, host: &str, tls: Option<&Tls>) -> io::Result<ProbeStream> {
        Ok(match tls {
            None => ProbeStream::Plain(socket),
            Some(tls) => ProbeStream::Tls(Box::new(StreamOwned::new(tls.call(host)?, socket))),
        })
    }

    fn give_up_at(&self, deadline: Instant) -> io::Result<()> {
        let socket = match self {
            ProbeStream::Plain(socket) => socket,
            ProbeStream::Tls(stream) => &stream.sock,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))
    }
}

impl Read for ProbeStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ProbeStream::Plain(socket) => socket.read(buffer),
            ProbeStream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for ProbeStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ProbeStream::Plain(socket) => socket.write(bytes),
            ProbeStream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ProbeStream::Plain(socket) => socket.flush(),
            ProbeStream::Tls(stream) => stream.flush(),
        }
    }
}

/// Sends a connect request and reads until the answer is whole, plainly wrong, or the connection ends.
fn greet(stream: &mut ProbeStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    SessionRequest::new(Duration::from_secs(10), Extensions::default()).encode(&mut bytes);
    stream.give_up_at(deadline)?;
    stream.write_all(&bytes)?;
    bytes.clear();
    loop {
        stream.give_up_at(deadline)?;
        let mut chunk = [0; 512];
        let len = match stream.read(&mut chunk) {
            // Some services cut a connection that says what they do not understand.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            other => other?,
        };
        bytes.extend_from_slice(&chunk[..len]);
        if len == 0 || !matches!(response(&bytes), Ok(None)) {
            return Ok(bytes);
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
