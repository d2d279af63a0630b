//! The view of two looks: rates of members between them, and the busiest paths and sessions of all members together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use paddock_config::printable;
use serde_json::{Value, json};

use super::look::{AskedTotals, MemberLook, SlowLook, TopLook};

/// Paths, and sessions, that are shown however small the screen is.
const LINES_MIN: usize = 2;
/// Slow requests that are shown.
const SLOW_SHOWN: usize = 5;
/// Name of the paths that the requester may not see.
const HIDDEN: &str = "(paths that this identity may not see)";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SortOrder {
    Requests,
    Bytes,
}

#[derive(Debug)]
pub(super) struct View {
    members: Vec<MemberRow>,
    /// The longest time in milliseconds in which a member has counted.
    covered_ms: u64,
    paths: Vec<RateRow>,
    sessions: Vec<RateRow>,
    slow: Vec<SlowLook>,
}

#[derive(Debug)]
struct MemberRow {
    address: String,
    facts: Result<MemberRates, String>,
}

#[derive(Debug)]
struct MemberRates {
    look: MemberLook,
    /// Requests a second between the two looks.
    requests_per_s: f64,
    /// Time in microseconds within which 99 of 100 requests between the looks were answered; `None` if there was none.
    p99_us: Option<u64>,
}

/// A path or a session.
#[derive(Clone, Debug, Default, PartialEq)]
struct RateRow {
    name: String,
    requests_per_s: f64,
    bytes_per_s: f64,
}

impl View {
    pub(super) fn between(before: &[TopLook], now: &[TopLook], order: SortOrder) -> View {
        let members = now.iter().enumerate().map(|(place, look)| MemberRow {
            address: look.address.clone(),
            facts: look.facts.clone().map(|facts| rates(before.get(place), look, facts)),
        });
        let told: Vec<&MemberLook> = now.iter().filter_map(|look| look.facts.as_ref().ok()).collect();
        let paths = told.iter().flat_map(|look| {
            let named = |(path, asked): &(Option<String>, AskedTotals)| {
                (path.clone().unwrap_or_else(|| HIDDEN.to_owned()), *asked, look.covered_ms)
            };
            look.paths.iter().map(named).collect::<Vec<_>>()
        });
        let sessions = told.iter().flat_map(|look| {
            let named = |(id, asked): &(String, AskedTotals)| (id.clone(), *asked, look.covered_ms);
            look.sessions_busy.iter().map(named).collect::<Vec<_>>()
        });
        let mut slow: Vec<SlowLook> = told.iter().flat_map(|look| look.slow.clone()).collect();
        slow.sort_by_key(|request| Reverse(request.took_ms));
        slow.truncate(SLOW_SHOWN);
        View {
            members: members.collect(),
            covered_ms: told.iter().map(|look| look.covered_ms).max().unwrap_or(0),
            paths: rows(paths, order),
            sessions: rows(sessions, order),
            slow,
        }
    }

    /// Number of paths, and of sessions, with which both lists and the slowest requests fit into a screen with this number of rows.
    pub(super) fn lines_that_fit(&self, rows: usize) -> usize {
        // Titles of three tables, empty lines between them, and the line with the keys.
        let slow = if self.slow.is_empty() { 0 } else { self.slow.len() + 2 };
        (rows.saturating_sub(self.members.len() + slow + 6) / 2).max(LINES_MIN)
    }

    pub(super) fn as_text(&self, lines: usize) -> String {
        let mut text = format!(
            "{:<24} {:<11} {:>9} {:>9} {:>7} {:>8} {:>8} {:>9}\n",
            "MEMBER", "ROLE", "REQ/S", "P99", "CONNS", "SESSIONS", "WAITING", "ZNODES"
        );
        for MemberRow { address, facts } in &self.members {
            text += &match facts {
                Err(reason) => format!("{address:<24} {}\n", printable(reason)),
                Ok(MemberRates { look, requests_per_s, p99_us }) => format!(
                    "{address:<24} {:<11} {:>9} {:>9} {:>7} {:>8} {:>8} {:>9}\n",
                    printable(&look.role),
                    rate(*requests_per_s),
                    p99_us.map_or("-".to_owned(), time),
                    look.connections,
                    look.sessions,
                    look.outstanding,
                    look.znodes
                ),
            };
        }
        let since = format!("in the last {} s", self.covered_ms / 1000);
        for (title, rows) in [("PATH", &self.paths), ("SESSION", &self.sessions)] {
            text += &format!("\n{:>9} {:>11}  {title} {since}\n", "REQ/S", "BYTES/S");
            for row in rows.iter().take(lines) {
                let (requests, bytes) = (rate(row.requests_per_s), bytes(row.bytes_per_s));
                text += &format!("{requests:>9} {bytes:>11}  {}\n", printable(&row.name));
            }
        }
        if !self.slow.is_empty() {
            text += &format!("\n{:>9} {:<14} SLOWEST in ten minutes\n", "TOOK", "OPERATION");
        }
        for SlowLook { took_ms, operation, path, session } in &self.slow {
            let path = path.as_deref().unwrap_or("-");
            text += &format!(
                "{:>9} {:<14} {}  {session}\n",
                time(took_ms * 1000),
                printable(operation),
                printable(path)
            );
        }
        text
    }

