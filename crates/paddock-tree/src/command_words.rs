//! A command in words: its operation, its path, and what it asks for.

use paddock_proto::{DecodeError, GroupsCommand, StreamItem, Write};

use crate::Command;

/// A command as a line of a table of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWords {
    /// Name of the operation, such as `setData`.
    pub operation: String,
    /// The znode that it names, if it names one.
    pub path: Option<String>,
    /// Version, bytes of data and the like.
    pub detail: String,
}

impl CommandWords {
    /// The words of a command; those of a multi are one line for all its operations.
    pub fn of(command: &Command<'_>) -> CommandWords {
        match &command.write {
            Ok(write) => CommandWords::of_write(write),
            Err(error) => {
                CommandWords { operation: "unreadable".to_owned(), path: None, detail: error.to_string() }
            }
        }
    }

    /// The words of a write.
    pub fn of_write(write: &Write<'_>) -> CommandWords {
        of_write(write)
    }
}

/// One operation of a command, with the data that it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationWords<'a> {
    /// Operation, path and detail.
    pub words: CommandWords,
    /// Data of a create or a setData, if it has some.
    pub data: Option<&'a [u8]>,
    /// True if it may change znodes below the one that it names.
    pub is_recursive: bool,
}

impl<'a> OperationWords<'a> {
    /// The operations of a command: those of a multi, or the one that it is.
    pub fn list(command: &Command<'a>) -> Vec<OperationWords<'a>> {
        match &command.write {
            Ok(Write::Multi(writes)) => writes.iter().map(OperationWords::of).collect(),
            Ok(write) => vec![OperationWords::of(write)],
            Err(_) => {
                vec![OperationWords { words: CommandWords::of(command), data: None, is_recursive: false }]
            }
        }
    }

    fn of(write: &Write<'a>) -> OperationWords<'a> {
        let data = match write {
            Write::Create(create) => create.data,
            Write::SetData { data, .. } => *data,
            _ => None,
        };
        let is_recursive = matches!(write, Write::RemoveRecursive { .. });
        OperationWords { words: of_write(write), data, is_recursive }
    }
}

fn of_write(write: &Write<'_>) -> CommandWords {
    let bytes = |data: &Option<&[u8]>| format!("{} bytes", data.map_or(0, <[u8]>::len));
    match write {
        Write::CreateSession { timeout_ms } => about("createSession", format!("timeout {timeout_ms} ms")),
        Write::CloseSession => about("closeSession", String::new()),
        Write::ResumeSession { timeout_ms, .. } => about("resumeSession", format!("timeout {timeout_ms} ms")),
        Write::BindSession => about("bindSession", String::new()),
        // The secret itself is not shown.
        Write::SetSecret { .. } => about("setSecret", String::new()),
        Write::ExpireSession { session } => about("expireSession", format!("0x{:x}", session.0)),
        Write::Create(create) => {
            let mode =
                create.mode().map_or_else(|| format!("flags {}", create.flags), |mode| format!("{mode:?}"));
            on("create", create.path, format!("{mode}, {}", bytes(&create.data)))
        }
        Write::Delete { path, version } => on("delete", path, of_version(*version)),
        Write::DeleteContainer { path } => on("deleteContainer", path, String::new()),
        Write::SetData { path, data, version } => {
            on("setData", path, joined(&[bytes(data), of_version(*version)]))
        }
        Write::SetAcl { path, version, .. } => on("setACL", path, of_version(*version)),
        Write::Check { path, version } => on("check", path, of_version(*version)),
        Write::CheckNotExists { path, version } => on("checkNotExists", path, of_version(*version)),
        Write::CheckStat { path, version, .. } => on("checkStat", path, of_version(*version)),
        Write::TryRemove { path, version } => on("tryRemove", path, of_version(*version)),
        Write::RemoveRecursive { path, nodes_max } => {
            on("removeRecursive", path, format!("at most {nodes_max} znodes"))
        }
        Write::Reconfig(reconfig) => about("reconfig", format!("{reconfig:?}")),
        Write::FoundEnsemble { cluster, members } => {
            about("foundEnsemble", format!("{cluster:016x} {}", members.replace('\n', " ")))
        }
        Write::SettleReconfig { error } => {
            about("settleReconfig", error.map(|error| format!("{error:?}")).unwrap_or_default())
        }
        Write::BetweenGroups(command) => between_groups(command),
        Write::Multi(writes) => about("multi", writes.iter().map(in_words).collect::<Vec<_>>().join("; ")),
    }
}

/// Words of an operation on a path.
fn on(operation: &str, path: &str, detail: String) -> CommandWords {
    CommandWords { operation: operation.to_owned(), path: Some(path.to_owned()), detail }
}

/// Words of an operation on no path, or on several.
fn about(operation: &str, detail: String) -> CommandWords {
    CommandWords { operation: operation.to_owned(), path: None, detail }
}

fn between_groups(command: &GroupsCommand<'_>) -> CommandWords {
    match *command {
        GroupsCommand::Split { path } => on("split", path, String::new()),
        GroupsCommand::Join { path } => on("join", path, String::new()),
        GroupsCommand::Move { path, first, last, group } => {
            on("moveSlots", path, format!("{first} to {last}, to group {group}"))
        }
        GroupsCommand::Attach { group } => about("attach", format!("to group {group}")),
        GroupsCommand::Acknowledge { group, number } => {
            about("acknowledgeItems", format!("group {group} has applied item {number}"))
        }
        GroupsCommand::Item { number, decided, item } => {
            let (path, what) = item_words(&item);
            CommandWords { path, ..about("item", format!("number {number}: {what}, decided at {decided}")) }
        }
        GroupsCommand::Mark { at_least } => about("mark", format!("at least {at_least}")),
        GroupsCommand::GoOn => about("goOn", String::new()),
        GroupsCommand::Through { moves } => about("throughHost", format!("after {moves} moves")),
        GroupsCommand::Host { guest, group, host } => {
            about("host", format!("member {host} for member {guest} in group {group}"))
        }
        GroupsCommand::Given { path, first, portion, znodes, .. } => on(
            "givenZnodes",
            path,
            format!("from slot {first} on, portion {portion}: {} bytes", znodes.len()),
        ),
        GroupsCommand::Relay { op, request, .. } => {
            about("relay", relayed_words(Write::decode(op, request).as_ref()))
        }
        GroupsCommand::Multi { request, .. } => {
            about("multi", format!("over groups, {} bytes", request.len()))
        }
        GroupsCommand::Vote { multi, group, vote } => {
            about("vote", format!("of group {group} on multi {multi:#x}: {vote:?}"))
        }
    }
}

/// The path that an item is about, and what it says.
fn item_words(item: &StreamItem<'_>) -> (Option<String>, String) {
    match *item {
        StreamItem::SplitPoint { path, acl } => {
            let is = if acl.is_some() { "is there" } else { "is not there" };
            (Some(path.to_owned()), format!("this split point {is}"))
        }
        StreamItem::Session { session, owner, .. } => (None, format!("session {session} of member {owner}")),
        StreamItem::End { session } => (None, format!("session {session} has ended")),
        StreamItem::Slots { path, first, last } => {
            (Some(path.to_owned()), format!("slots {first} to {last} come"))
        }
        StreamItem::Znodes { znodes } => (None, format!("{} bytes of znodes come", znodes.len())),
        StreamItem::Leave { path, first, last } => {
            (Some(path.to_owned()), format!("slots {first} to {last} leave"))
        }
        StreamItem::Taken { path, first } => {
            (Some(path.to_owned()), format!("slots from {first} on are where they went"))
        }
        StreamItem::Prepare { multi, .. } => (None, format!("part of multi {multi:#x}")),
        StreamItem::Relayed { command } => {
            let command = Command::decode(command);
            let write = command.as_ref().and_then(|command| command.write.as_ref());
            (None, format!("relayed {}", relayed_words(write)))
        }
        StreamItem::Host { guest, host } if guest == host => (None, format!("member {guest} has no host")),
        StreamItem::Host { guest, host } => (None, format!("member {host} is the host of member {guest}")),
        StreamItem::Limits { path, limits: Some(_) } => {
            (Some(path.to_owned()), "limits of a quota".to_owned())
        }
        StreamItem::Limits { path, limits: None } => (Some(path.to_owned()), "no quota any more".to_owned()),
        StreamItem::Settle { multi, is_done: true } => (None, format!("multi {multi:#x} is carried out")),
        StreamItem::Settle { multi, is_done: false } => {
            (None, format!("multi {multi:#x} is not carried out"))
        }
    }
}

/// A write that is relayed, if it can be read.
fn relayed_words(write: Result<&Write<'_>, &DecodeError>) -> String {
    write.map_or_else(ToString::to_string, in_words)
}

fn in_words(write: &Write<'_>) -> String {
    let CommandWords { operation, path, detail } = of_write(write);
    let parts = [operation, path.unwrap_or_default(), detail];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn of_version(version: i32) -> String {
    if version == -1 { String::new() } else { format!("version {version}") }
}

fn joined(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}
