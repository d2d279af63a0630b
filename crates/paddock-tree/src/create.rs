//! Creating znodes.

use std::borrow::Cow;

use paddock_proto::{
    Create, CreateMode, ErrorCode, EventKind, OpCode, Perms, WriteReply, split_name, validate_path,
};

use crate::access::resolve_acl;
use crate::computed::refuse_computed;
use crate::outcome::{Change, Changes};
use crate::store::{NewNode, NodeId, ZnodeKind};
use crate::tree::{Circumstances, Tree};

/// The longest time to live that ZooKeeper can write down: 40 bits of milliseconds.
const TTL_MS_MAX: i64 = 0xff_ffff_ffff;

impl Tree {
    pub(crate) fn create<'a>(
        &mut self,
        at: &Circumstances<'a>,
        create: &Create<'a>,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        refuse_computed(create.path)?;
        let (kind, is_sequential) = wanted_kind(at, create)?;
        let (parent_path, _) = split_path(create.path)?;
        let acl = resolve_acl(create.acl, at.ids)?;
        let parent = self.store.find(parent_path).ok_or(ErrorCode::NoNode)?;
        self.check_access(parent, Perms::CREATE, at.ids)?;
        let path = if is_sequential {
            Cow::Owned(format!("{}{:010}", create.path, self.store.cversion(parent)))
        } else {
            Cow::Borrowed(create.path)
        };
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        match self.check_vacant(parent, &path) {
            Err(ErrorCode::NodeExists) if create.op == OpCode::CreateIfNotExists => {
                return Ok(WriteReply::Created { path });
            }
            vacant => vacant?,
        }
        self.check_quota(at, &path, 1, create.data.map_or(0, <[u8]>::len) as i64)?;

        let new =
            NewNode { parent, path: &path, data: create.data, acl, kind, zxid: at.zxid, time_ms: at.time_ms };
        let node = self.store.create(new);
        changes.push(self.change(EventKind::NodeCreated, path.clone(), node));
        changes.push(self.children_changed(parent_path, parent));
        // The reply tells of the znode as it was made: its own birth may yet change quota statistics that it holds.
        let stat = self.store.stat(node);
        self.quota_after_create(node, &path, stat.data_length as usize);

        Ok(match create.op {
            OpCode::Create | OpCode::CreateIfNotExists => WriteReply::Created { path },
            _ => WriteReply::CreatedWithStat { path, stat },
        })
    }

    fn check_vacant(&self, parent: NodeId, path: &str) -> Result<(), ErrorCode> {
        // Only the root has no name of its own.
        let name = split_name(path).map_or("", |(_, name)| name);
        if name.is_empty() || self.store.child(parent, name).is_some() {
            return Err(ErrorCode::NodeExists);
        }
        match self.store.kind(parent) {
            ZnodeKind::Ephemeral(_) => Err(ErrorCode::NoChildrenForEphemerals),
            ZnodeKind::Persistent | ZnodeKind::Container | ZnodeKind::Ttl { .. } => Ok(()),
        }
    }

    /// Change of `node`, for those who may read it.
    pub(crate) fn change<'a>(&self, kind: EventKind, path: Cow<'a, str>, node: NodeId) -> Change<'a> {
        Change { kind, path, readers: self.store.readers(node) }
    }

    pub(crate) fn children_changed<'a>(&self, parent_path: &'a str, parent: NodeId) -> Change<'a> {
        let path = if parent_path.is_empty() { "/" } else { parent_path };
        self.change(EventKind::NodeChildrenChanged, Cow::Borrowed(path), parent)
    }
}

/// The kind of znode that the operation and the mode make together. ZooKeeper does not ask if they fit, so that the operation
/// decides, except that only createTTL can say how long a TTL znode lives.
fn wanted_kind(at: &Circumstances<'_>, create: &Create<'_>) -> Result<(ZnodeKind, bool), ErrorCode> {
    let mode = create.mode().ok_or(ErrorCode::BadArguments)?;
    if mode.has_ttl() != (create.op == OpCode::CreateTtl) {
        return Err(ErrorCode::BadArguments);
    }
    if create.op == OpCode::CreateIfNotExists && (mode.is_sequential() || mode == CreateMode::Container) {
        return Err(ErrorCode::BadArguments);
    }
    let kind = match (create.op, create.ttl_ms) {
        (OpCode::CreateTtl, Some(ms @ 1..=TTL_MS_MAX)) => ZnodeKind::Ttl { ms },
        (OpCode::CreateTtl, _) => return Err(ErrorCode::BadArguments),
        (OpCode::CreateContainer, _) => ZnodeKind::Container,
        _ if mode.is_ephemeral() => ephemeral_of(at)?,
        _ => ZnodeKind::Persistent,
    };
    Ok((kind, mode.is_sequential()))
}

fn ephemeral_of(at: &Circumstances<'_>) -> Result<ZnodeKind, ErrorCode> {
    // The service itself has no session that could end.
    if at.is_service() { Err(ErrorCode::SessionExpired) } else { Ok(ZnodeKind::Ephemeral(at.session)) }
}

/// A create of a multi as ZooKeeper reads it: the operation follows from the mode where that says one. `None` for a TTL
/// mode without a TTL, which makes the whole multi unreadable.
pub(crate) fn as_in_multi<'a>(create: &Create<'a>) -> Option<Create<'a>> {
    let op = match create.mode() {
        Some(mode) if mode.has_ttl() => create.ttl_ms.map(|_| OpCode::CreateTtl)?,
        _ if create.op == OpCode::CreateIfNotExists => create.op,
        Some(CreateMode::Container) => OpCode::CreateContainer,
        _ if create.op == OpCode::CreateTtl => OpCode::Create,
        _ => create.op,
    };
    Some(Create { op, ..*create })
}

/// The path up to its last slash, and what follows. The parent of a child of the root is the empty path.
pub(crate) fn split_path(path: &str) -> Result<(&str, &str), ErrorCode> {
    match split_name(path) {
        Some(split) if path.bytes().all(|byte| byte != 0) => Ok(split),
        _ => Err(ErrorCode::BadArguments),
    }
}
