//! The cost of snapshots: how long writes wait while one is taken, the memory that takes, the bytes on disk, and the time
//! to load one at a start.
//!
//! The server is started five times on the same directory: empty; empty again, to know what a start takes; full, until
//! it has taken snapshots; to load one, and then to be written to without a snapshot; and to be written to with some.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::ClientOptions;
use paddock_proto::{OpCode, encode};

use super::SnapshotPlan;
use super::disk::{self, Files};
use super::figure_names::{FigureValue, MEMORY_AFTER};
use super::memory;
use super::process::{cpu_s, resident_bytes};
use super::server::{NEVER, NotServing, SuiteServer};
use super::stall::{Stall, StalledWriter};
use crate::BenchError;
use crate::prepare::with_client;
use crate::report::units::Unit;

struct SnapshotReport {
    znodes: usize,
    /// The start on an empty directory.
    empty: Start,
    /// A start with the snapshot, and few writes behind it.
    loaded: Start,
    fill: Fill,
    /// Bytes of the log for one set that came alone.
    log_bytes_per_set: f64,
    snapshot_bytes: u64,
    quiet: Stall,
    busy: Stall,
}

/// The cost of creating all znodes, many at once.
#[derive(Clone, Copy)]
struct Fill {
    elapsed_s: f64,
    /// Bytes of the log for one create.
    log_bytes_per_create: f64,
    resident_bytes: u64,
    /// Bytes for each znode that were not resident before, but for its name and its value.
    overhead_bytes: f64,
}

/// The cost of a start until a session was granted.
#[derive(Clone, Copy)]
struct Start {
    elapsed_s: f64,
    cpu_s: f64,
}

/// A server that has not taken its snapshots by then will not: it has this time, and that of the znodes to be saved.
const SNAPSHOTS_WITHIN: Duration = Duration::from_secs(120);
/// Znodes that even a slow server saves in a second, twice.
const SAVED_PER_SECOND: u64 = 250_000;
/// Files that do not change for this time are finished.
const UNCHANGED: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);

impl SnapshotReport {
    /// Seconds that the start took longer than on an empty directory; none if it took no longer.
    fn load_s(&self) -> Option<f64> {
        Some(self.loaded.elapsed_s - self.empty.elapsed_s).filter(|load_s| *load_s > 0.0)
    }

    fn figures(&self) -> Vec<FigureValue> {
        let (quiet, busy) = (&self.quiet, &self.busy);
        let peaks = [quiet, busy].map(|stall| stall.resident_bytes_peak as f64);
        let load_cpu_s = Some(self.loaded.cpu_s - self.empty.cpu_s).filter(|cpu_s| *cpu_s > 0.0);
        let p99 = |stall: &Stall| Some(stall.latency.percentile_us(99.0));
        let znodes = self.znodes as f64;
        let figures = [
            ("longest write, quiet", Unit::Microseconds, Some(quiet.latency.max_us)),
            ("longest write, snapshots", Unit::Microseconds, Some(busy.latency.max_us)),
            ("stall by snapshots", Unit::Microseconds, Some(busy.latency.max_us - quiet.latency.max_us)),
            ("write p99, quiet", Unit::Microseconds, p99(quiet)),
            ("write p99, snapshots", Unit::Microseconds, p99(busy)),
            ("writes, quiet", Unit::Count, Some(quiet.writes as f64)),
            ("writes, snapshots", Unit::Count, Some(busy.writes as f64)),
            ("snapshots taken", Unit::Count, Some(busy.snapshots as f64)),
            ("peak memory, quiet", Unit::Bytes, Some(peaks[0])),
            ("peak memory, snapshots", Unit::Bytes, Some(peaks[1])),
            ("extra memory by snapshots", Unit::Percent, Some((peaks[1] / peaks[0] - 1.0) * 100.0)),
            ("time to load", Unit::Seconds, self.load_s()),
            ("CPU to load", Unit::Seconds, load_cpu_s),
            ("znodes loaded", Unit::PerSecond, self.load_s().map(|load_s| znodes / load_s)),
            ("start with nothing", Unit::Seconds, Some(self.empty.elapsed_s)),
            ("creates, many", Unit::PerSecond, Some(znodes / self.fill.elapsed_s)),
            (MEMORY_AFTER, Unit::Bytes, Some(self.fill.resident_bytes as f64)),
            ("memory per znode beyond name and value", Unit::Bytes, Some(self.fill.overhead_bytes)),
            ("log per create, many", Unit::Bytes, Some(self.fill.log_bytes_per_create)),
            ("log per set, one by one", Unit::Bytes, Some(self.log_bytes_per_set)),
            ("snapshot per znode", Unit::Bytes, Some(self.snapshot_bytes as f64 / znodes)),
        ];
        let told = |(name, unit, value): (&str, Unit, Option<f64>)| Some((name.to_owned(), unit, value?));
        figures.into_iter().filter_map(told).collect()
    }
}