    pub(super) fn as_json(&self, lines: usize) -> Value {
        let rows = |rows: &[RateRow], name: &str| -> Vec<Value> {
            let row = |row: &RateRow| json!({ name: row.name, "requests_per_s": row.requests_per_s, "bytes_per_s": row.bytes_per_s });
            rows.iter().take(lines).map(row).collect()
        };
        let member = |MemberRow { address, facts }: &MemberRow| match facts {
            Err(reason) => json!({ "address": address, "error": reason }),
            Ok(MemberRates { look, requests_per_s, p99_us }) => json!({
                "address": address,
                "role": look.role,
                "requests_per_s": requests_per_s,
                "p99_us": p99_us,
                "connections": look.connections,
                "sessions": look.sessions,
                "outstanding": look.outstanding,
                "znodes": look.znodes,
            }),
        };
        let slow = |request: &SlowLook| {
            json!({
                "took_ms": request.took_ms,
                "operation": request.operation,
                "path": request.path,
                "session": request.session,
            })
        };
        json!({
            "members": self.members.iter().map(member).collect::<Vec<_>>(),
            "covered_ms": self.covered_ms,
            "paths": rows(&self.paths, "path"),
            "sessions": rows(&self.sessions, "session"),
            "slow": self.slow.iter().map(slow).collect::<Vec<_>>(),
        })
    }
}

fn rates(before: Option<&TopLook>, now: &TopLook, facts: MemberLook) -> MemberRates {
    let earlier = before.and_then(|look| Some((look.at, look.facts.as_ref().ok()?)));
    // A member that was started again has counted less.
    let Some((at, earlier)) = earlier.filter(|(_, earlier)| earlier.received <= facts.received) else {
        return MemberRates { look: facts, requests_per_s: 0.0, p99_us: None };
    };
    let seconds = now.at.duration_since(at).as_secs_f64().max(f64::EPSILON);
    let requests_per_s = (facts.received - earlier.received) as f64 / seconds;
    let times = facts
        .times
        .iter()
        .enumerate()
        .map(|(place, count)| count.saturating_sub(earlier.times.get(place).copied().unwrap_or(0)));
    let p99_us = p99(&times.collect::<Vec<_>>(), &facts.bounds_us);
    MemberRates { look: facts, requests_per_s, p99_us }
}

/// The end of the bucket in which the request stands that is slower than 99 of 100.
fn p99(times: &[u64], bounds_us: &[u64]) -> Option<u64> {
    let all: u64 = times.iter().sum();
    let mut left = all - all / 100;
    let place = times.iter().position(|count| {
        left = left.saturating_sub(*count);
        left == 0
    });
    // Behind the last bound there is no end: it is at least that.
    place.filter(|_| all > 0).and_then(|place| bounds_us.get(place).or(bounds_us.last()).copied())
}

/// Rates of the same name at several members are added.
fn rows(asked: impl Iterator<Item = (String, AskedTotals, u64)>, order: SortOrder) -> Vec<RateRow> {
    let mut by_name: BTreeMap<String, RateRow> = BTreeMap::new();
    for (name, asked, covered_ms) in asked {
        let seconds = (covered_ms as f64 / 1e3).max(1.0);
        let row = by_name.entry(name.clone()).or_insert_with(|| RateRow { name, ..RateRow::default() });
        row.requests_per_s += asked.requests as f64 / seconds;
        row.bytes_per_s += asked.bytes as f64 / seconds;
    }
    let mut rows: Vec<RateRow> = by_name.into_values().collect();
    let weight = |row: &RateRow| match order {
        SortOrder::Requests => row.requests_per_s,
        SortOrder::Bytes => row.bytes_per_s,
    };
    rows.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    rows
}

fn rate(per_s: f64) -> String {
    if per_s < 100.0 { format!("{per_s:.1}") } else { format!("{per_s:.0}") }
}

