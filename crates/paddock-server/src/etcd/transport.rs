//! HTTP/2 to a member of etcd, over TCP alone or with TLS.

use std::io;

use bytes::Bytes;
use h2::Ping;
use h2::client::{Builder, SendRequest};
use paddock_etcd::CallError;
use paddock_tls::{server_name, with_causes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio_rustls::TlsConnector;

use super::channel::lost;
use super::tls::{EtcdTlsFailure, etcd_client};
use crate::config::{EtcdEndpoint, EtcdTls};

/// Bytes that etcd may send ahead of what is read.
const WINDOW_BYTES: u32 = 8 << 20;

/// Advice for a connection with TLS that etcd ends although the handshake was done: so it refuses certificates of TLS 1.3.
const CERTIFICATE_ADVICE: &str =
    "it may want a certificate that its --trusted-ca-file vouches for, by --etcd-cert and --etcd-key";

/// The task that carries a connection, and ends with this.
#[derive(Debug)]
pub(super) struct Carrier {
    task: JoinHandle<Result<(), h2::Error>>,
}

impl Carrier {
    /// Waits for the end of the connection, and tells the reason.
    pub(super) async fn ended(&mut self) -> String {
        match (&mut self.task).await {
            Ok(Ok(())) => "etcd closed it".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connects, and returns when etcd has answered.
pub(super) async fn connect(
    endpoint: &EtcdEndpoint,
    tls: Option<&EtcdTls>,
) -> Result<(SendRequest<Bytes>, Carrier), CallError> {
    let socket = TcpStream::connect(endpoint.authority()).await.map_err(lost)?;
    socket.set_nodelay(true).map_err(lost)?;
    if !endpoint.has_tls() {
        return converse(socket).await.map_err(lost);
    }
    let tls = tls.expect("the settings have TLS if an endpoint has");
    let config = etcd_client(tls).map_err(|error| lost(with_causes(&error)))?;
    let host = server_name(endpoint.host()).map_err(lost)?;
    let secured = TlsConnector::from(config).connect(host, socket).await;
    let secured = secured.map_err(|error: io::Error| lost(EtcdTlsFailure(&error)))?;
    let conversation = converse(secured).await;
    conversation.map_err(|error| lost(format!("etcd ended the connection ({error}): {CERTIFICATE_ADVICE}")))
}

/// Begins HTTP/2. A ping shows that etcd takes the connection: it may have refused the certificate by now.
async fn converse<T>(io: T) -> Result<(SendRequest<Bytes>, Carrier), String>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut builder = Builder::new();
    builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(2 * WINDOW_BYTES);
    let (requests, mut connection) = builder.handshake(io).await.map_err(|error| error.to_string())?;
    let mut pings = connection.ping_pong().expect("nobody has taken it yet");
    let mut carrier = Carrier { task: spawn_local(connection) };
    if pings.ping(Ping::opaque()).await.is_err() {
        return Err(carrier.ended().await);
    }
    Ok((requests, carrier))
}
