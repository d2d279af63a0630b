//! Answers of ZooKeeper's shell as facts.

use super::{bytes_of_dump, command_name, refusal, stat_field};

/// Words of its failures, and the refusal that each stands for.
const REFUSALS: &[(&str, &str)] = &[
    ("Node does not exist: ", "no such znode"),
    ("KeeperErrorCode = NoNode", "no such znode"),
    ("Node already exists: ", "the znode exists"),
    ("version No is not valid : ", "another version"),
    ("KeeperErrorCode = BadVersion", "another version"),
    ("Insufficient permission : ", "not allowed"),
    ("Node not empty: ", "children"),
    ("Ephemerals cannot have children: ", "no children of an ephemeral"),
    ("KeeperErrorCode = No such watcher", "no such watch"),
    ("KeeperErrorCode = Unimplemented", "unimplemented"),
    ("does not have the form scheme:id:perm", "no ACL"),
    ("KeeperErrorCode = InvalidACL", "no ACL"),
    ("Not connected", "not connected"),
    ("quota for ", "no quota"),
    ("Quota does not exist for ", "no quota"),
    (" which has a quota", "a quota above or below"),
    ("Command index out of range", "no such line"),
    ("Error processing /", "no such file"),
    ("KeeperErrorCode = BadArguments", "bad arguments"),
    ("Arguments are not valid : ", "bad arguments"),
    ("KeeperErrorCode = NewConfigNoQuorum", "no quorum"),
    ("Command not found", "usage"),
    ("cannot be combined with", "usage"),
    ("TTLs cannot be used with", "usage"),
    ("argument must be a long value", "usage"),
    ("Missing required option", "usage"),
    ("For input string", "usage"),
    ("Missing argument for option", "usage"),
    ("Can't use -file or -members together with", "usage"),
    ("Unrecognized option", "usage"),
    (" does not exist.", "no such znode"),
];

/// Words of its answers that are no failures, though they have words of some.
const HARMLESS: &[&str] = &["Output quota for "];

/// An event is printed in two pieces, between which an answer may stand.
const HEADING: &str = "\nWATCHER::\n";
const EVENT: &str = "\nWatchedEvent ";

/// Takes the events out. Those that the client makes up itself, of its connection and of watches that are removed, are left out.
pub(super) fn events_parted(output: &str) -> (Vec<String>, String) {
    let (mut events, mut rest) = (Vec::new(), String::new());
    let without_headings = output.replace(HEADING, "");
    let mut output = without_headings.as_str();
    while let Some((before, event)) = output.split_once(EVENT) {
        rest.push_str(before);
        let (event, behind) = event.split_once('\n').unwrap_or((event, ""));
        let field =
            |name: &str| event.split(' ').find_map(|word| word.strip_prefix(name)).unwrap_or_default();
        let kind = field("type:");
        if kind.starts_with("Node") {
            events.push(format!("{kind} {}", field("path:")));
        }
        output = behind;
    }
    rest.push_str(output);
    (events, rest)
}

pub(super) fn facts(line: &str, answer: &str) -> Vec<String> {
    let name = command_name(line);
    let is_usage =
        |text: &str| text.starts_with(&format!("{name} [")) || text.trim_end() == format!("{name} path");
    let refusing = answer.lines().filter(|_| name != "connect");
    for text in refusing.filter(|text| !HARMLESS.iter().any(|words| text.contains(words))) {
        if let Some(refusal) = refusal(text, REFUSALS) {
            return vec![refusal];
        }
        if is_usage(text) {
            return vec!["refused: usage".to_owned()];
        }
    }
    let lines: Vec<String> = answer.lines().map(|line| stat_field(&with_time(line))).collect();
    let without = |words: &str| lines.iter().filter(|line| !line.starts_with(words)).cloned().collect();
    match name {
        "create" => {
            lines.iter().filter_map(|line| line.strip_prefix("Created ")).map(str::to_owned).collect()
        }
        "ls" | "getEphemerals" => lines.iter().flat_map(|line| names(line)).collect(),
        "get" if line.contains(" -x") => {
            // A frame stands around the rows.
            let is_frame = |row: &&String| row.contains("+--") || row.contains("  0  1  2");
            let is_row = |row: &&String| row.starts_with('|');
            let rows = lines.iter().filter(is_row).filter_map(|row| row.split('|').nth(2));
            let bytes = bytes_of_dump(rows);
            let others = lines.iter().filter(|row| !is_row(row) && !is_frame(row)).cloned();
            [bytes].into_iter().chain(others).collect()
        }
        // A znode without data; its null is compared elsewhere.
        "get" if lines == ["null"] => vec![String::new()],
        // The shell says so while it connects: the next answer shows that it has.
        "connect" => without("Not connected"),
        "getAcl" => acl(&lines),
        "whoami" => without("Auth scheme: User"),
        "sync" => without("Sync is OK"),
        "setquota" | "delquota" => without("absolute path is "),
        "reconfig" => without("Committed new configuration:"),
        "listquota" => {
            // "Output quota for /a count=…" and "Output stat for /a count=…".
            let of_output = |line: &String| {
                let words: Vec<&str> = line.splitn(5, ' ').collect();
                (words[0] == "Output").then(|| words[4].to_owned())
            };
            lines.iter().filter_map(of_output).collect()
        }
        "version" => vec![format!("a version: {}", lines[0].starts_with("ZooKeeper CLI version: 3.9.5"))],
        _ => lines,
    }
}

/// The names of a list in brackets, or the line itself.
fn names(line: &str) -> Vec<String> {
    match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        Some("") => Vec::new(),
        Some(names) => {
            let mut names: Vec<String> = names.split(", ").map(str::to_owned).collect();
            names.sort_unstable();
            names
        }
        None => vec![line.to_owned()],
    }
}

/// Each entry stands on two lines: `'scheme,'id` and `: permissions`.
fn acl(lines: &[String]) -> Vec<String> {
    let mut facts: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix('\''), line.strip_prefix(": "), facts.last_mut()) {
            (Some(id), ..) => facts.push(id.replacen(",'", ":", 1)),
            (_, Some(permissions), Some(entry)) => entry.push_str(&format!(":{permissions}")),
            _ => facts.push(line.clone()),
        }
    }
    facts
}

/// A line of a Stat with its time as RFC 3339 has it, to the second: it says `Fri Nov 27 15:06:05 UTC 2026`.
pub fn with_time(line: &str) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let Some((name @ ("ctime" | "mtime"), time)) = line.split_once(" = ") else { return line.to_owned() };
    let words: Vec<&str> = time.split(' ').collect();
    let [_, month, day, clock, "UTC", year] = words[..] else { panic!("{line} has no time") };
    let month = MONTHS.iter().position(|known| *known == month).expect("a month has its name") + 1;
    format!("{name} = {year}-{month:02}-{day}T{clock}")
}
