//! Takes connections and gives them to the workers in turn.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::tasks;
use crate::engine::EngineHandle;
use crate::shared::Shared;
use crate::threads::spawn;

/// Pause before the next try when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Starts the workers and the thread that feeds them. They end after `Shared::stop`.
pub(crate) fn start(
    listener: TcpListener,
    shared: &Arc<Shared>,
    engine: &EngineHandle,
) -> Vec<JoinHandle<()>> {
    let spawn_worker = |number| {
        let (sender, sockets) = unbounded_channel();
        let (shared, engine) = (shared.clone(), engine.clone());
        (sender, spawn(format!("worker-{number}"), move || tasks::run(number, shared, engine, sockets)))
    };
    let (senders, mut threads): (Vec<_>, Vec<_>) =
        (0..shared.config.worker_count()).map(spawn_worker).unzip();
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
                    tracing::warn!(%error, "client connection not accepted");
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
