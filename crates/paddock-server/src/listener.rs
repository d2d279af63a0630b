//! Takes connections and gives them to the workers in turn.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::server::{spawn, spawn_worker};
use crate::shared::Shared;

/// How many connections may wait to be taken.
const BACKLOG: i32 = 1024;
/// How long to wait when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // [::] means every address, of the older kind too.
        socket.set_only_v6(false)?;
    }
    // A restarted member takes its port back at once.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Starts the workers and the thread that feeds them. They end after `Shared::stop`.
pub(crate) fn start(listener: TcpListener, shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let (senders, mut threads): (Vec<_>, Vec<_>) = (0..shared.config.worker_count())
        .map(|number| {
            let (sender, receiver) = unbounded_channel();
            (sender, spawn_worker(number, shared, receiver))
        })
        .unzip();
    let shared = shared.clone();
    threads.push(spawn("listener", move || accept(&listener, &senders, &shared)));
    threads
}

fn accept(listener: &TcpListener, workers: &[UnboundedSender<TcpStream>], shared: &Shared) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the operating system gives the listener its event queue");
    runtime.block_on(async {
        let listener = async_listener(listener).expect("a listening socket can be polled");
        let mut next = workers.iter().cycle();
        while let Some(accepted) = next_connection(&listener, shared).await {
            match accepted {
                Ok(socket) => {
                    // The worker is gone only if the member stops.
                    let _ = next.next().expect("there is at least one worker").send(socket);
                }
                Err(error) => {
                    tracing::warn!(%error, "connection not taken");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            }
        }
    });
}

fn async_listener(listener: &TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener.try_clone()?)
}

/// `None` when the member stops.
async fn next_connection(
    listener: &tokio::net::TcpListener,
    shared: &Shared,
) -> Option<io::Result<TcpStream>> {
    tokio::select! {
        biased;
        () = shared.stopped() => None,
        accepted = listener.accept() => Some(accepted.and_then(|(socket, _)| socket.into_std())),
    }
}
