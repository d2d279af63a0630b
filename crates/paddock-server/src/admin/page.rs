//! The page for those who operate a member, at `/` of its HTTP interface, and the JSON under `/api/` that it reads.
//!
//! The page is one file without requests to elsewhere. Anyone may see how the ensemble does; what a znode holds is shown to whom its ACL
//! gives READ, and to no others; changes are for administrators. Answers say no more than four-letter words and clients are told.

mod activity;
mod changes;
mod history;
mod overview;
mod sessions;
mod tree;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderName};
use paddock_http::{Request, Response};
use paddock_proto::ErrorCode;
use serde_json::json;

use super::authorization;
use super::parts::Admin;
use super::requester::{Identities, refused, refused_by};

pub(super) use activity::activity;
pub(super) use changes::{ask, create, create_request, delete, set_acl, set_data, written_request};
pub(super) use history::history;
pub(super) use overview::overview;
pub(super) use sessions::{session, sessions};
use tree::permission;
pub(super) use tree::{children, data, permission_names, read, znode};

/// The largest body of a change, in bytes: a MiB of data in Base64, and what stands beside it.
pub(super) const CHANGE_BYTES_MAX: usize = 3 << 19;

/// Entries of a list in one answer, unless fewer are asked for.
const ENTRIES_MAX: usize = 1000;

const PAGE: &str = include_str!("page/page.html");
/// Stands in the page where its nonce goes.
const NONCE: &str = "__NONCE__";

/// The page, which may run the script that it brings and no other, and ask this member only.
pub(super) fn page(_: &Admin, _: Request) -> Response {
    let nonce = nonce();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    );
    Response::of("text/html; charset=utf-8", PAGE.replace(NONCE, &nonce))
        .with_header(CONTENT_SECURITY_POLICY, &policy)
        .with_header(HeaderName::from_static("cross-origin-resource-policy"), "same-origin")
        .with_header(hyper::header::REFERRER_POLICY, "no-referrer")
}

fn nonce() -> String {
    BASE64_STANDARD.encode(paddock_tls::random_bytes::<16>())
}

/// Tells whose a login is: an administrator's, or one that an ACL names.
pub(super) fn login(admin: &Admin, request: Request) -> Response {
    let shared = &admin.shared;
    let ids = match authorization::identities(shared, &request) {
        Ok(ids) => ids,
        Err(refusal) => return refused_by(refusal),
    };
    let is_administrator = authorization::is_administrator(shared, &ids);
    if is_administrator || authorization::is_named(shared, &ids) {
        return Response::json(&json!({ "administrator": is_administrator }));
    }
    authorization::note_stranger(shared, &request);
    refused(StatusCode::FORBIDDEN, "No ACL of this ensemble names this user with this password.")
}

/// The refusal that the state has for a request, as HTTP has it.
fn refused_by_state(error: ErrorCode) -> Response {
    let (status, why) = match error {
        ErrorCode::NoNode => (StatusCode::NOT_FOUND, "There is no such znode."),
        ErrorCode::NoAuth => (StatusCode::FORBIDDEN, "The ACL of the znode does not allow it."),
        ErrorCode::NodeExists => (StatusCode::CONFLICT, "There is a znode of this name already."),
        ErrorCode::BadVersion => {
            (StatusCode::CONFLICT, "Somebody else has changed it meanwhile; load it anew.")
        }
        ErrorCode::NotEmpty => {
            (StatusCode::CONFLICT, "It has children, or too many znodes below it to be deleted at once.")
        }
        ErrorCode::NoChildrenForEphemerals => (StatusCode::CONFLICT, "An ephemeral znode has no children."),
        ErrorCode::BadArguments => (StatusCode::BAD_REQUEST, "That is not a path, or not allowed here."),
        ErrorCode::QuotaExceeded => (StatusCode::CONFLICT, "A quota does not allow it."),
        other => return refused(StatusCode::CONFLICT, format!("It was refused: {other:?}.")),
    };
    refused(status, why)
}

/// A path that the request names.
fn path_of(request: &Request) -> Result<&str, Response> {
    let path = request.parameter("path").unwrap_or("/");
    let is_path = path.starts_with('/') && (path.len() == 1 || !path.ends_with('/'));
    if is_path { Ok(path) } else { Err(refused(StatusCode::BAD_REQUEST, "A path begins with a slash.")) }
}

/// Number of entries that the request asks for.
fn limit_of(request: &Request) -> usize {
    request
        .parameter("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(ENTRIES_MAX)
        .clamp(1, ENTRIES_MAX)
}

fn hexadecimal(number: i64) -> String {
    format!("{number:#x}")
}

/// The answer, or the refusal that stands in its place.
pub(super) fn either(answer: Result<Response, Response>) -> Response {
    answer.unwrap_or_else(|refused| refused)
}
