//! All checks: each is a function from facts to findings, and none asks or waits.

mod certificates;
mod clocks;
mod disks;
mod ensemble;
mod limits;
mod machine;
mod tree;

use super::facts::{DoctorFacts, ServerFacts};
use super::finding::{Finding, Level};

/// Checks in the order in which they are told.
const CHECKS: &[fn(&DoctorFacts) -> Vec<Finding>] = &[
    ensemble::reach,
    ensemble::quorum,
    ensemble::lag,
    ensemble::versions,
    ensemble::settings,
    ensemble::state,
    clocks::clocks,
    disks::sync,
    disks::room,
    disks::snapshots,
    limits::descriptors,
    limits::memory,
    limits::connections,
    limits::sessions,
    limits::hits,
    certificates::certificates,
    tree::directories,
    tree::values,
    tree::whole,
    machine::descriptors,
    machine::swap,
    machine::huge_pages,
    machine::clock,
    machine::directories,
    ensemble::unknown,
];

/// Findings of all checks.
pub(super) fn run(facts: &DoctorFacts) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(facts)).collect()
}

/// Findings of a check of single servers: those that are not ok, or one line that all are. A server for which the facts lack gets none.
fn of_servers(
    facts: &DoctorFacts,
    check: &'static str,
    all_right: &str,
    judge: impl Fn(&ServerFacts) -> Option<Finding>,
) -> Vec<Finding> {
    let judged: Vec<Finding> = facts.servers.iter().filter_map(judge).collect();
    let mut found: Vec<Finding> =
        judged.iter().filter(|finding| finding.level > Level::Ok).cloned().collect();
    if found.is_empty() && !judged.is_empty() {
        let text = match judged.as_slice() {
            [one] => one.text.clone(),
            _ => format!("{all_right} ({} servers)", judged.len()),
        };
        found.push(Finding::ok(check, "", text));
    }
    found
}

/// A share in percent.
fn percent(part: f64, whole: f64) -> u64 {
    if whole > 0.0 { (part / whole * 100.0) as u64 } else { 0 }
}

/// Bytes for people.
fn bytes(count: f64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| count >= (1u64 << shift) as f64);
    match unit {
        Some((unit, shift)) => format!("{:.1} {unit}", count / (1u64 << shift) as f64),
        None => format!("{count:.0} bytes"),
    }
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A server that answers, with these metrics.
    pub(super) fn server(mode: &str, metrics: &[(&str, f64)]) -> ServerFacts {
        ServerFacts {
            address: "a:2181".to_owned(),
            mode: Some(mode.to_owned()),
            version: Some("3.9.5".to_owned()),
            zxid: Some(7),
            metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..ServerFacts::default()
        }
    }

    /// Facts of these servers.
    pub(super) fn facts(servers: Vec<ServerFacts>) -> DoctorFacts {
        let named = servers.into_iter().enumerate().map(|(place, server)| {
            let letter = char::from(b'a' + place as u8);
            ServerFacts { address: format!("{letter}:2181"), ..server }
        });
        DoctorFacts { servers: named.collect(), ..DoctorFacts::default() }
    }

    /// The findings as lines: level, subject and text.
    pub(super) fn lines(findings: &[Finding]) -> Vec<String> {
        let line = |finding: &Finding| match finding.subject.as_str() {
            "" => format!("{}: {}", finding.level.name(), finding.text),
            subject => format!("{} {subject}: {}", finding.level.name(), finding.text),
        };
        findings.iter().map(line).collect()
    }
}
