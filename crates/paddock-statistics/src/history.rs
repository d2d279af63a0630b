//! The last quarter of an hour of a member with a page: what its charts show, from before it was opened.
//!
//! Memory is bounded: a moment is some numbers, and their number is fixed.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::request_times::{BUCKETS, RequestTimes, Totals};

/// Milliseconds between two moments.
const INTERVAL_MS: u64 = 5000;
/// Moments that are kept: a quarter of an hour.
const KEPT: usize = 180;

/// Some seconds of a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Its end, in milliseconds since 1970.
    pub at_ms: i64,
    /// Requests per second: those that change nothing, and those that go through the log.
    pub reads: f64,
    /// Requests per second that go through the log.
    pub writes: f64,
    /// Times from a request to its answer, in milliseconds: the median, and those that 95 and 99 of 100 are below. `None` without requests.
    pub request_ms: [Option<f64>; 3],
    /// Time of a sync of the log that 95 of 100 are below, in milliseconds.
    pub sync_ms: Option<f64>,
    /// Watches at its end.
    pub watches: usize,
    /// Sessions at its end.
    pub sessions: usize,
    /// Connections of clients at its end.
    pub connections: usize,
}

/// The moments that are kept.
#[derive(Debug, Default)]
pub struct History(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    moments: VecDeque<Moment>,
    /// End of the last one, or the member's start, in milliseconds of the monotonic clock; and the counters then.
    last_ms: u64,
    last: Totals,
}

impl History {
    /// True if another moment is over. To be asked more often than that.
    pub fn is_due(&self, now_ms: u64) -> bool {
        now_ms >= self.0.lock().last_ms + INTERVAL_MS
    }

    /// Keeps the moment that ends now, by the clocks, by the counters so far and by what there is now: watches, sessions, connections.
    pub fn note(&self, now_ms: u64, wall_ms: i64, totals: Totals, counts: [usize; 3]) {
        self.0.lock().note(now_ms, wall_ms, totals, counts);
    }

    /// The oldest first.
    pub fn moments(&self) -> Vec<Moment> {
        self.0.lock().moments.iter().cloned().collect()
    }
}

impl Kept {
    fn note(
        &mut self,
        now_ms: u64,
        at_ms: i64,
        totals: Totals,
        [watches, sessions, connections]: [usize; 3],
    ) {
        let (last, seconds) = (&self.last, (now_ms - self.last_ms).max(1) as f64 / 1e3);
        let (requests, syncs) = (grown(&totals.requests, &last.requests), grown(&totals.syncs, &last.syncs));
        let (request_us, sync_us) = RequestTimes::BOUNDS_US;
        self.moments.push_back(Moment {
            at_ms,
            reads: (totals.reads - last.reads) as f64 / seconds,
            writes: (totals.writes - last.writes) as f64 / seconds,
            request_ms: [0.5, 0.95, 0.99].map(|share| quantile_ms(&requests, request_us, share)),
            sync_ms: quantile_ms(&syncs, sync_us, 0.95),
            watches,
            sessions,
            connections,
        });
        if self.moments.len() > KEPT {
            self.moments.pop_front();
        }
        (self.last_ms, self.last) = (now_ms, totals);
    }
}

fn grown(now: &[u64; BUCKETS], before: &[u64; BUCKETS]) -> [u64; BUCKETS] {
    std::array::from_fn(|bucket| now[bucket].saturating_sub(before[bucket]))
}

/// The time in milliseconds that a share of all are below, as Prometheus estimates it: evenly spread within a bucket.
fn quantile_ms(counts: &[u64; BUCKETS], bounds_us: &[u64], share: f64) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return None;
    }
    let wanted = total as f64 * share;
    let mut below = 0.0;
    for (bucket, count) in counts.iter().enumerate() {
        let count = *count as f64;
        if count > 0.0 && below + count >= wanted {
            let lower = bucket.checked_sub(1).map_or(0, |before| bounds_us[before]) as f64;
            let upper = bounds_us[bucket.min(bounds_us.len() - 1)] as f64;
            return Some((lower + (upper - lower) * (wanted - below) / count) / 1e3);
        }
        below += count;
    }
    bounds_us.last().map(|last| *last as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_what_has_happened_in_between_and_the_old_ones_go() {
        let mut kept = Kept::default();
        let mut totals = Totals { reads: 50, writes: 10, ..Totals::default() };
        totals.requests[1] = 60;
        kept.note(5000, 6000, totals.clone(), [1, 2, 3]);
        assert_eq!(
            kept.moments,
            [Moment {
                at_ms: 6000,
                reads: 10.0,
                writes: 2.0,
                request_ms: [Some(0.075), Some(0.0975), Some(0.0995)],
                sync_ms: None,
                watches: 1,
                sessions: 2,
                connections: 3,
            }]
        );
        for number in 0..500 {
            kept.note(10_000 + number * 5000, 0, totals.clone(), [0; 3]);
        }
        assert_eq!(kept.moments.len(), KEPT);
        assert_eq!((kept.moments[0].reads, kept.moments[0].request_ms), (0.0, [None; 3]));
    }

    #[test]
    fn a_time_above_all_bounds_is_told_as_the_last_one() {
        let (bounds, _) = RequestTimes::BOUNDS_US;
        let mut counts = [0; BUCKETS];
        counts[BUCKETS - 1] = 5;
        assert_eq!(quantile_ms(&counts, bounds, 0.5), Some(10_000.0));
    }
}