/// None if the user stopped it.
pub(super) fn measure(
    plan: &SnapshotPlan,
    server: &mut SuiteServer<'_>,
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<Option<Vec<FigureValue>>, BenchError> {
    match (Trial { plan, server, stop }).play(told) {
        Ok(report) => Ok(Some(report.figures())),
        Err(NotServing::Stopped) => Ok(None),
        Err(NotServing::Failed(error)) => Err(error),
    }
}

struct Trial<'a, 's> {
    plan: &'a SnapshotPlan,
    server: &'a mut SuiteServer<'s>,
    stop: &'a AtomicBool,
}

impl Trial<'_, '_> {
    fn play(&mut self, told: &mut dyn FnMut(usize)) -> Result<SnapshotReport, NotServing> {
        let empty = self.start(NEVER)?;
        let fill = self.fill(told)?;
        self.start(self.plan.writes)?;
        let snapshot_bytes = self.await_snapshots()?;
        let loaded = self.start(NEVER)?;
        self.check_loaded()?;
        let mut writer = self.warm_writer()?;
        let before = self.log_bytes()?;
        let quiet = self.write(&mut writer)?;
        let log_bytes_per_set = (self.log_bytes()? - before) / quiet.writes as f64;
        self.start(self.plan.writes)?;
        let busy = self.write(&mut self.warm_writer()?)?;
        if busy.snapshots == 0 {
            return Err(NotServing::Failed(BenchError::Unfinished(format!(
                "no snapshot was taken while {} sets were made: let the server's files have {{snapshot_writes}}, and \
                 time and writes be such that there is one",
                busy.writes
            ))));
        }
        Ok(SnapshotReport {
            znodes: self.plan.tree.count(),
            empty,
            loaded,
            fill,
            log_bytes_per_set,
            snapshot_bytes,
            quiet,
            busy,
        })
    }

    fn start(&mut self, snapshot_writes: u64) -> Result<Start, NotServing> {
        self.server.restart(snapshot_writes, self.stop)?;
        Ok(Start { elapsed_s: self.server.ready_after().as_secs_f64(), cpu_s: cpu_s(&self.server.pids()?) })
    }

    /// Creates all znodes.
    fn fill(&mut self, told: &mut dyn FnMut(usize)) -> Result<Fill, NotServing> {
        let tree = &self.plan.tree;
        let (log_before, resident_before) = (self.log_bytes()?, resident_bytes(&self.server.pids()?)?);
        let began = Instant::now();
        if !memory::load(tree, &self.server.hosts(), self.stop, told)? {
            return Err(NotServing::Stopped);
        }
        let elapsed_s = began.elapsed().as_secs_f64();
        let resident_bytes = resident_bytes(&self.server.pids()?)?;
        let created = tree.count() + tree.directories().count();
        let grown = resident_bytes as f64 - resident_before as f64;
        Ok(Fill {
            elapsed_s,
            log_bytes_per_create: (self.log_bytes()? - log_before) / created as f64,
            resident_bytes,
            overhead_bytes: (grown - tree.content_bytes() as f64) / tree.count() as f64,
        })
    }

    fn log_bytes(&self) -> Result<f64, BenchError> {
        let directory = self.server.directory();
        let written = disk::logs(directory).and_then(|files| files.written_bytes());
        written.map(|bytes| bytes as f64).map_err(BenchError::file("measure the logs in", directory))
    }

    /// Writes until two snapshots have come, so that little of the log belongs to the newest, and waits until it is
    /// finished; returns its length.
    fn await_snapshots(&self) -> Result<u64, NotServing> {
        let before = self.snapshots()?;
        let within = SNAPSHOTS_WITHIN + Duration::from_secs(self.plan.tree.count() as u64 / SAVED_PER_SECOND);
        let deadline = Instant::now() + within;
        let mut writer = self.writer()?;
        while self.snapshots()?.newer_than(&before) < 2 {
            if Instant::now() > deadline {
                return Err(NotServing::Failed(BenchError::Unfinished(format!(
                    "no two snapshots were taken within {} s: let the server's files have {{snapshot_writes}}",
                    within.as_secs()
                ))));
            }
            self.write_for(&mut writer, LOOK)?;
        }
        self.finished_snapshot()
    }

    fn snapshots(&self) -> Result<Files, BenchError> {
        let directory = self.server.directory();
        disk::snapshots(directory).map_err(BenchError::file("list", directory))
    }

    /// The length of the newest snapshot when no file changes any more.
    fn finished_snapshot(&self) -> Result<u64, NotServing> {
        let (mut last, mut since) = (self.snapshots()?, Instant::now());
        while since.elapsed() < UNCHANGED {
            if self.stop.load(Ordering::Relaxed) {
                return Err(NotServing::Stopped);
            }
            thread::sleep(LOOK);
            let now = self.snapshots()?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(last.newest_bytes().expect("some have come"))
    }

    fn writer(&self) -> Result<StalledWriter, BenchError> {
        StalledWriter::new(&self.server.hosts()[0], &self.plan.tree)
    }

    /// The last of the znodes must be there.
    fn check_loaded(&self) -> Result<(), BenchError> {
        let last = self.plan.tree.path(self.plan.tree.count() - 1);
        with_client(&self.server.hosts()[..1], ClientOptions::default(), async |client| {
            let get = |out: &mut Vec<u8>| encode::path_and_watch(out, &last, false);
            client.send(OpCode::GetData, get).await.map(drop)
        })
    }

    /// A writer to a server that is used to it.
    fn warm_writer(&self) -> Result<StalledWriter, NotServing> {
        let mut writer = self.writer()?;
        self.write_for(&mut writer, Duration::from_secs_f64(self.plan.warm_up_s))?;
        Ok(writer)
    }

    fn write(&self, writer: &mut StalledWriter) -> Result<Stall, NotServing> {
        let time = Duration::from_secs_f64(self.plan.time_s);
        let stall = writer.measure(time, &self.server.pids()?, self.server.directory(), self.stop)?;
        stall.ok_or(NotServing::Stopped)
    }

    fn write_for(&self, writer: &mut StalledWriter, time: Duration) -> Result<(), NotServing> {
        if writer.write(time, self.stop, |_| {})? { Ok(()) } else { Err(NotServing::Stopped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Latency;

    fn stall(max_us: f64, resident_bytes_peak: u64) -> Stall {
        let latency = Latency { max_us, ..Latency::default() };
        Stall { writes: 10, latency, resident_bytes_peak, snapshots: 1 }
    }

    #[test]
    fn figures_are_differences_and_shares() {
        let report = SnapshotReport {
            znodes: 1000,
            empty: Start { elapsed_s: 1.0, cpu_s: 0.5 },
            loaded: Start { elapsed_s: 1.5, cpu_s: 1.5 },
            fill: Fill {
                elapsed_s: 2.0,
                log_bytes_per_create: 200.0,
                resident_bytes: 300_000,
                overhead_bytes: 60.0,
            },
            log_bytes_per_set: 100.0,
            snapshot_bytes: 50_000,
            quiet: stall(2_000.0, 1000),
            busy: stall(6_000.0, 1100),
        };
        let figures = report.figures();
        let figure = |name: &str| {
            let found = figures.iter().find(|(found, ..)| found == name).expect("there is such a figure");
            found.1.text(found.2)
        };
        assert_eq!(figure("stall by snapshots"), "4.00 ms");
        assert_eq!(figure("extra memory by snapshots"), "10.0 %");
        assert_eq!(figure("time to load"), "500 ms");
        assert_eq!(figure("znodes loaded"), "2,000/s");
        assert_eq!(figure("creates, many"), "500/s");
        assert_eq!(figure("memory per znode beyond name and value"), "60.0 B");
        assert_eq!(figure("CPU to load"), "1.00 s");
        assert_eq!(figure("snapshot per znode"), "50.0 B");
        // What noise has made quicker than nothing is no time.
        let quick = SnapshotReport { loaded: report.empty, ..report };
        assert!(quick.figures().iter().all(|(name, ..)| !name.contains("load")));
    }
}
