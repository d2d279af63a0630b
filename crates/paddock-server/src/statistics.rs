//! Counters and times that all threads of a member write, and what is gathered of them: statistics and the audit log.
//! Reports on them stand in `reports/`.

pub(crate) mod audit;
pub(crate) mod contacts;
pub(crate) mod cross_check_metrics;
pub(crate) mod etcd_metrics;
pub(crate) mod history;
pub(crate) mod hot;
pub(crate) mod log_lines;
pub(crate) mod metric;
pub(crate) mod request_times;
pub(crate) mod server_metrics;
pub(crate) mod snapshot_board;
pub(crate) mod stats;
pub(crate) mod summary;
pub(crate) mod user;
pub(crate) mod version;

use std::sync::Arc;

use paddock_spans::Spans;

use contacts::Contacts;
use etcd_metrics::EtcdStats;
use history::History;
use hot::Hot;
use request_times::RequestTimes;
use server_metrics::ServerMetrics;
use snapshot_board::SnapshotBoard;
use stats::Stats;

use crate::Config;

/// All that a server counts.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// Connections of clients, and their traffic.
    pub(crate) clients: Stats,
    /// Counters that ZooKeeper has. They begin before there is a state: times of syncs, of recovery, of elections.
    pub(crate) server_metrics: ServerMetrics,
    pub(crate) times: RequestTimes,
    pub(crate) hot: Hot,
    /// The last minutes, with which the charts of the page begin.
    pub(crate) history: History,
    pub(crate) snapshots: SnapshotBoard,
    /// Other members that answer, and those that do not.
    pub(crate) contacts: Contacts,
    /// Statistics of a front end on etcd.
    pub(crate) etcd: Option<Arc<EtcdStats>>,
    /// Spans of traced requests; `None` if none are exported.
    pub(crate) spans: Option<Spans>,
}

impl Statistics {
    /// Statistics of a server that was started at this monotonic time.
    pub(crate) fn new(config: &Config, server_metrics: ServerMetrics, started_ms: u64) -> Statistics {
        let recorders = config.worker_count() + 1;
        Statistics {
            clients: Stats::new(started_ms, recorders),
            server_metrics,
            times: RequestTimes::new(recorders),
            hot: Hot::default(),
            history: History::default(),
            snapshots: SnapshotBoard::default(),
            contacts: Contacts::default(),
            etcd: config.etcd.as_ref().map(|_| Arc::default()),
            spans: config.tracing.as_ref().map(|tracing| Spans::start(tracing, config.member)),
        }
    }
}
