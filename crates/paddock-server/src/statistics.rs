//! All that a member counts and times, and the spans that it exports. Reports on them stand in `reports/`.

use std::sync::{Arc, OnceLock};

use paddock_front::LimitHits;
use paddock_spans::Spans;
use paddock_statistics::backup_board::BackupBoard;
use paddock_statistics::contacts::Contacts;
use paddock_statistics::history::History;
use paddock_statistics::hot::Hot;
use paddock_statistics::request_times::RequestTimes;
use paddock_statistics::server_metrics::ServerMetrics;
use paddock_statistics::snapshot_board::SnapshotBoard;
use paddock_statistics::stats::Stats;
use paddock_tls::CertificateEnd;

use crate::Config;
use crate::etcd_metrics::EtcdStats;
use crate::server_limit::ServerLimit;

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
    /// Backups of a schedule.
    pub(crate) backups: BackupBoard,
    /// Hits of the limits that no front knows.
    pub(crate) limit_hits: LimitHits<ServerLimit>,
    /// Other members that answer, and those that do not.
    pub(crate) contacts: Contacts,
    /// End of the certificate of the links between members, once they are there and have TLS.
    pub(crate) link_certificate_end: OnceLock<CertificateEnd>,
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
            backups: BackupBoard::default(),
            limit_hits: LimitHits::default(),
            contacts: Contacts::default(),
            link_certificate_end: OnceLock::new(),
            etcd: config.etcd.as_ref().map(|_| Arc::default()),
            spans: config.tracing.as_ref().map(|tracing| Spans::start(tracing, config.member)),
        }
    }
}
