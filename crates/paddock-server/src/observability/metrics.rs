//! Metrics of a member: one list, which `mntr` and the port for metrics print.

use std::fmt::Write;

use paddock_front::LimitHit;
use paddock_member::Clock as _;
use paddock_replica::FollowerStanding;
use paddock_tree::QuotaUse;

use super::clickhouse_metrics;
use super::metric::{Label, Metric, MetricKind, counter, gauge, rounded};
use super::status::{self, Status, role_name};
use super::version::version_and_date;
use crate::shared::Shared;

/// Metrics that ZooKeeper has, under its names.
pub(crate) fn of_zookeeper(shared: &Shared) -> Vec<Metric> {
    let s = Status::of(shared);
    let (open_files, max_files) = status::file_descriptors();
    let average = rounded(s.latency_ms_average);
    let mut metrics = vec![
        gauge("avg_latency", "Average time from a request to its answer, in milliseconds", average),
        gauge("max_latency", "Longest time from a request to its answer, in milliseconds", s.latency_ms_max),
        gauge("min_latency", "Shortest time from a request to its answer, in milliseconds", s.latency_ms_min),
        counter("packets_received", "Requests that clients have sent", s.received),
        counter("packets_sent", "Answers and watch events that clients were sent", s.sent),
        gauge("num_alive_connections", "Connections of clients", s.connections),
        counter("connection_rejected", "Connections that were refused by a limit", s.connections_rejected),
        gauge("outstanding_requests", "Requests that are not answered yet", s.outstanding),
        gauge("uptime", "Time since the member was started, in milliseconds", s.uptime_ms),
        gauge("znode_count", "Znodes in the tree", s.znodes),
        gauge("watch_count", "Watches of this member's clients", s.watches),
        gauge("ephemerals_count", "Ephemeral znodes in the tree", s.ephemerals),
        gauge("approximate_data_size", "Bytes of names and data in the tree", s.data_bytes),
        gauge("global_sessions", "Sessions in the ensemble", s.sessions),
        gauge("local_sessions", "Sessions that only one member knows; there are none", 0),
        counter("auth_failed_count", "Clients that could not prove who they are", s.auth_failed),
        gauge(
            "client_buffer_bytes",
            "Bytes of unanswered requests, and of answers and watch events that clients have not read, together",
            s.client_buffer_bytes,
        ),
        counter(
            "client_buffer_closed",
            "Connections that were closed because they held memory and did not read",
            s.hits(LimitHit::Buffers),
        ),
        counter("digest_mismatches_count", "Digests of the state that differed between members", s.differing),
        gauge("quorum_size", "Members with a vote", s.voters),
        counter("cnt_snapshottime", "Snapshots that were taken", s.snapshots),
        counter("snapshot_error_count", "Snapshots that failed", s.snapshots_failed),
        counter("cnt_fsynctime", "Syncs of the transaction log", s.fsyncs),
        gauge(
            "last_client_response_size",
            "Size of the last answer in bytes, -1 before the first",
            s.reply_bytes.0,
        ),
        gauge(
            "min_client_response_size",
            "Size of the smallest answer in bytes, -1 before the first",
            s.reply_bytes.1,
        ),
        gauge(
            "max_client_response_size",
            "Size of the largest answer in bytes, -1 before the first",
            s.reply_bytes.2,
        ),
        gauge(
            "connection_drop_probability",
            "Chance of a new connection to be refused; there is no such limit",
            "0.0",
        ),
        gauge("outstanding_tls_handshake", "TLS handshakes under way", s.handshakes),
        counter(
            "tls_handshake_exceeded",
            "Connections that were refused because too many TLS handshakes were under way",
            s.hits(LimitHit::Handshakes),
        ),
        counter("unsuccessful_handshake", "TLS handshakes that failed", s.hits(LimitHit::TlsFailure)),
        counter(
            "request_throttle_wait_count",
            "Times that a client had to wait because too many requests were under way",
            s.hits(LimitHit::Outstanding),
        ),
        counter(
            "throttled_ops",
            "Requests that were refused for want of memory, or because there were too many watches",
            s.hits(LimitHit::Memory) + s.hits(LimitHit::Watches),
        ),
        gauge(
            "memory_limit_exceeded",
            "1 while writes that make the state larger are refused for want of memory",
            u8::from(s.memory.1),
        ),
        counter(
            "non_mtls_remote_conn_count",
            "Connections from elsewhere without a client's certificate; not counted",
            0,
        ),
        counter(
            "non_mtls_local_conn_count",
            "Connections from this machine without a client's certificate; not counted",
            0,
        ),
        gauge("open_file_descriptor_count", "Open files and sockets", open_files),
        gauge("max_file_descriptor_count", "Files and sockets that may be open", max_files),
    ];
    if let Some(leads_for_ms) = s.leads_for_ms {
        let count = |wanted: fn(&FollowerStanding) -> bool| {
            s.standing.followers.iter().filter(|follower| follower.is_heard && wanted(follower)).count()
        };
        let followers = count(|follower| follower.has_vote && !follower.gets_snapshot);
        let heard_followers = count(|follower| follower.has_vote);
        let observers = count(|follower| !follower.has_vote && !follower.gets_snapshot);
        metrics.extend([
            gauge("leader_uptime", "Time for which this member has led, in milliseconds", leads_for_ms),
            gauge("learners", "Members that this leader hears", count(|_| true)),
            gauge("followers", "Members with a vote that this leader hears", heard_followers),
            gauge("pending_syncs", "Syncs of clients that wait for an answer from a quorum; not counted", 0),
            gauge("synced_followers", "Followers with a vote that are heard and need no snapshot", followers),
            gauge("synced_non_voting_followers", "Followers that have lost their vote; there are none", 0),
            gauge("synced_observers", "Observers that are heard and need no snapshot", observers),
        ]);
    }
    metrics.extend(of_quotas(shared));
    if let Some(etcd) = &shared.etcd {
        metrics.extend(etcd.metrics());
    }
    if let Some(cross_check) = &shared.cross_check {
        metrics.extend(cross_check.stats.metrics());
    }
    // Beyond ZooKeeper's own, and only where someone asked for them.
    if let Some(audit) = &shared.audit {
        metrics.push(counter(
            "audit_lines_lost",
            "Lines of the audit log that could not be written",
            audit.lost(),
        ));
    }
    if let Some((exported, dropped)) = s.spans {
        metrics.push(counter("spans_exported", "Spans that were exported", exported));
        metrics.push(counter("spans_dropped", "Spans that found no room or were refused", dropped));
    }
    metrics
}

