//! Metrics that ZooKeeper has, under its names. `docs/monitoring/zookeeper-metrics.md` has the list, with those that there are none of here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use paddock_front::LimitHit;
use paddock_os::process;
use paddock_replica::FollowerStanding;
use paddock_state::{FiredWatches, WatchStatistics};
use paddock_statistics::metric::{Metric, advanced_summary, basic_summary, counter, gauge, rounded};
use paddock_statistics::server_metrics::{ServerMetrics, StartTimes};
use paddock_statistics::summary::{Summary, SummaryCounter};

use super::quotas::of_quotas;
use crate::reports::status::Status;
use crate::server_limit::ServerLimit;
use crate::shared::Shared;

/// Metrics that ZooKeeper has, and those for what a member was asked for beyond that.
pub(crate) fn of_zookeeper(shared: &Shared) -> Vec<Metric> {
    let status = Status::of(shared);
    let mut metrics = of_traffic(&status);
    // As in ZooKeeper, near the beginning: collectd reads 4 KiB of `mntr`.
    if let Some(leads_for_ms) = status.leads_for_ms {
        metrics.extend(of_leader(&status, leads_for_ms));
    }
    metrics.extend(of_bytes(shared, &status));
    metrics.extend(of_state(&status));
    metrics.extend(of_connections(&shared.statistics.server_metrics, &status));
    metrics.extend(of_limits(&status));
    metrics.extend(of_disk(shared, &status));
    metrics.extend(of_watches(shared));
    metrics.extend(of_ensemble(&shared.statistics.server_metrics, &status));
    metrics.extend(of_quotas(shared));
    if let Some(etcd) = &shared.statistics.etcd {
        metrics.extend(etcd.metrics());
    }
    if let Some(cross_check) = &shared.opened.cross_check {
        metrics.extend(cross_check.stats.metrics());
    }
    if let Some(audit) = &shared.opened.audit {
        let help = "Lines of the audit log that could not be written";
        metrics.push(counter("audit_lines_lost", help, audit.lost()));
    }
    if let Some((exported, dropped)) = status.spans {
        metrics.push(counter("spans_exported", "Spans that were exported", exported));
        metrics.push(counter("spans_dropped", "Spans that found no room or were refused", dropped));
    }
    metrics
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

fn of_traffic(s: &Status) -> Vec<Metric> {
    let average = rounded(s.latency_ms_average);
    vec![
        gauge("avg_latency", "Average time from a request to its answer, in milliseconds", average),
        gauge("max_latency", "Longest time from a request to its answer, in milliseconds", s.latency_ms_max),
        gauge("min_latency", "Shortest time from a request to its answer, in milliseconds", s.latency_ms_min),
        gauge("packets_received", "Requests that clients have sent", s.received),
        gauge("packets_sent", "Answers and watch events that clients were sent", s.sent),
        gauge("outstanding_requests", "Requests that are not answered yet", s.outstanding),
        gauge("uptime", "Time since the member was started, in milliseconds", s.uptime_ms),
    ]
}

fn of_bytes(shared: &Shared, s: &Status) -> Vec<Metric> {
    let [received, replies, events] = shared.statistics.times.client_bytes();
    let (last, min, max) = s.reply_bytes;
    vec![
        counter("bytes_received_count", "Bytes that clients have sent", received),
        counter("response_bytes", "Bytes of answers that clients were sent", replies),
        counter("watch_bytes", "Bytes of watch events that clients were sent", events),
        gauge("last_client_response_size", "Size of the last answer in bytes, -1 before the first", last),
        gauge("min_client_response_size", "Size of the smallest answer in bytes, -1 before the first", min),
        gauge("max_client_response_size", "Size of the largest answer in bytes, -1 before the first", max),
        advanced_summary(
            "readlatency",
            "Times from requests that change nothing to their answers, in milliseconds",
            shared.statistics.times.summary(false),
        ),
        advanced_summary(
            "updatelatency",
            "Times from requests that go through the log to their answers, in milliseconds",
            shared.statistics.times.summary(true),
        ),
    ]
}

fn of_state(s: &Status) -> Vec<Metric> {
    vec![
        gauge("znode_count", "Znodes in the tree", s.znodes),
        gauge("watch_count", "Watches of this member's clients", s.watches),
        gauge("ephemerals_count", "Ephemeral znodes in the tree", s.ephemerals),
        gauge("approximate_data_size", "Bytes of names and data in the tree", s.data_bytes),
        gauge("global_sessions", "Sessions in the ensemble", s.sessions),
        gauge("local_sessions", "Sessions that only one member knows; there are none", 0),
        counter("digest_mismatches_count", "Digests of the state that differed between members", s.differing),
        counter(
            "stale_sessions_expired",
            "Sessions that this member, as leader, has found expired",
            s.standing.sessions_expired,
        ),
    ]
}

fn of_connections(events: &ServerMetrics, s: &Status) -> Vec<Metric> {
    vec![
        gauge("num_alive_connections", "Connections of clients", s.connections),
        counter("connection_request_count", "Clients that asked for a session", count(&events.greetings)),
        counter(
            "connection_revalidate_count",
            "Clients that asked to go on with their session",
            count(&events.resumptions),
        ),
        counter("connection_rejected", "Connections that were refused by a limit", s.connections_rejected),
        counter(
            "connection_drop_count",
            "Connections that broke, or that a client closed with its session open",
            count(&events.lost_connections),
        ),
        counter(
            "sessionless_connections_expired",
            "Connections that were closed because they asked for no session in time",
            count(&events.silent_connections),
        ),
        counter(
            "cnxn_closed_without_zk_server_running",
            "Connections that were closed because this member had no contact to a quorum",
            count(&events.out_of_contact),
        ),
        gauge("auth_failed_count", "Clients that could not prove who they are", s.auth_failed),
        gauge(
            "non_mtls_remote_conn_count",
            "Connections from other machines without a client's certificate since the start",
            count(&events.unproven_remote),
        ),
        gauge(
            "non_mtls_local_conn_count",
            "Connections from this machine without a client's certificate since the start",
            count(&events.unproven_local),
        ),
        gauge("outstanding_tls_handshake", "TLS handshakes under way", s.handshakes),
        counter("unsuccessful_handshake", "TLS handshakes that failed", s.hits(ServerLimit::TlsFailure)),
    ]
}

fn of_limits(s: &Status) -> Vec<Metric> {
    vec![
        gauge(
            "client_buffer_bytes",
            "Bytes of unanswered requests, and of answers and watch events that clients have not read, together",
            s.client_buffer_bytes,
        ),
        gauge(
            "prepared_list_bytes",
            "Bytes of lists of children that are kept for those who ask for them again, 32 MiB at most",
            s.prepared_list_bytes,
        ),
        counter(
            "client_buffer_closed",
            "Connections that were closed because they held memory and did not read",
            s.hits(LimitHit::Buffers),
        ),
        gauge(
            "connection_drop_probability",
            "Chance of a new connection to be refused; there is no such limit",
            "0.0",
        ),
        counter(
            "tls_handshake_exceeded",
            "Connections that were refused because too many TLS handshakes were under way",
            s.hits(ServerLimit::Handshakes),
        ),
        counter(
            "request_throttle_wait_count",
            "Times that a client had to wait because too many requests were under way",
            s.hits(LimitHit::Outstanding),
        ),
        counter(
            "throttled_ops",
            "Requests that were refused for want of memory, or because there were too many watches",
            s.hits(LimitHit::Memory) + s.hits(ServerLimit::Watches),
        ),
        counter(
            "large_requests_rejected",
            "Connections that were closed because a request was larger than the limit",
            s.hits(LimitHit::RequestBytes),
        ),
        gauge(
            "memory_limit_exceeded",
            "1 while writes that make the state larger are refused for want of memory",
            u8::from(s.memory.1),
        ),
    ]
}

/// Files, syncs and snapshots, and the member's start, which reads them.
fn of_disk(shared: &Shared, s: &Status) -> Vec<Metric> {
    let events = &shared.statistics.server_metrics;
    let (open_files, max_files) = process::file_descriptors();
    let StartTimes { recovery_ms, replay_ms, replayed } = *events.start.lock();
    vec![
        gauge("open_file_descriptor_count", "Open files and sockets", open_files),
        gauge("max_file_descriptor_count", "Files and sockets that may be open", max_files),
        basic_summary("fsynctime", "Times of syncs of the log, in milliseconds", events.syncs.get()),
        basic_summary("snapshottime", "Times of snapshots, in milliseconds", events.snapshots.get()),
        counter("snapshot_error_count", "Snapshots that failed", s.snapshots_failed),
        counter(
            "snapshot_rate_limited_count",
            "Snapshots over HTTP that were refused because one was taken a short time ago",
            count(&events.snapshots_rate_limited),
        ),
        basic_summary(
            "dbinittime",
            "Time in which the state was made of snapshot and log at the start, in milliseconds",
            once(recovery_ms + replay_ms),
        ),
        basic_summary(
            "startup_snap_load_time",
            "Time in which the snapshot was loaded and the log was read at the start, in milliseconds",
            once(recovery_ms),
        ),
        basic_summary(
            "startup_txns_load_time",
            "Time in which the entries behind the snapshot were applied at the start, in milliseconds",
            once(replay_ms),
        ),
        basic_summary(
            "startup_txns_loaded",
            "Entries behind the snapshot that were applied at the start",
            once(replayed),
        ),
    ]
}

/// The summary of a value that there is one of.
fn once(value: u64) -> Summary {
    let only = SummaryCounter::default();
    only.record(value);
    only.get()
}

fn of_watches(shared: &Shared) -> Vec<Metric> {
    let WatchStatistics {
        created,
        deleted,
        data_changed,
        children_changed,
        gone_watchers,
        forgotten_watchers,
    } = shared.state.read().state().watches().statistics();
    let fired = |name, help, fired: FiredWatches| {
        let average = fired.told / fired.changes.max(1);
        let quantiles = [average; 5];
        let (min, max) = (fired.told_min, fired.told_max);
        basic_summary(name, help, Summary { count: fired.changes, sum: fired.told, min, max, quantiles })
    };
    vec![
        fired("node_created_watch_count", "Clients that were told when a znode was created", created),
        fired("node_deleted_watch_count", "Clients that were told when a znode was deleted", deleted),
        fired("node_changed_watch_count", "Clients that were told when data was set", data_changed),
        fired("node_children_watch_count", "Clients that were told when children changed", children_changed),
        counter("dead_watchers_queued", "Connections that ended and had watches", gone_watchers),
        counter(
            "dead_watchers_cleared",
            "Connections that ended and whose watches are removed",
            forgotten_watchers,
        ),
        advanced_summary(
            "dead_watchers_cleaner_latency",
            "Times in which watches of connections that ended were removed, a few hundred at a time, in milliseconds",
            shared.statistics.server_metrics.watch_sweeps.get(),
        ),
    ]
}

fn of_ensemble(events: &ServerMetrics, s: &Status) -> Vec<Metric> {
    let (elections, entries) = (&events.elections, &events.entries);
    let without_leader = elections.times.get();
    vec![
        gauge("quorum_size", "Members with a vote", s.voters),
        gauge("feature_level", "Level of the features that the ensemble may use", s.standing.feature_level.0),
        gauge("groups", "Raft groups that this member has, with the home group", s.standing.groups),
        gauge("groups_led", "Raft groups that this member leads", s.standing.groups_led),
        gauge("groups_joining", "Raft groups in which this member has no say yet", s.standing.groups_joining),
        gauge(
            "groups_without_leader",
            "Raft groups of which this member knows no leader",
            s.standing.groups_without_leader,
        ),
        gauge(
            "groups_changing",
            "Raft groups for which a change of members waits, as its leader knows",
            s.standing.groups_changing,
        ),
        gauge(
            "group_items_pending",
            "Items for other Raft groups that the home group does not know to be applied there",
            s.standing.group_items_pending,
        ),
        gauge(
            "clocks_ahead",
            "Members whose clocks are too far ahead of those of a quorum to count for zxids, with several groups",
            s.standing.clocks_ahead,
        ),
        counter(
            "looking_count",
            "Times that this member began to look for a leader",
            count(&elections.looking),
        ),
        basic_summary(
            "election_time",
            "Times in which this member looked for a leader until there was one, in milliseconds",
            without_leader.clone(),
        ),
        basic_summary("unavailable_time", "Times without a leader, in milliseconds", without_leader),
        basic_summary(
            "leader_unavailable_time",
            "Times without a leader until this member led, in milliseconds",
            elections.times_won.get(),
        ),
        counter(
            "proposal_count",
            "Entries that this member has proposed as leader; one holds the writes of many clients",
            count(&entries.proposed),
        ),
        counter(
            "commit_count",
            "Entries that were committed while this member led",
            count(&entries.committed),
        ),
        counter(
            "learner_proposal_received_count",
            "Entries that this member has received from a leader",
            count(&entries.received),
        ),
        counter(
            "learner_commit_received_count",
            "Entries that this member has learned to be committed while it followed",
            count(&entries.learned_committed),
        ),
        advanced_summary(
            "proposal_ack_creation_latency",
            "Times from a proposal of this leader until it is on its own disk, in milliseconds; some are timed",
            entries.own_ack.get(),
        ),
        advanced_summary(
            "quorum_ack_latency",
            "Times from a proposal of this leader until a quorum has it, in milliseconds; some are timed",
            entries.quorum_ack.get(),
        ),
        counter(
            "snap_count",
            "Snapshots that this leader has sent to others",
            count(&entries.snapshots_sent),
        ),
        basic_summary(
            "inflight_snap_count",
            "Snapshots on their way to others whenever another one began",
            entries.snapshots_under_way.get(),
        ),
    ]
}

fn of_leader(s: &Status, leads_for_ms: u64) -> Vec<Metric> {
    let heard = |wanted: fn(&FollowerStanding) -> bool| {
        s.standing.followers.iter().filter(|follower| follower.is_heard && wanted(follower)).count()
    };
    let [last, min, max] = s.proposal_sizes().unwrap_or([-1; 3]);
    vec![
        gauge("leader_uptime", "Time for which this member has led, in milliseconds", leads_for_ms),
        gauge("learners", "Members that this leader hears", heard(|_| true)),
        gauge("followers", "Members with a vote that this leader hears", heard(|follower| follower.has_vote)),
        gauge("pending_syncs", "Syncs of clients that wait for an answer from a quorum; not counted", 0),
        gauge(
            "synced_followers",
            "Followers with a vote that are heard and need no snapshot",
            heard(|follower| follower.has_vote && !follower.gets_snapshot),
        ),
        gauge("synced_non_voting_followers", "Followers that have lost their vote; there are none", 0),
        gauge(
            "synced_observers",
            "Observers that are heard and need no snapshot",
            heard(|follower| !follower.has_vote && !follower.gets_snapshot),
        ),
        gauge(
            "last_proposal_size",
            "Size of the last entry that this leader has proposed, in bytes, -1 before the first",
            last,
        ),
        gauge(
            "min_proposal_size",
            "Size of the smallest entry that this leader has proposed, in bytes, -1 before the first",
            min,
        ),
        gauge(
            "max_proposal_size",
            "Size of the largest entry that this leader has proposed, in bytes, -1 before the first",
            max,
        ),
    ]
}
