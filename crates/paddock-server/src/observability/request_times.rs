//! Times of requests: from a request to its answer for each operation, and for each stage of the way through the engine.
//!
//! Each worker has histograms of its own, and so has the engine: a counter has one writer at a time, which needs no locked
//! instruction. Readers add them up. Times of requests have the resolution of the member's clock, a millisecond, for nobody asks the
//! time only for them.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Upper bounds of the buckets for requests, in milliseconds.
const REQUEST_MS: [u64; 14] = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
/// Upper bounds of the buckets for stages, in microseconds.
const STAGE_US: [u64; 14] =
    [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 100_000, 500_000, 2_000_000];
/// One of so many passages of a stage is timed, but for syncs, of which each is.
const TIMED: u32 = 8;

/// Operations as the metric's label names them. The last one is all others.
const OPERATIONS: [&str; 25] = [
    "create",
    "delete",
    "exists",
    "get_data",
    "set_data",
    "get_acl",
    "set_acl",
    "get_children",
    "sync",
    "ping",
    "check",
    "multi",
    "reconfig",
    "multi_read",
    "watches",
    "get_ephemerals",
    "get_all_children_number",
    "create_container",
    "create_ttl",
    "create_session",
    "close_session",
    "list",
    "remove_recursive",
    "who_am_i",
    "other",
];

/// Index of an operation's code in `OPERATIONS`.
fn operation(code: i32) -> usize {
    match code {
        1 | 15 | 502 => 0,
        2 | 20 | 505 => 1,
        3 => 2,
        4 => 3,
        5 => 4,
        6 => 5,
        7 => 6,
        8 | 12 => 7,
        9 => 8,
        11 => 9,
        13 | 501 | 504 => 10,
        14 => 11,
        16 => 12,
        22 => 13,
        17 | 18 | 101 | 105 | 106 => 14,
        103 => 15,
        104 => 16,
        19 => 17,
        21 => 18,
        -10 => 19,
        -11 => 20,
        500 | 506 | 507 => 21,
        503 => 22,
        107 => 23,
        _ => 24,
    }
}

/// Name of an operation by its code, as the metric's label has it.
pub(crate) fn operation_name(code: i32) -> &'static str {
    OPERATIONS[operation(code)]
}

/// Stages of a request's way through the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
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

/// Times by bucket. A time that is longer than all bounds has the last one.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    counts: [AtomicU64; 15],
    sum: AtomicU64,
}

impl Histogram {
    /// Counts `times` of a length. Only one thread may do so at a time.
    fn record(&self, bounds: &[u64; 14], length: u64, times: u64) {
        let bucket = bounds.iter().position(|bound| length < *bound).unwrap_or(bounds.len());
        add(&self.counts[bucket], times);
        if length > 0 {
            add(&self.sum, length * times);
        }
    }

    /// Counts a time in microseconds. Only one thread may do so at a time.
    pub(crate) fn record_us(&self, us: u64) {
        self.record(&STAGE_US, us, 1);
    }

    pub(crate) fn times(&self) -> Times {
        let mut times = Times::default();
        self.add_to(&mut times);
        times
    }

    fn add_to(&self, total: &mut Times) {
        for (total, count) in total.counts.iter_mut().zip(&self.counts) {
            *total += count.load(Relaxed);
        }
        total.sum += self.sum.load(Relaxed);
    }
}

/// For a counter with one writer.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Times of one kind, of all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Number of times in each bucket, not added up; the last one has those above all bounds.
    pub(crate) counts: [u64; 15],
    sum: u64,
}

impl Times {
    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// 0 if there are none.
    pub(crate) fn average(&self) -> f64 {
        self.sum as f64 / self.count().max(1) as f64
    }
}

/// Histograms of one writer.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    operations: [Histogram; OPERATIONS.len()],
    stages: [Histogram; Stage::NAMES.len()],
    /// Time that each stage took when it was timed last, in microseconds.
    last_us: [AtomicU64; Stage::NAMES.len()],
}

impl Recorder {
    /// A request of an operation was answered after so many milliseconds.
    pub(crate) fn answered(&self, code: i32, ms: u64) {
        self.operations[operation(code)].record(&REQUEST_MS, ms, 1);
    }

    /// Counts the requests of a turn, which were answered after so many milliseconds, and forgets them.
    pub(crate) fn turned(&self, turn: &TurnOperations, ms: u64) {
        let mut seen = turn.seen.take();
        while seen != 0 {
            let index = seen.trailing_zeros() as usize;
            self.operations[index].record(&REQUEST_MS, ms, turn.counts[index].take().into());
            seen &= seen - 1;
        }
    }

    pub(crate) fn passed(&self, stage: Stage, since: Instant) {
        self.spent(stage, since.elapsed().as_micros() as u64);
    }

    pub(crate) fn spent(&self, stage: Stage, us: u64) {
        self.stages[stage as usize].record(&STAGE_US, us, 1);
        self.last_us[stage as usize].store(us, Relaxed);
    }
}

/// Requests that a worker has answered in the turn of a connection, by operation.
#[derive(Debug, Default)]
pub(crate) struct TurnOperations {
    counts: [Cell<u32>; OPERATIONS.len()],
    /// A bit for each operation that was seen.
    seen: Cell<u32>,
}

