//! Clients that send whatever they are told to send.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use paddock_proto::{OpCode, Password, SessionId, frame, jute::Writer as _};
use paddock_tests::deaf;
use paddock_tests::oracle::connection;
use paddock_tests::server::Server;

/// A frame with a request.
pub(crate) fn request(xid: i32, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        out.put_i32(xid);
        out.put_i32(op.code());
        body(out);
    });
    bytes
}

pub(crate) fn greeting() -> Vec<u8> {
    connection::greeting(SessionId::NONE, &Password::ZERO, 40_000, false)
}

pub(crate) struct Rude {
    pub(crate) stream: TcpStream,
}

impl Rude {
    /// A connection on which nothing was sent.
    pub(crate) fn call(server: &Server) -> std::io::Result<Rude> {
        let stream = TcpStream::connect(server.address())?;
        stream.set_nodelay(true)?;
        Ok(Rude { stream })
    }

    /// A connection with a session.
    pub(crate) fn connect(server: &Server) -> Rude {
        let mut client = Rude::call(server).expect("connect");
        client.send(&greeting());
        client.receive();
        client
    }

    /// Connects a client that will read nothing but the answer to its greeting.
    pub(crate) fn connect_deaf(server: &Server) -> Rude {
        let stream = deaf::connect(server.address()).expect("connect");
        stream.set_nodelay(true).expect("it is connected");
        let mut client = Rude { stream };
        client.send(&greeting());
        client.receive();
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes it");
    }

    /// Sends what the server takes within a short time. Returns false if the connection is closed.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        let _ = self.stream.set_write_timeout(Some(Duration::from_millis(100)));
        match self.stream.write_all(bytes) {
            Ok(()) => true,
            Err(error) => {
                use std::io::ErrorKind::{TimedOut, WouldBlock};
                matches!(error.kind(), WouldBlock | TimedOut)
            }
        }
    }

    /// The next frame.
    pub(crate) fn receive(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("the length of an answer");
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).expect("an answer");
        body
    }

    /// Reads and drops everything on a thread of its own, until the connection ends.
    pub(crate) fn drain(&self) -> std::thread::JoinHandle<()> {
        let mut stream = self.stream.try_clone().expect("share a socket");
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
        })
    }

    pub(crate) fn close(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
