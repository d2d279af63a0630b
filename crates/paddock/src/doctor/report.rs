//! Findings as lines for people, and as JSON.

use std::io::{self, Write as _};

use paddock_config::printable;
use serde_json::json;

use super::finding::{Finding, Level};

/// Prints all findings, or those that are not ok.
pub(super) fn print(findings: &[Finding], quiet: bool, json: bool) -> io::Result<()> {
    let text = if json { as_json(findings, quiet) } else { as_text(findings, quiet) };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn shown(findings: &[Finding], quiet: bool) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(move |finding| !quiet || finding.level > Level::Ok)
}

fn counts(findings: &[Finding]) -> Vec<(Level, usize)> {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    Level::ALL.into_iter().map(|level| (level, count(level))).collect()
}

fn as_text(findings: &[Finding], quiet: bool) -> String {
    let mut text = String::new();
    for finding in shown(findings, quiet) {
        let subject =
            if finding.subject.is_empty() { String::new() } else { format!("{}: ", finding.subject) };
        // Names from a server stand in it, and this may be a terminal.
        let line = printable(&format!("{subject}{}", finding.text)).to_string();
        text += &format!("{:<8} {:<17} {line}\n", finding.level.name(), finding.check);
        if !finding.advice.is_empty() {
            text += &format!("{:27}→ {}\n", "", finding.advice);
        }
    }
    let counts = counts(findings);
    if !quiet || counts.iter().any(|(level, count)| *level > Level::Ok && *count > 0) {
        let counts: Vec<String> =
            counts.iter().map(|(level, count)| format!("{count} {}", level.name())).collect();
        text += &format!("{}\n", counts.join(", "));
    }
    text
}

fn as_json(findings: &[Finding], quiet: bool) -> String {
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    let counts: serde_json::Map<_, _> =
        counts(findings).into_iter().map(|(level, count)| (level.name().to_owned(), count.into())).collect();
    let findings: Vec<_> = shown(findings, quiet).map(Finding::as_json).collect();
    format!("{}\n", json!({ "level": worst.name(), "counts": counts, "findings": findings }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::ok("quorum", "", "3 of 3"),
            Finding::new(Level::Warning, "values", "/a\x1b[2J", "large", "make it small"),
        ]
    }

    #[test]
    fn a_line_says_what_and_the_next_one_what_to_do() {
        let text = as_text(&findings(), false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ok       quorum            3 of 3");
        assert!(
            lines[1].starts_with("warning  values            /a") && !lines[1].contains('\x1b'),
            "{text}"
        );
        assert_eq!(lines[2], "                           → make it small");
        assert_eq!(lines[3], "1 ok, 0 note, 1 warning, 0 error");
        assert_eq!(as_text(&findings()[..1], true), "");
        assert_eq!(as_text(&findings(), true).lines().count(), 3);
    }

    #[test]
    fn the_worst_level_stands_in_front() {
        let value: serde_json::Value = serde_json::from_str(&as_json(&findings(), true)).unwrap();
        assert_eq!((&value["level"], &value["counts"]["ok"]), (&"warning".into(), &1.into()));
        assert_eq!(value["findings"][0]["advice"], "make it small");
        assert_eq!(value["findings"].as_array().unwrap().len(), 1);
    }
}
