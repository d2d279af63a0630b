//! TLS of a process that calls the members of an ensemble and is none of them: an observer of a ZooKeeper ensemble.
//!
//! The socket blocks, and whoever calls has a thread for it. Every failure of TLS is an error of another kind than a connection that
//! ends, so that the two can be told apart.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::{Credentials, server_name};
use super::{TlsError, TlsFailure};
use crate::config::PeerTls;

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
        Ok(TlsSocket(StreamOwned::new(connection, socket)))
    }
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct TlsSocket(StreamOwned<ClientConnection, TcpStream>);

impl Read for TlsSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(named)
    }
}

impl Write for TlsSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// A failure of TLS says so; an error of the socket stays as it is.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidData => io::Error::other(format!("TLS: {error}")),
        _ => error,
    }
}
