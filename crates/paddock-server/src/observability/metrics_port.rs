//! The port for metrics: HTTP, for Prometheus and for whoever asks whether the member serves.
//!
//! It has a thread of its own, and few connections at a time: what is done to it does not touch the clients' ports.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use paddock_replica::Role;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use super::metrics;
use crate::shared::Shared;
use crate::threads::spawn;

/// Connections that are served at a time. More of them wait.
const CONNECTIONS_MAX: usize = 16;
/// Time in which a request has to come.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a whole connection: one request and its answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Pause before the next try when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The thread that serves the port.
#[derive(Debug)]
pub(crate) struct MetricsPort {
    address: SocketAddr,
    thread: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl MetricsPort {
    pub(crate) fn start(listener: TcpListener, address: SocketAddr, shared: &Arc<Shared>) -> MetricsPort {
        let (stop, stopped) = oneshot::channel();
        let shared = shared.clone();
        let thread = spawn("metrics", move || run(&listener, &shared, stopped));
        tracing::info!(%address, "serving metrics at /metrics, and whether the member serves at /ready");
        MetricsPort { address, thread, stop }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread. Returns false if it has panicked.
    pub(crate) fn stop(self) -> bool {
        drop(self.stop);
        self.thread.join().is_ok()
    }
}

fn run(listener: &TcpListener, shared: &Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the operating system gives the port for metrics its event queue");
    runtime.block_on(async {
        tokio::select! {
            _ = stopped => {}
            () = accept(listener, shared) => {}
        }
    });
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let listener = listener.try_clone().and_then(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    let listener = listener.expect("a listening socket can be polled");
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = room.clone().acquire_owned().await.expect("it is never closed");
        match listener.accept().await {
            Ok((socket, _)) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    serve(socket, &shared).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "connection to the port for metrics not accepted");
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

async fn serve(socket: TcpStream, shared: &Shared) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(request.method(), request.uri().path(), shared);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), service);
    match tokio::time::timeout(CONNECTION_TIMEOUT, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "connection to the port for metrics ended"),
        Err(_) => tracing::debug!("connection to the port for metrics took too long"),
    }
}

fn answer(method: &Method, path: &str, shared: &Shared) -> Response<String> {
    let is_known = matches!(path, "/metrics" | "/ready" | "/alive");
    if !is_known {
        return text(StatusCode::NOT_FOUND, "There are /metrics, /ready and /alive.\n");
    }
    if ![Method::GET, Method::HEAD].contains(method) {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are answered.\n");
        refused.headers_mut().insert(ALLOW, "GET, HEAD".parse().expect("a plain text"));
        return refused;
    }
    match path {
        "/metrics" => {
            let mut page = text(StatusCode::OK, metrics::page(shared));
            page.headers_mut().insert(CONTENT_TYPE, TEXT_FORMAT.parse().expect("a plain text"));
            page
        }
        "/ready" if shared.role() == Role::Looking || shared.is_stopping() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "no quorum\n")
        }
        _ => text(StatusCode::OK, "ok\n"),
    }
}

fn text(status: StatusCode, body: impl Into<String>) -> Response<String> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
}
