//! Fewer points than were measured: a chart cannot show thousands, and a page should stay small.

use super::super::{Sample, Second};

/// More would be closer together than three pixels.
const POINTS_MAX: usize = 180;
/// Processes are sampled before the first request and after the last: what lies closer together than this is noise.
const INTERVAL_MIN_S: f64 = 0.25;

/// Answers of some seconds that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) requests: u64,
    pub(super) errors: u64,
    /// The mean of the seconds, by their requests.
    pub(super) p50_us: f64,
    /// The worst of the seconds, as is the maximum.
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
}

impl Interval {
    pub(super) fn middle_s(&self) -> f64 {
        f64::midpoint(self.from_s, self.to_s)
    }

    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.to_s - self.from_s)
    }

    fn and(self, next: Interval) -> Interval {
        let requests = self.requests + next.requests;
        let weight = if requests == 0 { 0.5 } else { next.requests as f64 / requests as f64 };
        Interval {
            from_s: self.from_s,
            to_s: next.to_s,
            requests,
            errors: self.errors + next.errors,
            p50_us: self.p50_us + (next.p50_us - self.p50_us) * weight,
            p99_us: self.p99_us.max(next.p99_us),
            max_us: self.max_us.max(next.max_us),
        }
    }
}

pub(super) fn intervals(seconds: &[Second]) -> Vec<Interval> {
    let single = singles(seconds);
    let together = single.len().div_ceil(POINTS_MAX).max(1);
    let merged = single.chunks(together).filter_map(|chunk| chunk.iter().copied().reduce(Interval::and));
    let mut intervals: Vec<Interval> = merged.collect();
    // The rest of a second would jump from what the others show.
    if let [.., before, last] = intervals.as_slice()
        && last.to_s - last.from_s < (before.to_s - before.from_s) / 2.0
    {
        let merged = before.and(*last);
        intervals.truncate(intervals.len() - 2);
        intervals.push(merged);
    }
    intervals
}

fn singles(seconds: &[Second]) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let mut from_s = 0.0;
    for &Second { at_s: to_s, requests, errors, p50_us, p99_us, max_us } in seconds {
        if to_s > from_s {
            intervals.push(Interval { from_s, to_s, requests, errors, p50_us, p99_us, max_us });
            from_s = to_s;
        }
    }
    intervals
}

/// Growth per second of a counter, between samples; at the middle of each interval.
pub(super) fn growth(samples: &[Sample], amount: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let known: Vec<(f64, f64)> =
        samples.iter().filter_map(|sample| Some((sample.at_s, amount(sample)?))).collect();
    let every = known.len().div_ceil(POINTS_MAX).max(1);
    let mut points = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for &(at_s, now) in known.iter().step_by(every) {
        let Some((since_s, then)) = before else {
            before = Some((at_s, now));
            continue;
        };
        if at_s - since_s < INTERVAL_MIN_S {
            continue;
        }
        // The counter shrinks when another process has taken its place.
        if now >= then {
            points.push((f64::midpoint(since_s, at_s), (now - then) / (at_s - since_s)));
        }
        before = Some((at_s, now));
    }
    points
}

/// The highest of samples that follow each other, where it was.
pub(super) fn peaks(samples: &[Sample], amount: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let known: Vec<(f64, f64)> =
        samples.iter().filter_map(|sample| Some((sample.at_s, amount(sample)?))).collect();
    let together = known.len().div_ceil(POINTS_MAX).max(1);
    let highest = |chunk: &[(f64, f64)]| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    known.chunks(together).filter_map(highest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at_s: f64, requests: u64, p50_us: f64) -> Second {
        Second { at_s, requests, errors: 1, p50_us, p99_us: 2.0 * p50_us, max_us: 3.0 * p50_us }
    }

    fn check_intervals(seconds: &[Second], expected: &[(f64, f64, u64)]) {
        let intervals: Vec<_> = intervals(seconds)
            .iter()
            .map(|interval| (interval.from_s, interval.to_s, interval.requests))
            .collect();
        assert_eq!(intervals, expected);
    }

    #[test]
    fn the_rest_of_a_second_joins_the_one_before() {
        check_intervals(&[], &[]);
        check_intervals(&[second(0.3, 5, 1.0)], &[(0.0, 0.3, 5)]);
        check_intervals(&[second(1.0, 10, 1.0), second(1.3, 3, 1.0)], &[(0.0, 1.3, 13)]);
        check_intervals(&[second(1.0, 10, 1.0), second(1.6, 6, 1.0)], &[(0.0, 1.0, 10), (1.0, 1.6, 6)]);
        check_intervals(&[second(f64::NAN, 10, 1.0), second(0.0, 6, 1.0)], &[]);
    }

    #[test]
    fn seconds_that_are_shown_together_keep_their_worst() {
        let together = Interval {
            from_s: 0.0,
            to_s: 1.0,
            requests: 30,
            errors: 0,
            p50_us: 1.0,
            p99_us: 9.0,
            max_us: 9.0,
        };
        let next = Interval {
            from_s: 1.0,
            to_s: 2.0,
            requests: 10,
            errors: 2,
            p50_us: 5.0,
            p99_us: 7.0,
            max_us: 12.0,
        };
        let expected = Interval {
            from_s: 0.0,
            to_s: 2.0,
            requests: 40,
            errors: 2,
            p50_us: 2.0,
            p99_us: 9.0,
            max_us: 12.0,
        };
        assert_eq!(together.and(next), expected);
        let hours: Vec<Second> = (1..=7200).map(|number| second(f64::from(number), 10, 1.0)).collect();
        assert_eq!(intervals(&hours).len(), POINTS_MAX);
    }

    #[test]
    fn growth_is_counted_between_samples() {
        let sample = |at_s, cpu_s| Sample { at_s, cpu_s, resident_bytes: None, fsyncs: None };
        let samples = [
            sample(0.0, Some(1.0)),
            sample(1.0, None),
            sample(2.0, Some(2.0)),
            sample(2.1, Some(9.0)),
            sample(3.0, Some(0.0)),
            sample(4.0, Some(2.0)),
        ];
        assert_eq!(growth(&samples, |sample| sample.cpu_s), [(1.0, 0.5), (3.5, 2.0)]);
        assert_eq!(peaks(&samples[..2], |sample| sample.cpu_s), [(0.0, 1.0)]);
        assert_eq!(growth(&[], |sample| sample.cpu_s), []);
    }
}
