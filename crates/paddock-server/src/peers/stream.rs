//! The bytes between two members: the one place that knows what a connection is made of.
//!
//! A TLS connection takes the place of the socket here: its handshake goes into `connect` and `accepted`, and its
//! records are sealed and opened behind the `try_` methods, which sender and links' thread both call.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};

use tokio::io::Interest;
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
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
        Ok(Stream { socket })
    }

    pub(super) async fn ready(&self, interest: Interest) -> io::Result<()> {
        self.socket.ready(interest).await.map(drop)
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.try_read(buffer)
    }

    pub(super) fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.try_write_vectored(pieces)
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
            self.read_exact(&mut rest).await?;
        }
    }
}
