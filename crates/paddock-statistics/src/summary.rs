//! Summaries: how many values there were, their sum, the least, the largest and quantiles, as ZooKeeper tells times and sizes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Shares of the values that are not above each of a summary's quantiles.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Values of one kind since the member was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// 0 while there are no values, like the others.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// Quantiles in the order of [`QUANTILES`].
    pub quantiles: [u64; QUANTILES.len()],
}

impl Summary {
    /// The average; 0 without values.
    pub fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Summary of values that were counted by buckets: each bucket with its least value and its number of values, in order. A
    /// quantile is the middle of its bucket.
    pub fn of_buckets(buckets: &[(u64, u64)], sum: u64, (min, max): (u64, u64)) -> Summary {
        let count: u64 = buckets.iter().map(|(_, count)| count).sum();
        if count == 0 {
            return Summary::default();
        }
        let quantile = |share: f64| {
            let wanted = ((share * count as f64).ceil() as u64).max(1);
            let mut passed = 0;
            let bucket = buckets.iter().position(|(_, count)| {
                passed += count;
                passed >= wanted
            });
            let bucket = bucket.expect("all values are in some bucket");
            let least = buckets[bucket].0;
            let next = buckets.get(bucket + 1).map_or(max + 1, |(least, _)| *least);
            (least + next.saturating_sub(least + 1) / 2).clamp(min, max)
        };
        Summary { count, sum, min, max, quantiles: QUANTILES.map(quantile) }
    }
}

/// Counts values of one kind. Meant for what happens seldom, or is looked at now and then: each value costs some locked instructions.
#[derive(Debug)]
pub struct SummaryCounter {
    buckets: [AtomicU64; SummaryCounter::BUCKETS],
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for SummaryCounter {
    fn default() -> SummaryCounter {
        SummaryCounter {
            buckets: [const { AtomicU64::new(0) }; SummaryCounter::BUCKETS],
            sum: 0.into(),
            min: u64::MAX.into(),
            max: 0.into(),
        }
    }
}

impl SummaryCounter {
    /// Buckets are an eighth of their values wide at most; the last one takes all that is above.
    const BUCKETS: usize = 240;

    /// Counts a value.
    pub fn record(&self, value: u64) {
        self.buckets[bucket(value)].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
        self.min.fetch_min(value, Relaxed);
        self.max.fetch_max(value, Relaxed);
    }

    /// Records the time since then, in milliseconds.
    pub fn record_since(&self, since: Instant) {
        self.record(since.elapsed().as_millis() as u64);
    }

    /// Number of values in the buckets that begin at `value` or behind it.
    pub fn count_from(&self, value: u64) -> u64 {
        let buckets = self.buckets.iter().enumerate().filter(|(index, _)| least_value(*index) >= value);
        buckets.map(|(_, count)| count.load(Relaxed)).sum()
    }

    /// Summary of the values until now.
    pub fn get(&self) -> Summary {
        let buckets: Vec<(u64, u64)> = self
            .buckets
            .iter()
            .enumerate()
            .map(|(index, count)| (least_value(index), count.load(Relaxed)))
            .collect();
        Summary::of_buckets(
            &buckets,
            self.sum.load(Relaxed),
            (self.min.load(Relaxed), self.max.load(Relaxed)),
        )
    }
}

/// Bucket of a value: one for each below 8, then eight for each power of two.
fn bucket(value: u64) -> usize {
    if value < 8 {
        return value as usize;
    }
    let power = value.ilog2() as usize;
    let eighth = (value >> (power - 3)) as usize & 7;
    ((power - 2) * 8 + eighth).min(SummaryCounter::BUCKETS - 1)
}

/// The least value of a bucket.
fn least_value(bucket: usize) -> u64 {
    let (row, eighth) = (bucket / 8, bucket as u64 % 8);
    if row == 0 { eighth } else { (8 + eighth) << (row - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_the_bucket_that_begins_at_or_before_it() {
        for value in (0..5000).chain([65_535, 65_536, 1 << 30]) {
            let own = bucket(value);
            assert!(least_value(own) <= value, "{value}");
            assert!(own == SummaryCounter::BUCKETS - 1 || value < least_value(own + 1), "{value}");
        }
        assert_eq!(bucket(u64::MAX), SummaryCounter::BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let counter = SummaryCounter::default();
        assert_eq!(counter.get(), Summary::default());
        (1..=1000).for_each(|value| counter.record(value));
        let summary = counter.get();
        assert_eq!((summary.count, summary.sum, summary.min, summary.max), (1000, 500_500, 1, 1000));
        assert_eq!(summary.average(), 500.5);
        assert_eq!((counter.count_from(512), counter.count_from(1024)), (489, 0));
        for (share, quantile) in QUANTILES.into_iter().zip(summary.quantiles) {
            let wanted = share * 1000.0;
            assert!((quantile as f64 - wanted).abs() <= wanted / 8.0, "{share}: {quantile}");
        }
    }

    #[test]
    fn one_value_is_all_quantiles() {
        let counter = SummaryCounter::default();
        counter.record(438);
        assert_eq!(counter.get().quantiles, [438; 5]);
    }
}
