//! Changes that an administrator orders on the page. Znodes are changed by a session like that of any client.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use paddock_http::{Request, Response};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Acl, Id, OpCode, Perms, encode};
use serde::Deserialize;
use serde_json::json;

use super::{either, permission, refused, refused_by_state};
use crate::admin::authorization;
use crate::admin::parts::Admin;
use crate::clients::InnerError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Creation {
    path: String,
    /// In Base64.
    #[serde(default)]
    data: String,
    mode: Mode,
    /// In milliseconds, for a mode with a TTL.
    #[serde(default)]
    ttl_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Persistent,
    Sequential,
    Container,
    Ttl,
    SequentialTtl,
}

impl Mode {
    fn op(self) -> OpCode {
        match self {
            Mode::Persistent | Mode::Sequential => OpCode::Create,
            Mode::Container => OpCode::CreateContainer,
            Mode::Ttl | Mode::SequentialTtl => OpCode::CreateTtl,
        }
    }

    fn flags(self) -> i32 {
        match self {
            Mode::Persistent => 0,
            Mode::Sequential => 2,
            Mode::Container => 4,
            Mode::Ttl => 5,
            Mode::SequentialTtl => 6,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewData {
    path: String,
    /// In Base64.
    data: String,
    version: i32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deletion {
    path: String,
    /// Version of the znode itself; it does not count for one that goes with all below it.
    #[serde(default)]
    version: Option<i32>,
    /// Takes all below along, if they are not more than [`REMOVED_MAX`].
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewAcl {
    path: String,
    acl: Vec<NewAclEntry>,
    /// The znode's `aversion`.
    version: i32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewAclEntry {
    scheme: String,
    id: String,
    perms: Vec<String>,
}

/// Znodes that are deleted at once, with the one that is named.
const REMOVED_MAX: i32 = 100_000;

/// Creates a znode that is open to everybody, as clients do that name no ACL.
pub(crate) fn create(admin: &Admin, request: Request) -> Response {
    either(parse::<Creation>(&request).and_then(|asked| {
        let data = bytes(&asked.data)?;
        let has_ttl = matches!(asked.mode, Mode::Ttl | Mode::SequentialTtl);
        if has_ttl != asked.ttl_ms.is_some() {
            return Err(refused(
                StatusCode::BAD_REQUEST,
                "A TTL, ttl_ms, is for the modes with one, and only for them.",
            ));
        }
        let reply = ask(admin, &request, asked.mode.op(), |out| {
            create_request(&asked.path, &data, asked.mode.flags(), out);
            if let Some(ttl_ms) = asked.ttl_ms {
                out.put_i64(ttl_ms);
            }
        })?;
        let path = Reader::new(&reply).string().unwrap_or(&asked.path).to_owned();
        Ok(Response::json(&json!({ "path": path })))
    }))
}

pub(crate) fn set_data(admin: &Admin, request: Request) -> Response {
    either(parse::<NewData>(&request).and_then(|asked| {
        let data = bytes(&asked.data)?;
        ask(admin, &request, OpCode::SetData, |out| {
            written_request(&asked.path, Some(&data), asked.version, out);
        })?;
        Ok(Response::json(&json!({ "path": asked.path })))
    }))
}

pub(crate) fn delete(admin: &Admin, request: Request) -> Response {
    either(parse::<Deletion>(&request).and_then(|asked| {
        if asked.recursive {
            ask(admin, &request, OpCode::RemoveRecursive, |out| {
                out.put_string(&asked.path);
                out.put_i32(REMOVED_MAX);
            })?;
        } else {
            let version = asked.version.ok_or_else(|| {
                refused(StatusCode::BAD_REQUEST, "The version is missing: \"version\":N, -1 for any.")
            })?;
            ask(admin, &request, OpCode::Delete, |out| written_request(&asked.path, None, version, out))?;
        }
        Ok(Response::json(&json!({ "path": asked.path })))
    }))
}

/// Sets the ACL of a znode.
pub(crate) fn set_acl(admin: &Admin, request: Request) -> Response {
    either(parse::<NewAcl>(&request).and_then(|asked| {
        let entries: Result<Vec<Acl>, Response> = asked.acl.iter().map(NewAclEntry::entry).collect();
        let entries = entries?;
        ask(admin, &request, OpCode::SetAcl, |out| {
            out.put_string(&asked.path);
            encode::put_acl(out, &entries);
            out.put_i32(asked.version);
        })?;
        Ok(Response::json(&json!({ "path": asked.path })))
    }))
}

impl NewAclEntry {
    fn entry(&self) -> Result<Acl, Response> {
        let mut perms = Perms(0);
        for name in &self.perms {
            let Some(perm) = permission(name) else {
                let why = format!(
                    "There is no permission {name:?}: read, write, create, delete and admin are there."
                );
                return Err(refused(StatusCode::BAD_REQUEST, why));
            };
            perms = perms | perm;
        }
        Ok(Acl { perms, id: Id::new(&self.scheme, &self.id) })
    }
}

/// The body of a request that creates a znode which is open to everybody.
pub(crate) fn create_request(path: &str, data: &[u8], flags: i32, out: &mut Vec<u8>) {
    out.put_string(path);
    out.put_buffer(Some(data));
    out.put_count(1);
    paddock_proto::Acl::open().encode(out);
    out.put_i32(flags);
}

/// The body of a request that sets the data of a znode of some version, or deletes it.
pub(crate) fn written_request(path: &str, data: Option<&[u8]>, version: i32, out: &mut Vec<u8>) {
    out.put_string(path);
    if data.is_some() {
        out.put_buffer(data);
    }
    out.put_i32(version);
}

fn parse<'a, T: Deserialize<'a>>(request: &'a Request) -> Result<T, Response> {
    serde_json::from_slice(&request.body)
        .map_err(|error| refused(StatusCode::BAD_REQUEST, format!("The body cannot be read: {error}.")))
}

fn bytes(text: &str) -> Result<Vec<u8>, Response> {
    BASE64_STANDARD.decode(text).map_err(|_| refused(StatusCode::BAD_REQUEST, "The data is not in Base64."))
}

/// Asks the member as a client would, with the identities of the requester. Returns the body of the reply.
pub(crate) fn ask(
    admin: &Admin,
    request: &Request,
    op: OpCode,
    encode: impl FnOnce(&mut Vec<u8>),
) -> Result<Vec<u8>, Response> {
    let ids = authorization::identities(&admin.shared, request);
    let ids = ids.map_err(|refusal| refused(refusal.status(), refusal.text()))?;
    let mut body = Vec::new();
    encode(&mut body);
    tracing::info!(client = %request.peer, operation = ?op, "an administrator changes the tree");
    match admin.client.lock().ask(request.peer, &ids, op, &body) {
        Ok(reply) => Ok(reply),
        Err(InnerError::Refused(error)) => Err(refused_by_state(error)),
        Err(error) => Err(refused(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    }
}
