//! A raw connection: frames out, frames in, nothing in between that could hide a fault.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use paddock_proto::frame;

/// A server that says nothing for so long will not say anything any more.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct RawConnection {
    stream: TcpStream,
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
        let stream =
            TcpStream::connect(address).unwrap_or_else(|error| panic!("connect to {address}: {error}"));
        stream.set_nodelay(true).expect("set TCP_NODELAY");
        stream.set_read_timeout(Some(PATIENCE)).expect("set a read timeout");
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
        let _ = self.stream.shutdown(Shutdown::Write);
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