/// Limits and use of quotas by the child of the root that they are below, as far as there are any.
fn of_quotas(shared: &Shared) -> Vec<Metric> {
    let state = shared.state.read();
    let quotas = state.tree().quota_use();
    let of_each = |name, help, value: fn(&QuotaUse) -> i64| {
        let values = quotas.iter().map(|(key, quota)| (key.clone(), value(quota).to_string()));
        by_key(name, MetricKind::Gauge, help, values)
    };
    let overruns = state.tree().quota_overruns();
    let counted = |counts: Vec<(&str, u64)>| {
        counts.into_iter().map(|(key, count)| (key.to_owned(), count.to_string())).collect::<Vec<_>>()
    };
    let metrics = [
        of_each("quota_count_limit_per_namespace", "Znodes that there may be", |quota| quota.count_limit),
        of_each("quota_bytes_limit_per_namespace", "Bytes of data that there may be", |quota| {
            quota.bytes_limit
        }),
        of_each("quota_count_usage_per_namespace", "Znodes that count for a quota", |quota| quota.count),
        of_each("quota_bytes_usage_per_namespace", "Bytes of data that count for a quota", |quota| {
            quota.bytes
        }),
        by_key(
            "quota_exceeded_error_per_namespace",
            MetricKind::Counter,
            "Writes that a hard limit of a quota has refused",
            counted(overruns.refused().collect()),
        ),
        by_key(
            "quota_soft_exceeded_per_namespace",
            MetricKind::Counter,
            "Writes above a soft limit of a quota",
            counted(overruns.told().collect()),
        ),
    ];
    metrics.into_iter().filter(|metric| !metric.values.is_empty()).collect()
}

