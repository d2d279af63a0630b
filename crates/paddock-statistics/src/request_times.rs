//! Times of requests: from a request to its answer for each operation, and for each stage of the way through the engine.
//!
//! Each worker has histograms of its own, and so has the engine: a counter has one writer at a time, which needs no locked
//! instruction. Readers add them up. A request's time begins with the turn in which it is taken and ends with the one in which it is
//! answered: the clock is never read for one request only.

mod histogram;
mod operation;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::summary::Summary;
pub use histogram::{BUCKETS, Histogram, Times, add, print_us};
use histogram::{REQUEST_US, STAGE_US, print};
pub use operation::operation_name;
use operation::{OPERATIONS, PING, is_update, operation};

/// Passages of a stage of which one is timed. Every sync is timed.
const TIMED: u32 = 8;

/// Stages of a request's way through the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From a worker until the engine takes it.
    Queue,
    /// A round of work in which the log was written and synced.
    Sync,
    /// From the log of this member until a quorum has it.
    Replicate,
    /// Applied to the tree, with the wait for its lock.
    Apply,
    /// From the engine until a worker puts it into its connection's output.
    Reply,
}

impl Stage {
    const NAMES: [&'static str; 5] = ["queue", "sync", "replicate", "apply", "reply"];
}

/// Histograms of one writer.
#[derive(Debug, Default)]
pub struct Recorder {
    operations: [Histogram; OPERATIONS.len()],
    stages: [Histogram; Stage::NAMES.len()],
    /// Time that each stage took when it was timed last, in microseconds.
    last_us: [AtomicU64; Stage::NAMES.len()],
    /// The longest time of each operation, in microseconds.
    longest_us: [AtomicU64; OPERATIONS.len()],
    /// Bytes that clients have sent.
    received_bytes: AtomicU64,
    /// Bytes of replies, and of watch events, without their lengths.
    reply_bytes: AtomicU64,
    event_bytes: AtomicU64,
}

impl Recorder {
    /// A request of an operation was answered after `us` microseconds.
    #[inline]
    pub fn answered(&self, code: i32, us: u64) {
        self.record(operation(code), us, 1);
    }

    #[inline]
    fn record(&self, operation: usize, us: u64, times: u64) {
        self.operations[operation].record(&REQUEST_US, us, times);
        if us > self.longest_us[operation].load(Relaxed) {
            self.longest_us[operation].store(us, Relaxed);
        }
    }

    /// Clients have sent `bytes` bytes.
    #[inline]
    pub fn received(&self, bytes: usize) {
        add(&self.received_bytes, bytes as u64);
    }

    /// A client was given a reply of `bytes` bytes.
    #[inline]
    pub fn replied(&self, bytes: usize) {
        add(&self.reply_bytes, bytes as u64);
    }

    /// A client was given a watch event of `bytes` bytes.
    #[inline]
    pub fn told_event(&self, bytes: usize) {
        add(&self.event_bytes, bytes as u64);
    }

    /// Counts the requests of a turn, which were answered after `us` microseconds, and forgets them.
    #[inline]
    pub fn turned(&self, turn: &TurnOperations, us: u64) {
        let mut seen = turn.seen.take();
        while seen != 0 {
            let index = seen.trailing_zeros() as usize;
            self.record(index, us, turn.counts[index].take().into());
            seen &= seen - 1;
        }
    }

    /// A stage was passed that had begun then.
    #[inline]
    pub fn passed(&self, stage: Stage, since: Instant) {
        self.spent(stage, since.elapsed().as_micros() as u64);
    }

