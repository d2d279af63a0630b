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

pub(crate) async fn delete(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    shell.client()?.delete(&path, version(arguments, 1)?).await.map_err(ShellFailure::at(&path))
}

pub(crate) async fn delete_all(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    if path == "/" {
        return Err(ShellFailure::Usage("/ cannot be removed: name the znodes below it".to_owned()));
    }
    let batch = arguments.number("b")?.unwrap_or(BATCH).max(1);
    let client = shell.client()?;
    let paths = Walk::paths(&client, &path).await?;
    if let Some(limit) = arguments.number_at::<usize>(1)?
        && paths.len() > limit
    {
        let count = paths.len();
        return Err(ShellFailure::Refused(format!(
            "{path} is {count} znodes, more than {limit}: nothing was removed"
        )));
    }
    if shell.settings.confirms && !arguments.has("f") && !shell.is_confirmed {
        return Err(ShellFailure::Unconfirmed { count: paths.len(), path });
    }
    remove(&client, &paths, batch).await
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
