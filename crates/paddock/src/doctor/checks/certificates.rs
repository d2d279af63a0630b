//! Ends of certificates: those that servers show, and those in the files that settings name.

use crate::doctor::facts::DoctorFacts;
use crate::doctor::finding::{Finding, Level};

const DAY_S: u64 = 86_400;
/// Days before the end from which a certificate is to be renewed, and from which that is urgent.
const DAYS_SOON: u64 = 30;
const DAYS_URGENT: u64 = 7;

/// Certificates that end soon, or have ended.
pub(super) fn certificates(facts: &DoctorFacts) -> Vec<Finding> {
    let mut ends: Vec<(String, u64)> = Vec::new();
    let mut found = Vec::new();
    for server in &facts.servers {
        let of_metrics = server.labelled("paddock_certificate_end_seconds");
        let mut own: Vec<_> =
            of_metrics.map(|(port, end)| (format!("of its {port} port"), end as u64)).collect();
        if own.is_empty() {
            own.extend(server.certificate_end_s.map(|end_s| ("that it shows".to_owned(), end_s)));
        }
        ends.extend(own.into_iter().map(|(which, end_s)| (format!("{} {which}", server.address), end_s)));
    }
    for (which, end) in facts.machine.iter().flat_map(|machine| &machine.certificates) {
        match end {
            Ok(end_s) => ends.extend(end_s.map(|end_s| ((*which).to_owned(), end_s))),
            Err(reason) => {
                let advice =
                    "mend the file: a start would be refused, and a running server keeps what it read before";
                found.push(Finding::new(Level::Error, "certificates", which, reason.clone(), advice));
            }
        }
    }
    found.extend(ends.iter().filter_map(|(which, end_s)| judge(which, *end_s, facts.now_s)));
    if found.is_empty()
        && let Some(first) = ends.iter().map(|(_, end_s)| end_s).min()
    {
        let days = first.saturating_sub(facts.now_s) / DAY_S;
        found.push(Finding::ok(
            "certificates",
            "",
            format!("the first of {} ends in {days} days", ends.len()),
        ));
    }
    found
}

fn judge(which: &str, end_s: u64, now_s: u64) -> Option<Finding> {
    let advice = "renew it: a server reads a file that has changed at the next connection";
    let told = |level, text| Some(Finding::new(level, "certificates", which, text, advice));
    let Some(left_s) = end_s.checked_sub(now_s).filter(|left_s| *left_s > 0) else {
        return told(Level::Error, format!("ended {} days ago", (now_s - end_s) / DAY_S));
    };
    match left_s / DAY_S {
        0..DAYS_URGENT => told(Level::Error, format!("ends in {} hours", left_s / 3600)),
        days @ DAYS_URGENT..DAYS_SOON => told(Level::Warning, format!("ends in {days} days")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::common::testing::{facts, lines, server};
    use crate::doctor::facts::MachineFacts;

    #[test]
    fn certificates_are_renewed_in_time() {
        let now_s = 1_800_000_000;
        let with = |metrics: &[(&str, f64)], shown: Option<u64>| {
            let mut server = server("leader", metrics);
            server.certificate_end_s = shown;
            DoctorFacts { now_s, ..facts(vec![server]) }
        };
        let days = |days: u64| now_s + days * DAY_S;
        let end = "paddock_certificate_end_seconds{quorum}";
        assert_eq!(lines(&certificates(&with(&[], None))), [""; 0]);
        let found = certificates(&with(&[(end, days(90) as f64)], Some(days(90))));
        assert_eq!(lines(&found), ["ok: the first of 1 ends in 90 days"]);
        let found = certificates(&with(&[(end, days(20) as f64)], None));
        assert_eq!(lines(&found), ["warning a:2181 of its quorum port: ends in 20 days"]);
        let found = certificates(&with(&[], Some(days(3))));
        assert_eq!(lines(&found), ["error a:2181 that it shows: ends in 72 hours"]);
        let mut ended = with(&[], Some(now_s - 2 * DAY_S));
        let unreadable = ("file of the HTTP interface", Err("no such file".to_owned()));
        ended.machine = Some(MachineFacts { certificates: vec![unreadable], ..MachineFacts::default() });
        assert_eq!(
            lines(&certificates(&ended)),
            [
                "error file of the HTTP interface: no such file",
                "error a:2181 that it shows: ended 2 days ago"
            ]
        );
    }
}
