//! The tasks of a worker's thread.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use paddock_state::TOUCH_DELAY_MS;
use paddock_tls::ClientFailure;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;

use super::group_commit::WAIT_MAX;
use super::listener::Accepted;
use super::serve::serve;
use super::welcome::{Welcome, welcome};
use super::wire::Wire;
use super::worker::{Admitted, Worker};
use crate::config::PortProtocol;
use crate::engines::EngineHandle;
use crate::reports::word_thread::WordThread;
use crate::server_limit::ServerLimit;
use crate::shared::Shared;

/// Time between two reports of sessions that were heard; well within what expiry allows for.
const REPORT_INTERVAL: Duration = Duration::from_millis(TOUCH_DELAY_MS / 2);
/// Time that clients may take to read their last answers when the member stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a worker until the member stops and its last connection has ended.
pub(super) fn run(
    number: usize,
    shared: Arc<Shared>,
    engine: EngineHandle,
    words: WordThread,
    sockets: UnboundedReceiver<Accepted>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the operating system gives a worker its event queue");
    let worker = Rc::new(Worker::new(number, shared, engine, words));
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        tokio::task::spawn_local(report_heard(worker.clone()));
        tokio::task::spawn_local(gather(worker.clone()));
        tokio::task::spawn_local(send_together(worker.clone()));
        tokio::task::spawn_local(accept(worker.clone(), sockets));
        deliver_mail(&worker).await;
    });
}

/// Takes new connections in.
async fn accept(worker: Rc<Worker>, mut sockets: UnboundedReceiver<Accepted>) {
    while let Some(Accepted { socket, protocol }) = sockets.recv().await {
        let admitted = match worker.admit(socket) {
            Ok(Some(admitted)) => admitted,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, "client connection not accepted");
                continue;
            }
        };
        match &worker.shared().opened.client_port {
            Some(_) if protocol != PortProtocol::Plaintext => {
                tokio::task::spawn_local(welcome_and_serve(admitted, protocol, worker.clone()));
            }
            _ => {
                let wire = worker.open(admitted, None, &[]);
                tokio::task::spawn_local(serve_to_the_end(wire, worker.clone()));
            }
        }
    }
}

async fn serve_to_the_end(wire: Rc<Wire>, worker: Rc<Worker>) {
    let conn = wire.conn;
    serve(wire, worker.clone()).await;
    worker.leave(conn);
}

/// Serves a connection to a port that takes TLS.
async fn welcome_and_serve(admitted: Admitted, protocol: PortProtocol, worker: Rc<Worker>) {
    let port =
        worker.shared().opened.client_port.as_ref().expect("a port that takes TLS has keys and certificates");
    let Some(_handshake) = Handshake::begin(worker.shared()) else {
        worker.shared().hit(ServerLimit::Handshakes, admitted.address, &"");
        return worker.dismiss(admitted.conn);
    };
    let (wire, early) = match Box::pin(welcome(&admitted.socket, protocol, port)).await {
        Ok(Welcome::Plaintext) => (worker.open(admitted, None, &[]), Vec::new()),
        Ok(Welcome::Tls { session, ids, early }) => (worker.open(admitted, Some(*session), &ids), early),
        Err(failure) => {
            log_failure(&failure, admitted.address, &worker);
            return worker.dismiss(admitted.conn);
        }
    };
    if !early.is_empty() {
        worker.receive(&wire, &early);
    }
    drop((early, _handshake));
    Box::pin(serve_to_the_end(wire, worker)).await;
}

/// A TLS handshake under way, from the connection's first moment on.
struct Handshake<'a>(&'a AtomicU32);

impl Handshake<'_> {
    /// `None` if there are as many as there may be.
    fn begin(shared: &Shared) -> Option<Handshake<'_>> {
        let handshake = Handshake(&shared.statistics.clients.handshakes);
        let max = shared.settings().client_limits.handshakes_max;
        let others = shared.statistics.clients.handshakes.fetch_add(1, Relaxed);
        (max == 0 || others < max).then_some(handshake)
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn log_failure(failure: &ClientFailure, client: SocketAddr, worker: &Worker) {
    match failure {
        ClientFailure::Gone => {
            tracing::debug!(%client, "a connection to a port for TLS ended without a byte")
        }
        reason => worker.shared().hit(ServerLimit::TlsFailure, client, reason),
    }
}

/// Delivers what the engine sends. When the member stops, goes on until no connection is left that waits for an answer.
async fn deliver_mail(worker: &Rc<Worker>) {
    let mailbox = || worker.shared().mailboxes.of(worker.number);
    while !worker.shared().life.is_stopping() {
        mailbox().woken().await;
        worker.renew_settings();
        worker.deliver();
    }
    let drained = async {
        while worker.connections() > 0 {
            worker.wake_all();
            mailbox().woken().await;
            worker.deliver();
        }
    };
    if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        tracing::warn!(
            connections = worker.connections(),
            "closed connections of clients that do not read their replies"
        );
    }
}

/// Reports the sessions that were heard, and closes connections when the member has lost contact to a quorum. While nothing is heard the thread
/// sleeps for as long as connections need not be looked at.
async fn report_heard(worker: Rc<Worker>) {
    loop {
        match worker.patience() {
            None => {
                worker.heard().await;
                tokio::time::sleep(REPORT_INTERVAL).await;
            }
            Some(patience) => tokio::select! {
                () = worker.heard() => tokio::time::sleep(REPORT_INTERVAL).await,
                () = tokio::time::sleep(patience.max(REPORT_INTERVAL)) => {}
            },
        }
        worker.report_heard();
    }
}

/// Gathers writes whenever a turn has begun that, and lets the engine commit them together.
async fn gather(worker: Rc<Worker>) {
    loop {
        worker.group_commit.begun().await;
        let start = Instant::now();
        loop {
            let before = worker.gathered();
            // All connections that have something to read have their turn now.
            tokio::task::yield_now().await;
            let gathered = worker.gathered();
            let has_grown = gathered > before;
            let has_all = worker.outstanding().has_all(gathered);
            let may_grow = has_grown || !has_all && start.elapsed() < WAIT_MAX;
            if gathered == 0 || !may_grow {
                break;
            }
        }
        worker.work_off();
    }
}

/// Sends replies whenever some wait, behind the turns of those connections that were ready with them.
async fn send_together(worker: Rc<Worker>) {
    loop {
        worker.flush_queue.wait().await;
        worker.flush_waiting();
    }
}
