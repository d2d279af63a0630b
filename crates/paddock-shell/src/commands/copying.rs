//! Commands that copy and move znodes.

use paddock_client::{Acl, CreateMode, Multi};

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::shell::Shell;
use crate::walk::Walk;

/// A znode to be made: where it is, where it goes, and what it holds.
struct Copied {
    source: String,
    target: String,
    data: Vec<u8>,
    acl: Vec<Acl>,
    version: i32,
}

/// Copies data and ACLs. Copies are persistent, and made in order: a failure leaves those that were made.
pub(crate) async fn copy(shell: &Shell, arguments: &Arguments, all: bool) -> Result<(), ShellFailure> {
    let client = shell.client()?;
    for copied in read(shell, arguments, all).await? {
        let Copied { target, data, acl, .. } = copied;
        let made = client.create_with_acl(&target, &data, &acl, CreateMode::Persistent);
        made.await.map_err(ShellFailure::at(&target))?;
    }
    Ok(())
}

/// Moves in one transaction, which fails if what was read has changed meanwhile.
pub(crate) async fn rename(shell: &Shell, arguments: &Arguments, all: bool) -> Result<(), ShellFailure> {
    let client = shell.client()?;
    let moved = read(shell, arguments, all).await?;
    let mut multi = Multi::new();
    for Copied { target, data, acl, .. } in &moved {
        multi = multi.create_with_acl(target, data, acl, CreateMode::Persistent);
    }
    for Copied { source, version, .. } in moved.iter().rev() {
        multi = multi.delete(source, Some(*version));
    }
    client.multi(&multi).await?;
    Ok(())
}

async fn read(shell: &Shell, arguments: &Arguments, all: bool) -> Result<Vec<Copied>, ShellFailure> {
    let (source, target) = (shell.path(arguments.at(0))?, shell.path(arguments.at(1))?);
    if paddock_proto::is_at_or_below(&target, &source) {
        return Err(ShellFailure::Usage(format!(
            "{target} is {source} or lies below it: name another target"
        )));
    }
    let client = shell.client()?;
    let sources = if all { Walk::paths(&client, &source).await? } else { vec![source.clone()] };
    let mut copies = Vec::new();
    for path in sources {
        let (data, acl) = (client.get_data(&path), client.get_acl(&path));
        let data = data.await.map_err(ShellFailure::at(&path))?;
        let (acl, _) = acl.await.map_err(ShellFailure::at(&path))?;
        let target = format!("{target}{}", path.strip_prefix(&source).unwrap_or_default());
        let version = data.stat.version;
        copies.push(Copied { source: path, target, data: data.bytes.unwrap_or_default(), acl, version });
    }
    Ok(copies)
}
