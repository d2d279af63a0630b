//! Limits of the servers, and how near clients are to them.

use super::common::{bytes, of_servers, percent};
use crate::doctor::facts::{DoctorFacts, ServerFacts};
use crate::doctor::finding::{Finding, Level};

/// Fewer descriptors are a limit that was never set for a server.
pub(super) const DESCRIPTORS_MIN: u64 = 4096;
/// Part of a limit in use, in percent, from which it is near, and from which it is nearly reached.
const NEAR: u64 = 70;
const VERY_NEAR: u64 = 90;

/// Open files and sockets.
pub(super) fn descriptors(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "descriptors", "limits of open files are high", |server| {
        let either = |a: &str, b: &str| server.metric(a).or_else(|| server.metric(b));
        let open = either("process_open_fds", "open_file_descriptor_count")?;
        let max = either("process_max_fds", "max_file_descriptor_count").filter(|max| *max > 0.0)?;
        Some(judge_descriptors("descriptors", &server.address, open as u64, max as u64))
    })
}

pub(super) fn judge_descriptors(check: &'static str, subject: &str, open: u64, max: u64) -> Finding {
    let text = format!("{open} of {max} files and sockets are open");
    let advice = "raise the hard limit: LimitNOFILE=65536 in the unit of systemd, or ulimits of the container, and start it again";
    match percent(open as f64, max as f64) {
        VERY_NEAR.. => Finding::new(Level::Error, check, subject, text, advice),
        NEAR.. => Finding::new(Level::Warning, check, subject, text, advice),
        _ if max < DESCRIPTORS_MIN => Finding::new(Level::Warning, check, subject, text, advice),
        _ => Finding::ok(check, subject, text),
    }
}

/// Memory of the process, and what of it is in swap.
pub(super) fn memory(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "memory", "memory has room, and none of it is in swap", |server| {
        let told =
            |level, text: String, advice| Some(Finding::new(level, "memory", &server.address, text, advice));
        let resident = server.metric("process_resident_memory_bytes")?;
        let swapped = server.metric("process_swapped_memory_bytes").unwrap_or(0.0);
        if server.metric("memory_limit_exceeded").is_some_and(|exceeded| exceeded > 0.0) {
            let text = format!("{} are resident, and writes that need more are refused", bytes(resident));
            return told(
                Level::Error,
                text,
                "give it more memory, or delete: `paddock shell HOSTS -- du /` shows what is large",
            );
        }
        if swapped > 0.0 {
            let text = format!("{} of it are in swap", bytes(swapped));
            return told(
                Level::Warning,
                text,
                "swap stops a member for longer than an election takes: swapoff -a, or vm.swappiness=1 and more memory",
            );
        }
        let Some(max) = server.metric("paddock_memory_max_bytes") else {
            return Some(Finding::ok("memory", &server.address, format!("{} are resident", bytes(resident))));
        };
        let text = format!("{} of {} are resident", bytes(resident), bytes(max));
        match percent(resident, max) {
            VERY_NEAR.. => told(
                Level::Error,
                text,
                "give it more memory now: above its limit, writes that need more are refused",
            ),
            NEAR.. => told(Level::Warning, text, "give it more memory, or delete what is not needed"),
            _ => Some(Finding::ok("memory", &server.address, text)),
        }
    })
}

/// Connections of one client's address, and of all.
pub(super) fn connections(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "connections", "connections are far from their limits", |server| {
        let told = |level, text: String, advice| {
            Some(Finding::new(level, "connections", &server.address, text, advice))
        };
        let max: Option<u64> = server.settings.get("maxClientCnxns").and_then(|max| max.parse().ok());
        let busiest = server.connections.iter().max_by_key(|(_, count)| **count);
        if let (Some(max), Some((client, count))) = (max.filter(|max| *max > 0), busiest)
            && let Some(level) = nearness(*count as f64, max as f64)
        {
            let text = format!("{client} has {count} of {max} connections that one address may have");
            return told(
                level,
                text,
                "raise maxClientCnxns, or let clients share a session: more connections are closed at once",
            );
        }
        let alive = server.metric("num_alive_connections")?;
        let all = server.metric("paddock_connections_max").filter(|max| *max > 0.0);
        if let Some(max) = all
            && let Some(level) = nearness(alive, max)
        {
            let text = format!("{alive:.0} of {max:.0} connections");
            return told(level, text, "raise maxCnxns (connections_max), or spread clients over the members");
        }
        Some(Finding::ok("connections", &server.address, format!("{alive:.0} connections")))
    })
}

/// Sessions, watches, and memory that clients hold.
pub(super) fn sessions(facts: &DoctorFacts) -> Vec<Finding> {
    /// Metric of the use, metric of the limit, name, and advice.
    type Row = (&'static str, &'static str, &'static str, &'static str);
    const ROWS: [Row; 3] = [
        (
            "global_sessions",
            "paddock_sessions_max",
            "sessions",
            "raise sessions_max, or look for clients that open sessions in a loop",
        ),
        (
            "watch_count",
            "paddock_watches_max",
            "watches",
            "raise watches_max; the member's page shows who watches",
        ),
        (
            "client_buffer_bytes",
            "paddock_client_buffer_bytes_max",
            "bytes that clients may hold",
            "a client asks for much and does not read: the member's page shows which; else raise client_buffers_max",
        ),
    ];
    of_servers(facts, "sessions", "sessions and watches are far from their limits", |server| {
        let sessions = server.metric("global_sessions")?;
        for (used, max, name, advice) in ROWS {
            let (Some(used), Some(max)) = (server.metric(used), server.metric(max).filter(|max| *max > 0.0))
            else {
                continue;
            };
            if let Some(level) = nearness(used, max) {
                let text = format!("{used:.0} of {max:.0} {name}");
                return Some(Finding::new(level, "sessions", &server.address, text, advice));
            }
        }
        Some(Finding::ok("sessions", &server.address, format!("{sessions:.0} sessions")))
    })
}

