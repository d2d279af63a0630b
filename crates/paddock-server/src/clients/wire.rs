//! The socket of one connection, as its task and its worker share it.

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Poll, Waker};

use paddock_front::{Front, Host};
use paddock_state::ConnId;
use tokio::net::TcpStream;

/// Wakes one task of the same thread.
#[derive(Debug, Default)]
struct Wakeup {
    is_due: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl Wakeup {
    fn give(&self) {
        self.is_due.set(true);
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }

    /// True if it was given since it was asked last. If not, the task is woken when it is.
    fn poll(&self, context: &Context<'_>) -> bool {
        let is_due = self.is_due.take();
        let mut waiting = self.waiting.borrow_mut();
        if !is_due && !waiting.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waiting = Some(context.waker().clone());
        }
        is_due
    }
}

/// Event of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// There is something to read.
    ToRead,
    /// There is room to write, or the worker has changed something.
    ToLook,
    /// The socket is broken.
    Broken,
}

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) conn: ConnId,
    pub(super) socket: TcpStream,
    /// The worker is about to flush it, with others.
    pub(super) waits_for_flush: Cell<bool>,
    wakeup: Wakeup,
}

impl Wire {
    pub(super) fn new(conn: ConnId, socket: TcpStream) -> Wire {
        Wire { conn, socket, waits_for_flush: Cell::new(false), wakeup: Wakeup::default() }
    }

    /// Lets the task look again at its connection.
    pub(super) fn wake(&self) {
        self.wakeup.give();
    }

    /// Waits until the worker wakes the task, or the socket is ready for what is wanted.
    pub(super) fn poll_ready(&self, context: &mut Context<'_>, reads: bool, writes: bool) -> Poll<Ready> {
        if self.wakeup.poll(context) {
            return Poll::Ready(Ready::ToLook);
        }
        let when = |ready: io::Result<()>, then| if ready.is_ok() { then } else { Ready::Broken };
        if reads && let Poll::Ready(ready) = self.socket.poll_read_ready(context) {
            return Poll::Ready(when(ready, Ready::ToRead));
        }
        if writes && let Poll::Ready(ready) = self.socket.poll_write_ready(context) {
            return Poll::Ready(when(ready, Ready::ToLook));
        }
        Poll::Pending
    }

    /// Writes what the socket takes. Returns false if it does not take all: then the task has to wait until it does.
    pub(super) fn flush<H: Host>(&self, front: &mut Front<H>) -> bool {
        match front.send(self.conn, |bytes| self.socket.try_write(bytes)) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                front.abandon(self.conn);
                self.wake();
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn a_wakeup_is_taken_once_and_wakes_who_waits() {
        struct Woken(AtomicUsize);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Woken>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let woken = Arc::new(Woken(0.into()));
        let waker = Waker::from(woken.clone());
        let context = Context::from_waker(&waker);
        let wakeup = Wakeup::default();
        wakeup.give();
        assert!(wakeup.poll(&context), "it was given before anybody waited");
        assert!(!wakeup.poll(&context));
        wakeup.give();
        wakeup.give();
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(wakeup.poll(&context));
        assert!(!wakeup.poll(&context));
    }
}