    /// A stage took `us` microseconds.
    #[inline]
    pub fn spent(&self, stage: Stage, us: u64) {
        self.stages[stage as usize].record(&STAGE_US, us, 1);
        self.last_us[stage as usize].store(us, Relaxed);
    }
}

/// Requests that a worker has answered in the turn of a connection, by operation.
#[derive(Debug, Default)]
pub struct TurnOperations {
    counts: [Cell<u32>; OPERATIONS.len()],
    /// A bit for each operation that was seen.
    seen: Cell<u32>,
}

impl TurnOperations {
    /// Counts a request by the code of its operation.
    #[inline]
    pub fn count(&self, code: i32) {
        let index = operation(code);
        self.counts[index].set(self.counts[index].get() + 1);
        self.seen.set(self.seen.get() | 1 << index);
    }
}

/// Histograms of all workers and of the engine.
#[derive(Debug)]
pub struct RequestTimes {
    workers: Vec<Recorder>,
    /// Histograms of the engine.
    pub engine: Recorder,
}

/// Counters that grow, at some time.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Requests that change nothing.
    pub reads: u64,
    /// Requests that go through the log.
    pub writes: u64,
    /// Times of these requests, and of syncs, by bucket.
    pub requests: [u64; BUCKETS],
    /// Times of syncs, by bucket.
    pub syncs: [u64; BUCKETS],
}

impl RequestTimes {
    /// Empty histograms.
    pub fn new(workers: usize) -> RequestTimes {
        RequestTimes {
            workers: (0..workers).map(|_| Recorder::default()).collect(),
            engine: Recorder::default(),
        }
    }

    /// Histograms of a worker.
    #[inline]
    pub fn worker(&self, worker: usize) -> &Recorder {
        &self.workers[worker]
    }

    fn total(&self, histogram: impl Fn(&Recorder) -> &Histogram) -> Times {
        let mut total = Times::default();
        self.workers.iter().chain([&self.engine]).for_each(|recorder| histogram(recorder).add_to(&mut total));
        total
    }

    /// Times that the stages took when they were timed last, for a worker, in microseconds.
    pub fn last_us(&self, worker: usize) -> [u64; 5] {
        let mut last_us = self.engine.last_us.each_ref().map(|us| us.load(Relaxed));
        let reply = Stage::Reply as usize;
        last_us[reply] = self.workers[worker].last_us[reply].load(Relaxed);
        last_us
    }

    /// Operations that were asked for, with their times.
    pub fn operations(&self) -> impl Iterator<Item = (&'static str, Times)> {
        let times = |index: usize| self.total(move |recorder| &recorder.operations[index]);
        let all = OPERATIONS.iter().enumerate().map(move |(index, name)| (*name, times(index)));
        all.filter(|(_, times)| times.count() > 0)
    }

    /// Times in milliseconds of all updates, or of all that change nothing, as ZooKeeper sums them up.
    pub fn summary(&self, of_updates: bool) -> Summary {
        let mut total = Times::default();
        let mut longest_us = 0;
        for index in (0..OPERATIONS.len()).filter(|index| is_update(*index) == of_updates) {
            for recorder in self.workers.iter().chain([&self.engine]) {
                recorder.operations[index].add_to(&mut total);
                longest_us = longest_us.max(recorder.longest_us[index].load(Relaxed));
            }
        }
        let least = |bucket: usize| if bucket == 0 { 0 } else { REQUEST_US[bucket - 1] / 1000 };
        let buckets: Vec<(u64, u64)> =
            total.counts.iter().enumerate().map(|(bucket, count)| (least(bucket), *count)).collect();
        let shortest_ms = buckets.iter().find(|(_, count)| *count > 0).map_or(0, |(least, _)| *least);
        Summary::of_buckets(&buckets, total.sum / 1000, (shortest_ms, longest_us / 1000))
    }

    /// Bytes of all clients: what they have sent, their replies, and their watch events.
    pub fn client_bytes(&self) -> [u64; 3] {
        let sum = |bytes: fn(&Recorder) -> &AtomicU64| {
            self.workers.iter().map(|recorder| bytes(recorder).load(Relaxed)).sum()
        };
        [sum(|own| &own.received_bytes), sum(|own| &own.reply_bytes), sum(|own| &own.event_bytes)]
    }

