//! TLS on one connection: what is sent is sealed here, what is received is opened.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::ops::Range;

use paddock_tls::{RawSocket, TlsFailure, shake_hands};
use rustls::pki_types::CertificateDer;
use rustls::{Connection, ProtocolVersion};
use tokio::net::TcpStream;

/// Bytes that are sealed at once, and wait until the socket has taken all of them.
const SEALED_BYTES: usize = 256 << 10;
/// Bytes that are taken from the socket at once.
const RECEIVED_BYTES: usize = 64 << 10;

pub(super) struct TlsSession {
    connection: Connection,
    /// The length, as it was given, of what is sealed and not all in the socket yet.
    sealed: usize,
    /// Bytes of the socket.
    received: Box<[u8]>,
    /// and how much of it has not been opened.
    unopened: Range<usize>,
}

impl TlsSession {
    /// Shakes hands. If that fails, the other side has been told why, as far as the socket took it.
    pub(super) async fn establish(mut connection: Connection, socket: &TcpStream) -> io::Result<TlsSession> {
        if let Err(failure) = shake_hands(&mut connection, socket).await {
            // A peer that does not read it knows no less than before.
            let _ = connection.write_tls(&mut RawSocket(socket));
            return Err(failure.into());
        }
        connection.set_buffer_limit(Some(SEALED_BYTES));
        Ok(TlsSession { connection, sealed: 0, received: vec![0; RECEIVED_BYTES].into(), unopened: 0..0 })
    }

    /// The certificate that the other side has shown.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.connection.peer_certificates()?.first()
    }

    pub(super) fn version(&self) -> &'static str {
        match self.connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "1.2",
            _ => "1.3",
        }
    }

    /// True if there is something to read that the socket does not tell of any more.
    pub(super) fn is_readable(&mut self) -> bool {
        !self.unopened.is_empty() || self.connection.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    /// Reads what has come. 0 is the end.
    pub(super) fn try_read(&mut self, socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        loop {
            match self.connection.reader().read(&mut buffer[count..]) {
                Ok(0) => return Ok(count),
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if count == buffer.len() {
                return Ok(count);
            }
            if self.unopened.is_empty() {
                if count > 0 {
                    return Ok(count);
                }
                self.unopened = 0..paddock_os::socket::try_read(socket, &mut self.received)?;
                if self.unopened.is_empty() {
                    return Ok(0);
                }
            }
            self.open()?;
        }
    }

    /// Opens some of what was received.
    fn open(&mut self) -> io::Result<()> {
        let mut unopened = &self.received[self.unopened.clone()];
        self.unopened.start += self.connection.read_tls(&mut unopened)?;
        self.connection.process_new_packets().map_err(TlsFailure::Protocol)?;
        Ok(())
    }

    /// Writes the beginning of `pieces` and returns how much that is. After `WouldBlock` the next call must be given
    /// the same bytes, and may be given more: they are sealed already.
    pub(super) fn try_write(&mut self, socket: &TcpStream, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.sealed == 0 {
            self.sealed = self.connection.writer().write_vectored(pieces)?;
        }
        while self.connection.wants_write() {
            self.connection.write_tls(&mut RawSocket(socket))?;
        }
        Ok(std::mem::take(&mut self.sealed))
    }
}

impl std::fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsSession").field("sealed", &self.sealed).finish_non_exhaustive()
    }
}
