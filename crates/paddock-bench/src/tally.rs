//! The sum of what all threads measured, as a report.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::measure::{Measured, Slice, summary};
use crate::progress::Tick;
use crate::report::{OperationReport, PhaseReport, Second};

/// Collects slices second by second.
pub(crate) struct Tally {
    names: Vec<String>,
    threads: usize,
    total: Slice,
    seconds: Vec<Second>,
    phases: Vec<PhaseReport>,
    /// Begin of the phase that is being played, from the start of the run.
    phase_start: Duration,
    phase_requests: u64,
    /// Seconds of this phase that not every thread has told yet.
    open: BTreeMap<u64, (usize, Slice)>,
}

impl Tally {
    pub(crate) fn new(names: Vec<String>, threads: usize) -> Tally {
        let total = Slice::new(names.len());
        Tally {
            names,
            threads,
            total,
            seconds: Vec::new(),
            phases: Vec::new(),
            phase_start: Duration::ZERO,
            phase_requests: 0,
            open: BTreeMap::new(),
        }
    }

    /// Takes a slice; returns the second if this was the last thread to tell it.
    pub(crate) fn add(&mut self, second: u64, slice: &Slice) -> Option<Tick> {
        self.total.add(slice);
        self.phase_requests += slice.requests();
        let (told, sum) = self.open.entry(second).or_insert_with(|| (0, Slice::new(self.names.len())));
        *told += 1;
        sum.add(slice);
        if *told < self.threads {
            return None;
        }
        let (_, sum) = self.open.remove(&second).expect("it was there a line ago");
        let at = self.phase_start + Duration::from_secs(second + 1);
        self.push_second(at, &sum);
        let last = self.seconds.last().expect("it was just pushed");
        Some(Tick {
            at,
            requests_per_second: last.requests as f64,
            p50_us: last.p50_us,
            p99_us: last.p99_us,
            errors: self.total.errors(),
            left: None,
        })
    }

    fn push_second(&mut self, at: Duration, slice: &Slice) {
        let latency = summary(&slice.all_latencies());
        self.seconds.push(Second {
            at_s: at.as_secs_f64(),
            requests: slice.requests(),
            errors: slice.errors(),
            p50_us: latency.percentile_us(50.0),
            p99_us: latency.percentile_us(99.0),
            max_us: latency.max_us,
        });
    }

    /// The phase is over, `elapsed` after its start.
    pub(crate) fn end_phase(&mut self, name: String, elapsed: Duration) {
        for (second, (_, slice)) in std::mem::take(&mut self.open) {
            self.push_second(self.phase_start + Duration::from_secs(second + 1), &slice);
        }
        self.seconds.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        self.phase_start += elapsed;
        // The last second was cut short, and what came of it late is not a second of its own.
        let end = self.phase_start.as_secs_f64();
        self.seconds.iter_mut().for_each(|second| second.at_s = second.at_s.min(end));
        self.merge_late_seconds();
        let requests = std::mem::take(&mut self.phase_requests);
        self.phases.push(PhaseReport { name, requests, elapsed_s: elapsed.as_secs_f64() });
    }

    /// Seconds that ended together are one.
    fn merge_late_seconds(&mut self) {
        self.seconds.dedup_by(|late, second| {
            let is_same = late.at_s == second.at_s;
            if is_same {
                second.requests += late.requests;
                second.errors += late.errors;
                second.p50_us = second.p50_us.max(late.p50_us);
                second.p99_us = second.p99_us.max(late.p99_us);
                second.max_us = second.max_us.max(late.max_us);
            }
            is_same
        });
    }

    pub(crate) fn requests(&self) -> u64 {
        self.total.requests()
    }

    pub(crate) fn total(&self) -> &Slice {
        &self.total
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.phase_start
    }

    pub(crate) fn operations(&self) -> Vec<OperationReport> {
        let report = |(number, measured): (usize, &Measured)| OperationReport {
            name: self.names[number].clone(),
            requests: measured.latencies.len(),
            requests_per_second: measured.latencies.len() as f64 / self.operation_s(number),
            errors: measured.errors.clone(),
            latency: summary(&measured.latencies),
        };
        self.total.operations.iter().enumerate().map(report).collect()
    }

    /// Time for which an operation was asked for, in seconds: where each phase has its own operation, the length of that phase.
    fn operation_s(&self, number: usize) -> f64 {
        let has_own = self.phases.len() > 1 && self.phases.len() == self.names.len();
        let elapsed_s = if has_own { self.phases[number].elapsed_s } else { self.elapsed().as_secs_f64() };
        // What was never answered took no time at all.
        elapsed_s.max(f64::MIN_POSITIVE)
    }

    pub(crate) fn into_seconds_and_phases(self) -> (Vec<Second>, Vec<PhaseReport>) {
        (self.seconds, self.phases)
    }
}