    /// Requests and syncs until now, without pings.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for index in (0..OPERATIONS.len()).filter(|index| OPERATIONS[*index] != PING) {
            let times = self.total(|recorder| &recorder.operations[index]);
            let requests = if is_update(index) { &mut totals.writes } else { &mut totals.reads };
            *requests += times.count();
            totals.requests.iter_mut().zip(times.counts).for_each(|(total, count)| *total += count);
        }
        totals.syncs = self.total(|recorder| &recorder.stages[Stage::Sync as usize]).counts;
        totals
    }

    /// Every stage with its times.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, Times)> {
        Stage::NAMES
            .iter()
            .enumerate()
            .map(|(index, name)| (*name, self.total(|recorder| &recorder.stages[index])))
    }

    /// Bounds of the buckets of requests and of stages, in microseconds.
    pub const BOUNDS_US: (&[u64], &[u64]) = (&REQUEST_US, &STAGE_US);

    /// Both histograms in Prometheus' text format.
    pub fn print(&self, page: &mut String) {
        let help = "Time from a request to its answer, by operation";
        print(page, ("paddock_request_seconds", help), "operation", &REQUEST_US, self.operations());
        let help =
            "Time of what goes through the engine together, by stage; of all but sync one of eight is timed";
        print_us(page, ("paddock_stage_seconds", help), "stage", self.stages());
    }
}

thread_local! {
    static PASSAGES: Cell<u32> = const { Cell::new(0) };
}

/// The time now, if this passage of a stage is one that is timed.
#[inline]
pub fn start_of_timed() -> Option<Instant> {
    let passages = PASSAGES.get();
    PASSAGES.set(passages.wrapping_add(1));
    passages.is_multiple_of(TIMED).then(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_printed_as_prometheus_reads_them() {
        let times = RequestTimes::new(2);
        times.worker(0).answered(1, 70);
        times.worker(1).answered(15, 4000);
        times.worker(1).answered(1, 60_000_000);
        let turn = TurnOperations::default();
        turn.count(4);
        turn.count(4);
        times.worker(0).turned(&turn, 20);
        times.worker(0).turned(&turn, 1000);
        times.engine.spent(Stage::Sync, 240);
        let mut page = String::new();
        times.print(&mut page);
        for line in [
            "# TYPE paddock_request_seconds histogram",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.00005\"} 0",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.0001\"} 1",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.001\"} 1",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.003\"} 1",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.005\"} 2",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"10\"} 2",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"+Inf\"} 3",
            "paddock_request_seconds_sum{operation=\"create\"} 60.00407",
            "paddock_request_seconds_count{operation=\"create\"} 3",
            "paddock_request_seconds_bucket{operation=\"get_data\",le=\"0.00005\"} 2",
            "paddock_request_seconds_sum{operation=\"get_data\"} 0.00004",
            "paddock_request_seconds_count{operation=\"get_data\"} 2",
            "paddock_stage_seconds_bucket{stage=\"sync\",le=\"0.0001\"} 0",
            "paddock_stage_seconds_bucket{stage=\"sync\",le=\"0.00025\"} 1",
            "paddock_stage_seconds_count{stage=\"reply\"} 0",
        ] {
            assert!(page.lines().any(|printed| printed == line), "{line} is missing in\n{page}");
        }
        assert!(!page.contains("operation=\"delete\""), "nobody has deleted anything");
    }

    #[test]
    fn reads_and_updates_are_summed_up_apart() {
        let times = RequestTimes::new(2);
        for ms in [0, 0, 0, 4] {
            times.worker(0).answered(4, ms * 1000 + 500);
        }
        times.worker(1).answered(1, 738_900);
        let (reads, updates) = (times.summary(false), times.summary(true));
        assert_eq!(
            (reads.count, reads.sum, reads.min, reads.max),
            (4, 6, 0, 4),
            "of the halves two milliseconds come"
        );
        assert_eq!(
            (reads.quantiles[0], reads.quantiles[3]),
            (0, 3),
            "a quantile is the middle of its bucket"
        );
        assert_eq!((updates.count, updates.sum, updates.max), (1, 738, 738));
    }

    #[test]
    fn every_operation_of_a_client_has_a_name() {
        for (code, name) in [(12, "get_children"), (106, "watches"), (-11, "close_session"), (9999, "other")]
        {
            assert_eq!(operation_name(code), name);
        }
    }
}
