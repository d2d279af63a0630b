//! `paddock inspect log`: the changes that a log holds, with what each of them did.

use std::io::{self, BufWriter, Write as _};
use std::num::ParseIntError;
use std::path::{Path, PathBuf};

use paddock_config::printable;
use paddock_member::{InspectedLog, inspect_directory, inspect_log};
use paddock_proto::Stat;
use paddock_replica::{EntryPart, LogEntry, apply_and_tell, tell_unapplied};
use paddock_shell::time_text;
use paddock_storage::{Index, OsDisk};
use paddock_tree::{Command, CommandWords, Outcome, OutcomeNote, Tree};
use serde_json::{Value, json};

use super::common::{InspectFailure, lock};
use super::foreign_log;
use crate::moving::MovingFailure;

/// Look into a transaction log
///
/// In a data directory every change is applied to the state of the oldest snapshot behind which the log goes on, so that its outcome is
/// shown; of changes before that, and of a log alone, only what was asked for is known.
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// Data directory, or its directory `log` alone; or a data directory of ZooKeeper or ClickHouse Keeper
    #[arg(value_name = "PATH")]
    pub(super) path: PathBuf,
    /// Directory of the transaction log, if it is another one
    #[arg(long, value_name = "DIR")]
    pub(super) log_dir: Option<PathBuf>,
    /// First entry to show; the first zxid of ZooKeeper's files, whose entries have no numbers
    #[arg(long, value_name = "INDEX", default_value = "0", value_parser = number)]
    pub(super) from: u64,
    /// Last entry to show
    #[arg(long, value_name = "INDEX", default_value = "0xffffffffffffffff", hide_default_value = true, value_parser = number)]
    pub(super) to: u64,
    /// Show only what changed this znode: its data, its ACL, its children, its beginning and end
    #[arg(long = "path", value_name = "ZNODE")]
    pub(super) znode: Option<String>,
    /// Raft group whose changes are shown, if the member has several; 0 is the home group
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(super) group: u32,
    /// Print JSON, one change a line
    #[arg(long)]
    pub(super) json: bool,
}

/// A number in decimal digits, or in hexadecimal ones behind 0x.
fn number(text: &str) -> Result<u64, ParseIntError> {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
}

pub(super) fn run(args: &LogArgs) -> Result<(), MovingFailure> {
    let _lock = lock(&args.path)?;
    let mut table = ChangeTable::begin(args)?;
    if paddock_member::is_data_dir(&OsDisk, &args.path) {
        let look = inspect_directory(&OsDisk, &args.path, args.log_dir.as_deref(), args.group, true)?;
        return table.show(&look.log, Some((look.base, look.tree)));
    }
    if has_segments(&args.path) {
        let log = inspect_log(&OsDisk, &args.path, args.group)?;
        return table.show(&log, None);
    }
    foreign_log::run(args)
}

fn has_segments(dir: &Path) -> bool {
    let names = dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.into_iter().any(|name| name.to_str().is_some_and(|name| name.starts_with("log-")))
}

/// The table as it is printed.
struct ChangeTable<'a> {
    args: &'a LogArgs,
    out: BufWriter<io::Stdout>,
    /// The znode of `--path` after the last change.
    before: Option<Stat>,
}

impl<'a> ChangeTable<'a> {
    fn begin(args: &'a LogArgs) -> Result<ChangeTable<'a>, InspectFailure> {
        Ok(ChangeTable { args, out: BufWriter::new(io::stdout()), before: None })
    }

    fn show(&mut self, log: &InspectedLog, state: Option<(Index, Tree)>) -> Result<(), MovingFailure> {
        if !self.args.json {
            self.heading(log, state.as_ref().map(|(base, _)| *base))?;
        }
        let (base, mut tree) = match state {
            Some((base, tree)) => (base, Some(tree)),
            None => (Index(u64::MAX), None),
        };
        if let (Some(tree), Some(path)) = (&tree, &self.args.znode) {
            self.before = tree.stat(path);
        }
        let mut failed = None;
        log.for_each_entry(&OsDisk, &mut |entry| {
            let is_committed = entry.index <= log.hard_state.commit;
            match tree.as_mut().filter(|_| entry.index > base.0) {
                _ if failed.is_some() => {}
                Some(tree) => apply_and_tell(tree, entry, &mut |tree, part| {
                    let shown = self.part(entry, is_committed, Some(tree), part);
                    failed = failed.take().or(shown.err());
                }),
                None => tell_unapplied(entry, &mut |part| {
                    let shown = self.part(entry, is_committed, None, part);
                    failed = failed.take().or(shown.err());
                }),
            }
        })?;
        match failed {
            Some(failure) => Err(failure.into()),
            None => Ok(self.out.flush().map_err(InspectFailure::Output)?),
        }
    }

    fn heading(&mut self, log: &InspectedLog, base: Option<Index>) -> Result<(), InspectFailure> {
        let bytes: u64 = log.files.segments.iter().map(|(_, end)| end).sum();
        let entries = match (log.first(), log.last()) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "none".to_owned(),
        };
        let hard_state = &log.hard_state;
        let segments = log.files.segments.len();
        let torn = if log.files.torn { ", the last one ends in a write that was never finished" } else { "" };
        let base = match base {
            None => "not known: outcomes are not shown".to_owned(),
            Some(Index(0)) => "the beginning".to_owned(),
            Some(base) => format!("the snapshot of entry {base}"),
        };
        let lines = format!(
            "log       {}\nsegments  {segments}, {bytes} bytes{torn}\nentries   {entries}\nterm      {}\ncommitted {} at least\napplied to {base}\n",
            log.dir.display(),
            hard_state.term,
            hard_state.commit,
        );
        let columns = format!(
            "{:>10} {:>5} {:>14} {:<24} {:>18} {:>8}  change, outcome",
            "entry", "term", "zxid", "time", "session", "bytes"
        );
        writeln!(self.out, "{lines}\n{columns}").map_err(InspectFailure::Output)
    }

