//! Commands that make and change one znode.

use paddock_client::{Acl, CreateMode, Error, ErrorCode, OpCode, Reply};
use paddock_proto::encode;
use paddock_proto::jute::{Reader, Writer as _};
use serde_json::json;

use super::acl;
use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::output::{from_base64, stat_json};
use crate::paths;
use crate::shell::Shell;

/// The kind of znode and its ACL, as flags ask for them, or words behind the data.
pub(crate) struct Creation {
    pub mode: CreateMode,
    pub acl: Vec<Acl>,
}

impl Creation {
    /// Words of a mode have no colon, and every ACL has one: so the one is never taken for the other.
    pub(crate) fn of(arguments: &Arguments) -> Result<Creation, ShellFailure> {
        let (named, words) = named_mode(arguments);
        let by_flags = mode(arguments)?;
        if named.is_some() && by_flags != CreateMode::Persistent {
            return Err(ShellFailure::Usage("say the mode by flags or by words, not by both".to_owned()));
        }
        let acl = arguments.at(2 + words).map_or_else(|| Ok(vec![Acl::open()]), acl::parse)?;
        match arguments.at(3 + words) {
            Some(more) => Err(ShellFailure::Usage(format!("{more:?} is too much: quote what has blanks"))),
            None => Ok(Creation { mode: named.unwrap_or(by_flags), acl }),
        }
    }
}

/// The mode that stands behind the data as `clickhouse-keeper-client` has it, and the number of its words.
fn named_mode(arguments: &Arguments) -> (Option<CreateMode>, usize) {
    let word = |place| arguments.at(place).map(str::to_ascii_uppercase).unwrap_or_default();
    let is_sequential = word(3) == "SEQUENTIAL";
    match (word(2).as_str(), is_sequential) {
        ("PERSISTENT", false) => (Some(CreateMode::Persistent), 1),
        ("PERSISTENT", true) => (Some(CreateMode::PersistentSequential), 2),
        ("PERSISTENT SEQUENTIAL", _) => (Some(CreateMode::PersistentSequential), 1),
        ("EPHEMERAL", false) => (Some(CreateMode::Ephemeral), 1),
        ("EPHEMERAL", true) => (Some(CreateMode::EphemeralSequential), 2),
        ("EPHEMERAL SEQUENTIAL", _) => (Some(CreateMode::EphemeralSequential), 1),
        _ => (None, 0),
    }
}

/// The kind of znode that flags ask for.
fn mode(arguments: &Arguments) -> Result<CreateMode, ShellFailure> {
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

/// The data of a new znode; null if none were given, as from `zkCli.sh`.
pub(crate) fn created_data(arguments: &Arguments) -> Option<&[u8]> {
    arguments.at(1).map(str::as_bytes)
}

pub(crate) async fn create(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let Creation { mode, acl } = Creation::of(arguments)?;
    let path = new_path(shell, arguments.at(0), mode)?;
    let ttl_ms: Option<i64> = arguments.number("t")?;
    let op = if ttl_ms.is_some() { OpCode::CreateTtl } else { encode::create_op(mode) };
    let body = |out: &mut Vec<u8>| {
        encode::create(out, &path, created_data(arguments), &acl, mode);
        ttl_ms.iter().for_each(|ttl_ms| out.put_i64(*ttl_ms));
    };
    // Every reply begins with the path.
    let path_of = |reply: Reply| match Reader::new(&reply.body).string() {
        Ok(path) => Ok(path.to_owned()),
        Err(source) => Err(Error::BadReply { op, source }),
    };
    let created = shell.client()?.send(op, body).await.and_then(path_of);
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
    let data = new_data(arguments)?;
    let version = version(arguments, 2)?;
    let stat = shell.client()?.set_data(&path, &data, version).await.map_err(ShellFailure::at(&path))?;
    let out = &shell.output;
    match arguments.has("s") || out.is_json() {
        false => Ok(()),
        true if out.is_json() => out.line(&stat_json(&stat).to_string()),
        true => out.stat(&stat),
    }
}

/// The data of `set`, which may be given in base64.
pub(crate) fn new_data(arguments: &Arguments) -> Result<Vec<u8>, ShellFailure> {
    let text = arguments.at(1).expect("the table wants two");
    if arguments.has("b") { from_base64(text) } else { Ok(text.as_bytes().to_vec()) }
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
        Err(Error::Refused { code: ErrorCode::NodeExists, .. }) => Ok(()),
        Err(error) => Err(ShellFailure::at(&path)(error)),
    }
}
