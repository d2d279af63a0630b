//! Counters and times that all threads of a member write, and what is gathered of them. Reports on them are the server's.
//!
//! Each file stands alone: traffic of clients (`stats.rs`), times of requests (`request_times.rs`), the slowest requests and the busiest paths
//! (`hot.rs`), what ZooKeeper counts (`server_metrics.rs`). `metric.rs` has the form in which all of them are told.
//!
//! A counter that each request changes has one writer, which needs no locked instruction.

pub mod backup_board;
pub mod contacts;
pub mod history;
pub mod hot;
pub mod log_lines;
pub mod metric;
pub mod request_times;
pub mod server_metrics;
pub mod snapshot_board;
pub mod stats;
pub mod summary;
