//! Histograms of times, in Prometheus' text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of bounds. There is a bucket below each, and one above them all.
const BOUNDS: usize = 18;
/// Number of buckets.
pub const BUCKETS: usize = BOUNDS + 1;

/// Upper bounds of buckets, in microseconds.
pub(super) type Bounds = [u64; BOUNDS];

/// Bounds for requests.
pub(super) const REQUEST_US: Bounds = [
    50, 100, 250, 500, 1000, 2000, 3000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000,
];
/// Bounds for stages.
pub(super) const STAGE_US: Bounds = [
    10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_000_000, 5_000_000,
];

/// Times by bucket. A time that is longer than all bounds has the last one.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Histogram {
    /// Counts `times` that took `us` microseconds. Only one thread may do so at a time.
    #[inline]
    pub(super) fn record(&self, bounds: &Bounds, us: u64, times: u64) {
        let bucket = bounds.iter().position(|bound| us < *bound).unwrap_or(bounds.len());
        add(&self.counts[bucket], times);
        add(&self.sum, us * times);
    }

    /// Counts a time in microseconds. Only one thread may do so at a time.
    pub fn record_us(&self, us: u64) {
        self.record(&STAGE_US, us, 1);
    }

    /// The times that were counted until now.
    pub fn times(&self) -> Times {
        let mut times = Times::default();
        self.add_to(&mut times);
        times
    }

    pub(super) fn add_to(&self, total: &mut Times) {
        for (total, count) in total.counts.iter_mut().zip(&self.counts) {
            *total += count.load(Relaxed);
        }
        total.sum += self.sum.load(Relaxed);
    }
}

/// For a counter with one writer.
#[inline]
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Times of one kind, of all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Number of times in each bucket, not added up; the last one has those above all bounds.
    pub counts: [u64; BUCKETS],
    pub(super) sum: u64,
}

impl Times {
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// 0 if there are none.
    pub fn average(&self) -> f64 {
        self.sum as f64 / self.count().max(1) as f64
    }
}

/// A histogram of times in microseconds, in Prometheus' text format.
pub fn print_us(
    page: &mut String,
    name_and_help: (&str, &str),
    label: &str,
    all: impl Iterator<Item = (&'static str, Times)>,
) {
    print(page, name_and_help, label, &STAGE_US, all);
}

pub(super) fn print(
    page: &mut String,
    (name, help): (&str, &str),
    label: &str,
    bounds: &Bounds,
    all: impl Iterator<Item = (&'static str, Times)>,
) {
    let seconds = |us: u64| us as f64 / 1e6;
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(page, "{line}").expect("a string takes all");
    line(format_args!("# HELP {name} {help}\n# TYPE {name} histogram"));
    for (value, times) in all {
        let mut below = 0;
        for (bound, count) in bounds.iter().zip(times.counts) {
            below += count;
            line(format_args!("{name}_bucket{{{label}=\"{value}\",le=\"{}\"}} {below}", seconds(*bound)));
        }
        let count = times.count();
        line(format_args!("{name}_bucket{{{label}=\"{value}\",le=\"+Inf\"}} {count}"));
        line(format_args!("{name}_sum{{{label}=\"{value}\"}} {}", seconds(times.sum)));
        line(format_args!("{name}_count{{{label}=\"{value}\"}} {count}"));
    }
}
