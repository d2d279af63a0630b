//! Metrics of Paddock's own, and of its process under the names that are common with Prometheus.

use paddock_front::TenantUse;
use paddock_member::Clock as _;
use paddock_os::process;
use paddock_replica::FollowerStanding;
use paddock_statistics::backup_board::{BackupReached, BackupStanding};
use paddock_statistics::log_lines;
use paddock_statistics::metric::{Label, Metric, MetricKind, MetricValue, counter, gauge};

use crate::reports::status::{self, Status, role_name};
use crate::shared::Shared;
use crate::version::version_and_date;

/// Metrics of Paddock's own, and of its process under the names that are common with Prometheus.
pub(super) fn of_paddock(shared: &Shared) -> Vec<Metric> {
    let s = Status::of(shared);
    let role = role_name(shared.engine.role());
    let disk = process::disk_bytes(&shared.config.data_dir);
    let clock_s = shared.clock.now().wall_ms as f64 / 1e3;
    let start_s = shared.clock.now().wall_ms / 1000 - (s.uptime_ms / 1000) as i64;
    let (open_files, max_files) = process::file_descriptors();
    let of_followers = |value: &dyn Fn(&FollowerStanding) -> u64| {
        let labelled =
            |f: &FollowerStanding| (Some(("member", f.member.to_string())), MetricValue::of(value(f)));
        s.standing.followers.iter().map(labelled).collect()
    };
    let labelled = |name, label: Label, help| Metric {
        name,
        kind: MetricKind::Gauge,
        help,
        values: vec![(Some(label), MetricValue::of(1))],
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
        counter(
            "paddock_slow_disk_handovers",
            "Times that this leader has asked another member to lead because its disk was much slower",
            s.standing.slow_disk_handovers,
        ),
        counter(
            "paddock_slow_link_handovers",
            "Times that this leader has asked another member to lead because its way to a quorum was much longer",
            s.standing.slow_link_handovers,
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
            shared.limits.counters.buffers.max() as u64,
        ),
        gauge(
            "paddock_watches_max",
            "Limit of watch_count; 0 is none",
            shared.settings().client_limits.watches_max,
        ),
        gauge(
            "paddock_sessions_max",
            "Limit of global_sessions; 0 is none",
            shared.settings().client_limits.sessions_max,
        ),
        gauge(
            "paddock_connections_max",
            "Limit of num_alive_connections; 0 is none",
            shared.settings().connections_max,
        ),
        gauge("paddock_clock_seconds", "Time by this member's clock, in seconds since 1970", clock_s),
        gauge("process_resident_memory_bytes", "Resident memory in bytes", process::resident_bytes()),
        gauge(
            "process_swapped_memory_bytes",
            "Memory of the process that the system has moved to swap, in bytes",
            process::swapped_bytes(),
        ),
        counter(
            "paddock_log_lines_lost",
            "Lines of the log that were dropped, since nobody read standard error, or could not be written",
            log_lines::lost(),
        ),
        counter(
            "process_cpu_seconds_total",
            "Time that processors have spent on the process, in seconds",
            process::cpu_seconds(),
        ),
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
            .map(|(limit, hits)| (Some(("limit", (*limit).to_owned())), MetricValue::of(hits)))
            .collect(),
    });
    let ends = status::certificate_ends(shared);
    if !ends.is_empty() {
        let end = |(port, end_s): (&str, u64)| (Some(("port", port.to_owned())), MetricValue::of(end_s));
        metrics.push(Metric {
            name: "paddock_certificate_end_seconds",
            kind: MetricKind::Gauge,
            help: "End of the certificate that a port shows, in seconds since 1970",
            values: ends.into_iter().map(end).collect(),
        });
    }
    metrics.extend(shared.statistics.backups.standing().iter().flat_map(of_backups));
    if !s.tenants.is_empty() {
        metrics.extend(of_tenants(&s.tenants));
    }
    if let Some(bytes) = s.memory.0 {
        metrics.push(gauge("paddock_memory_max_bytes", "Limit of resident memory in bytes", bytes));
    }
    if !s.standing.other_groups.is_empty() {
        metrics.extend(of_groups(&s));
    }
    if s.leads_for_ms.is_some() {
        metrics.push(Metric {
            name: "paddock_member_lag_entries",
            kind: MetricKind::Gauge,
            help: "Entries that another member has not acknowledged to this leader yet",
            values: of_followers(&|follower| s.standing.last_entry.saturating_sub(follower.matched)),
        });
        let lag_s = |follower: &FollowerStanding| {
            (Some(("member", follower.member.to_string())), MetricValue::of(follower.lag_ms as f64 / 1e3))
        };
        metrics.push(Metric {
            name: "paddock_member_lag_seconds",
            kind: MetricKind::Gauge,
            help: "Seconds since the first entry that another member has not acknowledged came into the log of this leader",
            values: s.standing.followers.iter().map(lag_s).collect(),
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

/// Load and size of each Raft group, as this member has it.
fn of_groups(s: &Status) -> [Metric; 3] {
    let home = (0, [s.standing.home_commands, s.znodes as u64, s.data_bytes]);
    let others = s.standing.other_groups.iter();
    let others =
        others.map(|group| (group.standing.number, [group.commands, group.znodes, group.data_bytes]));
    let all: Vec<(u32, [u64; 3])> = [home].into_iter().chain(others).collect();
    let metrics = [
        (
            "paddock_group_commands",
            MetricKind::Counter,
            "Commands of a Raft group that this member has applied since its start: writes, and what the group does by itself",
        ),
        ("paddock_group_znodes", MetricKind::Gauge, "Znodes of a Raft group"),
        (
            "paddock_group_data_bytes",
            MetricKind::Gauge,
            "Characters of paths and bytes of data of a Raft group",
        ),
    ];
    let mut place = 0..;
    metrics.map(|(name, kind, help)| {
        let place = place.next().expect("there is a number for each");
        let labelled = |(group, values): &(u32, [u64; 3])| {
            (Some(("group", group.to_string())), MetricValue::of(values[place]))
        };
        Metric { name, kind, help, values: all.iter().map(labelled).collect() }
    })
}

/// Backups that this process makes by a schedule.
fn of_backups(standing: &BackupStanding) -> impl Iterator<Item = Metric> {
    let counters = [
        counter("paddock_backups_made", "Backups that were begun with a snapshot", standing.made),
        counter("paddock_backup_parts_added", "Parts of the log that were added to a backup", standing.added),
        counter("paddock_backup_failures", "Attempts at a backup that failed", standing.failed),
    ];
    let of_end = |end: BackupReached| {
        let time = "Time up to which the newest backup has everything, in seconds since 1970";
        [
            gauge("paddock_backup_end_seconds", time, end.time_s),
            gauge("paddock_backup_zxid", "Zxid of the last write in the newest backup", end.zxid),
        ]
    };
    counters.into_iter().chain(standing.end.into_iter().flat_map(of_end))
}

/// Use that tenants with limits of rate make of this member.
fn of_tenants(tenants: &[TenantUse]) -> impl Iterator<Item = Metric> {
    type Count = fn(&TenantUse) -> u64;
    let counters: [(_, _, Count); 5] = [
        ("paddock_tenant_requests", "Requests of a tenant with limits of rate that were taken", |one| {
            one.requests
        }),
        ("paddock_tenant_request_bytes", "Bytes of these requests", |one| one.bytes),
        ("paddock_tenant_requests_above_soft_limit", "Requests above the tenant's soft limit", |one| {
            one.over_soft
        }),
        ("paddock_tenant_requests_delayed", "Requests that had to wait for the tenant's limit", |one| {
            one.delayed
        }),
        ("paddock_tenant_requests_refused", "Requests refused because of the tenant's limit", |one| {
            one.refused
        }),
    ];
    counters.into_iter().map(|(name, help, count)| {
        let label = |one: &TenantUse| Some(("tenant", format!("{}={}", one.kind.label(), one.name)));
        let values = tenants.iter().map(|one| (label(one), MetricValue::of(count(one)))).collect();
        Metric { name, kind: MetricKind::Counter, help, values }
    })
}
