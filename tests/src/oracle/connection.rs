//! A raw connection: frames out, frames in, nothing in between that could hide a fault.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use paddock_proto::{ConnectRequest, Extensions, Password, SessionId, Zxid, frame};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// A server that says nothing for this time will not say anything any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// A socket, with TLS or without.
#[derive(Debug)]
enum OracleStream {
    Plaintext(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl OracleStream {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            OracleStream::Plaintext(stream) => stream.write_all(bytes),
            OracleStream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            OracleStream::Plaintext(stream) => stream.read(bytes),
            OracleStream::Tls(stream) => stream.read(bytes),
        }
    }

    fn shut_down(&mut self) {
        let socket = match self {
            OracleStream::Plaintext(stream) => stream,
            OracleStream::Tls(stream) => {
                stream.conn.send_close_notify();
                let _ = stream.flush();
                &mut stream.sock
            }
        };
        let _ = socket.shutdown(Shutdown::Write);
    }
}

#[derive(Debug)]
pub struct RawConnection {
    stream: OracleStream,
    incoming: Vec<u8>,
    at: usize,
}

/// A packet that came in, or the end.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    Frame(Vec<u8>),
    Closed,
    /// Neither an answer nor an end.
    Silence,
}

impl RawConnection {
    pub fn open(address: SocketAddr) -> RawConnection {
        RawConnection { stream: OracleStream::Plaintext(connect(address)), incoming: Vec::new(), at: 0 }
    }

    /// One whose client shows a certificate.
    pub(super) fn open_tls(address: SocketAddr, config: Arc<ClientConfig>) -> RawConnection {
        let client = ClientConnection::new(config, ServerName::from(address.ip())).expect("begin TLS");
        let stream = OracleStream::Tls(Box::new(StreamOwned::new(client, connect(address))));
        RawConnection { stream, incoming: Vec::new(), at: 0 }
    }

    /// Writes bytes. That the server has closed is for `read` to find out: it may have answered before.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Ends the connection and waits until the server has closed its side.
    ///
    /// ZooKeeper forgets which connection serves a session when it closes one of that session, also if the session
    /// has moved to another connection since. A resume must not race with that.
    pub fn end(mut self) {
        self.stream.shut_down();
        while let Incoming::Frame(_) = self.read() {}
    }

    pub fn read(&mut self) -> Incoming {
        loop {
            let split = frame::split(&self.incoming[self.at..], i32::MAX);
            if let Some((body, len)) = split.expect("a server sends no negative length") {
                let body = body.to_vec();
                self.at += len;
                return Incoming::Frame(body);
            }
            self.incoming.drain(..self.at);
            self.at = 0;
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Incoming::Closed,
                Ok(len) => self.incoming.extend_from_slice(&chunk[..len]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Incoming::Silence;
                }
                Err(_) => return Incoming::Closed,
            }
        }
    }
}

/// A client's greeting, for a session that it comes back to or for a new one.
pub fn greeting(session: SessionId, password: &Password, timeout_ms: i32, read_only: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    ConnectRequest {
        protocol_version: 0,
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(0),
        timeout_ms,
        session,
        password: Some(&password.0),
        read_only: Some(read_only),
    }
    .encode(&mut bytes);
    bytes
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("connect to {address}: {error}"));
    stream.set_nodelay(true).expect("set TCP_NODELAY");
    stream.set_read_timeout(Some(PATIENCE)).expect("set a read timeout");
    stream
}
