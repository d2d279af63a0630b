//! Status of a member. Its facts are gathered here once; four-letter words and the port for metrics only print them.

mod certificates;
mod disk;
mod environment;
mod lists;

use std::sync::atomic::Ordering::Relaxed;

use paddock_front::{Limit, LimitHits, TenantUse};
use paddock_proto::{EnsembleMember, Zxid};
use paddock_replica::{Role, Standing};
use paddock_state::WatchSummary;

use crate::shared::Shared;
pub(crate) use certificates::certificate_ends;
pub(crate) use disk::{data_bytes, log_bytes};
pub(crate) use environment::{Setting, SettingValue, configuration, environment, membership};
pub(crate) use lists::{Sees, ephemerals, sessions, watches_by_path, watches_by_session};

/// Tenants that are told: there may be as many as clients like.
const TENANTS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) latency_ms_min: u64,
    pub(crate) latency_ms_average: f64,
    pub(crate) latency_ms_max: u64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) connections: usize,
    pub(crate) connections_rejected: u64,
    pub(crate) outstanding: u64,
    pub(crate) uptime_ms: u64,
    /// In ZooKeeper's words; `None` while no member leads.
    pub(crate) mode: Option<&'static str>,
    /// Part of a member of an ensemble that serves, in ZooKeeper's words.
    pub(crate) peer_state: Option<&'static str>,
    pub(crate) is_read_only: bool,
    pub(crate) zxid: Zxid,
    pub(crate) znodes: usize,
    pub(crate) ephemerals: usize,
    pub(crate) sessions: usize,
    pub(crate) data_bytes: u64,
    pub(crate) watches: usize,
    /// The last reply, the smallest, the largest; -1 while there was none.
    pub(crate) reply_bytes: (i64, i64, i64),
    pub(crate) auth_failed: u64,
    /// Bytes of lists that are kept for clients that ask again.
    pub(crate) prepared_list_bytes: usize,
    /// Bytes that clients hold together.
    pub(crate) client_buffer_bytes: usize,
    /// The label of each limit, and the number of times that it was hit.
    pub(crate) limit_hits: Vec<(&'static str, u64)>,
    /// Tenants with limits of rate, those first that were limited most often.
    pub(crate) tenants: Vec<TenantUse>,
    pub(crate) handshakes: u32,
    /// The limit of the process's memory in bytes, if there is one; and true while it is exceeded.
    pub(crate) memory: (Option<u64>, bool),
    pub(crate) fsyncs: u64,
    pub(crate) snapshots_failed: u64,
    /// Number of times that a state was seen to differ from that of another member.
    pub(crate) differing: u64,
    pub(crate) voters: usize,
    /// Time in milliseconds for which this member has led; `None` if it does not.
    pub(crate) leads_for_ms: Option<u64>,
    pub(crate) standing: Standing,
    /// Exported, and dropped, if there are any.
    pub(crate) spans: Option<(u64, u64)>,
}

impl Status {
    /// Number of times that a limit was hit.
    pub(crate) fn hits(&self, limit: impl Limit) -> u64 {
        let hits = self.limit_hits.iter().find(|(label, _)| *label == limit.label());
        hits.map_or(0, |(_, hits)| *hits)
    }

    /// Sizes in bytes of the last entry that this leader has proposed, the smallest and the largest, -1 while there was none; `None` for
    /// a member that does not lead.
    pub(crate) fn proposal_sizes(&self) -> Option<[i64; 3]> {
        self.leads_for_ms?;
        let sizes = self.standing.proposals;
        Some(sizes.map_or([-1; 3], |sizes| [sizes.last, sizes.min, sizes.max].map(|bytes| bytes as i64)))
    }

    pub(crate) fn of(shared: &Shared) -> Status {
        let (stats, role) = (&shared.statistics.clients, shared.engine.role());
        let (outstanding, latency) = (stats.waiting(), stats.latency());
        let state = shared.state.read();
        let tree = state.tree();
        Status {
            latency_ms_min: latency.min(),
            latency_ms_average: latency.average(),
            latency_ms_max: latency.max(),
            received: stats.received(),
            sent: stats.sent(),
            connections: stats.conn_count(),
            connections_rejected: stats.rejected.load(Relaxed),
            outstanding,
            uptime_ms: shared.clock.monotonic_ms() - stats.started_ms,
            mode: mode(role),
            peer_state: peer_state(role),
            is_read_only: role == Role::ReadOnly,
            zxid: tree.zxid(),
            znodes: tree.node_count(),
            ephemerals: tree.ephemeral_count(),
            sessions: tree.session_count(),
            data_bytes: tree.data_bytes(),
            watches: state.state().watches().count(),
            reply_bytes: stats.replies.get(),
            auth_failed: stats.auth_failed.load(Relaxed),
            prepared_list_bytes: tree.prepared_list_bytes(),
            client_buffer_bytes: shared.limits.counters.buffers.held(),
            snapshots_failed: shared.statistics.snapshots.failures(),
            tenants: shared.limits.counters.rates.tenants(TENANTS_MAX),
            limit_hits: counted(&shared.statistics.limit_hits)
                .chain(counted(&shared.limits.counters.hits))
                .collect(),
            handshakes: shared.statistics.clients.handshakes.load(Relaxed),
            memory: (
                Some(shared.limits.counters.memory.max()).filter(|max| *max != u64::MAX),
                shared.limits.counters.memory.is_exceeded(),
            ),
            fsyncs: stats.fsyncs.load(Relaxed),
            differing: stats.differing.load(Relaxed),
            voters: state.membership().voters.len(),
            leads_for_ms: shared.leads_for_ms(),
            standing: shared.engine.standing(),
            spans: shared
                .statistics
                .spans
                .as_ref()
                .map(|spans| (spans.counts.exported.load(Relaxed), spans.counts.dropped.load(Relaxed))),
        }
    }
}

pub(crate) fn watches(shared: &Shared) -> WatchSummary {
    shared.state.read().state().watches().summary()
}

/// Part of a member of an ensemble that serves, in ZooKeeper's words.
fn peer_state(role: Role) -> Option<&'static str> {
    match role {
        Role::Leader => Some("leading - broadcast"),
        Role::Follower => Some("following - broadcast"),
        Role::Observer => Some("observing - broadcast"),
        Role::Alone | Role::ReadOnly | Role::Looking => None,
    }
}

/// Zxid of the state, and the number that says what it is: the same at all members that are there.
pub(crate) fn digest(shared: &Shared) -> (Zxid, u64) {
    let state = shared.state.read();
    (state.tree().zxid(), state.tree().digest())
}

/// The members that the ensemble names, with their numbers; none for a member alone.
pub(crate) fn members(shared: &Shared) -> Vec<EnsembleMember> {
    let state = shared.state.read();
    state.tree().ensemble().map_or_else(Vec::new, |ensemble| ensemble.members.clone())
}

/// The mode of a member in ZooKeeper's words; `None` while no member leads.
pub(crate) fn mode(role: Role) -> Option<&'static str> {
    (role != Role::Looking).then(|| role_name(role))
}

/// Part of a member in its ensemble, as it is called everywhere.
pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Alone => "standalone",
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Observer => "observer",
        Role::ReadOnly => "read-only",
        Role::Looking => "looking",
    }
}

/// The label of each of these limits, and the number of times that it was hit.
fn counted<L: Limit>(hits: &LimitHits<L>) -> impl Iterator<Item = (&'static str, u64)> {
    L::ALL.iter().map(|limit| (limit.label(), hits.count(*limit)))
}