    fn part(
        &mut self,
        entry: &LogEntry,
        is_committed: bool,
        tree: Option<&Tree>,
        part: EntryPart<'_, '_>,
    ) -> Result<(), InspectFailure> {
        let is_shown = (self.args.from..=self.args.to).contains(&entry.index);
        match part {
            EntryPart::Membership(text) => match is_shown && self.args.znode.is_none() {
                true => self.membership(entry, text),
                false => Ok(()),
            },
            EntryPart::Command { command, outcome } => {
                let change = CommandWords::of(command);
                let Some(stat) = self.effect(tree, &change) else { return Ok(()) };
                if is_shown {
                    self.command(entry, is_committed, &change, (command, outcome), stat)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// The znode of `--path` after a change of it; `None` if the change is not to be shown.
    fn effect(&mut self, tree: Option<&Tree>, change: &CommandWords) -> Option<Option<Stat>> {
        let Some(path) = &self.args.znode else { return Some(None) };
        let Some(tree) = tree else { return (change.path.as_ref() == Some(path)).then_some(None) };
        let after = tree.stat(path);
        let has_changed = after != self.before;
        self.before = after;
        has_changed.then_some(after)
    }

    fn membership(&mut self, entry: &LogEntry, text: &str) -> Result<(), InspectFailure> {
        let (index, term, bytes) = (entry.index, entry.term, entry.payload.len());
        let text = printable(text);
        let line = match self.args.json {
            true => json!({ "index": index, "term": term, "bytes": bytes, "operation": "members", "detail": text }).to_string(),
            false => format!("{index:>10} {term:>5} {:>14} {:<24} {:>18} {bytes:>8}  members {text}", "", "", ""),
        };
        writeln!(self.out, "{line}").map_err(InspectFailure::Output)
    }

    fn command(
        &mut self,
        entry: &LogEntry,
        is_committed: bool,
        change: &CommandWords,
        (command, outcome): (&Command<'_>, Option<&Outcome<'_>>),
        stat: Option<Stat>,
    ) -> Result<(), InspectFailure> {
        let (index, term, bytes) = (entry.index, entry.term, entry.payload.len());
        let session = format!("0x{:x}", command.session.0);
        let result = outcome.map(|outcome| OutcomeNote::of(command, outcome).in_words());
        let line = if self.args.json {
            let znode = self.args.znode.is_some().then(|| stat.as_ref().map_or(Value::Null, stat_json));
            json!({
                "index": index, "term": term, "bytes": bytes, "is_known_committed": is_committed,
                "zxid": outcome.map(|outcome| outcome.zxid.0), "time_ms": command.time_ms, "session": session,
                "member": command.member, "operation": change.operation, "path": change.path, "detail": change.detail,
                "outcome": result, "znode_after": znode,
            })
            .to_string()
        } else {
            let zxid = outcome.map(|outcome| format!("0x{:x}", outcome.zxid.0)).unwrap_or_default();
            let effect = match (&self.args.znode, &stat) {
                (None, _) => String::new(),
                (Some(_), Some(stat)) => format!(
                    " [version {}, {} bytes, {} children]",
                    stat.version, stat.data_length, stat.num_children
                ),
                (Some(_), None) if outcome.is_some() => " [gone]".to_owned(),
                (Some(_), None) => String::new(),
            };
            let words =
                [change.operation.as_str(), change.path.as_deref().unwrap_or_default(), &change.detail];
            let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).map(printable).collect();
            let result = result.map(|result| format!(" → {}", printable(&result))).unwrap_or_default();
            let time = time_text(command.time_ms);
            format!(
                "{index:>10} {term:>5} {zxid:>14} {time:<24} {session:>18} {bytes:>8}  {}{result}{effect}",
                words.join(" ")
            )
        };
        writeln!(self.out, "{line}").map_err(InspectFailure::Output)
    }
}

fn stat_json(stat: &Stat) -> Value {
    json!({
        "czxid": stat.czxid.0, "mzxid": stat.mzxid.0, "pzxid": stat.pzxid.0, "version": stat.version,
        "cversion": stat.cversion, "aversion": stat.aversion, "data_length": stat.data_length,
        "num_children": stat.num_children,
    })
}