fn bytes(count: f64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| count >= (1u64 << shift) as f64) {
        Some((unit, shift)) => format!("{:.1} {unit}", count / (1u64 << shift) as f64),
        None => format!("{count:.0} B"),
    }
}

fn time(us: u64) -> String {
    match us {
        0..1000 => format!("{us} µs"),
        1000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::top::look::read;

    /// A look at a member that has had these requests, all of them within 100 µs but for two.
    fn look(at: Instant, received: u64, role: &str) -> TopLook {
        let overview = json!({
            "role": role,
            "totals": { "received": received },
            "counts": { "connections": 3, "sessions": 2, "outstanding": 1, "znodes": 9 },
            "bounds": { "request_us": [50, 100, 1000] },
            "operations": { "getData": [0, received - 2, 0, 0], "create": [0, 0, 0, 2] },
        });
        let activity = json!({
            "covered_ms": 40_000,
            "paths": [
                { "path": "/a\u{1b}", "requests": 400, "bytes": 4000 },
                { "path": "/b", "requests": 40, "bytes": 81_920_000 },
                { "path": null, "requests": 4, "bytes": 4 },
            ],
            "sessions": [{ "id": "0x17", "requests": 444, "bytes": 1 }],
            "slow": [{ "took_ms": 1500, "operation": "create", "path": "/b", "session": "0x17" }],
        });
        TopLook { address: "a:8080".to_owned(), at, facts: Ok(read(&overview, &activity)) }
    }

    #[test]
    fn rates_are_those_between_two_looks_and_of_all_members() {
        let began = Instant::now();
        let later = began + Duration::from_secs(2);
        let before = [look(began, 100, "leader"), look(began, 100, "follower")];
        let mut now = vec![look(later, 300, "leader"), look(later, 102, "follower")];
        now.push(TopLook { address: "c:8080".to_owned(), at: later, facts: Err("refused".to_owned()) });
        let view = View::between(&before, &now, SortOrder::Requests);
        let text = view.as_text(2);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a:8080", "leader", "100", "100", "µs", "3", "2", "1", "9"]);
        assert_eq!(lines[2][..3], ["a:8080", "follower", "1.0"]);
        assert_eq!(lines[3], ["c:8080", "refused"]);
        assert_eq!(lines[5].join(" "), "REQ/S BYTES/S PATH in the last 40 s");
        assert_eq!(lines[6][..3], ["20.0", "200", "B"]);
        assert!(!text.contains('\u{1b}'), "names of others do not reach a terminal as they are");
        assert_eq!(lines[7], ["2.0", "3.9", "MiB", "/b"]);
        assert_eq!(lines[9].join(" "), "REQ/S BYTES/S SESSION in the last 40 s");
        assert_eq!(lines[10], ["22.2", "0", "B", "0x17"]);
        assert_eq!(lines[13], ["1.5", "s", "create", "/b", "0x17"]);
        // Of 30 rows 3 are the members', 4 the slowest requests', and 6 titles and the like.
        assert_eq!((view.lines_that_fit(30), view.lines_that_fit(5)), (8, 2));
        assert!(view.as_text(view.lines_that_fit(30)).lines().count() < 30);
        let by_bytes = View::between(&before, &now, SortOrder::Bytes).as_json(1);
        assert_eq!(
            (&by_bytes["paths"][0]["path"], by_bytes["paths"].as_array().unwrap().len()),
            (&"/b".into(), 1)
        );
        assert_eq!(
            (&by_bytes["members"][2]["error"], &by_bytes["members"][0]["p99_us"]),
            (&"refused".into(), &100.into())
        );
    }

    #[test]
    fn a_member_that_was_started_again_has_no_rate_yet() {
        let began = Instant::now();
        let (before, now) = (look(began, 100, "leader"), look(began + Duration::from_secs(1), 5, "leader"));
        let view = View::between(&[before], &[now], SortOrder::Requests);
        assert_eq!(view.as_json(1)["members"][0]["requests_per_s"], 0.0);
    }

    #[test]
    fn the_99th_of_100_is_in_the_bucket_that_is_told() {
        let bounds = [50, 100, 1000];
        assert_eq!(p99(&[0, 0, 0, 0], &bounds), None);
        assert_eq!(p99(&[99, 0, 1, 0], &bounds), Some(50));
        assert_eq!(p99(&[98, 0, 2, 0], &bounds), Some(1000));
        assert_eq!(p99(&[0, 0, 0, 5], &bounds), Some(1000));
    }
}
