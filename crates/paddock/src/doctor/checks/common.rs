//! Parts that checks share: findings of single servers, and numbers for people.

use crate::doctor::facts::{DoctorFacts, ServerFacts};
use crate::doctor::finding::{Finding, Level};

/// Findings of a check of single servers: those that are not ok, or one line that all are. A server for which the facts lack gets none.
pub(super) fn of_servers(
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
pub(super) fn percent(part: f64, whole: f64) -> u64 {
    if whole > 0.0 { (part / whole * 100.0) as u64 } else { 0 }
}

/// Bytes for people.
pub(super) fn bytes(count: f64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| count >= (1u64 << shift) as f64);
    match unit {
        Some((unit, shift)) => format!("{:.1} {unit}", count / (1u64 << shift) as f64),
        None => format!("{count:.0} bytes"),
    }
}

#[cfg(test)]
pub(super) mod testing {
    use crate::doctor::facts::{DoctorFacts, ServerFacts};
    use crate::doctor::finding::Finding;

    /// A server that answers, with these metrics.
    pub(crate) fn server(mode: &str, metrics: &[(&str, f64)]) -> ServerFacts {
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
    pub(crate) fn facts(servers: Vec<ServerFacts>) -> DoctorFacts {
        let named = servers.into_iter().enumerate().map(|(place, server)| {
            let letter = char::from(b'a' + place as u8);
            ServerFacts { address: format!("{letter}:2181"), ..server }
        });
        DoctorFacts { servers: named.collect(), ..DoctorFacts::default() }
    }

    /// The findings as lines: level, subject and text.
    pub(crate) fn lines(findings: &[Finding]) -> Vec<String> {
        let line = |finding: &Finding| match finding.subject.as_str() {
            "" => format!("{}: {}", finding.level.name(), finding.text),
            subject => format!("{} {subject}: {}", finding.level.name(), finding.text),
        };
        findings.iter().map(line).collect()
    }
}
