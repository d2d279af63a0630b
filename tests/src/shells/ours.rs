//! Answers of `paddock shell` as facts.

use super::{bytes_of_dump, command_name, refusal, stat_field};

/// Words of its failures, and the refusal that each stands for.
const REFUSALS: &[(&str, &str)] = &[
    ("its parent ", "no such znode"),
    ("no such znode", "no such znode"),
    ("exists already", "the znode exists"),
    ("the version is another one", "another version"),
    ("not allowed by the ACL", "not allowed"),
    ("the znode has children", "children"),
    ("an ephemeral znode has no children", "no children of an ephemeral"),
    ("no such watch", "no such watch"),
    ("does not know this operation", "unimplemented"),
    ("is no entry of an ACL", "no ACL"),
    ("the ACL is not valid", "no ACL"),
    ("not connected", "not connected"),
    ("has no quota", "no quota"),
    ("has a quota already", "a quota above or below"),
    ("there is no line", "no such line"),
    ("read /", "no such file"),
    ("the server finds an argument wrong", "bad arguments"),
    ("too few members of the new configuration", "no quorum"),
    ("there is no command", "usage"),
    ("something is missing", "usage"),
    ("is too much", "usage"),
    ("there is no flag", "usage"),
    ("do not go together", "usage"),
    ("there is no mode", "usage"),
    ("wants a value", "usage"),
    ("say -add", "usage"),
    ("say at least one of", "usage"),
    ("is not a number", "usage"),
];

/// Takes the events out.
pub(super) fn events_parted(output: &str) -> (Vec<String>, String) {
    let (mut events, mut rest) = (Vec::new(), String::new());
    for line in output.split_inclusive('\n') {
        match line.strip_prefix("watch: ") {
            Some(event) => events.push(event.trim_end().to_owned()),
            None => rest.push_str(line),
        }
    }
    (events, rest)
}

pub(super) fn facts(line: &str, answer: &str) -> Vec<String> {
    if let Some(failure) = answer.lines().find(|line| line.starts_with("error: ")) {
        return vec![refusal(failure, REFUSALS).unwrap_or_else(|| failure.to_owned())];
    }
    let lines: Vec<String> = answer.lines().map(stat_field).collect();
    match command_name(line) {
        "get" if line.contains(" -x") => {
            let is_row = |row: &&String| row.ends_with('|');
            let rows = lines.iter().filter(is_row);
            let columns = rows.filter_map(|row| row.split_once("  ")?.1.split_once('|'));
            let bytes = bytes_of_dump(columns.map(|(digits, _)| digits));
            [bytes].into_iter().chain(lines.iter().filter(|row| !is_row(row)).cloned()).collect()
        }
        "listquota" => {
            let value = |line: &String| line.split_once(": ").map(|(_, value)| value.to_owned());
            lines.iter().filter_map(value).collect()
        }
        "version" => vec![format!("a version: {}", lines[0].starts_with("paddock "))],
        // ZooKeeper's shows the last eleven.
        "history" => lines[lines.len().saturating_sub(11)..].to_vec(),
        _ => lines,
    }
}