fn nearness(used: f64, max: f64) -> Option<Level> {
    match percent(used, max) {
        VERY_NEAR.. => Some(Level::Error),
        NEAR.. => Some(Level::Warning),
        _ => None,
    }
}

/// Limits that clients have hit since the start, and lines of the log that were lost.
pub(super) fn hits(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "hits", "no client has hit a limit", |server| {
        let mut hit = limits_hit(server);
        hit.sort_unstable();
        if hit.is_empty() {
            let known = server.metric("connection_rejected").is_some();
            return known.then(|| Finding::ok("hits", &server.address, "no client has hit a limit"));
        }
        let text = format!("since the start: {}", hit.join(", "));
        Some(Finding::new(
            Level::Note,
            "hits",
            &server.address,
            text,
            "the log names the clients; raise the limit if they are right",
        ))
    })
}

fn limits_hit(server: &ServerFacts) -> Vec<String> {
    let labelled = server.labelled("paddock_limit_hits").filter(|(_, hits)| *hits > 0.0);
    let mut hit: Vec<String> = labelled.map(|(limit, hits)| format!("{limit} {hits:.0} times")).collect();
    let rejected = server.metric("connection_rejected").filter(|count| *count > 0.0);
    if let (Some(count), true) = (rejected, hit.is_empty()) {
        hit.push(format!("{count:.0} connections refused"));
    }
    if let Some(lost) = server.metric("paddock_log_lines_lost").filter(|lost| *lost > 0.0) {
        hit.push(format!("{lost:.0} lines of the log lost"));
    }
    hit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::common::testing::{facts, lines, server};

    #[test]
    fn descriptors_may_be_few_or_used_up() {
        let judge = |open, max| judge_descriptors("descriptors", "a", open, max).level;
        assert_eq!(judge(50, 65_536), Level::Ok);
        assert_eq!([judge(50, 1024), judge(50_000, 65_536)], [Level::Warning, Level::Warning]);
        assert_eq!(judge(60_000, 65_536), Level::Error);
        let told =
            server("leader", &[("open_file_descriptor_count", 9.0), ("max_file_descriptor_count", 256.0)]);
        assert_eq!(
            lines(&descriptors(&facts(vec![told]))),
            ["warning a:2181: 9 of 256 files and sockets are open"]
        );
    }

    #[test]
    fn memory_is_compared_with_its_limit() {
        let check = |more: &[(&str, f64)]| {
            let metrics = [&[("process_resident_memory_bytes", 800.0)], more].concat();
            memory(&facts(vec![server("leader", &metrics)]))[0].level
        };
        assert_eq!([check(&[]), check(&[("paddock_memory_max_bytes", 2000.0)])], [Level::Ok, Level::Ok]);
        assert_eq!(check(&[("paddock_memory_max_bytes", 1000.0)]), Level::Warning);
        assert_eq!(check(&[("paddock_memory_max_bytes", 850.0)]), Level::Error);
        assert_eq!(check(&[("memory_limit_exceeded", 1.0)]), Level::Error);
        assert_eq!(check(&[("process_swapped_memory_bytes", 4096.0)]), Level::Warning);
    }

    #[test]
    fn clients_near_a_limit_are_named() {
        let mut busy = server("leader", &[("num_alive_connections", 58.0)]);
        busy.settings = [("maxClientCnxns".to_owned(), "60".to_owned())].into();
        busy.connections = [("10.0.0.7".to_owned(), 45), ("10.0.0.8".to_owned(), 3)].into();
        let found = connections(&facts(vec![busy.clone()]));
        assert_eq!(
            lines(&found),
            ["warning a:2181: 10.0.0.7 has 45 of 60 connections that one address may have"]
        );
        busy.settings.clear();
        assert_eq!(lines(&connections(&facts(vec![busy]))), ["ok: 58 connections"]);
        let many = server("leader", &[("num_alive_connections", 95.0), ("paddock_connections_max", 100.0)]);
        assert_eq!(lines(&connections(&facts(vec![many]))), ["error a:2181: 95 of 100 connections"]);
        let sessioned = |max| server("leader", &[("global_sessions", 80.0), ("paddock_sessions_max", max)]);
        let found = sessions(&facts(vec![sessioned(0.0), sessioned(100.0)]));
        assert_eq!(lines(&found), ["warning b:2181: 80 of 100 sessions"]);
    }

    #[test]
    fn limits_that_were_hit_are_noted() {
        let hit = server("leader", &[("connection_rejected", 3.0), ("paddock_limit_hits{watches}", 2.0)]);
        assert_eq!(lines(&hits(&facts(vec![hit]))), ["note a:2181: since the start: watches 2 times"]);
        let zookeeper = server("leader", &[("connection_rejected", 3.0)]);
        assert_eq!(
            lines(&hits(&facts(vec![zookeeper]))),
            ["note a:2181: since the start: 3 connections refused"]
        );
        let none = server("leader", &[("connection_rejected", 0.0)]);
        assert_eq!(lines(&hits(&facts(vec![none]))), ["ok: no client has hit a limit"]);
    }
}
