//! Measurements of one thread, in slices of a second, and the sum of many.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::report::{Latency, PERCENTS, Percentile};
use crate::workload::Operation;

/// Answers of one stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) operations: Vec<Measured>,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

/// One operation in a slice.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Nanoseconds of the good answers.
    pub(crate) latencies: Histogram<u64>,
    /// Number of errors, by their description.
    pub(crate) errors: BTreeMap<String, u64>,
}

impl Slice {
    pub(crate) fn new(operations: usize) -> Slice {
        let measured = Measured { latencies: latencies(), errors: BTreeMap::new() };
        Slice { operations: vec![measured; operations], bytes_sent: 0, bytes_received: 0 }
    }

    pub(crate) fn record(&mut self, operation: Operation, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.operations[operation.0].latencies.saturating_record(nanoseconds);
    }

    pub(crate) fn record_error(&mut self, operation: Operation, error: &str) {
        let errors = &mut self.operations[operation.0].errors;
        match errors.get_mut(error) {
            Some(count) => *count += 1,
            None => drop(errors.insert(error.to_owned(), 1)),
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.operations.iter().map(|measured| measured.latencies.len()).sum()
    }

    pub(crate) fn errors(&self) -> u64 {
        self.operations.iter().map(Measured::error_count).sum()
    }

    pub(crate) fn add(&mut self, other: &Slice) {
        for (sum, one) in self.operations.iter_mut().zip(&other.operations) {
            sum.latencies.add(&one.latencies).expect("all histograms have the same bounds");
            for (error, count) in &one.errors {
                *sum.errors.entry(error.clone()).or_default() += count;
            }
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }

    /// The latencies of all operations together.
    pub(crate) fn all_latencies(&self) -> Histogram<u64> {
        let mut sum = latencies();
        for measured in &self.operations {
            sum.add(&measured.latencies).expect("all histograms have the same bounds");
        }
        sum
    }
}

impl Measured {
    pub(crate) fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// From a microsecond to an hour, to three digits.
pub(crate) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).expect("the bounds are constants that fit")
}

pub(crate) fn summary(latencies: &Histogram<u64>) -> Latency {
    if latencies.is_empty() {
        return Latency::default();
    }
    let us = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
    Latency {
        mean_us: latencies.mean() / 1000.0,
        min_us: us(latencies.min()),
        max_us: us(latencies.max()),
        percentiles: PERCENTS
            .map(|percent| Percentile { percent, us: us(latencies.value_at_quantile(percent / 100.0)) })
            .to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_add_up() {
        let (create, get) = (Operation(0), Operation(1));
        let mut sum = Slice::new(2);
        for milliseconds in 1..=100 {
            let mut slice = Slice::new(2);
            slice.record(get, Duration::from_millis(milliseconds));
            slice.record_error(create, "NoNode");
            slice.bytes_sent = 10;
            sum.add(&slice);
        }
        assert_eq!((sum.requests(), sum.errors(), sum.bytes_sent), (100, 100, 1000));
        assert_eq!(sum.operations[create.0].errors, BTreeMap::from([("NoNode".to_owned(), 100)]));

        let latency = summary(&sum.all_latencies());
        let close =
            |expected_ms: f64, us: f64| assert!((us / 1000.0 / expected_ms - 1.0).abs() < 0.002, "{us}");
        close(50.0, latency.percentile_us(50.0));
        close(99.0, latency.percentile_us(99.0));
        close(100.0, latency.max_us);
        close(50.5, latency.mean_us);
    }

    #[test]
    fn nothing_measured_is_no_latency() {
        assert_eq!(summary(&Slice::new(1).all_latencies()), Latency::default());
    }
}
