//! Commands that remove znodes.

use std::collections::VecDeque;

use paddock_client::{Client, ErrorCode, Pending};

use super::writing::version;
use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::shell::Shell;
use crate::walk::Walk;

/// Requests under way at once, as in `zkCli.sh`.
const BATCH: usize = 1000;

/// Znodes that `rmr` removes at most unless its user says another number, as in `clickhouse-keeper-client`.
pub(crate) const LIMIT: usize = 100;

pub(crate) async fn delete(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    shell.client()?.delete(&path, version(arguments, 1)?).await.map_err(ShellFailure::at(&path))
}

/// Removes a subtree, unless it has more znodes than the limit that is said, else than the one by default.
pub(crate) async fn delete_all(
    shell: &Shell,
    arguments: &Arguments,
    limit: Option<usize>,
) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    if path == "/" {
        return Err(ShellFailure::Usage("/ cannot be removed: name the znodes below it".to_owned()));
    }
    let batch = arguments.number("b")?.unwrap_or(BATCH).max(1);
    let client = shell.client()?;
    let paths = Walk::paths(&client, &path).await?;
    let count = paths.len();
    if let Some(limit) = arguments.number_at::<usize>(1)?.or(limit)
        && count > limit
    {
        return Err(ShellFailure::Refused(format!(
            "{path} is {count} znodes, more than {limit}: nothing was removed; the limit may be said behind the path"
        )));
    }
    confirm(shell, arguments, || format!("{path} and all below it, {count} znodes"))?;
    remove(&client, &paths, batch).await
}

/// Fails as long as a user at a terminal has not agreed to the removal.
pub(super) fn confirm(
    shell: &Shell,
    arguments: &Arguments,
    what: impl FnOnce() -> String,
) -> Result<(), ShellFailure> {
    if shell.settings.confirms && !arguments.has("f") && !shell.is_confirmed {
        return Err(ShellFailure::Unconfirmed { what: what() });
    }
    Ok(())
}

/// Removes a znode and all below it.
pub(super) async fn remove_all(client: &Client, path: &str) -> Result<(), ShellFailure> {
    remove(client, &Walk::paths(client, path).await?, BATCH).await
}

/// Removes znodes that are listed parents first, many requests at once.
async fn remove(client: &Client, paths: &[String], batch: usize) -> Result<(), ShellFailure> {
    let mut under_way: VecDeque<(&String, Pending<()>)> = VecDeque::new();
    for path in paths.iter().rev() {
        if under_way.len() == batch {
            finish(under_way.pop_front()).await?;
        }
        under_way.push_back((path, client.delete(path, None)));
    }
    while let Some(removal) = under_way.pop_front() {
        finish(Some(removal)).await?;
    }
    Ok(())
}

/// Waits for a removal. A znode that another client has removed is gone, as was asked.
async fn finish(removal: Option<(&String, Pending<()>)>) -> Result<(), ShellFailure> {
    let Some((path, pending)) = removal else { return Ok(()) };
    match pending.await {
        Err(error) if error.code() != Some(ErrorCode::NoNode) => Err(ShellFailure::at(path)(error)),
        _ => Ok(()),
    }
}
