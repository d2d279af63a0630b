//! Paths that a requester is told of, in lists of what sessions hold and watch.

use paddock_http::Request;
use paddock_proto::{ErrorCode, Id};

use super::authorization::{self, Refusal};
use super::parts::Admin;
use super::requester::Identities;
use crate::shared::Shared;

/// A requester who asks for a list with paths.
pub(super) struct Viewer<'a> {
    shared: &'a Shared,
    ids: Identities,
    is_administrator: bool,
}

impl<'a> Viewer<'a> {
    pub(super) fn of(admin: &'a Admin, request: &Request) -> Result<Viewer<'a>, Refusal> {
        let proven = authorization::identities(&admin.shared, request)?;
        Ok(Viewer::with(admin, &proven))
    }

    /// The viewer where a login that proves nothing counts for nothing, as with ZooKeeper's commands.
    pub(super) fn or_nobody(admin: &'a Admin, request: &Request) -> Viewer<'a> {
        Viewer::of(admin, request).unwrap_or_else(|_| Viewer::with(admin, &[]))
    }

    fn with(admin: &'a Admin, proven: &[Id]) -> Viewer<'a> {
        let is_administrator = authorization::is_administrator(&admin.shared, proven);
        Viewer { shared: &admin.shared, ids: Identities::new(proven), is_administrator }
    }

    /// True if this path is told. A list of children tells a name to whom the parent's ACL gives READ; so a viewer that is told a path has to have
    /// that on everything above the znode, and on the znode itself. An administrator may take a snapshot, and is told all.
    pub(super) fn sees(&self, path: &str) -> bool {
        if self.is_administrator {
            return true;
        }
        let state = self.shared.state.read();
        let (tree, asker) = (state.state().tree(), self.ids.asker());
        // A znode that is watched for need not be there.
        let is_open = |path: &str| matches!(tree.check_list(path, &asker), Ok(()) | Err(ErrorCode::NoNode));
        let ends = path.match_indices('/').skip(1).map(|(end, _)| end).chain([path.len()]);
        is_open("/") && ends.into_iter().all(|end| is_open(&path[..end]))
    }

    /// The path, or `None` in its place.
    pub(super) fn shown(&self, path: &str) -> Option<String> {
        self.sees(path).then(|| path.to_owned())
    }
}
