//! `paddock shell` and the shell of Apache ZooKeeper, `zkCli.sh`, with the same lines: what each of them answers, as facts that can be compared.
//!
//! Each shell is one process that reads its lines from standard input. Both know `printwatches`, which needs no server: it stands
//! behind each line, so that its answer parts the answers of the others.

mod ours;
mod theirs;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::server::environment;

pub use theirs::with_time as with_rfc3339_time;

/// Answers of a shell to lines.
#[derive(Debug)]
pub struct ShellTranscript {
    /// Facts of the answer to each line, in the order of the lines.
    pub answers: Vec<Vec<String>>,
    /// Watch events in their order: kind and path. A shell prints them whenever they come.
    pub events: Vec<String>,
    /// The answers as they were printed.
    pub texts: Vec<String>,
}

/// The answer of both shells that parts those of other lines, without `on` or `off`.
const MARKER: &str = "printwatches is ";

/// Carries lines out in `paddock shell` with more options; it goes on after a failure.
pub fn in_paddocks_shell(hosts: &str, options: &[&str], lines: &[&str]) -> ShellTranscript {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.args(["shell", hosts, "--keep-going"]).args(options).env_remove("PADDOCK_HOSTS");
    let (events, texts) = ours::events_parted(&output(command, hosts, lines));
    transcript(lines, events, &texts, ours::facts)
}

/// Carries lines out in ZooKeeper's own shell, as its script starts it.
pub fn in_zookeepers_shell(hosts: &str, lines: &[&str]) -> ShellTranscript {
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-DLOG_LEVEL=OFF", "-cp", &environment("ZOOKEEPER_CLASSPATH")]);
    command.args(["org.apache.zookeeper.ZooKeeperMain", "-server", hosts]);
    let (events, texts) = theirs::events_parted(&output(command, hosts, lines));
    transcript(lines, events, &texts, theirs::facts)
}

/// Name of a line's command.
pub fn command_name(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Commands of ZooKeeper's list, each with its flags, as it prints the list for a command that does not exist.
pub fn commands_of_list(text: &str) -> Vec<(String, Vec<String>)> {
    let is_flag = |word: &&str| {
        let mut chars = word.chars();
        chars.next() == Some('-') && chars.next().is_some_and(char::is_alphabetic)
    };
    let command = |line: &str| {
        let usage = line.split('#').next().unwrap_or_default();
        let words = usage.split(|c: char| c.is_whitespace() || "[]|*,".contains(c));
        (command_name(usage).to_owned(), words.filter(is_flag).map(str::to_owned).collect())
    };
    text.lines().filter_map(|line| line.strip_prefix('\t')).map(command).collect()
}

/// Standard output and standard error of a shell, as they came.
fn output(mut command: Command, hosts: &str, lines: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("make a directory for a shell");
    let file = directory.path().join("output");
    let printed = fs::File::create(&file).expect("make a file for what a shell prints");
    let mut shell = command
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(printed.try_clone().expect("share the file"))
        .stderr(printed)
        .spawn()
        .expect("start a shell");
    let mut input = shell.stdin.take().expect("it is piped");
    input.write_all(script(hosts, lines).as_bytes()).expect("write the lines");
    drop(input);
    shell.wait().expect("wait for a shell");
    fs::read_to_string(&file).expect("read what a shell printed")
}

/// The lines with their markers. `{server}` stands for the server's address, and `{line X}` for the number that the history gives
/// the line X.
fn script(hosts: &str, lines: &[&str]) -> String {
    let mut script = "printwatches\n".to_owned();
    for line in lines {
        let mut line = line.replace("{server}", hosts);
        if let Some((before, named)) = line.split_once("{line ") {
            let named = named.trim_end_matches('}');
            let place =
                lines.iter().position(|line| *line == named).expect("the line that is named is there");
            // A marker stands before the first line and behind each.
            line = format!("{before}{}", 2 * place + 1);
        }
        script.push_str(&format!("{line}\nprintwatches\n"));
    }
    script
}

fn transcript(
    lines: &[&str],
    events: Vec<String>,
    text: &str,
    facts: impl Fn(&str, &str) -> Vec<String>,
) -> ShellTranscript {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((part, behind)) = rest.split_once(MARKER) {
        parts.push(part.to_owned());
        rest = behind.split_once('\n').map_or("", |(_, rest)| rest);
    }
    // What stands before the first marker is a greeting.
    let mut parts = parts.into_iter().skip(1);
    let (mut answers, mut texts) = (Vec::new(), Vec::new());
    for line in lines {
        // The answer to a bare `printwatches` is a marker more.
        if *line == "printwatches" {
            assert!(parts.next().is_some(), "{line}: the shell ended before: {text}");
        }
        // A shell that has ended answers no more.
        let part = parts.next().unwrap_or_default();
        answers.push(facts(line, &part));
        texts.push(part);
    }
    ShellTranscript { answers, events, texts }
}

/// A field of a Stat in the same words for both shells: a time is that of the epoch or a later one, which no two servers share, and
/// the number of a session is one or none.
fn stat_field(line: &str) -> String {
    match line.split_once(" = ") {
        Some((name @ ("ctime" | "mtime"), time)) => {
            let is_epoch = time.starts_with("1970-01-01T00:00:00");
            format!("{name} = {}", if is_epoch { "the epoch" } else { "later" })
        }
        Some(("ephemeralOwner", owner)) if owner != "0x0" => "ephemeralOwner = a session".to_owned(),
        _ => line.to_owned(),
    }
}

/// The refusal that one of these texts stands for.
fn refusal(text: &str, known: &[(&str, &str)]) -> Option<String> {
    known.iter().find(|(words, _)| text.contains(words)).map(|(_, kind)| format!("refused: {kind}"))
}

/// Bytes of rows of a dump in hexadecimal.
fn bytes_of_dump<'a>(rows: impl Iterator<Item = &'a str>) -> String {
    rows.flat_map(str::split_whitespace).collect()
}
