//! Metrics under ClickHouse Keeper's names, for dashboards that were made for it: those of which there is the thing here.

use paddock_os::process;
use paddock_replica::{FollowerStanding, Role};
use paddock_statistics::metric::{Metric, counter, gauge, rounded};

use super::status::{self, Status};
use crate::shared::Shared;

/// A counter as `pfev` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProfileEvent {
    /// Name without the prefix that Prometheus gets.
    pub(crate) name: &'static str,
    prometheus_name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) value: u64,
}

/// Facts that ClickHouse counts as events.
pub(crate) fn profile_events(shared: &Shared) -> Vec<ProfileEvent> {
    let s = Status::of(shared);
    let event = |prometheus_name: &'static str, help, value| {
        let name =
            prometheus_name.strip_prefix("ClickHouseProfileEvents_").expect("all names have the prefix");
        ProfileEvent { name, prometheus_name, help, value }
    };
    vec![
        event(
            "ClickHouseProfileEvents_KeeperPacketsSent",
            "Answers and watch events that clients were sent",
            s.sent,
        ),
        event("ClickHouseProfileEvents_KeeperPacketsReceived", "Requests that clients have sent", s.received),
        event("ClickHouseProfileEvents_KeeperRequestTotal", "Requests that clients have sent", s.received),
        event(
            "ClickHouseProfileEvents_KeeperCommits",
            "Entries of the log that were applied",
            s.standing.applied,
        ),
    ]
}

/// All metrics under ClickHouse's names.
pub(crate) fn of_clickhouse(shared: &Shared) -> Vec<Metric> {
    let events = profile_events(shared).into_iter();
    let mut metrics: Vec<Metric> =
        events.map(|event| counter(event.prometheus_name, event.help, event.value)).collect();
    let s = Status::of(shared);
    metrics.extend([
        gauge("ClickHouseMetrics_KeeperAliveConnections", "Connections of clients", s.connections),
        gauge(
            "ClickHouseMetrics_KeeperOutstandingRequests",
            "Requests that are not answered yet",
            s.outstanding,
        ),
    ]);
    metrics.extend(asynchronous(shared, &s));
    metrics
}

/// Facts that ClickHouse looks at now and then.
fn asynchronous(shared: &Shared, s: &Status) -> Vec<Metric> {
    let role = shared.engine.role();
    let watches = status::watches(shared);
    let (open_files, max_files) = process::file_descriptors();
    let followers =
        |wanted: fn(&FollowerStanding) -> bool| s.standing.followers.iter().filter(|f| wanted(f)).count();
    let is = |wanted: Role| u8::from(role == wanted);
    vec![
        gauge("ClickHouseAsyncMetrics_KeeperIsLeader", "1 if this member leads", is(Role::Leader)),
        gauge(
            "ClickHouseAsyncMetrics_KeeperIsFollower",
            "1 if this member follows a leader",
            is(Role::Follower),
        ),
        gauge(
            "ClickHouseAsyncMetrics_KeeperIsObserver",
            "1 if this member is an observer",
            is(Role::Observer),
        ),
        gauge("ClickHouseAsyncMetrics_KeeperIsStandalone", "1 if this member is alone", is(Role::Alone)),
        gauge("ClickHouseAsyncMetrics_KeeperIsExceedingMemorySoftLimitHit", "There is no such limit", 0),
        gauge("ClickHouseAsyncMetrics_KeeperZnodeCount", "Znodes in the tree", s.znodes),
        gauge("ClickHouseAsyncMetrics_KeeperWatchCount", "Watches of this member's clients", s.watches),
        gauge("ClickHouseAsyncMetrics_KeeperEphemeralsCount", "Ephemeral znodes in the tree", s.ephemerals),
        gauge(
            "ClickHouseAsyncMetrics_KeeperApproximateDataSize",
            "Bytes of names and data in the tree",
            s.data_bytes,
        ),
        gauge("ClickHouseAsyncMetrics_KeeperKeyArenaSize", "There is no such arena", 0),
        gauge("ClickHouseAsyncMetrics_KeeperOpenFileDescriptorCount", "Open files and sockets", open_files),
        gauge(
            "ClickHouseAsyncMetrics_KeeperMaxFileDescriptorCount",
            "Files and sockets that may be open",
            max_files,
        ),
        gauge(
            "ClickHouseAsyncMetrics_KeeperFollowers",
            "Members that a leader knows besides itself",
            s.standing.followers.len(),
        ),
        gauge(
            "ClickHouseAsyncMetrics_KeeperSyncedFollowers",
            "Those of them that are heard and need no snapshot",
            followers(|follower| follower.is_heard && !follower.gets_snapshot),
        ),
        gauge("ClickHouseAsyncMetrics_KeeperZxid", "Newest zxid that is applied here", s.zxid.0),
        gauge(
            "ClickHouseAsyncMetrics_KeeperSessionWithWatches",
            "Sessions of this member that watch znodes",
            watches.connections,
        ),
        gauge("ClickHouseAsyncMetrics_KeeperPathsWatched", "Znodes that are watched", watches.paths),
        gauge("ClickHouseAsyncMetrics_KeeperLastLogIdx", "Last entry in the log", s.standing.last_entry),
        gauge(
            "ClickHouseAsyncMetrics_KeeperLastLogTerm",
            "Term of the last entry in the log",
            s.standing.last_term,
        ),
        gauge(
            "ClickHouseAsyncMetrics_KeeperLastCommittedLogIdx",
            "Last entry that is applied",
            s.standing.applied,
        ),
        gauge(
            "ClickHouseAsyncMetrics_KeeperTargetCommitLogIdx",
            "Last entry that is known to be committed",
            s.standing.committed,
        ),
        gauge(
            "ClickHouseAsyncMetrics_KeeperLastSnapshotIdx",
            "Last entry in the newest snapshot",
            s.standing.snapshot,
        ),
        gauge(
            "ClickHouseAsyncMetrics_KeeperMinLatency",
            "Shortest latency in milliseconds",
            s.latency_ms_min,
        ),
        gauge("ClickHouseAsyncMetrics_KeeperMaxLatency", "Longest latency in milliseconds", s.latency_ms_max),
        gauge(
            "ClickHouseAsyncMetrics_KeeperAvgLatency",
            "Average latency in milliseconds",
            rounded(s.latency_ms_average),
        ),
        gauge("ClickHouseAsyncMetrics_KeeperPacketsReceived", "Requests that clients have sent", s.received),
        gauge(
            "ClickHouseAsyncMetrics_KeeperPacketsSent",
            "Answers and events that clients were sent",
            s.sent,
        ),
    ]
}
