//! The connection to a server: a socket, with TLS or without.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::tls::{Tls, server_name};

/// A connection, as bytes.
pub struct Stream {
    socket: Socket,
    /// Direction that is tried first by the next `exchange`. They take turns, so neither waits for the other for ever.
    receives_first: bool,
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Number of bytes that went one way.
pub(crate) enum Moved {
    Sent(usize),
    /// None is the end of the connection.
    Received(usize),
}

/// Its bytes are not printed.
impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Stream {
    /// Connects to `server`, which is `host:port`, and shakes hands.
    pub async fn connect(server: &str, tls: Option<&Tls>) -> io::Result<Stream> {
        let socket = TcpStream::connect(server).await?;
        socket.set_nodelay(true)?;
        let socket = match tls {
            None => Socket::Plain(socket),
            Some(tls) => {
                let connector = TlsConnector::from(tls.config.clone());
                Socket::Tls(Box::new(connector.connect(server_name(server)?, socket).await?))
            }
        };
        Ok(Stream { socket, receives_first: true })
    }

    /// The certificate that the server has shown, in DER; `None` without TLS.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        match &self.socket {
            Socket::Plain(_) => None,
            Socket::Tls(socket) => {
                let chain = socket.get_ref().1.peer_certificates()?;
                chain.first().map(|certificate| certificate.as_ref())
            }
        }
    }

    /// Sends the beginning of `outgoing` or appends what has come to `incoming`, whichever can be done. What was sent before is on its
    /// way when this waits.
    pub(crate) async fn exchange(&mut self, incoming: &mut Vec<u8>, outgoing: &[u8]) -> io::Result<Moved> {
        let receives = self.receives_first;
        self.receives_first = !receives;
        poll_fn(|context| {
            let first = self.poll_one(receives, context, incoming, outgoing);
            if first.is_ready() { first } else { self.poll_one(!receives, context, incoming, outgoing) }
        })
        .await
    }

    fn poll_one(
        &mut self,
        receives: bool,
        context: &mut Context<'_>,
        incoming: &mut Vec<u8>,
        outgoing: &[u8],
    ) -> Poll<io::Result<Moved>> {
        if receives {
            return pin!(self.read_buf(incoming)).poll(context).map_ok(Moved::Received);
        }
        if !outgoing.is_empty() {
            return Pin::new(self).poll_write(context, outgoing).map_ok(Moved::Sent);
        }
        match Pin::new(self).poll_flush(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Pending,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Socket::Tls(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Socket::Tls(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_flush(context),
            Socket::Tls(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Socket::Tls(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}
