//! `paddock inspect log` on the files of another system: what each transaction did, as far as the log says it.

use std::io::{self, BufWriter, Write as _};

use paddock_config::printable;
use paddock_files::{ListedTransaction, LogRead};
use paddock_shell::time_text;
use paddock_tree::CommandWords;
use serde_json::json;

use super::common::{InspectFailure, unknown};
use super::foreign::{self, ForeignLog};
use super::log::LogArgs;
use crate::moving::MovingFailure;

pub(super) fn run(args: &LogArgs) -> Result<(), MovingFailure> {
    let mut table =
        ForeignTable { args, out: BufWriter::new(io::stdout()), has_heading: false, failed: None };
    let listed = foreign::list(&args.path, args.log_dir.as_deref(), &mut |transaction| {
        if table.failed.is_none() {
            table.failed = table.show(transaction).err();
        }
    });
    // What stands before a damaged record is seen, too.
    table.out.flush().map_err(InspectFailure::Output)?;
    if let Some(failure) = table.failed.take() {
        return Err(failure.into());
    }
    match listed? {
        Some(log) => Ok(table.end(&log)?),
        None => Err(unknown(&args.path)),
    }
}

/// The table as it is printed.
struct ForeignTable<'a> {
    args: &'a LogArgs,
    out: BufWriter<io::Stdout>,
    has_heading: bool,
    failed: Option<InspectFailure>,
}

impl ForeignTable<'_> {
    fn show(&mut self, transaction: &ListedTransaction) -> Result<(), InspectFailure> {
        let ListedTransaction { index, zxid, operations, .. } = transaction;
        let place = index.unwrap_or(zxid.0 as u64);
        let is_of_path = |wanted: &String| operations.iter().any(|words| words.path.as_ref() == Some(wanted));
        if !(self.args.from..=self.args.to).contains(&place)
            || !self.args.znode.as_ref().is_none_or(is_of_path)
        {
            return Ok(());
        }
        let line = if self.args.json { as_json(transaction) } else { self.as_text(transaction)? };
        writeln!(self.out, "{line}").map_err(InspectFailure::Output)
    }

    fn as_text(&mut self, transaction: &ListedTransaction) -> Result<String, InspectFailure> {
        let ListedTransaction { index, zxid, session, time_ms, bytes, operations, is_replaced } = transaction;
        if !self.has_heading {
            self.has_heading = true;
            let columns = format!(
                "{:>10} {:>14} {:<24} {:>18} {:>8}  change",
                "entry", "zxid", "time", "session", "bytes"
            );
            writeln!(self.out, "{columns}").map_err(InspectFailure::Output)?;
        }
        let index = index.map(|index| index.to_string()).unwrap_or_default();
        let (zxid, session) = (format!("0x{:x}", zxid.0), format!("0x{:x}", session.0));
        let words: Vec<String> = operations.iter().map(in_words).collect();
        let words = if words.len() == 1 { words.concat() } else { format!("multi {}", words.join("; ")) };
        let replaced = if *is_replaced { " (replaced: a later leader had another entry here)" } else { "" };
        let time = time_text(*time_ms);
        Ok(format!(
            "{index:>10} {zxid:>14} {time:<24} {session:>18} {bytes:>8}  {}{replaced}",
            printable(&words)
        ))
    }

    /// Says which files were read.
    fn end(&mut self, log: &ForeignLog) -> Result<(), InspectFailure> {
        for LogRead { path, transactions, torn } in &log.files {
            let (file, system) = (path.display().to_string(), log.system);
            let line = if self.args.json {
                json!({ "file": file, "system": system, "transactions": transactions, "torn_at": torn })
                    .to_string()
            } else {
                let torn = torn.map(|offset| format!(", and at offset {offset} one that was never finished"));
                format!("{file}\n  {system}: {transactions} transactions{}", torn.unwrap_or_default())
            };
            writeln!(self.out, "{line}").map_err(InspectFailure::Output)?;
        }
        self.out.flush().map_err(InspectFailure::Output)
    }
}

fn in_words(words: &CommandWords) -> String {
    let CommandWords { operation, path, detail } = words;
    let parts = [operation.as_str(), path.as_deref().unwrap_or_default(), detail];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn as_json(transaction: &ListedTransaction) -> String {
    let ListedTransaction { index, zxid, session, time_ms, bytes, operations, is_replaced } = transaction;
    let operations: Vec<_> = operations
        .iter()
        .map(|words| json!({ "operation": words.operation, "path": words.path, "detail": words.detail }))
        .collect();
    json!({
        "index": index, "zxid": zxid.0, "time_ms": time_ms, "session": format!("0x{:x}", session.0), "bytes": bytes,
        "operations": operations, "is_replaced": is_replaced,
    })
    .to_string()
}
