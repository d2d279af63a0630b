//! One session on a blocking connection: for what is measured one request after the other, and for sessions that idle.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use paddock_proto::jute::Reader;
use paddock_proto::{Extensions, OpCode, Xid, frame};

use crate::BenchError;
use crate::driver::{SessionRequest, response};
use crate::workload::Request;

/// As long as the servers of a suite grant by their defaults.
const SESSION_TIMEOUT: Duration = Duration::from_secs(40);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Few enough that neither side waits for the other to read.
const IN_FLIGHT: usize = 500;
const ANSWER_BYTES_MAX: i32 = 16 << 20;

#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    last_xid: i32,
    /// Bytes that have come and are not handled yet.
    incoming: Vec<u8>,
    handled: usize,
}

impl Line {
    /// Connects and asks for a session; `greeted` is to be called next.
    pub(super) fn connect(address: SocketAddr) -> io::Result<Line> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let mut greeting = Vec::new();
        SessionRequest::new(SESSION_TIMEOUT, Extensions::default()).encode(&mut greeting);
        stream.write_all(&greeting)?;
        Ok(Line { stream, last_xid: 0, incoming: Vec::new(), handled: 0 })
    }

    /// Waits for the session.
    pub(super) fn greeted(&mut self) -> io::Result<()> {
        loop {
            match response(self.unhandled()).map_err(strange)? {
                Some((response, _)) if response.timeout_ms <= 0 => {
                    return Err(strange("it grants no session".to_owned()));
                }
                Some((_, len)) => {
                    self.handled += len;
                    return Ok(());
                }
                None => self.read()?,
            }
        }
    }

    /// A session that is there.
    pub(super) fn open(address: SocketAddr) -> Result<Line, BenchError> {
        let opened = Line::connect(address).and_then(|mut line| line.greeted().and(Ok(line)));
        opened.map_err(|source| BenchError::Connect { host: address.to_string(), source })
    }

    /// Sends a request for each of the numbers and awaits the answers, so many at a time.
    pub(super) fn pipeline(
        &mut self,
        numbers: Range<usize>,
        mut write: impl FnMut(&mut Request<'_>, usize),
    ) -> io::Result<()> {
        let end = numbers.end;
        for start in numbers.step_by(IN_FLIGHT) {
            let chunk = start..end.min(start + IN_FLIGHT);
            chunk.clone().try_for_each(|number| self.send(|request| write(request, number)))?;
            chunk.into_iter().try_for_each(|_| self.answer())?;
        }
        Ok(())
    }

    /// Sends the request that `write` writes.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut Request<'_>)) -> io::Result<()> {
        self.last_xid += 1;
        let mut bytes = Vec::new();
        write(&mut Request::new(&mut bytes, Xid(self.last_xid), Instant::now()));
        self.stream.write_all(&bytes)
    }

    /// Waits for the answer to the oldest request; events and answers to pings are passed over.
    pub(super) fn answer(&mut self) -> io::Result<()> {
        loop {
            match self.next()? {
                (Xid::NOTIFICATION | Xid::PING, _) => {}
                (_, 0) => return Ok(()),
                (_, error) => return Err(strange(format!("it refused a request with error {error}"))),
            }
        }
    }

    /// Keeps the session alive.
    pub(super) fn ping(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        Request::new(&mut bytes, Xid::PING, Instant::now()).write(OpCode::Ping, |_| {});
        self.stream.write_all(&bytes)?;
        while self.next()?.0 != Xid::PING {}
        Ok(())
    }

    /// The request and the error of the next answer.
    fn next(&mut self) -> io::Result<(Xid, i32)> {
        loop {
            let broken = |error: &dyn std::fmt::Display| strange(format!("it answered with {error}"));
            let split = frame::split(self.unhandled(), ANSWER_BYTES_MAX).map_err(|error| broken(&error))?;
            let Some((body, len)) = split else {
                self.read()?;
                continue;
            };
            let mut reader = Reader::new(body);
            let header = reader.i32().and_then(|xid| reader.i64().and(Ok(xid)));
            let header = header.and_then(|xid| Ok((Xid(xid), reader.i32()?)));
            let header = header.map_err(|error| broken(&error))?;
            self.handled += len;
            return Ok(header);
        }
    }

    fn unhandled(&self) -> &[u8] {
        &self.incoming[self.handled..]
    }

    fn read(&mut self) -> io::Result<()> {
        self.incoming.drain(..std::mem::take(&mut self.handled));
        let mut chunk = [0; 16 << 10];
        let len = self.stream.read(&mut chunk)?;
        if len == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        self.incoming.extend_from_slice(&chunk[..len]);
        Ok(())
    }
}

fn strange(what: String) -> io::Error {
    io::Error::other(what)
}
