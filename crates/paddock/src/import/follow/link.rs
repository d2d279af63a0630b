//! A connection to a leader, read and answered by a thread of its own: a leader cuts an observer that answers late, however long the disk
//! takes. What was received and not yet taken waits in memory.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use paddock_files::{Event, LearnerError, LearnerStream, Problem};
use paddock_proto::Zxid;
use paddock_sasl::LoginExchange;

use super::source::Dialed;

pub(super) enum Notice {
    /// Znodes of a snapshot so far.
    Znodes(u64),
    Heard(Event),
    /// The last one.
    Ended(LearnerError),
}

pub(super) struct Link {
    pub(super) notices: Receiver<Notice>,
    socket: Option<TcpStream>,
}

impl Link {
    /// Greets the leader at the other end, as one that has everything up to `last`.
    pub(super) fn begin(dialed: Dialed, epoch: i64, last: Zxid) -> Link {
        let (sender, notices) = channel();
        let kept = dialed.socket.try_clone().ok();
        thread::spawn(move || {
            let Dialed { socket, tls, login } = dialed;
            let login = login.as_ref();
            let error = match tls {
                None => converse(socket, login, epoch, last, &sender),
                Some((tls, host)) => match tls.call(&host, socket) {
                    Ok(socket) => converse(socket, login, epoch, last, &sender),
                    Err(error) => LearnerError::Lost(Problem::Io(error)),
                },
            };
            // Nobody may wait for it any more.
            let _ = sender.send(Notice::Ended(error));
        });
        Link { notices, socket: kept }
    }
}

impl Drop for Link {
    /// The thread ends with its connection.
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Listens until the connection ends; returns the reason.
fn converse(
    socket: impl Read + Write,
    login: Option<&LoginExchange>,
    epoch: i64,
    last: Zxid,
    sender: &Sender<Notice>,
) -> LearnerError {
    let mut stream = match LearnerStream::greet(socket, login, epoch, last) {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    loop {
        let mut progress = |znodes| {
            let _ = sender.send(Notice::Znodes(znodes));
        };
        match stream.next(&mut progress) {
            Ok(Event::Nothing) => {}
            Ok(event) => {
                let _ = sender.send(Notice::Heard(event));
            }
            Err(error) => return error,
        }
    }
}
