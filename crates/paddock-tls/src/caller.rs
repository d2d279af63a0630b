//! TLS of a process that calls the members of an ensemble and is none of them: an observer of a ZooKeeper ensemble.
//!
//! The socket blocks, and the caller has a thread for it. Every failure of TLS is an error of another kind than a connection that
//! ends, so that the two can be told apart.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::{ClientConfig, ClientConnection};

use crate::error::TlsError;
use crate::failure::TlsFailure;
use crate::link_port::Credentials;
use crate::server_name::server_name;
use crate::settings::PeerTls;

/// Bytes that are read from a socket at once.
const CIPHERTEXT_BYTES: usize = 64 << 10;

/// Keys, certificates and rules with which members are called.
#[derive(Clone, Debug)]
pub struct QuorumTls {
    calling: Arc<ClientConfig>,
}

impl QuorumTls {
    /// Reads the files that the settings name.
    pub fn load(settings: &PeerTls) -> Result<QuorumTls, TlsError> {
        let credentials = Credentials::read(settings)?;
        Ok(QuorumTls { calling: credentials.calling })
    }

    /// Shakes hands with the member at `host`, at the other end of `socket`.
    pub fn call(&self, host: &str, mut socket: TcpStream) -> io::Result<TlsSocket> {
        let name = server_name(host).map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(self.calling.clone(), name)
            .map_err(|error| io::Error::other(TlsFailure::Protocol(error)))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(named)?;
        }
        let connection = Arc::new(Mutex::new(connection));
        Ok(TlsSocket { connection, socket, ciphertext: Vec::new(), taken: 0 })
    }
}

/// The reading side of a connection whose handshake is done. While it waits for bytes, others can write.
#[derive(Debug)]
pub struct TlsSocket {
    connection: Arc<Mutex<ClientConnection>>,
    socket: TcpStream,
    /// Bytes that have come, and how many of them are decrypted.
    ciphertext: Vec<u8>,
    taken: usize,
}

/// The writing side.
#[derive(Debug)]
pub struct TlsWriter {
    connection: Arc<Mutex<ClientConnection>>,
    socket: TcpStream,
}

impl TlsSocket {
    /// The other side of the connection.
    pub fn writer(&self) -> io::Result<TlsWriter> {
        Ok(TlsWriter { connection: self.connection.clone(), socket: self.socket.try_clone()? })
    }
}

impl Read for TlsSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut connection = self.connection.lock();
            match connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map_err(named),
            }
            let mut rest = &self.ciphertext[self.taken..];
            if !rest.is_empty() {
                self.taken += connection.read_tls(&mut rest)?;
                let failed = |error| io::Error::other(format!("TLS: {error}"));
                connection.process_new_packets().map_err(failed)?;
                // An alert, or an answer to new keys.
                send(&mut connection, &mut self.socket)?;
                continue;
            }
            drop(connection);
            self.ciphertext.resize(CIPHERTEXT_BYTES, 0);
            let count = self.socket.read(&mut self.ciphertext)?;
            self.ciphertext.truncate(count);
            self.taken = 0;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Write for TlsWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut connection = self.connection.lock();
        let count = connection.writer().write(bytes)?;
        send(&mut connection, &mut self.socket)?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn send(connection: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    while connection.wants_write() {
        connection.write_tls(socket)?;
    }
    Ok(())
}

/// A failure of TLS says so; an error of the socket stays as it is.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidData => io::Error::other(format!("TLS: {error}")),
        _ => error,
    }
}
