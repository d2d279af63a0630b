//! Starts servers, measures each in turn, and compares them.
//!
//! A suite is a matrix: servers × workloads × sessions × window or rate × requests, and a number of repetitions of it
//! (`file.rs` reads it from TOML). Beside workloads stands what it costs to hold much: `memory.rs`, `idle.rs`,
//! `snapshot.rs`, `growth.rs`. The servers take turns on every cell, A B A B, so that a machine's noise harms all
//! alike; each starts on an empty directory and free ports (`server.rs`, `process.rs`), and may be linked by a worse network than loopback (`network.rs`, `links.rs`). What a step gave is appended
//! to `results.jsonl` and synced before the next one begins (`results.rs`), so a suite that was interrupted goes on
//! where it stopped. `summary.rs` turns the records into figures, `table.rs`, `charts.rs` and `page.rs` show them.
//!
//! Always true:
//! - A run with an error is no figure: it is listed as failed, and nothing is computed from it.
//! - No server outlives the value that started it.

mod cell;
mod charts;
mod conduct;
mod crowd;
mod definition;
mod disk;
mod figure_names;
mod file;
mod fingerprint;
mod growth;
mod holding;
mod idle;
mod links;
mod measure;
mod memory;
mod narrator;
mod network;
mod page;
mod ports;
mod process;
mod results;
mod server;
mod snapshot;
mod stall;
mod statistics;
mod summary;
mod table;
mod template;

pub use cell::{Cell, End, Measurement};
pub use conduct::{Conclusion, SuiteStep, SuiteWatcher, run};
pub use definition::{ServerTemplate, Suite, WorkloadFile};
pub use figure_names::FigureValue;
pub use holding::{Grown, Growth, Idle, SnapshotPlan};
pub use measure::{Measure, Runner};
pub use narrator::Narrator;
pub use network::Network;
pub use page::page;
pub use process::kill_servers;
pub use results::StepOutcome;
pub use statistics::Statistics;
pub use summary::{FailedCell, Figure, Group, Summary};
pub use table::markdown;

#[cfg(test)]
mod tests;
