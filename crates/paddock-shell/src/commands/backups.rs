//! Leavings of ClickHouse's backups: `BACKUP … ON CLUSTER` keeps its coordination below one path, and a server that dies leaves it there.

use paddock_client::{Client, ErrorCode};
use serde_json::json;

use super::removing::{confirm, remove_all};
use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::paths;
use crate::shell::Shell;

const ROOT: &str = "/clickhouse/backups";

/// The state of a backup, by its znode `stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackupState {
    /// The backup runs: a server holds an ephemeral znode there.
    Active,
    /// The backup does not run: no server holds one.
    Stale,
    /// Nothing is known of it, for it has no stage: a backup that begins has none either.
    Unknown,
}

/// Removes the stale backups. Those that run, and those of which nothing is known, are left.
pub(crate) async fn delete_stale(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let client = shell.client()?;
    let mut names = client.get_children(ROOT).await.map_err(ShellFailure::at(ROOT))?;
    names.sort_unstable();
    let mut found = Vec::new();
    for name in names {
        let path = paths::child(ROOT, &name);
        let state = state(&client, &path).await?;
        found.push((path, state));
    }
    let stale = found.iter().filter(|(_, state)| *state == BackupState::Stale).count();
    if stale > 0 {
        confirm(shell, arguments, || format!("{stale} stale backups below {ROOT}"))?;
    }
    for (path, state) in found {
        let told = match state {
            BackupState::Active => "active, left",
            BackupState::Unknown => "without a stage, left",
            BackupState::Stale => {
                remove_all(&client, &path).await?;
                "stale, removed"
            }
        };
        let removed = state == BackupState::Stale;
        shell.output.show(|| json!({ "path": path, "removed": removed }), || format!("{path}\t{told}"))?;
    }
    Ok(())
}

async fn state(client: &Client, path: &str) -> Result<BackupState, ShellFailure> {
    let stage = paths::child(path, "stage");
    match client.get_children(&stage).await {
        Ok(stages) if stages.iter().any(|stage| stage.starts_with("alive")) => Ok(BackupState::Active),
        Ok(_) => Ok(BackupState::Stale),
        Err(error) if error.code() == Some(ErrorCode::NoNode) => Ok(BackupState::Unknown),
        Err(error) => Err(ShellFailure::at(&stage)(error)),
    }
}
