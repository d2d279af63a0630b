//! The audit log: who asked for which write, and what became of it, one line each in the form of ZooKeeper's `AuditEvent`.
//!
//! A write is remembered when it goes to the engine and written down with its answer, at the member whose client it is. If
//! there is no audit log, nothing is remembered.

mod escape;
mod event;
mod outcome;

use std::fmt::Debug;
use std::net::IpAddr;

use paddock_proto::{Acl, Create, CreateMode, IdList, OpCode, SessionId, Write};
use paddock_tree::Command;

pub use event::{AuditEvent, AuditResult};
use outcome::{Outcome, outcome_of};

/// Takes the lines of an audit log.
pub trait AuditLog: Debug + Send + Sync {
    /// Writes a line down. May wait until there is room.
    fn record(&self, event: &AuditEvent, result: AuditResult);
}

/// A write that waits for its answer.
#[derive(Debug)]
pub(crate) struct AuditedWrite {
    /// As it was handed to the engine.
    command: Vec<u8>,
    address: IpAddr,
}

impl AuditedWrite {
    /// The write, unless it is one that is not written down.
    pub(crate) fn of(op: OpCode, command: &[u8], address: IpAddr) -> Option<Box<AuditedWrite>> {
        let is_audited = op.is_write() && op != OpCode::CloseSession;
        is_audited.then(|| Box::new(AuditedWrite { command: command.to_vec(), address }))
    }

    /// Writes down a request's result, by the last frame of its reply; without one it is unknown.
    pub(crate) fn finish(&self, reply: Option<&[u8]>, log: &dyn AuditLog) {
        let Ok(command) = Command::decode(&self.command) else { return };
        let Ok(write) = &command.write else { return };
        let who = AuditEvent::of_client(command.session, command.ids, self.address);
        match (write, reply.map(|reply| outcome_of(write, reply))) {
            (write, None) => record(&who, write, None, AuditResult::Invoked, log),
            (Write::Multi(writes), Some(Outcome::Multi(paths))) => {
                for (write, path) in writes.iter().zip(paths) {
                    record(&who, write, path, AuditResult::Success, log);
                }
            }
            (write, Some(Outcome::Done(path))) => record(&who, write, path, AuditResult::Success, log),
            (write, Some(_)) => record(&who, write, None, AuditResult::Failure, log),
        }
    }
}

/// A reconfig that the member refuses by itself.
pub(crate) fn refused_reconfig(session: SessionId, ids: IdList<'_>, address: IpAddr, log: &dyn AuditLog) {
    let event = AuditEvent::of_client(session, ids, address).with("operation", "reconfig");
    log.record(&event, AuditResult::Failure);
}

/// Writes down one operation. `made` is the path of a new znode, if the reply names it.
fn record(
    who: &AuditEvent,
    write: &Write<'_>,
    made: Option<String>,
    result: AuditResult,
    log: &dyn AuditLog,
) {
    let of = |operation: &str, path: Option<&str>| {
        let event = who.clone().with("operation", operation);
        path.map_or(event.clone(), |path| event.with("znode", path))
    };
    let event = match write {
        Write::Create(create) => {
            let event = of("create", Some(made.as_deref().unwrap_or(create.path)));
            mode_name(create).map_or(event.clone(), |mode| event.with("znode_type", mode))
        }
        Write::Delete { path, .. } | Write::TryRemove { path, .. } | Write::RemoveRecursive { path, .. } => {
            of("delete", Some(path))
        }
        Write::SetData { path, .. } => of("setData", Some(path)),
        Write::SetAcl { path, acl, .. } => of("setAcl", Some(path)).with("acl", &acl_text(&acl.to_vec())),
        Write::Reconfig(_) => of("reconfig", (result == AuditResult::Success).then_some("/zookeeper/config")),
        Write::Multi(_) => of("multiOperation", None),
        _ => return,
    };
    log.record(&event, result);
}

fn mode_name(create: &Create<'_>) -> Option<&'static str> {
    Some(match create.mode()? {
        CreateMode::Persistent => "persistent",
        CreateMode::Ephemeral => "ephemeral",
        CreateMode::PersistentSequential => "persistent_sequential",
        CreateMode::EphemeralSequential => "ephemeral_sequential",
        CreateMode::Container => "container",
        CreateMode::PersistentWithTtl => "persistent_with_ttl",
        CreateMode::PersistentSequentialWithTtl => "persistent_sequential_with_ttl",
    })
}

/// Entries behind each other without anything between them, as ZooKeeper prints them.
fn acl_text(acl: &[Acl]) -> String {
    let perms = |perms: i32| -> String {
        [(4, 'c'), (8, 'd'), (1, 'r'), (2, 'w'), (16, 'a')]
            .iter()
            .filter(|(bit, _)| perms & bit != 0)
            .map(|(_, letter)| letter)
            .collect()
    };
    acl.iter().map(|entry| format!("{}:{}:{}", entry.id.scheme, entry.id.id, perms(entry.perms.0))).collect()
}

#[cfg(test)]
mod tests;
