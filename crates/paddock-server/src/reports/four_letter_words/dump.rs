//! Words that list what the member holds for its clients: sessions, ephemeral znodes, watches.

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use paddock_member::Clock as _;
use paddock_proto::SessionId;
use paddock_statistics::stats::ConnStats;

use super::NOT_SERVING;
use crate::operator::Operator;
use crate::reports::status::{self, Sees};
use crate::shared::Shared;
use crate::version::java_date;

/// Time in milliseconds for which ZooKeeper keeps a connection that has no session.
const SESSIONLESS_MS: i64 = 10_000;

pub(super) fn dump(operator: &Operator, sees: Sees<'_>) -> String {
    let shared = &operator.shared;
    if status::mode(shared.engine.role()).is_none() {
        return NOT_SERVING.into();
    }
    let mut out = String::from("SessionTracker dump:\n");
    out += &sessions(shared);
    out += "ephemeral nodes dump:\n";
    out += &ephemerals(shared, sees);
    out += "Connections dump:\n";
    out += &connections(shared);
    out
}

fn sessions(shared: &Shared) -> String {
    let by_expiry = status::sessions(shared);
    let sets = by_expiry.iter().map(|(expiry_ms, sessions)| (wall_ms(shared, *expiry_ms), &sessions[..]));
    expiry_sets("Session", sets.collect())
}

/// The wall clock's time at a time of the monotonic clock.
fn wall_ms(shared: &Shared, monotonic_ms: u64) -> i64 {
    let now = shared.clock.now();
    now.wall_ms + (monotonic_ms as i64 - now.monotonic_ms as i64)
}

/// A connection as ZooKeeper names it in a dump.
struct Named(Arc<ConnStats>);

impl Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ip: /{} sessionId: {}", self.0.address(), SessionId(self.0.session.load(Relaxed)))
    }
}

fn connections(shared: &Shared) -> String {
    let tick_ms = i64::from(shared.config.tick_ms).max(1);
    let mut by_expiry = std::collections::BTreeMap::<i64, Vec<Named>>::new();
    for (_, conn) in shared.statistics.clients.conns() {
        let has_session = conn.session.load(Relaxed) != 0;
        let timeout_ms = if has_session { conn.timeout_ms.load(Relaxed).into() } else { SESSIONLESS_MS };
        let expiry_ms = conn.last_response_ms.load(Relaxed).max(conn.established_ms) + timeout_ms;
        by_expiry.entry((expiry_ms / tick_ms + 1) * tick_ms).or_default().push(Named(conn));
    }
    expiry_sets("Connections", by_expiry.iter().map(|(expiry_ms, conns)| (*expiry_ms, &conns[..])).collect())
}

/// Sets of things that expire together, with the time in milliseconds since 1970 at which they do.
fn expiry_sets<T: Display>(what: &str, sets: Vec<(i64, &[T])>) -> String {
    let count: usize = sets.iter().map(|(_, set)| set.len()).sum();
    let mut out = format!("{what} Sets ({})/({count}):\n", sets.len());
    for (expiry_ms, set) in sets {
        let _ = writeln!(out, "{} expire at {}:", set.len(), java_date(expiry_ms.max(0) as u64 / 1000));
        for one in set {
            let _ = writeln!(out, "\t{one}");
        }
    }
    out
}

fn ephemerals(shared: &Shared, sees: Sees<'_>) -> String {
    let all = status::ephemerals(shared, sees);
    let mut out = format!("Sessions with Ephemerals ({}):\n", all.len());
    for (session, paths) in all {
        let _ = writeln!(out, "{session}:");
        for path in paths {
            let _ = writeln!(out, "\t{path}");
        }
    }
    out
}

pub(super) fn watch_summary(operator: &Operator) -> String {
    let s = status::watches(&operator.shared);
    format!("{} connections watching {} paths\nTotal watches:{}\n", s.connections, s.paths, s.watches)
}

pub(super) fn watches_by_session(operator: &Operator, sees: Sees<'_>) -> String {
    groups(status::watches_by_session(&operator.shared, sees))
}

pub(super) fn watches_by_path(operator: &Operator, sees: Sees<'_>) -> String {
    groups(status::watches_by_path(&operator.shared, sees))
}

/// Each key in a line, and below it its values.
fn groups<K: Display, V: Display>(all: impl IntoIterator<Item = (K, impl IntoIterator<Item = V>)>) -> String {
    let mut out = String::new();
    for (key, values) in all {
        let _ = writeln!(out, "{key}");
        for value in values {
            let _ = writeln!(out, "\t{value}");
        }
    }
    out + "\n"
}

/// The digest of the state at its zxid. ZooKeeper has another digest, and lists it of every 128th zxid.
pub(super) fn hash(operator: &Operator) -> String {
    let (zxid, digest) = status::digest(&operator.shared);
    format!("{:x}: {digest}\n", zxid.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_listed_as_zookeeper_lists_them() {
        let sessions = [SessionId(0x1000022ea8d0000)];
        let text = expiry_sets("Session", vec![(1_795_557_939_000, &sessions[..])]);
        let expected =
            "Session Sets (1)/(1):\n1 expire at Tue Nov 24 22:05:39 UTC 2026:\n\t0x1000022ea8d0000\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn watches_are_listed_as_zookeeper_lists_them() {
        assert_eq!(groups([("/a", ["0x1", "0x2"])]), "/a\n\t0x1\n\t0x2\n\n");
        assert_eq!(groups::<&str, &str>(Vec::<(&str, Vec<&str>)>::new()), "\n");
    }
}
