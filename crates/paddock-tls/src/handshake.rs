//! The handshake of a TLS connection on a socket.

use std::io::{self, IoSlice, Read, Write};

use rustls::Connection;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::failure::TlsFailure;

/// The first byte of a connection with TLS: a record of the handshake.
pub const HANDSHAKE: u8 = 22;

/// Shakes hands, until both sides may send. The other side may have sent more by then, which the connection holds.
pub async fn shake_hands(connection: &mut Connection, socket: &TcpStream) -> Result<(), TlsFailure> {
    let mut raw = RawSocket(socket);
    loop {
        let progress = if connection.wants_write() {
            connection.write_tls(&mut raw)
        } else if connection.is_handshaking() {
            connection.read_tls(&mut raw)
        } else {
            return Ok(());
        };
        match progress {
            Ok(0) => return Err(TlsFailure::Cut(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {
                connection.process_new_packets().map_err(TlsFailure::Protocol)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let interest = if connection.wants_write() { Interest::WRITABLE } else { Interest::READABLE };
                socket.ready(interest).await.map(drop).map_err(TlsFailure::Cut)?;
            }
            Err(error) => return Err(TlsFailure::Cut(error)),
        }
    }
}

/// A socket as the library of TLS wants it.
#[derive(Debug)]
pub struct RawSocket<'a>(pub &'a TcpStream);

impl Read for RawSocket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for RawSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
