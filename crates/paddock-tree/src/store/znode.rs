//! One znode as a value, for an engine that keeps each by itself.

use std::sync::Arc;

use paddock_proto::{Acl, SessionId};

use super::ZnodeKind;

/// All of one znode that does not follow from its path or from which children it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Znode {
    pub data: Option<Vec<u8>>,
    pub acl: Arc<[Acl]>,
    pub kind: ZnodeKind,
    pub czxid: i64,
    pub mzxid: i64,
    pub pzxid: i64,
    pub ctime_ms: i64,
    pub mtime_ms: i64,
    pub version: i32,
    /// Number of children that were ever created here. Clients see creates and deletes together as `cversion`.
    pub children_created: i32,
    pub aversion: i32,
}

impl Znode {
    /// The session that an ephemeral znode belongs to.
    pub fn owner(&self) -> Option<SessionId> {
        match self.kind {
            ZnodeKind::Ephemeral(session) => Some(session),
            ZnodeKind::Persistent | ZnodeKind::Container | ZnodeKind::Ttl { .. } => None,
        }
    }
}
