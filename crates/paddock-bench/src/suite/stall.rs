//! A writer that sends one set after the other, and how long it had to wait at most; meanwhile the server's memory and
//! the snapshots that it takes are watched.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use hdrhistogram::Histogram;
use paddock_client::{Client, ClientOptions};
use paddock_proto::{OpCode, encode};
use tokio::runtime::{Builder, Runtime};

use super::disk;
use super::process::{resident_bytes, system};
use crate::BenchError;
use crate::measure::{latencies, summary};
use crate::report::Latency;
use crate::workload::tree::Filling;

/// Time between two looks at memory and files.
const LOOK: Duration = Duration::from_millis(10);

/// The result of a stretch of writes.
pub(super) struct Stall {
    pub(super) writes: u64,
    pub(super) latency: Latency,
    pub(super) resident_bytes_peak: u64,
    /// Number of snapshots that were begun meanwhile.
    pub(super) snapshots: usize,
}

/// Sets znodes of a tree, any of them.
#[derive(Debug)]
pub(super) struct StalledWriter {
    host: String,
    runtime: Runtime,
    client: Client,
    tree: Filling,
    chance: fastrand::Rng,
}

impl StalledWriter {
    pub(super) fn new(host: &str, tree: &Filling) -> Result<StalledWriter, BenchError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system("start the client that writes"))?;
        let client = runtime.block_on(Client::connect(host, ClientOptions::default()));
        let client = client.map_err(|source| BenchError::Client { hosts: host.to_owned(), source })?;
        let chance = fastrand::Rng::with_seed(1);
        Ok(StalledWriter { host: host.to_owned(), runtime, client, tree: tree.clone(), chance })
    }

    /// Writes for a time and tells every latency; false if the user stopped it.
    pub(super) fn write(
        &mut self,
        time: Duration,
        stop: &AtomicBool,
        mut tell: impl FnMut(Duration),
    ) -> Result<bool, BenchError> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let number = self.chance.usize(0..self.tree.count());
            let path = self.tree.path(number);
            let value = self.tree.value(number, self.chance.usize(..));
            let sent = Instant::now();
            let set = |out: &mut Vec<u8>| encode::set_data(out, &path, Some(&value), -1);
            let answer = self.runtime.block_on(self.client.send(OpCode::SetData, set));
            answer.map_err(|source| BenchError::Client { hosts: self.host.clone(), source })?;
            tell(sent.elapsed());
        }
        Ok(true)
    }

    /// Writes for a time and watches the server meanwhile; none if the user stopped it.
    pub(super) fn measure(
        &mut self,
        time: Duration,
        pids: &[u32],
        directory: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<Stall>, BenchError> {
        let watch = Watch::start(pids, directory)?;
        let mut waits = latencies();
        let is_whole = self.write(time, stop, |wait| record(&mut waits, wait))?;
        let (resident_bytes_peak, snapshots) = watch.end()?;
        let stall = Stall { writes: waits.len(), latency: summary(&waits), resident_bytes_peak, snapshots };
        Ok(is_whole.then_some(stall))
    }
}

fn record(waits: &mut Histogram<u64>, wait: Duration) {
    waits.saturating_record(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
}

/// Looks at a server's memory and at its files until it is ended.
struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Result<(u64, usize), BenchError>>,
}

impl Watch {
    fn start(pids: &[u32], directory: &Path) -> Result<Watch, BenchError> {
        let (pids, directory) = (pids.to_vec(), directory.to_owned());
        let before = snapshots(&directory)?;
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let thread = thread::Builder::new()
            .name("bench-watch".to_owned())
            .spawn(move || look(&pids, &directory, &before, &stopped))
            .map_err(system("start a thread of the bench"))?;
        Ok(Watch { stop, thread })
    }

    /// The largest memory, and how many snapshots came.
    fn end(self) -> Result<(u64, usize), BenchError> {
        drop(self.stop);
        self.thread.join().expect("the thread that watches does not panic")
    }
}

fn look(
    pids: &[u32],
    directory: &Path,
    before: &BTreeSet<PathBuf>,
    stopped: &Receiver<()>,
) -> Result<(u64, usize), BenchError> {
    let (mut peak, mut seen) = (0, before.clone());
    loop {
        peak = resident_bytes(pids)?.max(peak);
        seen.extend(snapshots(directory)?);
        if stopped.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
            return Ok((peak, seen.len() - before.len()));
        }
    }
}

/// The snapshots that have their names.
fn snapshots(directory: &Path) -> Result<BTreeSet<PathBuf>, BenchError> {
    let files = disk::snapshots(directory).map_err(BenchError::file("list", directory))?;
    Ok(files.paths().map(Path::to_owned).collect())
}
