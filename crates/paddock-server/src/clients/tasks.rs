//! The tasks of a worker's thread.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paddock_state::TOUCH_DELAY_MS;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;

use super::group_commit::WAIT_MAX;
use super::serve::serve;
use super::worker::Worker;
use crate::engine::EngineHandle;
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
    sockets: UnboundedReceiver<std::net::TcpStream>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the operating system gives a worker its event queue");
    let worker = Rc::new(Worker::new(number, shared, engine));
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
async fn accept(worker: Rc<Worker>, mut sockets: UnboundedReceiver<std::net::TcpStream>) {
    while let Some(socket) = sockets.recv().await {
        match worker.admit(socket) {
            Ok(Some(wire)) => {
                let worker = worker.clone();
                tokio::task::spawn_local(async move {
                    let conn = wire.conn;
                    serve(wire, worker.clone()).await;
                    worker.leave(conn);
                });
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "client connection not accepted"),
        }
    }
}

/// Delivers what the engine sends. When the member stops, goes on until nobody is left who waits for an answer.
async fn deliver_mail(worker: &Rc<Worker>) {
    let mailbox = || worker.shared().mailbox(worker.number);
    while !worker.shared().is_stopping() {
        mailbox().woken().await;
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

/// Reports the sessions that were heard, and closes connections when the member has lost contact to a quorum.
async fn report_heard(worker: Rc<Worker>) {
    let mut interval = tokio::time::interval(REPORT_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
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
