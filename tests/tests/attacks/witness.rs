//! A client that behaves, on a thread of its own: it reads and writes a small znode, and each request waits for the one before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paddock_proto::{OpCode, encode, jute::Writer as _};
use paddock_tests::server::Server;

use crate::rude::{Rude, request};

/// Pause between two requests, so that the witness leaves the cores to the server.
const PAUSE: Duration = Duration::from_millis(1);
/// Requests of which one is a write.
const REQUESTS_PER_WRITE: usize = 10;

/// Times that requests took, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) reads: Vec<Duration>,
    pub(crate) writes: Vec<Duration>,
}

impl Waits {
    fn sort(mut self) -> Waits {
        self.reads.sort();
        self.writes.sort();
        self
    }
}

pub(crate) fn p99(waits: &[Duration]) -> Duration {
    waits.get(waits.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
}

pub(crate) fn longest(waits: &[Duration]) -> Duration {
    waits.last().copied().unwrap_or_default()
}

pub(crate) struct Witness {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Waits>,
}

impl Witness {
    /// Begins to ask. The znode `/small` must be there.
    pub(crate) fn start(server: &Server) -> Witness {
        let mut client = Rude::connect(server);
        client.stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it is connected");
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let thread = std::thread::spawn(move || {
            let read = request(1, OpCode::GetData, |out| encode::path_and_watch(out, "/small", false));
            let write = request(1, OpCode::SetData, |out| {
                out.put_string("/small");
                out.put_buffer(Some(b"1"));
                out.put_i32(-1);
            });
            let mut waits = Waits::default();
            for number in 0.. {
                if ends.load(Relaxed) {
                    break;
                }
                let is_write = number % REQUESTS_PER_WRITE == 0;
                let since = Instant::now();
                client.send(if is_write { &write } else { &read });
                client.receive();
                let kind = if is_write { &mut waits.writes } else { &mut waits.reads };
                kind.push(since.elapsed());
                std::thread::sleep(PAUSE);
            }
            waits.sort()
        });
        Witness { is_over, thread }
    }

    /// Ends it. It has been served all the time, or this panics.
    pub(crate) fn end(self) -> Waits {
        self.is_over.store(true, Relaxed);
        self.thread.join().expect("a client that behaves is served")
    }
}
