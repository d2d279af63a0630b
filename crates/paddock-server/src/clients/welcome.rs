//! The beginning of a connection on a port that takes TLS: from its first byte to the end of the handshake.

use std::time::Duration;

use paddock_proto::Id;
use paddock_tls::{ClientFailure, ClientPort, HANDSHAKE, TlsFailure};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tls_session::TlsSession;
use crate::config::PortProtocol;

/// Time in milliseconds for the handshake, from its first byte on.
const HANDSHAKE_TIMEOUT_MS: u64 = 10_000;

/// A connection as its client began it.
#[derive(Debug)]
pub(super) enum Welcome {
    Plaintext,
    Tls {
        session: Box<TlsSession>,
        /// Identities that the client's certificate proves.
        ids: Vec<Id>,
        /// Bytes that came with the end of the handshake.
        early: Vec<u8>,
    },
}

/// Finds out what a client speaks. With TLS, shakes hands.
pub(super) async fn welcome(
    socket: &TcpStream,
    protocol: PortProtocol,
    port: &ClientPort,
) -> Result<Welcome, ClientFailure> {
    let detection_ms = port.settings().detection_timeout_ms;
    let begins_with_tls = timeout(Duration::from_millis(detection_ms), begins_with_tls(socket));
    let begins_with_tls = begins_with_tls.await.map_err(|_| ClientFailure::Silent(detection_ms))??;
    match protocol {
        PortProtocol::Tls if !begins_with_tls => return Err(ClientFailure::Plaintext),
        PortProtocol::Plaintext | PortProtocol::Either if !begins_with_tls => return Ok(Welcome::Plaintext),
        _ => {}
    }
    let establish = TlsSession::establish(port.answer()?, socket);
    let established = timeout(Duration::from_millis(HANDSHAKE_TIMEOUT_MS), establish).await;
    let mut session = established.map_err(|_| ClientFailure::Slow(HANDSHAKE_TIMEOUT_MS))??;
    let ids = identify(&session, socket, port)?;
    let early = session.take_early().map_err(TlsFailure::Cut)?;
    Ok(Welcome::Tls { session: Box::new(session), ids, early })
}

/// True if the client's first byte is one of TLS. Takes nothing from what it sent.
async fn begins_with_tls(socket: &TcpStream) -> Result<bool, ClientFailure> {
    let mut first = [0];
    match socket.peek(&mut first).await.map_err(TlsFailure::Cut)? {
        0 => Err(ClientFailure::Gone),
        _ => Ok(first == [HANDSHAKE]),
    }
}

/// The identities of the client's certificate, if it has one.
fn identify(session: &TlsSession, socket: &TcpStream, port: &ClientPort) -> Result<Vec<Id>, ClientFailure> {
    let Some(certificate) = session.certificate() else { return Ok(Vec::new()) };
    let address = socket.peer_addr().map_err(TlsFailure::Cut)?.ip();
    port.check_address(certificate, address)?;
    Ok(port.identities(certificate))
}

#[cfg(test)]
mod tests;
