//! ClickHouse Keeper's HTTP interface to znodes, `/api/v1/storage/PATH`: read, create, set and delete, each by its HTTP method.
//!
//! Paths, methods, statuses, fields and the texts of what went well are those of ClickHouse's `KeeperHTTPStorageHandler.cpp`. There
//! anyone may do all of it. Here what a znode holds is shown to whom its ACL gives READ, and changes are for administrators, as on the
//! page; a refusal is JSON.

use hyper::StatusCode;
use hyper::header::LOCATION;
use paddock_http::{Request, Response};
use paddock_proto::jute::Reader;
use paddock_proto::{OpCode, Read, Stat};
use serde_json::{Value, json};

use super::page::{ask, create_request, either, read, written_request};
use super::parts::Admin;
use super::requester::{Identities, refused};

const TEXT: &str = "text/plain; charset=utf-8";

/// Data of a znode, or with `children=true` the names of its children and its Stat.
pub(super) fn get(admin: &Admin, request: Request) -> Response {
    either(show(admin, &request))
}

fn show(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let (path, ids) = (path_of(request), Identities::of(admin, request)?);
    if request.parameter("children") != Some("true") {
        let encoded = read(&admin.shared, &ids, &Read::GetData { path: &path, watch: false })?;
        let data =
            Reader::new(&encoded).buffer().expect("the member has encoded the data").unwrap_or_default();
        return Ok(Response::of("application/octet-stream", data));
    }
    let encoded = read(&admin.shared, &ids, &Read::GetChildren2 { path: &path, watch: false })?;
    let mut reader = Reader::new(&encoded);
    let mut names = reader.strings().expect("the member has encoded the list");
    names.sort_unstable();
    let stat = Stat::decode(&mut reader).expect("the member has encoded the Stat");
    Ok(Response::json(&json!({ "child_node_names": names, "stat": shown(&stat) })))
}

/// A Stat with ClickHouse's names.
fn shown(stat: &Stat) -> Value {
    json!({
        "czxid": stat.czxid.0,
        "mzxid": stat.mzxid.0,
        "ctime": stat.ctime_ms,
        "mtime": stat.mtime_ms,
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeralOwner": stat.ephemeral_owner.0,
        "dataLength": stat.data_length,
        "numChildren": stat.num_children,
        "pzxid": stat.pzxid.0,
    })
}

/// Creates a persistent znode with the body as its data.
pub(super) fn create(admin: &Admin, request: Request) -> Response {
    let path = path_of(&request);
    let reply = ask(admin, &request, OpCode::Create, |out| create_request(&path, &request.body, 0, out));
    // The header has the znode's path, and not that of its resource, as at ClickHouse Keeper.
    either(reply.map(|_| {
        Response::of(TEXT, "Created\n").with_status(StatusCode::CREATED).with_header(LOCATION, &path)
    }))
}

/// Sets the data of a znode, if it has the version that is named; -1 is any.
pub(super) fn set(admin: &Admin, request: Request) -> Response {
    let path = path_of(&request);
    let reply = version_of(&request).and_then(|version| {
        ask(admin, &request, OpCode::SetData, |out| {
            written_request(&path, Some(&request.body), version, out);
        })
    });
    either(reply.map(|_| Response::of(TEXT, "OK\n")))
}

/// Deletes a znode, if it has the version that is named; -1 is any.
pub(super) fn delete(admin: &Admin, request: Request) -> Response {
    let path = path_of(&request);
    let reply = version_of(&request).and_then(|version| {
        ask(admin, &request, OpCode::Delete, |out| written_request(&path, None, version, out))
    });
    either(reply.map(|_| Response::of(TEXT, "").with_status(StatusCode::NO_CONTENT)))
}

/// The znode's path: the names that stand behind the interface's own path. Empty ones count for nothing.
fn path_of(request: &Request) -> String {
    let names: Vec<&str> = request.rest.split('/').filter(|name| !name.is_empty()).collect();
    format!("/{}", names.join("/"))
}

fn version_of(request: &Request) -> Result<i32, Response> {
    let version = request.parameter("version").and_then(|version| version.parse().ok());
    version.ok_or_else(|| refused(StatusCode::BAD_REQUEST, "The version is missing: version=N, -1 for any."))
}
