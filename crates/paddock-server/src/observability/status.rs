//! Status of a member. Its facts are gathered here once; four-letter words and the port for metrics only print them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use paddock_proto::Zxid;
use paddock_replica::Standing;
use paddock_state::WatchSummary;

use super::stats::ConnStats;
use crate::shared::Shared;

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
    pub(crate) zxid: Zxid,
    pub(crate) znodes: usize,
    pub(crate) ephemerals: usize,
    pub(crate) sessions: usize,
    pub(crate) data_bytes: u64,
    pub(crate) watches: usize,
    /// The last reply, the smallest, the largest; -1 while there was none.
    pub(crate) reply_bytes: (i64, i64, i64),
    pub(crate) auth_failed: u64,
    /// Bytes that clients hold together.
    pub(crate) client_buffer_bytes: usize,
    pub(crate) closed_for_memory: u64,
    pub(crate) fsyncs: u64,
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
    pub(crate) fn of(shared: &Shared) -> Status {
        let stats = &shared.stats;
        let state = shared.state.read();
        let tree = state.tree();
        Status {
            latency_ms_min: stats.latency.min(),
            latency_ms_average: stats.latency.average(),
            latency_ms_max: stats.latency.max(),
            received: stats.received.load(Relaxed),
            sent: stats.sent.load(Relaxed),
            connections: stats.conn_count(),
            connections_rejected: stats.rejected.load(Relaxed),
            outstanding: stats.waiting(),
            uptime_ms: shared.clock.monotonic_ms() - stats.started_ms,
            zxid: tree.zxid(),
            znodes: tree.node_count(),
            ephemerals: tree.ephemeral_count(),
            sessions: tree.session_count(),
            data_bytes: tree.data_bytes(),
            watches: state.state().watch_count(),
            reply_bytes: stats.replies.get(),
            auth_failed: stats.auth_failed.load(Relaxed),
            client_buffer_bytes: shared.client_buffers.held(),
            closed_for_memory: stats.closed_for_memory.load(Relaxed),
            fsyncs: stats.fsyncs.load(Relaxed),
            differing: stats.differing.load(Relaxed),
            voters: state.membership().voters.len(),
            leads_for_ms: shared.leads_for_ms(),
            standing: shared.standing(),
            spans: shared
                .spans
                .as_ref()
                .map(|spans| (spans.counts.exported.load(Relaxed), spans.counts.dropped.load(Relaxed))),
        }
    }
}

pub(crate) fn connections(shared: &Shared) -> Vec<Arc<ConnStats>> {
    shared.stats.conns()
}

pub(crate) fn watches(shared: &Shared) -> WatchSummary {
    shared.state.read().state().watch_summary()
}

/// The bytes in the files of a directory, those of `except` left out.
pub(crate) fn directory_bytes(dir: &Path, except: Option<&Path>) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() && Some(&*entry.path()) != except => {
                directory_bytes(&entry.path(), except)
            }
            Ok(data) if data.is_file() => data.len(),
            _ => 0,
        })
        .sum()
}

/// Open files of this process, and how many it may open.
pub(crate) fn file_descriptors() -> (u64, u64) {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as u64);
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let max = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    (open, max)
}

/// User that runs this process: its name, or its number where it has none.
pub(crate) fn user_name() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    let Some(number) = number else { return "?".into() };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| number.to_owned())
}

/// As Java prints a rounded double: at least one digit behind the point, at most four.
pub(crate) fn rounded(ms: f64) -> String {
    let text = format!("{ms:.4}");
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

/// Bytes of the data directory, without the log.
pub(crate) fn data_bytes(shared: &Shared) -> u64 {
    directory_bytes(&shared.config.data_dir, Some(&shared.config.log_dir()))
}

/// Bytes of the transaction log.
pub(crate) fn log_bytes(shared: &Shared) -> u64 {
    directory_bytes(&shared.config.log_dir(), None)
}

/// Resident memory of this process in bytes; 0 where the system does not tell.
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    kib.map_or(0, |kib: u64| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_is_printed_as_java_prints_it() {
        for (ms, text) in [(0.0, "0.0"), (1.5, "1.5"), (0.12344, "0.1234"), (20.0, "20.0")] {
            assert_eq!(rounded(ms), text);
        }
    }
}