/// A metric with the label that ZooKeeper gives those that are told apart by a name.
fn by_key(
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
    values: impl IntoIterator<Item = (String, String)>,
) -> Metric {
    let values = values.into_iter().map(|(key, value)| (Some(("key", key)), value)).collect();
    Metric { name, kind, help, values }
}

/// Metrics of Paddock's own, and of its process under the names that are common with Prometheus.
fn of_paddock(shared: &Shared) -> Vec<Metric> {
    let s = Status::of(shared);
    let role = role_name(shared.role());
    let disk = status::disk_bytes(&shared.config.data_dir);
    let clock_s = shared.clock.now().wall_ms as f64 / 1e3;
    let start_s = shared.clock.now().wall_ms / 1000 - (s.uptime_ms / 1000) as i64;
    let (open_files, max_files) = status::file_descriptors();
    let of_followers = |value: &dyn Fn(&FollowerStanding) -> u64| {
        let labelled = |f: &FollowerStanding| (Some(("member", f.member.to_string())), value(f).to_string());
        s.standing.followers.iter().map(labelled).collect()
    };
    let labelled = |name, label: Label, help| Metric {
        name,
        kind: MetricKind::Gauge,
        help,
        values: vec![(Some(label), "1".to_owned())],
    };
    let mut metrics = vec![
        labelled("paddock_info", ("version", version_and_date()), "Version of this member"),
        labelled("paddock_role", ("role", role.to_owned()), "Part of this member in its ensemble"),
        gauge("paddock_member", "Number of this member", shared.config.member),
        gauge("paddock_term", "Raft term that this member is in", s.standing.term),
        gauge(
            "paddock_leader",
            "Number of the leader, 0 while none is known",
            s.standing.leader.unwrap_or(0),
        ),
        gauge("paddock_zxid", "Newest zxid that is applied here", s.zxid.0),
        gauge("paddock_log_last_entry", "Last entry in the transaction log", s.standing.last_entry),
        gauge(
            "paddock_log_committed_entry",
            "Last entry that is known to be committed",
            s.standing.committed,
        ),
        gauge("paddock_log_applied_entry", "Last entry that is applied to the tree", s.standing.applied),
        gauge("paddock_log_bytes", "Bytes of the transaction log on disk", status::log_bytes(shared)),
        gauge(
            "paddock_data_bytes",
            "Bytes of snapshots and all else in the data directory, without the log",
            status::data_bytes(shared),
        ),
        gauge("paddock_disk_free_bytes", "Bytes that are free where the data directory is", disk.0),
        gauge("paddock_disk_size_bytes", "Size of the disk that the data directory is on, in bytes", disk.1),
        gauge(
            "paddock_client_buffer_bytes_max",
            "Limit of client_buffer_bytes",
            shared.limits.buffers.max() as u64,
        ),
        gauge(
            "paddock_watches_max",
            "Limit of watch_count; 0 is none",
            shared.settings().client_limits.watches_max,
        ),
        gauge("paddock_clock_seconds", "Time by this member's clock, in seconds since 1970", clock_s),
        gauge("process_resident_memory_bytes", "Resident memory in bytes", status::resident_bytes()),
        gauge("process_start_time_seconds", "Start of the process, in seconds since 1970", start_s),
        gauge("process_open_fds", "Open files and sockets", open_files),
        gauge("process_max_fds", "Files and sockets that may be open", max_files),
    ];
    metrics.push(Metric {
        name: "paddock_limit_hits",
        kind: MetricKind::Counter,
        help: "Times that clients have hit a limit",
        values: s
            .limit_hits
            .iter()
            .map(|(limit, hits)| (Some(("limit", limit.label().to_owned())), hits.to_string()))
            .collect(),
    });
    if let Some(bytes) = s.memory.0 {
        metrics.push(gauge("paddock_memory_max_bytes", "Limit of resident memory in bytes", bytes));
    }
    if s.leads_for_ms.is_some() {
        metrics.push(Metric {
            name: "paddock_member_lag_entries",
            kind: MetricKind::Gauge,
            help: "Entries that another member has not acknowledged to this leader yet",
            values: of_followers(&|follower| s.standing.last_entry.saturating_sub(follower.matched)),
        });
        metrics.push(Metric {
            name: "paddock_member_gets_snapshot",
            kind: MetricKind::Gauge,
            help: "1 if another member lacks so much that it is sent a snapshot",
            values: of_followers(&|follower| follower.gets_snapshot.into()),
        });
        metrics.push(Metric {
            name: "paddock_member_is_heard",
            kind: MetricKind::Gauge,
            help: "1 if this leader has heard the member within an election timeout",
            values: of_followers(&|follower| follower.is_heard.into()),
        });
    }
    metrics
}

