//! Clocks of the servers, against each other and against this machine's.

use crate::doctor::facts::DoctorFacts;
use crate::doctor::finding::{Finding, Level};

/// Difference of two clocks in milliseconds from which times in Stats, logs and certificates are misleading.
const APART_MS: u64 = 500;
const FAR_APART_MS: u64 = 5000;

/// Servers whose clocks differ, beyond what the way there may explain.
pub(super) fn clocks(facts: &DoctorFacts) -> Vec<Finding> {
    let clocks: Vec<_> =
        facts.servers.iter().filter_map(|server| Some((server.address.as_str(), server.clock?))).collect();
    let (Some(first), Some(last)) = (
        clocks.iter().min_by_key(|(_, clock)| clock.ahead_ms),
        clocks.iter().max_by_key(|(_, clock)| clock.ahead_ms),
    ) else {
        return Vec::new();
    };
    let advice =
        "let one service keep the clocks of all machines (chrony, systemd-timesyncd), and see that it runs";
    let apart_ms = last.1.ahead_ms.abs_diff(first.1.ahead_ms);
    if let Some(level) = level(apart_ms, first.1.error_ms + last.1.error_ms) {
        let text = format!("{} is {apart_ms} ms ahead of {}", last.0, first.0);
        return vec![Finding::new(level, "clocks", "", text, advice)];
    }
    // All servers agree: it is this machine that may be wrong.
    let (address, clock) = clocks[clocks.len() / 2];
    if level(clock.ahead_ms.unsigned_abs(), clock.error_ms).is_some() {
        let text = format!("{address} is {} ms from this machine's clock", clock.ahead_ms);
        return vec![Finding::new(Level::Note, "clocks", "", text, advice)];
    }
    let error_ms = clocks.iter().map(|(_, clock)| clock.error_ms).max().unwrap_or_default();
    vec![Finding::ok("clocks", "", format!("{apart_ms} ms apart, as far as {error_ms} ms tell"))]
}

fn level(apart_ms: u64, error_ms: u64) -> Option<Level> {
    match apart_ms.saturating_sub(error_ms) {
        0..APART_MS => None,
        APART_MS..FAR_APART_MS => Some(Level::Warning),
        _ => Some(Level::Error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::common::testing::{facts, lines, server};
    use crate::doctor::facts::ClockFacts;

    fn check(ahead_ms: [i64; 2], error_ms: u64, expected: &str) {
        let servers = ahead_ms.map(|ahead_ms| {
            let mut server = server("follower", &[]);
            server.clock = Some(ClockFacts { ahead_ms, error_ms });
            server
        });
        assert_eq!(lines(&clocks(&facts(servers.into()))), [expected]);
    }

    #[test]
    fn clocks_are_compared_with_each_other() {
        check([3, -2], 4, "ok: 5 ms apart, as far as 4 ms tell");
        check([0, 800], 4, "warning: b:2181 is 800 ms ahead of a:2181");
        check([9000, 0], 4, "error: a:2181 is 9000 ms ahead of b:2181");
        check([0, 800], 500, "ok: 800 ms apart, as far as 500 ms tell");
        check([-7000, -7001], 4, "note: b:2181 is -7001 ms from this machine's clock");
        assert!(clocks(&facts(vec![server("leader", &[])])).is_empty());
    }
}
