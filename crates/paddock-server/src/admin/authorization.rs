//! Permissions over HTTP: ZooKeeper's header `Authorization: SCHEME DATA`, judged by the ACL of the root.
//!
//! ZooKeeper lets anyone pass whom the root's ACL gives any permission, which is everybody while it is open. Here an
//! administrator has to be named in it with every permission: a snapshot shows znodes that their own ACLs hide.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use paddock_front::proven_ids;
use paddock_http::{Access, Request, Response};
use paddock_proto::jute::Reader;
use paddock_proto::{Id, IdList, Perms};
use paddock_tree::allows;

use crate::server_limit::ServerLimit;
use crate::shared::Shared;

/// Lets a request pass, or answers with the refusal.
pub(super) fn admit(shared: &Shared, access: Access, request: &Request) -> Result<(), Response> {
    match access {
        Access::Anyone => Ok(()),
        Access::Administrator => administrator(shared, request).map_err(Refusal::into_response),
    }
}

/// The reason for which a requester is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Missing,
    NotAuthenticated,
    NotAuthorized,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Refusal::Missing | Refusal::NotAuthenticated => StatusCode::UNAUTHORIZED,
            Refusal::NotAuthorized => StatusCode::FORBIDDEN,
        }
    }

    /// ZooKeeper's text.
    pub(super) fn text(self) -> &'static str {
        match self {
            Refusal::Missing => "Auth info is missing for the command",
            Refusal::NotAuthenticated => "Not authenticated",
            Refusal::NotAuthorized => "Not authorized",
        }
    }

    fn into_response(self) -> Response {
        Response::text(self.status(), format!("{}\n", self.text())).with_header(WWW_AUTHENTICATE, "digest")
    }
}

/// Makes sure that the requester is an administrator.
pub(super) fn administrator(shared: &Shared, request: &Request) -> Result<(), Refusal> {
    let ids = identities(shared, request)?;
    if ids.is_empty() {
        return Err(Refusal::Missing);
    }
    if is_administrator(shared, &ids) {
        Ok(())
    } else {
        note_failed_login(shared, request, "an HTTP request for administrators, by somebody else");
        Err(Refusal::NotAuthorized)
    }
}

fn note_failed_login(shared: &Shared, request: &Request, detail: &str) {
    shared.hit(ServerLimit::FailedLogin, request.peer, &detail);
}

/// Counts a login that no ACL names.
pub(super) fn note_stranger(shared: &Shared, request: &Request) {
    if request.headers.contains_key(AUTHORIZATION) {
        note_failed_login(shared, request, "a login over HTTP that no ACL names");
    }
}

/// Identities that a request proves, by its header and by the certificate of its connection.
pub(super) fn identities(shared: &Shared, request: &Request) -> Result<Vec<Id>, Refusal> {
    let mut ids = request.certified.clone();
    if let Some(header) = request.headers.get(AUTHORIZATION) {
        let Some(proven) = ids_of_login(shared, header, request.peer.ip()) else {
            shared.statistics.clients.auth_failed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return Err(Refusal::NotAuthenticated);
        };
        ids.extend(proven);
    }
    Ok(ids)
}

/// Identities that the header proves; `None` if it proves nothing.
fn ids_of_login(shared: &Shared, header: &HeaderValue, address: IpAddr) -> Option<Vec<Id>> {
    let text = header.to_str().ok()?;
    let (scheme, data) = text.split_once(' ').unwrap_or((text, ""));
    let settings = shared.settings().of_front(&shared.limits, None, None);
    proven_ids(&scheme.to_ascii_lowercase(), data.as_bytes(), address, &settings)
}

/// True if the header of a request is that of an administrator, or one that an ACL names.
pub(super) fn is_login_of_somebody(shared: &Shared, request: &Request) -> bool {
    let header = request.headers.get(AUTHORIZATION);
    let ids = header.and_then(|header| ids_of_login(shared, header, request.peer.ip()));
    ids.is_some_and(|ids| is_administrator(shared, &ids) || is_named(shared, &ids))
}

/// True for identities of which an ACL of some znode names one. Any password makes an identity of the scheme `digest`; the right one is
/// that which an ACL has.
pub(super) fn is_named(shared: &Shared, ids: &[Id]) -> bool {
    // An address says nothing of a login.
    let shown = |id: &&Id| !["world", "ip"].contains(&id.scheme.as_str());
    let state = shared.state.read();
    ids.iter().filter(shown).any(|id| state.tree().acls().any(|acl| acl.iter().any(|entry| entry.id == *id)))
}

/// True for a superuser, and for identities that the root's ACL names with every permission.
pub(super) fn is_administrator(shared: &Shared, ids: &[Id]) -> bool {
    let encoded = IdList::encode(ids);
    let proven = IdList::decode(&mut Reader::new(&encoded)).expect("the list was encoded by IdList::encode");
    let state = shared.state.read();
    let acl = state.tree().acl("/").expect("the root is always there");
    let named = acl.iter().filter(|entry| entry.perms == Perms::ALL && entry.id.scheme != "world");
    ids.iter().any(|id| id.scheme == "super")
        || named.clone().any(|entry| allows(std::slice::from_ref(entry), Perms::ALL, proven))
}
