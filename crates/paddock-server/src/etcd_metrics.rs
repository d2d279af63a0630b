//! Metrics of a front end on etcd: the times of its calls, what its engine counts, and how old its state is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use paddock_etcd::{Call, EngineCounts};
use parking_lot::Mutex;

use paddock_statistics::metric::{Metric, counter, gauge, rounded};
use paddock_statistics::request_times::{Histogram, Times, print_us};

/// Calls as the metric's label names them.
const CALLS: [&str; 5] = ["transaction", "read", "grant", "revoke", "probe"];
const TRANSACTION: usize = 0;

/// State of the engine, as its thread saw it last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EtcdReport {
    pub(crate) counts: EngineCounts,
    pub(crate) under_way: usize,
    /// Time in milliseconds since it was last confirmed that the state is that of etcd.
    pub(crate) state_age_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct EtcdStats {
    /// Written by the engine's thread only.
    calls: [Histogram; CALLS.len()],
    longest_us: AtomicU64,
    failed: AtomicU64,
    connections: AtomicU64,
    logins: AtomicU64,
    report: Mutex<EtcdReport>,
}

impl EtcdStats {
    /// A call has ended after that time.
    pub(crate) fn called(&self, call: &Call, time: Duration, has_failed: bool) {
        let index = match call {
            Call::Transact(_) => TRANSACTION,
            Call::Read { .. } => 1,
            Call::Grant { .. } => 2,
            Call::Revoke { .. } => 3,
            Call::Probe { .. } => 4,
        };
        if has_failed {
            self.failed.fetch_add(1, Relaxed);
            return;
        }
        let us = time.as_micros() as u64;
        self.calls[index].record_us(us);
        if index == TRANSACTION {
            self.longest_us.fetch_max(us, Relaxed);
        }
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn logged_in(&self) {
        self.logins.fetch_add(1, Relaxed);
    }

    pub(crate) fn set_report(&self, report: EtcdReport) {
        *self.report.lock() = report;
    }

    /// The histogram in Prometheus' text format.
    pub(crate) fn print(&self, page: &mut String) {
        let help = "Time from a call of etcd to its answer, by call; those that failed are not part of it";
        let times = CALLS.iter().zip(&self.calls).map(|(name, histogram)| (*name, histogram.times()));
        print_us(page, ("paddock_etcd_call_seconds", help), "call", times);
    }

    /// Metrics for `mntr` and for Prometheus.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let EtcdReport { counts, under_way, state_age_ms } = *self.report.lock();
        let times: Times = self.calls[TRANSACTION].times();
        let longest_ms = self.longest_us.load(Relaxed) as f64 / 1e3;
        vec![
            gauge(
                "avg_etcd_latency",
                "Average time from a transaction to etcd's answer, in milliseconds",
                rounded(times.average() / 1e3),
            ),
            gauge(
                "max_etcd_latency",
                "Longest time from a transaction to etcd's answer, in milliseconds",
                rounded(longest_ms),
            ),
            counter("etcd_transactions", "Transactions that etcd was sent", counts.transactions),
            counter(
                "etcd_races_lost",
                "Transactions that were planned anew because another front end was faster",
                counts.races_lost,
            ),
            counter(
                "etcd_refused_for_space",
                "Writes that etcd has refused because its space is exhausted",
                counts.refused_for_space,
            ),
            counter(
                "etcd_transactions_resent",
                "Transactions that were sent again because etcd gave no answer",
                counts.resent,
            ),
            counter(
                "etcd_calls_failed",
                "Calls of etcd without an answer, or with a refusal",
                self.failed.load(Relaxed),
            ),
            counter(
                "etcd_connections",
                "Connections to a member of etcd that were made",
                self.connections.load(Relaxed),
            ),
            counter("etcd_logins", "Tokens that etcd's user was given", self.logins.load(Relaxed)),
            counter("etcd_watch_streams", "Watch streams of etcd that were asked for", counts.watch_streams),
            counter("etcd_loads", "Times that the whole state was read from etcd", counts.loads),
            gauge(
                "etcd_transactions_under_way",
                "Transactions that the watch stream has not brought back yet",
                under_way,
            ),
            gauge(
                "etcd_watch_lag_ms",
                "Time between etcd's answer to a transaction and its being in the state, in milliseconds",
                counts.watch_lag_ms,
            ),
            gauge(
                "etcd_state_age_ms",
                "Time for which nobody has confirmed that the state is that of etcd, in milliseconds",
                state_age_ms,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_calls_are_told_apart_and_failures_are_only_counted() {
        let stats = EtcdStats::default();
        let grant = Call::Grant { lease: 1, ttl_s: 1 };
        stats.called(&Call::Transact(Default::default()), Duration::from_micros(1500), false);
        stats.called(&Call::Transact(Default::default()), Duration::from_micros(500), false);
        stats.called(&grant, Duration::from_secs(9), true);
        stats.set_report(EtcdReport { under_way: 3, ..EtcdReport::default() });
        let mut page = String::new();
        stats.print(&mut page);
        for line in [
            "paddock_etcd_call_seconds_bucket{call=\"transaction\",le=\"0.001\"} 1",
            "paddock_etcd_call_seconds_sum{call=\"transaction\"} 0.002",
            "paddock_etcd_call_seconds_count{call=\"grant\"} 0",
        ] {
            assert!(page.lines().any(|printed| printed == line), "{line} is missing in\n{page}");
        }
        let lines: Vec<(String, String)> = stats
            .metrics()
            .iter()
            .flat_map(|metric| metric.lines())
            .map(|(name, value)| (name, value.to_owned()))
            .collect();
        for (name, value) in [
            ("avg_etcd_latency", "1.0"),
            ("max_etcd_latency", "1.5"),
            ("etcd_calls_failed", "1"),
            ("etcd_transactions_under_way", "3"),
        ] {
            let found = lines.iter().find(|(found, _)| found == name);
            assert_eq!(found.map(|(_, value)| value.as_str()), Some(value), "{name}");
        }
    }
}
