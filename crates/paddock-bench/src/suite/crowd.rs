//! Sessions that are open and do nothing but stay alive, and the watches that they have set.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::line::Line;
use super::process::{open_files_max, system};
use crate::BenchError;

/// Sessions that are opened at once: more would overflow the queue of a listener, which is 50 long in ZooKeeper, and
/// each that does not fit waits for a second.
const OPENING_MAX: usize = 32;
/// Watches that a session sets before it is the next one's turn: none may be silent for too long.
const TURN: usize = 10_000;
/// Files that a server or this program has open besides.
const OTHER_FILES: u64 = 200;
/// For how long sessions are left alone: much less than their timeout.
const TEND: Duration = Duration::from_secs(8);
/// Each second one in so many sessions is kept alive.
const PARTS: usize = 8;

#[derive(Debug)]
pub(super) struct Crowd {
    addresses: Vec<SocketAddr>,
    lines: Vec<Line>,
    /// When all of them were last said to be alive.
    tended: Instant,
}

impl Crowd {
    pub(super) fn new(addresses: &[SocketAddr]) -> Crowd {
        Crowd { addresses: addresses.to_vec(), lines: Vec::new(), tended: Instant::now() }
    }

    /// Opens sessions until there are `count`, spread over the members; false if the user stopped it.
    pub(super) fn grow(&mut self, count: usize, stop: &AtomicBool) -> Result<bool, BenchError> {
        let most = open_files_max().saturating_sub(OTHER_FILES);
        if count as u64 > most {
            return Err(BenchError::Usage(format!(
                "{count} connections need more open files than the {most} that the system allows: raise `ulimit -n`"
            )));
        }
        while self.lines.len() < count {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.tend()?;
            let first = self.lines.len();
            self.open(OPENING_MAX.min(count - first)).map_err(system("open idle sessions"))?;
        }
        Ok(true)
    }

    fn open(&mut self, count: usize) -> io::Result<()> {
        let first = self.lines.len();
        for number in first..first + count {
            self.lines.push(Line::connect(self.addresses[number % self.addresses.len()])?);
        }
        self.lines[first..].iter_mut().try_for_each(Line::greeted)
    }

    /// Lets each of the sessions from `first` on watch so many znodes: `path` names them by session and number.
    pub(super) fn watch(
        &mut self,
        first: usize,
        numbers: Range<usize>,
        path: impl Fn(usize, usize) -> String,
        stop: &AtomicBool,
    ) -> Result<bool, BenchError> {
        let end = numbers.end;
        for start in numbers.step_by(TURN) {
            self.tend()?;
            for (session, line) in self.lines.iter_mut().enumerate().skip(first) {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                let turn = start..end.min(start + TURN);
                line.pipeline(turn, |request, number| request.get(&path(session, number), true))
                    .map_err(system("set watches"))?;
            }
        }
        Ok(true)
    }

    /// Keeps those that are open alive while there is more to do.
    fn tend(&mut self) -> Result<(), BenchError> {
        if self.tended.elapsed() > TEND { self.ping() } else { Ok(()) }
    }

    /// Says of every session that it is alive.
    pub(super) fn ping(&mut self) -> Result<(), BenchError> {
        self.tended = Instant::now();
        self.lines.iter_mut().try_for_each(Line::ping).map_err(system("keep idle sessions alive"))
    }

    /// Keeps the sessions alive until the value is ended or dropped.
    pub(super) fn stay(self) -> Result<Staying, BenchError> {
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let thread = thread::Builder::new().name("bench-idle".to_owned());
        let thread = thread.spawn(move || keep_alive(self, &stopped));
        Ok(Staying { stop, thread: thread.map_err(system("start a thread of the bench"))? })
    }
}

/// A crowd whose sessions are kept alive meanwhile.
#[derive(Debug)]
pub(super) struct Staying {
    stop: Sender<()>,
    thread: JoinHandle<Result<(), BenchError>>,
}

impl Staying {
    /// An error if any of the sessions was lost.
    pub(super) fn end(self) -> Result<(), BenchError> {
        drop(self.stop);
        self.thread.join().expect("the thread of idle sessions does not panic")
    }
}

fn keep_alive(mut crowd: Crowd, stopped: &Receiver<()>) -> Result<(), BenchError> {
    let mut part = 0;
    while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        let mut lines = crowd.lines.iter_mut().skip(part).step_by(PARTS);
        lines.try_for_each(Line::ping).map_err(system("keep idle sessions alive"))?;
        part = (part + 1) % PARTS;
    }
    crowd.ping()
}
