//! Transactions carried out on a draft as ZooKeeper carries them out at its start: on a snapshot that may hold their effects
//! already.
//!
//! Anything that cannot be done any more is passed over, and numbers only grow. One difference: a parent's cversion is raised for every
//! kind of create that is there already, where ZooKeeper does it for plain ones alone and would give out sequence numbers twice.

use paddock_proto::{AclList, SessionId, Zxid};
use paddock_tree::{Draft, DraftError, Facts, ZnodeKind};

use crate::error::Problem;
use crate::transaction::{Body, CVERSION_UNKNOWN, Transaction};

/// Applies a transaction to the draft. `after` is shown the draft behind each of its operations.
pub(crate) fn apply(
    draft: &mut Draft,
    transaction: &Transaction<'_>,
    after: &mut dyn FnMut(&Draft, &Body<'_>),
) -> Result<(), Problem> {
    let Transaction { session, zxid, time_ms, ref body, .. } = *transaction;
    let mut replay = Replay { draft, session, zxid: zxid.0, time_ms };
    let operations = match body {
        Body::Multi(bodies) => &bodies[..],
        body => std::slice::from_ref(body),
    };
    for operation in operations {
        replay.carry_out(operation)?;
        after(replay.draft, operation);
    }
    Ok(())
}

struct Replay<'d> {
    draft: &'d mut Draft,
    session: SessionId,
    zxid: i64,
    time_ms: i64,
}

impl Replay<'_> {
    fn carry_out(&mut self, body: &Body<'_>) -> Result<(), Problem> {
        match *body {
            Body::CreateSession { timeout_ms } => self.draft.begin_session(self.session, timeout_ms),
            Body::CloseSession { ref paths } => return self.close_session(paths),
            Body::Create { path, data, acl, kind, parent_cversion } => {
                return self.create(path, data, acl, kind, parent_cversion);
            }
            Body::Delete { path } => return self.delete(path),
            Body::SetData { path, data, version } => {
                if let Some(node) = self.draft.find(path) {
                    self.draft.set_data(node, data, version, self.zxid, self.time_ms);
                }
            }
            Body::SetAcl { path, acl, version } => {
                if let Some(node) = self.draft.find(path) {
                    self.draft.set_acl(node, acl_of(acl), version);
                }
            }
            // None is within another.
            Body::Multi(_) | Body::Nothing => {}
        }
        Ok(())
    }

    fn create(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        acl: AclList<'_>,
        kind: ZnodeKind,
        parent_cversion: i32,
    ) -> Result<(), Problem> {
        let facts = Facts::of_new(data, kind, self.zxid, self.time_ms);
        let is_root = path == "/";
        let placed = if is_root {
            Err(DraftError::Exists)
        } else if acl.is_open() {
            self.draft.place(path, &facts, self.draft.open_acl())
        } else {
            self.draft.place_with(path, &facts, acl_of(acl))
        };
        match placed {
            Ok(_) | Err(DraftError::Exists) => self.raise_cversion(path, parent_cversion),
            Err(DraftError::NoParent | DraftError::EphemeralParent) => {}
            Err(error) => return Err(Problem::Znode { path: path.to_owned(), error }),
        }
        Ok(())
    }

    fn raise_cversion(&mut self, path: &str, wanted: i32) {
        let Some(parent) = self.draft.find(parent_of(path)) else { return };
        let cversion = self.draft.cversion(parent);
        let wanted = if wanted == CVERSION_UNKNOWN { cversion.wrapping_add(1) } else { wanted };
        if wanted > cversion {
            self.draft.set_cversion(parent, wanted);
            self.draft.set_pzxid(parent, self.zxid);
        }
    }

    fn delete(&mut self, path: &str) -> Result<(), Problem> {
        if matches!(path, "" | "/") {
            return Err(Problem::DeletesRoot);
        }
        if let Some(parent) = self.draft.find(parent_of(path)) {
            self.draft.set_pzxid(parent, self.draft.pzxid(parent).max(self.zxid));
        }
        if let Some(node) = self.draft.find(path) {
            self.draft.remove(node);
        }
        Ok(())
    }

    fn close_session(&mut self, paths: &[&str]) -> Result<(), Problem> {
        paths.iter().try_for_each(|path| self.delete(path))?;
        for path in self.draft.ephemerals_of(self.session) {
            self.delete(&path)?;
        }
        self.draft.end_session(self.session);
        Ok(())
    }
}

/// Closes every session, as if that were the last transaction; returns the paths of the ephemerals that went.
pub(crate) fn close_all_sessions(draft: &mut Draft, zxid: Zxid) -> Vec<String> {
    let sessions: Vec<SessionId> = draft.session_ids().collect();
    let mut gone = Vec::new();
    for session in sessions {
        let paths = draft.ephemerals_of(session);
        let mut replay = Replay { draft: &mut *draft, session, zxid: zxid.0, time_ms: 0 };
        let closed = replay.close_session(&[]);
        assert!(closed.is_ok(), "the paths of ephemerals are not the root's");
        gone.extend(paths);
    }
    gone
}

/// A list that is null stands for the open ACL, an empty one for itself.
fn acl_of(list: AclList<'_>) -> Vec<paddock_proto::Acl> {
    const NULL: &[u8] = &[0xff; 4];
    if list.wire() == NULL { vec![paddock_proto::Acl::open()] } else { list.to_vec() }
}

fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}
