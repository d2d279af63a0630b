//! The end of a server: it drains, it stops, and it may have failed.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::ServerError;

#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    /// Set once, before anything else of a shutdown: clients had better go to other members.
    draining: AtomicBool,
    /// Set once: no new connection, no new request.
    stopping: AtomicBool,
    stop_listening: Notify,
    /// Reason for which the member has to end, if a thread has found one that is not its own end.
    failure: Mutex<Option<ServerError>>,
}

impl Lifecycle {
    /// The member cannot go on.
    pub(crate) fn fail(&self, error: ServerError) {
        self.failure.lock().get_or_insert(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().is_some()
    }

    pub(crate) fn take_failure(&self) -> Option<ServerError> {
        self.failure.lock().take()
    }

    /// True once the member is about to stop, while it serves its clients still.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) fn begin_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop_listening.notify_one();
    }

    /// Returns when the listener has to stop.
    pub(crate) async fn stopped(&self) {
        self.stop_listening.notified().await;
    }
}
