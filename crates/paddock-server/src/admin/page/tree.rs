//! Znodes: their children page by page, and everything about one.

use std::collections::HashSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::CONTENT_DISPOSITION;
use paddock_proto::jute::Reader;
use paddock_proto::{Acl, Perms, Read, SessionId, Stat};
use paddock_state::ConnId;
use serde_json::{Value, json};

use super::{Identities, either, hexadecimal, limit_of, path_of, refused_by_state};
use crate::admin::parts::Admin;
use crate::http::{Request, Response};
use crate::shared::Shared;

/// Bytes of data that are shown; `/api/data` has all.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// Names of permissions, by their bits.
const PERMS: [(Perms, &str); 5] = [
    (Perms::READ, "read"),
    (Perms::WRITE, "write"),
    (Perms::CREATE, "create"),
    (Perms::DELETE, "delete"),
    (Perms::ADMIN, "admin"),
];

/// Children in the order of their names, behind `after`, whose names begin with `prefix`.
pub(crate) fn children(admin: &Admin, request: Request) -> Response {
    either(list_children(admin, &request))
}

fn list_children(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let (path, ids) = (path_of(request)?, Identities::of(admin, request)?);
    let encoded = read(&admin.shared, &ids, &Read::GetChildren { path, watch: false })?;
    let (prefix, after) =
        (request.parameter("prefix").unwrap_or(""), request.parameter("after").unwrap_or(""));
    let mut names = Reader::new(&encoded).strings().expect("the member has encoded the list");
    names.retain(|name| name.starts_with(prefix));
    let total = names.len();
    names.retain(|name| *name > after);
    let limit = limit_of(request);
    let has_more = names.len() > limit;
    if has_more {
        // Only what is shown has to be sorted: there may be millions.
        names.select_nth_unstable(limit);
        names.truncate(limit);
    }
    names.sort_unstable();
    let children: Vec<Value> = names.iter().map(|name| child(&admin.shared, path, name)).collect();
    Ok(Response::json(&json!({ "path": path, "total": total, "children": children, "more": has_more })))
}

/// A child as its parent's list shows it. Its Stat is no secret to whom the list is none.
fn child(shared: &Shared, parent: &str, name: &str) -> Value {
    let parent = if parent == "/" { "" } else { parent };
    let stat = shared.state.read().state().tree().stat(&format!("{parent}/{name}"));
    json!({
        "name": name,
        "children": stat.map_or(0, |stat| stat.num_children),
        "bytes": stat.map(|stat| stat.data_length),
        "ephemeral": stat.is_some_and(|stat| stat.ephemeral_owner != SessionId::NONE),
    })
}

/// Everything about a znode; of large data the beginning.
pub(crate) fn znode(admin: &Admin, request: Request) -> Response {
    either(describe(admin, &request))
}

fn describe(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let (path, ids) = (path_of(request)?, Identities::of(admin, request)?);
    let encoded = read(&admin.shared, &ids, &Read::GetData { path, watch: false })?;
    let mut reader = Reader::new(&encoded);
    let data = reader.buffer().expect("the member has encoded the data").unwrap_or_default();
    let stat = Stat::decode(&mut reader).expect("the member has encoded the Stat");
    let shown = &data[..data.len().min(SHOWN_BYTES_MAX)];
    Ok(Response::json(&json!({
        "path": path,
        "data": BASE64_STANDARD.encode(shown),
        "data_length": data.len(),
        "stat": shown_stat(&stat),
        "acl": acl(&admin.shared, &ids, path),
        "watchers": watchers(&admin.shared, path),
    })))
}

fn shown_stat(stat: &Stat) -> Value {
    let owner = Some(stat.ephemeral_owner).filter(|owner| *owner != SessionId::NONE);
    json!({
        "czxid": hexadecimal(stat.czxid.0),
        "mzxid": hexadecimal(stat.mzxid.0),
        "pzxid": hexadecimal(stat.pzxid.0),
        "ctime_ms": stat.ctime_ms,
        "mtime_ms": stat.mtime_ms,
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "num_children": stat.num_children,
        "ephemeral_owner": owner.map(|owner| hexadecimal(owner.0)),
    })
}

/// The ACL as a client with these identities is told it, digests hidden; `None` if it is told nothing.
fn acl(shared: &Shared, ids: &Identities, path: &str) -> Option<Vec<Value>> {
    let encoded = read(shared, ids, &Read::GetAcl { path }).ok()?;
    let entries = Reader::new(&encoded).list(Acl::decode).expect("the member has encoded the ACL");
    let shown = |entry: &Acl| {
        let perms = PERMS.iter().filter(|(perm, _)| entry.perms.any_of(*perm)).map(|(_, name)| *name);
        json!({ "scheme": entry.id.scheme, "id": entry.id.id, "perms": perms.collect::<Vec<_>>() })
    };
    Some(entries.iter().map(shown).collect())
}

/// Sessions of this member that watch the znode itself.
fn watchers(shared: &Shared, path: &str) -> Vec<String> {
    let mut conns: HashSet<ConnId> = HashSet::new();
    for slice in 0.. {
        let Some(paths) = shared.state.read().state().watched_paths(slice) else { break };
        conns
            .extend(paths.into_iter().filter(|(watched, _)| &**watched == path).flat_map(|(_, conns)| conns));
    }
    let mut sessions = Vec::new();
    for slice in 0.. {
        let Some(all) = shared.state.read().state().watchers(slice) else { break };
        sessions
            .extend(all.into_iter().filter(|(conn, _)| conns.contains(conn)).map(|(_, session)| session.0));
    }
    sessions.sort_unstable();
    sessions.dedup();
    sessions.into_iter().map(hexadecimal).collect()
}

/// All data of a znode, as a file.
pub(crate) fn data(admin: &Admin, request: Request) -> Response {
    either(all_data(admin, &request))
}

fn all_data(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let (path, ids) = (path_of(request)?, Identities::of(admin, request)?);
    let encoded = read(&admin.shared, &ids, &Read::GetData { path, watch: false })?;
    let data = Reader::new(&encoded).buffer().expect("the member has encoded the data").unwrap_or_default();
    Ok(Response::of("application/octet-stream", data).with_header(CONTENT_DISPOSITION, "attachment"))
}

/// The body of the state's reply. Nothing is read past an ACL.
pub(crate) fn read(shared: &Shared, ids: &Identities, read: &Read<'_>) -> Result<Vec<u8>, Response> {
    let mut out = Vec::new();
    let state = shared.state.read();
    let answered = state.state().tree().read(read, &ids.asker(), &mut out);
    answered.map(|()| out).map_err(refused_by_state)
}

/// Paths that whoever asks may read; `None` stands for each of the others.
pub(super) fn readable(shared: &Shared, ids: &Identities, path: &str) -> Option<String> {
    let mut out = Vec::new();
    let state = shared.state.read();
    let read = Read::Exists { path, watch: false };
    let is_readable = state.state().tree().read(&read, &ids.asker(), &mut out).is_ok();
    is_readable.then(|| path.to_owned())
}
