//! A figure of one measurement, and the names of those that more than one file knows.

use crate::report::units::Unit;

/// One figure of one measurement: name, unit, value.
pub type FigureValue = (String, Unit, f64);

pub(super) const THROUGHPUT: &str = "throughput";
pub(super) const RUNTIME: &str = "runtime";
pub(super) const LATENCY_P50: &str = "latency p50";
pub(super) const LATENCY_P99: &str = "latency p99";
pub(super) const SERVER_CPU: &str = "server CPU per request";
pub(super) const SERVER_CPU_TOTAL: &str = "server CPU in all";
pub(super) const BYTES_SENT: &str = "bytes sent per request";
pub(super) const BYTES_RECEIVED: &str = "bytes received per request";
pub(super) const PEAK_MEMORY: &str = "peak memory";
pub(super) const MEMORY_AFTER: &str = "memory after";
pub(super) const MEMORY_PER_ZNODE: &str = "memory per znode";
