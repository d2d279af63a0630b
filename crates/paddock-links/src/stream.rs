//! The bytes between two members: the one place that knows what a connection is made of.
//!
//! With TLS a session lies behind a lock, since the sender of a lone message and the links' thread both use the `try_`
//! methods. Without TLS they go to the socket, and there is no lock.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};

use paddock_os::socket;
use paddock_tls::HANDSHAKE;
use parking_lot::Mutex;
use rustls::Connection;
use rustls::pki_types::CertificateDer;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::tls_stream::TlsSession;

#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    session: Option<Box<Mutex<TlsSession>>>,
}

impl Stream {
    pub(super) async fn connect(address: SocketAddr) -> io::Result<Stream> {
        Stream::new(TcpStream::connect(address).await?)
    }

    pub(super) fn accepted(socket: TcpStream) -> io::Result<Stream> {
        Stream::new(socket)
    }

    fn new(socket: TcpStream) -> io::Result<Stream> {
        // A message is complete when it is written: nothing is gained by waiting for more.
        socket.set_nodelay(true)?;
        Ok(Stream { socket, session: None })
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// True if the other side begins as one does that speaks TLS. Takes nothing from what it sent.
    pub(super) async fn begins_with_tls(&self) -> io::Result<bool> {
        let mut first = [0];
        match self.socket.peek(&mut first).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(first == [HANDSHAKE]),
        }
    }

    /// Goes on with TLS.
    pub(super) async fn secure(&mut self, connection: Connection) -> io::Result<()> {
        let session = TlsSession::establish(connection, &self.socket).await?;
        self.session = Some(Box::new(Mutex::new(session)));
        Ok(())
    }

    /// The version of TLS, if there is TLS.
    pub(super) fn tls_version(&self) -> Option<&'static str> {
        self.session.as_ref().map(|session| session.lock().version())
    }

    /// Certificate of the other side, if there is TLS.
    pub(super) fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.session.as_ref()?.lock().certificate().cloned()
    }

    pub(super) async fn ready(&self, interest: Interest) -> io::Result<()> {
        if let (Some(session), true) = (&self.session, interest.is_readable())
            && session.lock().is_readable()
        {
            return Ok(());
        }
        self.socket.ready(interest).await.map(drop)
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.session {
            None => socket::try_read(&self.socket, buffer),
            Some(session) => session.lock().try_read(&self.socket, buffer),
        }
    }

    /// Writes the beginning of `pieces` and returns how much that is. After `WouldBlock` the same bytes must be offered
    /// again, with more behind them or not: TLS has sealed them already.
    pub(super) fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.session {
            None => self.socket.try_write_vectored(pieces),
            Some(session) => session.lock().try_write(&self.socket, pieces),
        }
    }

    pub(super) async fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.try_read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => buffer = &mut buffer[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready(Interest::READABLE).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(&[IoSlice::new(bytes)]) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready(Interest::WRITABLE).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the connection so that the other side gets what was sent: a socket closed with bytes unread would take it
    /// back. Lasts until the other side closes.
    pub(super) async fn say_farewell(&self) -> io::Result<()> {
        socket2::SockRef::from(&self.socket).shutdown(Shutdown::Write)?;
        let mut rest = [0; 64];
        loop {
            // Also lets the thread's other tasks go on, however fast the other side sends.
            self.socket.readable().await?;
            match self.socket.try_read(&mut rest) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}
