//! TLS at an HTTP port: whether a connection speaks it, and its handshake.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use paddock_proto::Id;
use paddock_tls::{ClientPort, HANDSHAKE};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Time from the begin of a connection to the end of its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// TLS of a port.
#[derive(Clone, Debug)]
pub struct HttpTls {
    /// Key, certificates, and whose certificates are taken.
    pub keys: Arc<ClientPort>,
    /// True if plaintext is refused.
    pub is_required: bool,
}

/// A connection as its peer began it.
pub(super) enum Opened {
    Plaintext(TcpStream),
    Tls {
        stream: Box<TlsStream<TcpStream>>,
        /// Identities that the peer's certificate proves.
        ids: Vec<Id>,
    },
}

impl HttpTls {
    /// Finds out what the peer speaks. With TLS, shakes hands.
    pub(super) async fn open(&self, socket: TcpStream) -> io::Result<Opened> {
        let opened = timeout(HANDSHAKE_TIMEOUT, self.begin(socket)).await;
        opened.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "there was no handshake in time"))?
    }

    async fn begin(&self, socket: TcpStream) -> io::Result<Opened> {
        let mut first = [0];
        if socket.peek(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if first != [HANDSHAKE] {
            return Ok(Opened::Plaintext(socket));
        }
        let stream = TlsAcceptor::from(self.keys.accepting()).accept(socket).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let ids = certificate.map(|certificate| self.keys.identities(certificate)).unwrap_or_default();
        Ok(Opened::Tls { stream: Box::new(stream), ids })
    }
}
