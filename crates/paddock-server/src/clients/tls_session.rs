//! TLS on the connection of a client: what is sent is sealed here, what is received is opened.
//!
//! Always true between two calls: everything that was received in whole records has been given out, so a socket without
//! events means that there is nothing to read.

use std::io::{self, Read, Write};

use paddock_os::socket;
use paddock_tls::{ClientFailure, RawSocket, TlsFailure, shake_hands};
use rustls::Connection;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;

/// Bytes that are sealed at once, and wait until the socket has taken all of them.
const SEALED_BYTES: usize = 64 << 10;
/// Bytes that are taken from the socket at once.
const RECEIVED_BYTES: usize = 23 << 10;
/// The longest record of TLS, in bytes, and so the most that may be held of one whose end has not come.
const RECORD_BYTES: usize = 18 << 10;
/// Size in bytes of a buffer that holds whatever one call can open.
const OPENED_BYTES: usize = RECEIVED_BYTES + RECORD_BYTES;
/// Size in bytes of a buffer for what is received and what is opened.
pub(super) const SCRATCH_BYTES: usize = RECEIVED_BYTES + OPENED_BYTES;

pub(super) struct TlsSession {
    connection: Connection,
    /// Length, before it was sealed, of what is sealed and not all in the socket yet.
    sealed: usize,
    /// True if the client has said that nothing more comes.
    has_ended: bool,
}

impl TlsSession {
    /// Shakes hands. If that fails, the client has been told why, as far as the socket took it.
    pub(super) async fn establish(
        mut connection: Connection,
        socket: &TcpStream,
    ) -> Result<TlsSession, ClientFailure> {
        if let Err(failure) = shake_hands(&mut connection, socket).await {
            let _ = connection.write_tls(&mut RawSocket(socket));
            return Err(failure.into());
        }
        connection.set_buffer_limit(Some(SEALED_BYTES));
        Ok(TlsSession { connection, sealed: 0, has_ended: false })
    }

    /// The certificate that the client has shown.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.connection.peer_certificates()?.first()
    }

    /// Opens what came with the end of the handshake.
    pub(super) fn take_early(&mut self) -> io::Result<Vec<u8>> {
        let mut early = vec![0; OPENED_BYTES];
        let count = self.open(&mut early)?;
        early.truncate(count);
        Ok(early)
    }

    /// Reads what has come to the socket and opens it in `scratch`, which has at least `SCRATCH_BYTES`. Empty is the end;
    /// `WouldBlock` is everything that is not a whole record yet.
    pub(super) fn try_read<'a>(&mut self, socket: &TcpStream, scratch: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let (received, opened) = scratch.split_at_mut(RECEIVED_BYTES);
        let received_len = socket::try_read(socket, received)?;
        let count = self.open_all(&received[..received_len], opened)?;
        // The client may have asked for new keys, which is answered.
        match self.send_sealed(socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        let has_ended = received_len == 0 || self.has_ended;
        if count == 0 && !has_ended { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(&opened[..count]) }
    }

    /// Opens what the socket gave, which may end in the middle of a record.
    fn open_all(&mut self, mut unopened: &[u8], buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while !unopened.is_empty() && self.connection.read_tls(&mut unopened)? > 0 {
            count += self.open(&mut buffer[count..])?;
        }
        Ok(count)
    }
    /// Opens the whole records that were received.
    fn open(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let state = self.connection.process_new_packets().map_err(TlsFailure::Protocol)?;
        self.has_ended = state.peer_has_closed();
        let mut count = 0;
        loop {
            match self.connection.reader().read(&mut buffer[count..]) {
                Ok(0) => return Ok(count),
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the beginning of `bytes` and returns how much that is. After `WouldBlock` the next call must be given the
    /// same bytes, and may be given more: they are sealed already.
    pub(super) fn try_write(&mut self, socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if self.sealed == 0 {
            self.send_sealed(socket)?;
            self.sealed = self.connection.writer().write(bytes)?;
        }
        self.send_sealed(socket)?;
        Ok(std::mem::take(&mut self.sealed))
    }

    /// Tells the client that nothing more comes, as far as the socket takes it.
    pub(super) fn say_end(&mut self, socket: &TcpStream) {
        self.connection.send_close_notify();
        let _ = self.send_sealed(socket);
    }

    /// True if something is sealed that the socket has not taken.
    pub(super) fn has_sealed(&self) -> bool {
        self.connection.wants_write()
    }

    pub(super) fn send_sealed(&mut self, socket: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut RawSocket(socket))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsSession").field("sealed", &self.sealed).finish_non_exhaustive()
    }
}
