//! Takes connections, on every port for clients, and gives them to the workers in turn.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::tasks;
use crate::config::PortProtocol;
use crate::engine::EngineHandle;
use crate::observability::operator::Operator;
use crate::observability::word_thread::WordThread;
use crate::shared::Shared;
use crate::threads::spawn;

/// Pause before the next try when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// A port for clients.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) listener: TcpListener,
    pub(crate) protocol: PortProtocol,
}

/// A connection that nobody has looked at yet.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) socket: TcpStream,
    /// Protocol of its port.
    pub(super) protocol: PortProtocol,
}

/// Starts the workers and the thread that feeds them. They end after `Shared::stop`.
pub(crate) fn start(ports: Vec<Port>, shared: &Arc<Shared>, engine: &EngineHandle) -> Vec<JoinHandle<()>> {
    let (words, word_thread) = WordThread::start(Operator::new(shared, engine));
    let spawn_worker = |number| {
        let (sender, sockets) = unbounded_channel();
        let (shared, engine, words) = (shared.clone(), engine.clone(), words.clone());
        let run = move || tasks::run(number, shared, engine, words, sockets);
        (sender, spawn(format!("worker-{number}"), run))
    };
    let (senders, mut threads): (Vec<_>, Vec<_>) =
        (0..shared.config.worker_count()).map(spawn_worker).unzip();
    threads.push(word_thread);
    let shared = shared.clone();
    threads.push(spawn("listener", move || accept_all(&ports, &senders, &shared)));
    threads
}

fn accept_all(ports: &[Port], workers: &[UnboundedSender<Accepted>], shared: &Shared) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the operating system gives the listener its event queue");
    // There is a second port at most, for TLS.
    let accept_on_all = async {
        match ports {
            [port] => accept(port, workers).await,
            [port, other] => {
                tokio::join!(accept(port, workers), accept(other, workers));
            }
            ports => panic!("clients have one port or two, not {}", ports.len()),
        }
    };
    runtime.block_on(async {
        tokio::select! {
            biased;
            () = shared.stopped() => {}
            () = accept_on_all => {}
        }
    });
}

async fn accept(port: &Port, workers: &[UnboundedSender<Accepted>]) {
    let listener = async_listener(&port.listener).expect("a listening socket can be polled");
    let mut next = workers.iter().cycle();
    loop {
        match listener.accept().await.and_then(|(socket, _)| socket.into_std()) {
            Ok(socket) => {
                let accepted = Accepted { socket, protocol: port.protocol };
                // The worker is gone only if the member stops.
                let _ = next.next().expect("there is at least one worker").send(accepted);
            }
            Err(error) => {
                tracing::warn!(%error, "client connection not accepted");
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

fn async_listener(listener: &TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener.try_clone()?)
}