/// The two formats that Prometheus reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    Text,
    OpenMetrics,
}

impl MetricsFormat {
    /// The format that an `Accept` header asks for.
    pub(crate) fn accepted(accept: Option<&str>) -> MetricsFormat {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => MetricsFormat::OpenMetrics,
            _ => MetricsFormat::Text,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::Text => "text/plain; version=0.0.4; charset=utf-8",
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Metrics under ZooKeeper's names and Paddock's own.
pub(crate) fn page(shared: &Shared, format: MetricsFormat) -> String {
    let mut page = String::new();
    shared.times.print(&mut page);
    if let Some(etcd) = &shared.etcd {
        etcd.print(&mut page);
    }
    page + &print(of_zookeeper(shared).into_iter().chain(of_paddock(shared)), format)
}

/// Metrics under ClickHouse Keeper's names.
pub(crate) fn clickhouse_page(shared: &Shared, format: MetricsFormat) -> String {
    print(clickhouse_metrics::of_clickhouse(shared).into_iter(), format)
}

fn print(metrics: impl Iterator<Item = Metric>, format: MetricsFormat) -> String {
    let mut page = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(page, "{line}").expect("a string takes all");
    for Metric { name, kind, help, values } in metrics {
        let kind = match (kind, format) {
            // OpenMetrics would have `_total` behind a counter's name. A Prometheus asks for that format by default, and
            // dashboards made for ZooKeeper have to find its names.
            (MetricKind::Counter, MetricsFormat::OpenMetrics) => "unknown",
            (MetricKind::Counter, MetricsFormat::Text) => "counter",
            (MetricKind::Gauge, _) => "gauge",
        };
        line(format_args!("# HELP {name} {help}"));
        line(format_args!("# TYPE {name} {kind}"));
        for (label, value) in values {
            match label {
                None => line(format_args!("{name} {value}")),
                Some((label, text)) => {
                    line(format_args!("{name}{{{label}=\"{}\"}} {value}", escaped(&text)));
                }
            }
        }
    }
    if format == MetricsFormat::OpenMetrics {
        page += "# EOF\n";
    }
    page
}

/// The value of a label, with what would end it escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_the_same_name_in_both_formats() {
        let page = print([counter("syncs", "Syncs", 7)].into_iter(), MetricsFormat::OpenMetrics);
        assert_eq!(page, "# HELP syncs Syncs\n# TYPE syncs unknown\nsyncs 7\n# EOF\n");
    }

    #[test]
    fn metrics_are_printed_as_prometheus_reads_them() {
        let labels = vec![
            (Some(("member", "2".to_owned())), "0".to_owned()),
            (Some(("member", "a\"b\\c\nd".to_owned())), "17".to_owned()),
        ];
        let kind = MetricKind::Gauge;
        let metrics =
            [counter("syncs", "Syncs", 7), Metric { name: "lag", kind, help: "Lag", values: labels }];
        assert_eq!(
            print(metrics.into_iter(), MetricsFormat::Text),
            "# HELP syncs Syncs\n# TYPE syncs counter\nsyncs 7\n# HELP lag Lag\n# TYPE lag gauge\n\
             lag{member=\"2\"} 0\nlag{member=\"a\\\"b\\\\c\\nd\"} 17\n"
        );
    }
}
