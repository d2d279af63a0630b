//! The socket of one connection, as its task and its worker share it.

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Poll, Waker};

use paddock_cross_check::CrossCheck;
use paddock_front::{Front, Host};
use paddock_os::socket;
use paddock_state::ConnId;
use tokio::net::TcpStream;

use super::tls_session::TlsSession;

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

/// Bytes that a flush gives to a socket at most: the replies of a turn of many requests leave in one call, which costs the client less, too.
const FLUSHED_AT_ONCE: usize = 256 << 10;
/// Bytes that each further flush gives until all is sent. A socket of a client that reads nothing may take megabytes, and there may be
/// hundreds of them: others have their turn in between.
const FLUSHED_OF_BACKLOG: usize = 32 << 10;

/// Bytes that a flush may still give to its socket.
struct Ration(usize);

impl Ration {
    /// Lets as many of these bytes be written as are left; an error if none are.
    fn give(&mut self, bytes: &[u8], write: impl FnOnce(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        write(&bytes[..bytes.len().min(self.0)]).inspect(|count| self.0 -= count)
    }
}

/// Bytes between a client and its front. Most connections are idle, so this is as small as a socket.
#[derive(Debug)]
enum Stream {
    Plaintext(TcpStream),
    Tls(Box<(TcpStream, RefCell<TlsSession>)>),
}

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) conn: ConnId,
    stream: Stream,
    /// The worker is about to flush it, with others.
    pub(super) waits_for_flush: Cell<bool>,
    /// The last flush has not sent all.
    has_backlog: Cell<bool>,
    /// The last flush has ended although the socket would have taken more.
    pub(super) was_rationed: Cell<bool>,
    wakeup: Wakeup,
}

impl Wire {
    pub(super) fn new(conn: ConnId, socket: TcpStream, tls: Option<TlsSession>) -> Wire {
        let stream = match tls {
            None => Stream::Plaintext(socket),
            Some(session) => Stream::Tls(Box::new((socket, RefCell::new(session)))),
        };
        Wire {
            conn,
            stream,
            waits_for_flush: Cell::new(false),
            has_backlog: Cell::new(false),
            was_rationed: Cell::new(false),
            wakeup: Wakeup::default(),
        }
    }

    #[inline]
    pub(super) fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plaintext(socket) => socket,
            Stream::Tls(tls) => &tls.0,
        }
    }

    /// Reads what has come, into `scratch`. Empty is the end.
    pub(super) fn try_read<'a>(&self, scratch: &'a mut [u8]) -> io::Result<&'a [u8]> {
        match &self.stream {
            Stream::Plaintext(socket) => socket::try_read(socket, scratch).map(|count| &scratch[..count]),
            Stream::Tls(tls) => tls.1.borrow_mut().try_read(&tls.0, scratch),
        }
    }

    /// True if something was given to the connection that the socket has not taken, beside what the front keeps.
    pub(super) fn has_sealed(&self) -> bool {
        matches!(&self.stream, Stream::Tls(tls) if tls.1.borrow().has_sealed())
    }

    /// Tells the client that nothing more comes. All that there was to send has been sent.
    pub(super) fn say_end(&self) {
        if let Stream::Tls(tls) = &self.stream {
            tls.1.borrow_mut().say_end(&tls.0);
        }
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
        if reads && let Poll::Ready(ready) = self.socket().poll_read_ready(context) {
            return Poll::Ready(when(ready, Ready::ToRead));
        }
        if writes && let Poll::Ready(ready) = self.socket().poll_write_ready(context) {
            return Poll::Ready(when(ready, Ready::ToLook));
        }
        Poll::Pending
    }

    /// Writes what the socket takes, up to [`FLUSHED_AT_ONCE`] or [`FLUSHED_OF_BACKLOG`]. Returns false if that is not all: then the
    /// task has to wait until it takes more, or, if the flush was rationed, until others had their turn.
    pub(super) fn flush<H: Host>(&self, front: &mut Front<H>, check: Option<&CrossCheck>) -> bool {
        let copied = |bytes: &[u8], written: io::Result<usize>| {
            if let (Some(check), Ok(count)) = (check, &written) {
                check.sent(self.conn, &bytes[..*count]);
            }
            written
        };
        let mut ration = Ration(if self.has_backlog.get() { FLUSHED_OF_BACKLOG } else { FLUSHED_AT_ONCE });
        let sent = match &self.stream {
            Stream::Plaintext(socket) => {
                front.send(self.conn, |bytes| ration.give(bytes, |part| copied(part, socket.try_write(part))))
            }
            Stream::Tls(tls) => {
                let mut session = tls.1.borrow_mut();
                let sent = front.send(self.conn, |bytes| {
                    ration.give(bytes, |part| copied(part, session.try_write(&tls.0, part)))
                });
                sent.and_then(|()| session.send_sealed(&tls.0))
            }
        };
        self.has_backlog.set(sent.is_err());
        self.was_rationed.set(sent.is_err() && ration.0 == 0);
        match sent {
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
    fn a_ration_ends() {
        let mut ration = Ration(5);
        let all = |part: &[u8]| Ok(part.len());
        assert_eq!(ration.give(b"abc", all).unwrap(), 3);
        assert!(ration.give(b"abc", |_| Err(io::ErrorKind::ConnectionReset.into())).is_err());
        let mut written = Vec::new();
        let given = ration.give(b"defg", |part| {
            written.extend_from_slice(part);
            Ok(part.len())
        });
        assert_eq!((given.unwrap(), &written[..]), (2, &b"de"[..]));
        assert_eq!(ration.give(b"fg", all).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

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
