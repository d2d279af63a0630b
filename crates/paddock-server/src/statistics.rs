//! Counters and times that all threads of a member write, and what is gathered of them: statistics, the audit log, spans of traced
//! requests. Reports on them stand in `reports/`.

pub(crate) mod audit;
pub(crate) mod contacts;
pub(crate) mod cross_check_metrics;
pub(crate) mod etcd_metrics;
pub(crate) mod history;
pub(crate) mod hot;
pub(crate) mod log_lines;
pub(crate) mod metric;
pub(crate) mod process;
pub(crate) mod request_times;
pub(crate) mod server_metrics;
pub(crate) mod snapshot_board;
pub(crate) mod spans;
pub(crate) mod stats;
pub(crate) mod summary;
pub(crate) mod user;
pub(crate) mod version;
