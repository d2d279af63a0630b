//! Writing what a znode holds, and checking its version.

use std::borrow::Cow;

use paddock_proto::{AclList, ErrorCode, EventKind, Perms, WriteReply, validate_path};

use crate::access::resolve_acl;
use crate::computed::refuse_computed;
use crate::outcome::Changes;
use crate::store::NodeId;
use crate::tree::{Circumstances, Tree};

/// The version that every znode has.
const ANY_VERSION: i32 = -1;

impl Tree {
    pub(crate) fn set_data<'a>(
        &mut self,
        at: &Circumstances<'a>,
        path: &'a str,
        data: Option<&'a [u8]>,
        version: i32,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let node = self.find_valid(path)?;
        self.check_access(node, Perms::WRITE, at.ids)?;
        let bytes_before = self.store.data_len(node);
        let bytes_now = data.map_or(0, <[u8]>::len);
        self.check_quota(at, path, 0, bytes_now as i64 - bytes_before as i64)?;
        check_version(version, self.store.version(node))?;

        self.store.set_data(node, data, at.zxid, at.time_ms);
        let stat = self.store.stat(node);
        changes.push(self.change(EventKind::NodeDataChanged, Cow::Borrowed(path), node));
        self.quota_after_set_data(path, bytes_before, bytes_now);
        Ok(WriteReply::Changed { stat })
    }

    /// Nothing but the aversion tells of it: no zxid, no time, no watch.
    pub(crate) fn set_acl<'a>(
        &mut self,
        at: &Circumstances<'a>,
        path: &'a str,
        acl: AclList<'a>,
        version: i32,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        refuse_computed(path)?;
        validate_path(path).map_err(|_| ErrorCode::BadArguments)?;
        let acl = resolve_acl(acl, at.ids)?;
        let node = self.store.find(path).ok_or(ErrorCode::NoNode)?;
        self.check_access(node, Perms::ADMIN, at.ids)?;
        check_version(version, self.store.aversion(node))?;

        self.store.set_acl(node, acl);
        if self.are_znodes_spread {
            self.between_groups.acl_zxid = at.zxid.0;
        }
        Ok(WriteReply::Changed { stat: self.store.stat(node) })
    }

    pub(crate) fn check<'a>(
        &self,
        at: &Circumstances<'a>,
        path: &'a str,
        version: i32,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let node = self.find_valid(path)?;
        self.check_access(node, Perms::READ, at.ids)?;
        check_version(version, self.store.version(node))?;
        Ok(WriteReply::Done)
    }

    /// The znode that a write is about.
    pub(crate) fn find_valid(&self, path: &str) -> Result<NodeId, ErrorCode> {
        refuse_computed(path)?;
        validate_path(path).map_err(|_| ErrorCode::BadArguments)?;
        self.store.find(path).ok_or(ErrorCode::NoNode)
    }
}

pub(crate) fn check_version(expected: i32, actual: i32) -> Result<(), ErrorCode> {
    if expected == ANY_VERSION || expected == actual { Ok(()) } else { Err(ErrorCode::BadVersion) }
}
