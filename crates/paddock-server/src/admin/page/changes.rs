//! Changes that an administrator orders on the page. Znodes are changed by a session like that of any client.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use paddock_proto::OpCode;
use paddock_proto::jute::{Reader, Writer};
use serde::Deserialize;
use serde_json::json;

use super::{either, refused, refused_by_state};
use crate::admin::authorization;
use crate::admin::parts::Admin;
use crate::clients::InnerError;
use crate::http::{Request, Response};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Creation {
    path: String,
    /// In Base64.
    #[serde(default)]
    data: String,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Persistent,
    Sequential,
    Container,
}

impl Mode {
    fn op(self) -> OpCode {
        if matches!(self, Mode::Container) { OpCode::CreateContainer } else { OpCode::Create }
    }

    fn flags(self) -> i32 {
        match self {
            Mode::Persistent => 0,
            Mode::Sequential => 2,
            Mode::Container => 4,
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
    version: i32,
}

/// Creates a znode that is open to everybody, as clients do that name no ACL.
pub(crate) fn create(admin: &Admin, request: Request) -> Response {
    either(parse::<Creation>(&request).and_then(|asked| {
        let data = bytes(&asked.data)?;
        let reply = ask(admin, &request, asked.mode.op(), |out| {
            create_request(&asked.path, &data, asked.mode.flags(), out);
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
        ask(admin, &request, OpCode::Delete, |out| written_request(&asked.path, None, asked.version, out))?;
        Ok(Response::json(&json!({ "path": asked.path })))
    }))
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
