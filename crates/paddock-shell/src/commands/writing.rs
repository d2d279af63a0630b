//! Commands that make and change one znode.

use paddock_client::{Acl, CreateMode, Error, ErrorCode};
use serde_json::json;

use super::acl;
use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::output::stat_json;
use crate::paths;
use crate::shell::Shell;

/// The kind of znode that flags ask for.
pub(crate) fn mode(arguments: &Arguments) -> Result<CreateMode, ShellFailure> {
    let has = |flag| arguments.has(flag);
    let two = |a: &str, b: &str| Err(ShellFailure::Usage(format!("-{a} and -{b} do not go together")));
    match (has("e"), has("s"), has("c"), has("t")) {
        (true, _, true, _) => two("e", "c"),
        (true, _, _, true) => two("e", "t"),
        (_, _, true, true) => two("c", "t"),
        (_, true, true, _) => two("s", "c"),
        (true, true, ..) => Ok(CreateMode::EphemeralSequential),
        (true, false, ..) => Ok(CreateMode::Ephemeral),
        (_, _, true, _) => Ok(CreateMode::Container),
        (_, true, _, true) => Ok(CreateMode::PersistentSequentialWithTtl),
        (_, false, _, true) => Ok(CreateMode::PersistentWithTtl),
        (_, true, ..) => Ok(CreateMode::PersistentSequential),
        _ => Ok(CreateMode::Persistent),
    }
}

/// The path of a new znode. A sequential one may end in a slash: its name is the number alone.
pub(crate) fn new_path(shell: &Shell, typed: Option<&str>, mode: CreateMode) -> Result<String, ShellFailure> {
    use CreateMode::{EphemeralSequential, PersistentSequential, PersistentSequentialWithTtl};
    let path = shell.path(typed)?;
    let is_sequential =
        matches!(mode, EphemeralSequential | PersistentSequential | PersistentSequentialWithTtl);
    let names_directory = typed.is_some_and(|typed| typed.ends_with('/'));
    if is_sequential && names_directory { Ok(paths::child(&path, "")) } else { Ok(path) }
}

/// The third argument, if there is one, is the ACL.
pub(crate) fn new_acl(arguments: &Arguments) -> Result<Vec<Acl>, ShellFailure> {
    arguments.at(2).map_or_else(|| Ok(vec![Acl::open()]), acl::parse)
}

pub(crate) async fn create(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let mode = mode(arguments)?;
    let path = new_path(shell, arguments.at(0), mode)?;
    let data = arguments.at(1).unwrap_or_default().as_bytes();
    let acl = new_acl(arguments)?;
    let client = shell.client()?;
    let created = match arguments.number("t")? {
        Some(ttl_ms) => client.create_ttl(&path, data, &acl, mode, ttl_ms).await.map(|created| created.path),
        // A container has a code of its own, whose reply has a Stat.
        None if mode == CreateMode::Container => {
            client.create2(&path, data, &acl, mode).await.map(|created| created.path)
        }
        None => client.create_with_acl(&path, data, &acl, mode).await,
    };
    let created = created.map_err(|error| match error.code() {
        Some(ErrorCode::NoNode) => {
            let parent = paths::parted(&path).map_or("/", |(parent, _)| parent);
            ShellFailure::Refused(format!("{path}: its parent {parent} does not exist: create it first"))
        }
        _ => ShellFailure::at(&path)(error),
    })?;
    shell.output.show(|| json!({ "path": created }), || created.clone())
}

pub(crate) async fn set(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let data = arguments.at(1).expect("the table wants two").as_bytes();
    let version = version(arguments, 2)?;
    let stat = shell.client()?.set_data(&path, data, version).await.map_err(ShellFailure::at(&path))?;
    let out = &shell.output;
    match arguments.has("s") || out.is_json() {
        false => Ok(()),
        true if out.is_json() => out.line(&stat_json(&stat).to_string()),
        true => out.stat(&stat),
    }
}

/// The version that a znode must have, from its flag or its place.
pub(crate) fn version(arguments: &Arguments, place: usize) -> Result<Option<i32>, ShellFailure> {
    Ok(arguments.number("v")?.or(arguments.number_at(place)?))
}

pub(crate) async fn touch(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    match client.create(&path, b"", CreateMode::Persistent).await {
        Ok(_) => Ok(()),
        Err(Error::Refused { code: ErrorCode::NodeExists, .. }) => {
            let data = client.get_data(&path).await.map_err(ShellFailure::at(&path))?;
            let bytes = data.bytes.unwrap_or_default();
            // With the version that was read, no change of another client is undone.
            let set = client.set_data(&path, &bytes, Some(data.stat.version));
            set.await.map(drop).map_err(ShellFailure::at(&path))
        }
        Err(error) => Err(ShellFailure::at(&path)(error)),
    }
}
