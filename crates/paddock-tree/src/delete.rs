//! Deleting znodes, by a client, by the service, or with their session.

use std::borrow::Cow;

use paddock_proto::{ErrorCode, EventKind, Perms, SessionId, WriteReply, Zxid, split_name};

use crate::computed::refuse_computed;
use crate::create::split_path;
use crate::outcome::{Change, Changes};
use crate::set::check_version;
use crate::store::NodeId;
use crate::tree::{Circumstances, SYSTEM_PATHS, Tree};

impl Tree {
    pub(crate) fn delete<'a>(
        &mut self,
        at: &Circumstances<'a>,
        path: &'a str,
        version: i32,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let (parent_path, name) = split_deletable(path)?;
        let parent = self.store.find(parent_path).ok_or(ErrorCode::NoNode)?;
        self.check_access(parent, Perms::DELETE, at.ids)?;
        let node = self.named_child(parent_path, parent, name)?;
        check_version(version, self.store.version(node))?;
        if self.store.child_count(node) > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        self.remove(at.zxid, node, Cow::Borrowed(path), changes);
        Ok(WriteReply::Done)
    }

    /// Removes a container or a TTL znode that has had its time. It may have been used again since the service noticed,
    /// even deleted and replaced; ZooKeeper asks less closely.
    pub(crate) fn delete_container<'a>(
        &mut self,
        at: &Circumstances<'a>,
        path: &'a str,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        if !at.is_service() {
            // No ACL guards this operation.
            return Err(ErrorCode::Unimplemented);
        }
        split_deletable(path)?;
        let node = self.store.find(path).ok_or(ErrorCode::NoNode)?;
        if self.store.child_count(node) > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        if !self.has_had_its_time(node, at.time_ms) {
            return Err(ErrorCode::BadVersion);
        }
        self.remove(at.zxid, node, Cow::Borrowed(path), changes);
        Ok(WriteReply::Done)
    }

    /// All that goes with a session, in the order of the paths: the session's own list has another on every member.
    pub(crate) fn remove_ephemerals(&mut self, session: SessionId, zxid: Zxid, changes: &mut Changes<'_>) {
        let owned = self.store.ephemerals_of(session);
        let mut owned: Vec<(String, NodeId)> = owned.map(|node| (self.store.path(node), node)).collect();
        owned.sort_unstable();
        for (path, node) in owned {
            self.remove(zxid, node, Cow::Owned(path), changes);
        }
    }

    /// The child that a path's last component names. A second slash at the front of a path leads to the root, but not
    /// from there to its children.
    pub(crate) fn named_child(
        &self,
        parent_path: &str,
        parent: NodeId,
        name: &str,
    ) -> Result<NodeId, ErrorCode> {
        let child = if parent_path == "/" { None } else { self.store.child(parent, name) };
        child.ok_or(ErrorCode::NoNode)
    }

    pub(crate) fn remove<'a>(
        &mut self,
        zxid: Zxid,
        node: NodeId,
        path: Cow<'a, str>,
        changes: &mut Changes<'a>,
    ) {
        let parent = self.store.parent(node);
        let deleted = self.change(EventKind::NodeDeleted, path.clone(), node);
        let data_len = self.store.data_len(node);
        self.store.delete(node, &path, zxid);
        self.quota_after_delete(&path, data_len);
        changes.push(deleted);
        changes.push(Change {
            kind: EventKind::NodeChildrenChanged,
            path: parent_of(path),
            readers: self.store.readers(parent),
        });
    }
}

pub(crate) fn split_deletable(path: &str) -> Result<(&str, &str), ErrorCode> {
    refuse_computed(path)?;
    if SYSTEM_PATHS.contains(&path) { Err(ErrorCode::BadArguments) } else { split_path(path) }
}

fn parent_of(path: Cow<'_, str>) -> Cow<'_, str> {
    let parent_len = split_name(&path).expect("a path has a slash").0.len().max(1);
    match path {
        Cow::Borrowed(path) => Cow::Borrowed(&path[..parent_len]),
        Cow::Owned(mut path) => {
            path.truncate(parent_len);
            Cow::Owned(path)
        }
    }
}
