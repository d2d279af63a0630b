//! The requester of a page's facts: the identities that it has proved, and the answer if it may not have them.

use hyper::StatusCode;
use paddock_http::{Request, Response};
use paddock_proto::jute::Reader;
use paddock_proto::{Dialect, Id, IdList, SessionId};
use paddock_tree::{Asker, Guess};
use serde_json::json;

use super::authorization::{self, Refusal};
use super::parts::Admin;

/// Identities of a requester, encoded as the state takes them. An unknown requester has none.
pub(super) struct Identities(Vec<u8>);

impl Identities {
    pub(super) fn of(admin: &Admin, request: &Request) -> Result<Identities, Response> {
        let proven = authorization::identities(&admin.shared, request);
        let proven = proven.map_err(refused_by)?;
        Ok(Identities::new(&proven))
    }

    pub(super) fn new(ids: &[Id]) -> Identities {
        Identities(IdList::encode(ids))
    }

    pub(super) fn asker(&self) -> Asker<'_> {
        let ids = IdList::decode(&mut Reader::new(&self.0)).expect("the list was encoded by IdList::encode");
        Asker { session: SessionId::NONE, ids, dialect: Dialect::ZooKeeper, guess: Guess::NONE }
    }
}

/// A refusal in the form of the page's JSON.
pub(super) fn refused(status: StatusCode, why: impl Into<String>) -> Response {
    Response::json(&json!({ "error": why.into() })).with_status(status)
}

/// The refusal of a requester who has not proved enough.
pub(super) fn refused_by(refusal: Refusal) -> Response {
    refused(refusal.status(), refusal.text())
}
