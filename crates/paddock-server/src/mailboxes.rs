//! A mailbox for each worker, in which the engine leaves what the worker has to send.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use paddock_state::Outbox;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Mailboxes of all workers, and behind them that of the client inside the member.
#[derive(Debug)]
pub(crate) struct Mailboxes(Vec<Mailbox>);

impl Mailboxes {
    pub(crate) fn new(workers: usize) -> Mailboxes {
        Mailboxes((0..=workers).map(|_| Mailbox::default()).collect())
    }

    /// The mailbox of a worker.
    pub(crate) fn of(&self, worker: usize) -> &Mailbox {
        &self.0[worker]
    }

    /// Number of the mailbox behind those of the workers: that of the client inside the member.
    pub(crate) fn inner_worker(&self) -> usize {
        self.0.len() - 1
    }

    /// Number of mailboxes.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn wake_all(&self) {
        self.0.iter().for_each(Mailbox::wake);
    }
}

#[derive(Debug, Default)]
struct Mail {
    outbox: Outbox,
    /// The time at which some of it was posted, if that is timed.
    posted: Option<Instant>,
}

/// Mailbox in which the engine leaves what a worker has to send.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    has_mail: AtomicBool,
    wake: Notify,
}

impl Mailbox {
    /// Adds to the box. The engine does so before it lets go of the state, so that a worker that has read the state finds
    /// in its box all events that came before. `posted` is the time, if it is to be told how long the mail has waited.
    pub(crate) fn post(&self, mail: &mut Outbox, posted: Option<Instant>) {
        let mut waiting = self.mail.lock();
        waiting.outbox.append(mail);
        waiting.posted = waiting.posted.or(posted);
        drop(waiting);
        self.has_mail.store(true, Ordering::Release);
    }

    /// Nothing is put into the box or taken out as long as this is held.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        self.mail.lock()
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Empties the box into `mail`, which must be empty, and says when some of it was posted, if that is timed. `None` if there was
    /// nothing.
    pub(crate) fn take(&self, mail: &mut Outbox) -> Option<Option<Instant>> {
        assert!(mail.is_empty(), "mail that was not delivered");
        if !self.has_mail.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut waiting = self.mail.lock();
        std::mem::swap(&mut waiting.outbox, mail);
        let posted = waiting.posted.take();
        (!mail.is_empty()).then_some(posted)
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Waits for mail on a thread that the runtime lets functions block on. Returns false if none has come in time.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let runtime = tokio::runtime::Handle::current();
        runtime.block_on(async { tokio::time::timeout(timeout, self.woken()).await.is_ok() })
    }
}
