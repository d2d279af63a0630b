//! A connection to a leader, read and answered by a thread of its own: a leader cuts an observer that answers late, however long the disk
//! takes. What was received and not yet taken waits in memory. Others may write to it, too.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use paddock_files::{Event, LearnerError, LearnerStream, Problem, TouchedSessions};
use paddock_proto::Zxid;
use paddock_sasl::LoginExchange;

use super::source::Dialed;

pub(super) enum Notice {
    /// The writing side, which others may use once the leader has sent everything.
    Opened(SharedWriter),
    /// Znodes of a snapshot so far.
    Znodes(u64),
    Heard(Event),
    /// The last one.
    Ended(LearnerError),
}

/// The writing side of a connection. Each write of it is whole: those of several threads do not mix.
#[derive(Clone)]
pub(super) struct SharedWriter(Arc<Mutex<Box<dyn Write + Send>>>);

impl SharedWriter {
    fn new(writer: impl Write + Send + 'static) -> SharedWriter {
        SharedWriter(Arc::new(Mutex::new(Box::new(writer))))
    }
}

impl Write for SharedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// Both sides, for the thread that reads.
struct Duplex<R> {
    reader: R,
    writer: SharedWriter,
}

impl<R: Read> Read for Duplex<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl<R> Write for Duplex<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

pub(super) struct FollowedLink {
    pub(super) notices: Receiver<Notice>,
    /// Sessions of which the leader is told.
    pub(super) touched: TouchedSessions,
    socket: Option<TcpStream>,
}

impl FollowedLink {
    /// Greets the leader at the other end, as one that has everything up to `last`.
    pub(super) fn begin(dialed: Dialed, epoch: i64, last: Zxid) -> FollowedLink {
        let (sender, notices) = channel();
        let kept = dialed.socket.try_clone().ok();
        let touched = TouchedSessions::default();
        let conversation = Conversation { epoch, last, touched: touched.clone(), sender: sender.clone() };
        thread::spawn(move || {
            let Err(error) = conversation.hold(dialed);
            // The receiver may be gone by then.
            let _ = sender.send(Notice::Ended(error));
        });
        FollowedLink { notices, touched, socket: kept }
    }
}

impl Drop for FollowedLink {
    /// The thread ends with its connection.
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// No value: a conversation ends with an error.
enum Never {}

struct Conversation {
    epoch: i64,
    last: Zxid,
    touched: TouchedSessions,
    sender: Sender<Notice>,
}

impl Conversation {
    /// Listens until the connection ends; returns the reason.
    fn hold(&self, dialed: Dialed) -> Result<Never, LearnerError> {
        let lost = |error| LearnerError::Lost(Problem::Io(error));
        let Dialed { socket, tls, login } = dialed;
        match tls {
            None => {
                let writer = SharedWriter::new(socket.try_clone().map_err(lost)?);
                self.listen(Duplex { reader: socket, writer }, login.as_ref())
            }
            Some((tls, host)) => {
                let reader = tls.call(&host, socket).map_err(lost)?;
                let writer = SharedWriter::new(reader.writer().map_err(lost)?);
                self.listen(Duplex { reader, writer }, login.as_ref())
            }
        }
    }

    fn listen<R: Read>(
        &self,
        duplex: Duplex<R>,
        login: Option<&LoginExchange>,
    ) -> Result<Never, LearnerError> {
        let _ = self.sender.send(Notice::Opened(duplex.writer.clone()));
        let mut stream = LearnerStream::greet(duplex, login, self.epoch, self.last)?;
        stream.tell_of(&self.touched);
        let mut progress = |znodes| {
            let _ = self.sender.send(Notice::Znodes(znodes));
        };
        loop {
            match stream.next(&mut progress)? {
                Event::Nothing => {}
                event => {
                    let _ = self.sender.send(Notice::Heard(event));
                }
            }
        }
    }
}
