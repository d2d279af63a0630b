//! Words that only ClickHouse Keeper has, in its format.

use std::fmt::Write as _;

use paddock_state::{API_VERSION, feature_flags as flags};

use crate::operator::Operator;
use crate::reports::clickhouse_metrics;

/// Answer to an order that there is nothing to do for: memory that nothing needs is given back when it falls free, and what is counted is
/// always right.
pub(super) const OK: &str = "ok";
/// Answer to a word that turns a log of requests on or off.
pub(super) const NO_REQUEST_LOG: &str = "disabled";
/// Answer to the order to go on without a quorum: what others had acknowledged would be lost by four bytes.
pub(super) const NO_RECOVERY: &str =
    "A running member is not recovered: stop it, and start it once with --recover\n";

/// Answer to a list of changes of the members, in its owner's form. Such changes prove no identity; a client's request does.
pub(super) const NO_RECONFIGURATION: &str =
    r#"{"message":"members are changed by a client: reconfig","status":"error"}"#;

pub(super) fn api_version() -> String {
    API_VERSION.into()
}

/// Orders a snapshot, and tells the last entry that it will have at least.
pub(super) fn snapshot(operator: &Operator) -> String {
    operator.order_snapshot().to_string()
}

pub(super) fn request_lead(operator: &Operator) -> String {
    let sent = if operator.request_lead() { "Sent" } else { "Failed to send" };
    format!("{sent} leadership request to leader.")
}

pub(super) fn yield_lead(operator: &Operator) -> String {
    let sent = if operator.yield_lead() { "Sent" } else { "Failed to send" };
    format!("{sent} yield leadership request to leader.")
}

/// Places in the log. Entries that are applied are not cached as ClickHouse Keeper caches them.
pub(super) fn log_info(operator: &Operator) -> String {
    let standing = operator.shared.engine.standing();
    let (snapshot, first) = (standing.snapshot, standing.snapshot + 1);
    let facts = [
        ("first_log_idx", first.min(standing.last_entry)),
        ("first_log_term", standing.snapshot_term),
        ("last_log_idx", standing.last_entry),
        ("last_log_term", standing.last_term),
        ("last_committed_log_idx", standing.applied),
        ("leader_committed_log_idx", standing.committed),
        ("target_committed_log_idx", standing.committed),
        ("last_snapshot_idx", snapshot),
        ("latest_logs_cache_entries", 0),
        ("latest_logs_cache_size", 0),
        ("commit_logs_cache_entries", 0),
        ("commit_logs_cache_size", 0),
    ];
    facts.iter().map(|(name, value)| format!("{name}\t{value}\n")).collect()
}

pub(super) fn feature_flags() -> String {
    flags()
        .map(|(name, is_there)| format!("{}\t{}\n", name.to_ascii_lowercase(), u8::from(is_there)))
        .collect()
}

/// The counters that there are, with their names in ClickHouse.
pub(super) fn profile_events(operator: &Operator) -> String {
    let mut out = String::new();
    for event in clickhouse_metrics::profile_events(&operator.shared) {
        let _ = writeln!(out, "{}\t{}\t{}", event.name, event.value, event.help);
    }
    out
}
