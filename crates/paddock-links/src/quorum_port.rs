//! The port at which the other members connect, which may have to wait for its address.

use std::net::TcpListener;

use paddock_os::LookUp;
use paddock_os::binding::{self, BindError, ListenAt, PAUSE, Tries};
use paddock_os::socket;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// The place of the port, and the tries to listen there.
#[derive(Debug)]
pub(super) struct QuorumPort {
    pub(super) at: ListenAt,
    pub(super) look_up: LookUp,
    pub(super) tries: Tries,
}

impl QuorumPort {
    pub(super) fn listen(&self) -> Result<Vec<TcpListener>, BindError> {
        binding::listen(
            &self.at,
            |name| self.look_up.find(name),
            |address| {
                let listener = socket::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(listener)
            },
        )
    }
}

/// Listens as soon as that can be done. To be called on a thread that polls sockets.
pub(super) async fn listen_later(mut port: QuorumPort) -> Result<Vec<TcpListener>, BindError> {
    loop {
        sleep(PAUSE).await;
        // Looking up a name blocks.
        let tried = spawn_blocking(move || (port.listen(), port)).await;
        let (listened, returned) = tried.expect("nothing in it panics");
        port = returned;
        match listened {
            Err(error) if port.tries.has_more_after(&error) => {}
            ended => {
                let listeners = ended?;
                let addresses = binding::addresses(&listeners);
                tracing::info!(?addresses, "listening for members: the address is there");
                return Ok(listeners);
            }
        }
    }
}
