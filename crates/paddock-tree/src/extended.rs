//! The writes that ClickHouse Keeper has and ZooKeeper has not.

use std::borrow::Cow;

use paddock_proto::{ErrorCode, IdList, Perms, Stat, WriteReply};

use crate::create::split_path;
use crate::delete::split_deletable;
use crate::outcome::Changes;
use crate::set::check_version;
use crate::store::NodeId;
use crate::tree::{Circumstances, Tree};

/// Version or field of a stat that is not compared.
const ANYTHING: i64 = -1;

impl Tree {
    /// A client that may list the parent may ask.
    pub(crate) fn check_not_exists<'a>(
        &self,
        at: &Circumstances<'a>,
        path: &'a str,
        version: i32,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let (parent_path, _) = split_path(path)?;
        if let Some(parent) = self.store.find(parent_path) {
            self.check_access(parent, Perms::READ, at.ids)?;
        }
        match self.find_valid(path) {
            Ok(node) if check_version(version, self.store.version(node)).is_ok() => {
                Err(ErrorCode::NodeExists)
            }
            Ok(_) | Err(ErrorCode::NoNode) => Ok(WriteReply::Done),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn check_stat<'a>(
        &self,
        at: &Circumstances<'a>,
        path: &'a str,
        version: i32,
        expected: &Stat,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        self.check(at, path, version)?;
        let node = self.find_valid(path)?;
        if fits(expected, &self.store.stat(node)) { Ok(WriteReply::Done) } else { Err(ErrorCode::BadVersion) }
    }

    pub(crate) fn try_remove<'a>(
        &mut self,
        at: &Circumstances<'a>,
        path: &'a str,
        version: i32,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        match self.delete(at, path, version, changes) {
            Err(ErrorCode::NoNode | ErrorCode::BadVersion | ErrorCode::NotEmpty) => Ok(WriteReply::Done),
            result => result,
        }
    }

    /// The znode at the top of a subtree to be removed; `None` if it is not there, which is no error.
    pub(crate) fn top_to_remove(&self, path: &str, ids: IdList<'_>) -> Result<Option<NodeId>, ErrorCode> {
        let (parent_path, name) = split_deletable(path)?;
        let Some(parent) = self.store.find(parent_path) else { return Ok(None) };
        self.check_access(parent, Perms::DELETE, ids)?;
        Ok(self.named_child(parent_path, parent, name).ok())
    }

    /// Children go before their parents, and otherwise the last by name first: the same order on every member.
    pub(crate) fn remove_recursive<'a>(
        &mut self,
        at: &Circumstances<'a>,
        path: &'a str,
        nodes_max: u32,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let Some(top) = self.top_to_remove(path, at.ids)? else { return Ok(WriteReply::Done) };
        let nodes_max = usize::try_from(nodes_max).unwrap_or(usize::MAX);
        if self.store.subtree(top).nth(nodes_max).is_some() {
            return Err(ErrorCode::NotEmpty);
        }
        for node in self.store.subtree(top) {
            self.check_access(node, Perms::DELETE, at.ids)?;
        }
        let doomed = self.store.subtree(top).map(|node| (self.store.path(node), node));
        let mut doomed: Vec<(String, NodeId)> = doomed.collect();
        doomed.sort_unstable();
        for (path, node) in doomed.into_iter().rev() {
            self.remove(at.zxid, node, Cow::Owned(path), changes);
        }
        Ok(WriteReply::Done)
    }
}

fn fits(expected: &Stat, actual: &Stat) -> bool {
    fields(expected)
        .into_iter()
        .zip(fields(actual))
        .all(|(expected, actual)| expected == ANYTHING || expected == actual)
}

fn fields(stat: &Stat) -> [i64; 11] {
    [
        stat.czxid.0,
        stat.mzxid.0,
        stat.ctime_ms,
        stat.mtime_ms,
        stat.version.into(),
        stat.cversion.into(),
        stat.aversion.into(),
        stat.ephemeral_owner.0,
        stat.data_length.into(),
        stat.num_children.into(),
        stat.pzxid.0,
    ]
}
