//! The words for what a report says, shared by the table and the page. All of them are safe for one line.

use std::time::{Duration, UNIX_EPOCH};

use super::units::{bytes, count, duration, number, one_line};
use super::{Ended, Pace, RunReport};

/// The end of the year 9999, the last that has a name in RFC 3339.
const LAST_UNIX_S: u64 = 253_402_300_799;

pub(super) fn hosts(report: &RunReport) -> String {
    one_line(&report.hosts.join(", "))
}

pub(super) fn load(report: &RunReport) -> String {
    let sessions = match report.sessions {
        1 => "1 session".to_owned(),
        sessions => format!("{} sessions", count(sessions as u64)),
    };
    match report.load {
        Pace::Closed { window: 1 } => format!("{sessions} × 1 request in flight"),
        Pace::Closed { window } => format!("{sessions} × {} requests in flight", count(window as u64)),
        Pace::Open { requests_per_second } => {
            format!("{sessions}, {} requests/s in all", number(requests_per_second))
        }
    }
}

/// Length, start and network traffic of a run, as a phrase.
pub(super) fn extent(report: &RunReport) -> String {
    let elapsed = duration(report.elapsed_s * 1e6);
    let sent = bytes(report.bytes_sent_per_second);
    let received = bytes(report.bytes_received_per_second);
    format!("{elapsed} from {}, {sent}/s sent, {received}/s received", date(report.started_unix_s))
}

pub(super) fn date(unix_s: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(unix_s.min(LAST_UNIX_S));
    humantime::format_rfc3339_seconds(time).to_string()
}

pub(super) fn ended(ended: &Ended) -> String {
    match ended {
        Ended::Complete => "complete".to_owned(),
        Ended::Interrupted => "interrupted by the user".to_owned(),
        Ended::Failed(reason) => format!("a request failed: {}", one_line(reason)),
        Ended::ServerLost(reason) => format!("no server answers any more: {}", one_line(reason)),
    }
}

/// Operation, error, and how many times it came.
pub(super) fn errors(report: &RunReport) -> Vec<(String, String, u64)> {
    let mut errors = Vec::new();
    for operation in &report.operations {
        for (error, times) in &operation.errors {
            errors.push((one_line(&operation.name), one_line(error), *times));
        }
    }
    errors
}

pub(super) fn server(report: &RunReport) -> Option<String> {
    let server = report.server.as_ref()?;
    let facts = [
        server.cpu_us_per_request.map(|us| format!("CPU {} per request", duration(us))),
        server.resident_bytes_peak.map(|peak| format!("peak memory {}", bytes(peak as f64))),
        server.fsyncs.map(|fsyncs| format!("{} fsyncs", count(fsyncs))),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}

/// The name of a phase tells with `%n` where the number of its requests goes.
pub(super) fn phase(name: &str, requests: &str) -> String {
    let name = one_line(name);
    if name.contains("%n") { name.replace("%n", requests) } else { format!("{name} {requests} requests") }
}
