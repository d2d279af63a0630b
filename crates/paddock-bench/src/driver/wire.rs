//! The socket of a session, with TLS or without. It never waits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;

pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsWire>),
}

pub(crate) struct TlsWire {
    socket: TcpStream,
    connection: ClientConnection,
}

impl Wire {
    /// Begins to connect. Bytes that are written meanwhile leave when the connection is there.
    pub(crate) fn connect(
        address: SocketAddr,
        tls: Option<ClientConnection>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Wire> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(match tls {
            None => Wire::Plain(socket),
            Some(connection) => Wire::Tls(Box::new(TlsWire { socket, connection })),
        })
    }

    /// True if a read that does not fill its buffer has taken all that the socket had.
    pub(crate) fn short_read_is_all(&self) -> bool {
        matches!(self, Wire::Plain(_))
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(socket) => socket.read(buffer),
            Wire::Tls(wire) => wire.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(socket) => socket.write(bytes),
            Wire::Tls(wire) => wire.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsWire {
    /// Reads what is opened, and what the socket has if nothing is. What was sealed before leaves first, as far as the socket takes it;
    /// if it takes nothing, reading goes on all the same: a server that is not read from may not read either.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.send_sealed()?;
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.connection.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            if let Err(error) = self.connection.process_new_packets() {
                // The server is told why, as far as the socket takes it.
                let _ = self.connection.write_tls(&mut self.socket);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Seals the beginning of `bytes`, as much as the library keeps, and sends what the socket takes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_sealed()?;
        let len = self.connection.writer().write(bytes)?;
        if len == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.send_sealed()?;
        Ok(len)
    }

    fn send_sealed(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_not_ready(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A socket that is not ready, or whose connection is still being made.
pub(crate) fn is_not_ready(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}