impl TurnOperations {
    pub(crate) fn count(&self, code: i32) {
        let index = operation(code);
        self.counts[index].set(self.counts[index].get() + 1);
        self.seen.set(self.seen.get() | 1 << index);
    }
}

/// Histograms of all workers and of the engine.
#[derive(Debug)]
pub(crate) struct RequestTimes {
    workers: Vec<Recorder>,
    pub(crate) engine: Recorder,
}

impl RequestTimes {
    pub(crate) fn new(workers: usize) -> RequestTimes {
        RequestTimes {
            workers: (0..workers).map(|_| Recorder::default()).collect(),
            engine: Recorder::default(),
        }
    }

    pub(crate) fn worker(&self, worker: usize) -> &Recorder {
        &self.workers[worker]
    }

    fn total(&self, histogram: impl Fn(&Recorder) -> &Histogram) -> Times {
        let mut total = Times::default();
        self.workers.iter().chain([&self.engine]).for_each(|recorder| histogram(recorder).add_to(&mut total));
        total
    }

    /// Times that the stages took when they were timed last, for a worker, in microseconds.
    pub(crate) fn last_us(&self, worker: usize) -> [u64; 5] {
        let mut last_us = self.engine.last_us.each_ref().map(|us| us.load(Relaxed));
        let reply = Stage::Reply as usize;
        last_us[reply] = self.workers[worker].last_us[reply].load(Relaxed);
        last_us
    }

    /// Operations that were asked for, with their times.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&'static str, Times)> {
        let times = |index: usize| self.total(move |recorder| &recorder.operations[index]);
        let all = OPERATIONS.iter().enumerate().map(move |(index, name)| (*name, times(index)));
        all.filter(|(_, times)| times.count() > 0)
    }

    /// Every stage with its times.
    pub(crate) fn stages(&self) -> impl Iterator<Item = (&'static str, Times)> {
        Stage::NAMES
            .iter()
            .enumerate()
            .map(|(index, name)| (*name, self.total(|recorder| &recorder.stages[index])))
    }

    /// Bounds of the buckets of requests, in milliseconds, and of stages, in microseconds.
    pub(crate) const BOUNDS: ([u64; 14], [u64; 14]) = (REQUEST_MS, STAGE_US);

    /// Both histograms in Prometheus' text format.
    pub(crate) fn print(&self, page: &mut String) {
        let help = "Time from a request to its answer, by operation, to the millisecond";
        let unit = |ms| ms as f64 / 1e3;
        print(page, ("paddock_request_seconds", help), "operation", (&REQUEST_MS, unit), self.operations());
        let help =
            "Time of what goes through the engine together, by stage; of all but sync one of eight is timed";
        print_us(page, ("paddock_stage_seconds", help), "stage", self.stages());
    }
}

/// A histogram of times in microseconds, in Prometheus' text format.
pub(crate) fn print_us(
    page: &mut String,
    name_and_help: (&str, &str),
    label: &str,
    all: impl Iterator<Item = (&'static str, Times)>,
) {
    print(page, name_and_help, label, (&STAGE_US, |us| us as f64 / 1e6), all);
}

fn print(
    page: &mut String,
    (name, help): (&str, &str),
    label: &str,
    (bounds, unit): (&[u64; 14], fn(u64) -> f64),
    all: impl Iterator<Item = (&'static str, Times)>,
) {
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(page, "{line}").expect("a string takes all");
    line(format_args!("# HELP {name} {help}\n# TYPE {name} histogram"));
    for (value, times) in all {
        let mut below = 0;
        for (bound, count) in bounds.iter().zip(times.counts) {
            below += count;
            line(format_args!("{name}_bucket{{{label}=\"{value}\",le=\"{}\"}} {below}", unit(*bound)));
        }
        let count = times.count();
        line(format_args!("{name}_bucket{{{label}=\"{value}\",le=\"+Inf\"}} {count}"));
        line(format_args!("{name}_sum{{{label}=\"{value}\"}} {}", unit(times.sum)));
        line(format_args!("{name}_count{{{label}=\"{value}\"}} {count}"));
    }
}

thread_local! {
    static PASSAGES: Cell<u32> = const { Cell::new(0) };
}

/// The time now, if this passage of a stage is one that is timed.
pub(crate) fn start_of_timed() -> Option<Instant> {
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
        times.worker(0).answered(1, 0);
        times.worker(1).answered(15, 4);
        times.worker(1).answered(1, 60_000);
        let turn = TurnOperations::default();
        turn.count(4);
        turn.count(4);
        times.worker(0).turned(&turn, 1);
        times.worker(0).turned(&turn, 1);
        times.engine.spent(Stage::Sync, 240);
        let mut page = String::new();
        times.print(&mut page);
        for line in [
            "# TYPE paddock_request_seconds histogram",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.001\"} 1",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.003\"} 1",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"0.005\"} 2",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"10\"} 2",
            "paddock_request_seconds_bucket{operation=\"create\",le=\"+Inf\"} 3",
            "paddock_request_seconds_sum{operation=\"create\"} 60.004",
            "paddock_request_seconds_count{operation=\"create\"} 3",
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
    fn every_operation_of_a_client_has_a_name() {
        for (code, name) in [(12, "get_children"), (106, "watches"), (-11, "close_session"), (9999, "other")]
        {
            assert_eq!(operation_name(code), name);
        }
    }
}
