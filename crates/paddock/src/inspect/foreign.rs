//! Files of Apache ZooKeeper and ClickHouse Keeper, which `paddock import` reads.

use std::path::{Path, PathBuf};

use paddock_files::{
    DigestCheck, KeeperDirs, ListedTransaction, LoadOptions, LogRead, Report, ZooKeeperDirs, list_requests,
    list_transactions, load, load_keeper, load_snapshot,
};
use paddock_tree::Tree;
use serde_json::{Value, json};

use super::common::{InspectFailure, print};
use crate::moving::MovingFailure;

/// State and account of another system's files.
pub(super) struct Foreign {
    pub(super) system: &'static str,
    pub(super) tree: Tree,
    report: Report,
}

/// Log of another system, whose transactions were listed.
#[derive(Debug)]
pub(super) struct ForeignLog {
    pub(super) system: &'static str,
    pub(super) files: Vec<LogRead>,
}

/// Everything is kept as it is, and a wrong digest is told, not refused.
const OPTIONS: LoadOptions = LoadOptions { drop_ephemerals: false, ignore_digest: true, member: 1 };

/// Reads a directory; `None` if it is of neither.
pub(super) fn read(path: &Path, log_dir: Option<&Path>) -> Result<Option<Foreign>, MovingFailure> {
    if let Some((snapshots, log)) = keeper_dirs(path, log_dir) {
        let loaded = load_keeper(&KeeperDirs { snapshots, log }, OPTIONS, &mut |_| {})?;
        let report = loaded.report.report;
        return Ok(Some(Foreign { system: "ClickHouse Keeper", tree: loaded.tree, report }));
    }
    if !paddock_files::is_data_dir(path) {
        return Ok(None);
    }
    let source = ZooKeeperDirs { data_dir: path.to_owned(), log_dir: log_dir.map(Path::to_owned) };
    let loaded = load(&source, OPTIONS, &mut |_| {})?;
    Ok(Some(Foreign { system: "ZooKeeper", tree: loaded.tree, report: loaded.report }))
}

/// Lists the transactions of a directory, without the state; `None` if it is of neither. The name of the system comes with them.
pub(super) fn list(
    path: &Path,
    log_dir: Option<&Path>,
    each: &mut dyn FnMut(&ListedTransaction),
) -> Result<Option<ForeignLog>, MovingFailure> {
    if let Some((_, log)) = keeper_dirs(path, log_dir) {
        let files = list_requests(&log, each)?;
        return Ok(Some(ForeignLog { system: "ClickHouse Keeper", files }));
    }
    if !paddock_files::is_data_dir(path) {
        return Ok(None);
    }
    let source = ZooKeeperDirs { data_dir: path.to_owned(), log_dir: log_dir.map(Path::to_owned) };
    Ok(Some(ForeignLog { system: "ZooKeeper", files: list_transactions(&source, each)? }))
}

/// Reads a snapshot file of ZooKeeper; `None` if its name is not one of those.
pub(super) fn read_snapshot(path: &Path) -> Result<Option<Foreign>, MovingFailure> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !name.starts_with("snapshot.") {
        return Ok(None);
    }
    let loaded = load_snapshot(path, &mut |_| {})?;
    Ok(Some(Foreign { system: "ZooKeeper", tree: loaded.tree, report: loaded.report }))
}

/// The directories of a ClickHouse Keeper: its coordination directory, or that of the snapshots with that of the log beside it.
fn keeper_dirs(path: &Path, log_dir: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
    let inner = |names: &[&str]| names.iter().map(|name| path.join(name)).find(|inner| inner.is_dir());
    let has = |dir: &Path, prefix: &str| {
        let mut names = dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_str().is_some_and(|name| name.starts_with(prefix) && name.contains(".bin")))
    };
    let snapshots = inner(&["snapshots", "snapshot"]).unwrap_or_else(|| path.to_owned());
    let log =
        log_dir.map(Path::to_owned).or_else(|| inner(&["log", "logs"])).unwrap_or_else(|| path.to_owned());
    (has(&snapshots, "snapshot_") || has(&log, "changelog_")).then_some((snapshots, log))
}

impl Foreign {
    pub(super) fn account(&self) -> Vec<(&'static str, Value)> {
        let report = &self.report;
        let snapshot =
            (!report.snapshot.as_os_str().is_empty()).then(|| report.snapshot.display().to_string());
        let digest = match report.digest {
            DigestCheck::Absent => "not compared: there is none for the last state",
            DigestCheck::Right => "right",
            DigestCheck::Ignored => "wrong: the state is not the one whose digest was written",
        };
        let mut facts = vec![("snapshot", json!(snapshot))];
        facts.extend(
            report.skipped.iter().map(|error| ("damaged snapshot", json!(paddock_tls::with_causes(error)))),
        );
        facts.extend([
            ("log's files", json!(report.logs.len())),
            ("transactions behind it", json!(report.transactions)),
            ("digest", json!(digest)),
        ]);
        facts
    }

    /// Fails if anything was damaged.
    pub(super) fn judge(&self) -> Result<(), InspectFailure> {
        match (self.report.skipped.len(), self.report.digest) {
            (0, DigestCheck::Ignored) => Err(InspectFailure::WrongDigest),
            (0, _) => Ok(()),
            (damaged, _) => Err(InspectFailure::DamagedSnapshots { damaged, count: damaged + 1 }),
        }
    }

    /// Prints the files that were read, each with what it holds.
    pub(super) fn print_files(&self, is_json: bool) -> Result<(), InspectFailure> {
        let report = &self.report;
        if !report.snapshot.as_os_str().is_empty() {
            let path = report.snapshot.display().to_string();
            let zxid = format!("0x{:x}", self.tree.zxid().0);
            match is_json {
                true => {
                    print(&json!({ "path": path, "is_whole": true, "znodes": report.znodes }).to_string())?
                }
                false => print(&format!(
                    "{path}\n  whole     {} znodes; zxid {zxid} after all that was read",
                    report.znodes
                ))?,
            }
        }
        for error in &report.skipped {
            let reason = paddock_tls::with_causes(error);
            print(&if is_json {
                json!({ "is_whole": false, "reason": reason }).to_string()
            } else {
                reason
            })?;
        }
        for log in &report.logs {
            let path = log.path.display().to_string();
            let torn = log.torn.map(|offset| format!(", and at offset {offset} one that was never finished"));
            match is_json {
                true => print(
                    &json!({ "path": path, "is_whole": true, "transactions": log.transactions, "torn_at": log.torn }).to_string(),
                )?,
                false => print(&format!(
                    "{path}\n  whole     {} transactions behind the snapshot{}",
                    log.transactions,
                    torn.unwrap_or_default()
                ))?,
            }
        }
        self.judge()
    }
}
