//! Znodes: their children page by page, and everything about one.

use std::collections::HashSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::CONTENT_DISPOSITION;
use paddock_http::{Request, Response};
use paddock_proto::jute::Reader;
use paddock_proto::{Acl, Perms, Read, SessionId, Stat};
use paddock_state::ConnId;
use paddock_tree::Copied;
use serde_json::{Value, json};

use super::{Identities, either, hexadecimal, limit_of, path_of, refused_by_state};
use crate::admin::parts::Admin;
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

/// The permission of this name.
pub(super) fn permission(name: &str) -> Option<Perms> {
    PERMS.iter().find(|(_, known)| *known == name).map(|(perm, _)| *perm)
}

/// Names of the permissions that are among these.
pub(crate) fn permission_names(perms: Perms) -> Vec<&'static str> {
    PERMS.iter().filter(|(perm, _)| perms.any_of(*perm)).map(|(_, name)| *name).collect()
}

/// Children of a long list that are copied before others have the state.
const PORTION: usize = 2000;
/// Times that the copying of a long list is begun anew because too much of it has changed. Then it is copied in one step.
const BEGUN_MAX: usize = 4;

/// Children in the order of their names, those whose names begin with `prefix`: the first ones behind `after`, or the last ones in front of
/// `before`, which is the end of the list if it is empty.
pub(crate) fn children(admin: &Admin, request: Request) -> Response {
    either(list_children(admin, &request))
}

fn list_children(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let (path, ids) = (path_of(request)?, Identities::of(admin, request)?);
    let encoded = encoded_names(&admin.shared, &ids, path)?;
    let mut names = Reader::new(&encoded).strings().expect("the member has encoded the list");
    let prefix = request.parameter("prefix").unwrap_or("");
    names.retain(|name| name.starts_with(prefix));
    let (total, limit) = (names.len(), limit_of(request));
    let first = match request.parameter("before") {
        Some("") => total.saturating_sub(limit),
        Some(before) => names.iter().filter(|name| **name < before).count().saturating_sub(limit),
        None => {
            let after = request.parameter("after").unwrap_or("");
            names.iter().filter(|name| **name <= after).count()
        }
    };
    let page = page_of(&mut names, first, limit);
    let children: Vec<Value> = page.iter().map(|name| child(&admin.shared, &ids, path, name)).collect();
    let has_more = first + children.len() < total;
    Ok(Response::json(&json!({
        "path": path, "total": total, "first": first, "children": children, "more": has_more,
    })))
}

/// Names from a place on, `limit` of them at most, in order. Only what is shown has to be sorted: there may be millions.
fn page_of<'n, 'a>(names: &'n mut [&'a str], first: usize, limit: usize) -> &'n [&'a str] {
    if first > 0 && first < names.len() {
        names.select_nth_unstable(first);
    }
    let page = &mut names[first..];
    if page.len() > limit {
        page.select_nth_unstable(limit);
    }
    let shown = limit.min(page.len());
    page[..shown].sort_unstable();
    &page[..shown]
}

/// The list of children as it goes over the wire. A long one is copied in portions, so that no other request waits for the state.
fn encoded_names(shared: &Shared, ids: &Identities, path: &str) -> Result<Vec<u8>, Response> {
    for _ in 0..BEGUN_MAX {
        let mut copy = {
            let state = shared.state.read();
            let may_read = state.state().tree().check_list(path, &ids.asker());
            may_read.map_err(refused_by_state)?;
            let Some(copy) = state.state().begin_children_copy(path) else { break };
            copy
        };
        loop {
            match shared.state.read().state().copy_children(path, &mut copy, PORTION) {
                Copied::Portion => {}
                Copied::Outdated => break,
                Copied::All => return Ok(copy.into_list().to_bytes()),
            }
        }
    }
    read(shared, ids, &Read::GetChildren { path, watch: false })
}

/// A child as its parent's list shows it: by its name, and with what its Stat tells if its own ACL gives READ.
fn child(shared: &Shared, ids: &Identities, parent: &str, name: &str) -> Value {
    let parent = if parent == "/" { "" } else { parent };
    let path = format!("{parent}/{name}");
    let state = shared.state.read();
    let tree = state.state().tree();
    let may_read = tree.check_list(&path, &ids.asker()).is_ok();
    let stat = tree.stat(&path).filter(|_| may_read);
    json!({
        "name": name,
        "children": stat.map(|stat| stat.num_children),
        "bytes": stat.map(|stat| stat.data_length),
        "ephemeral": stat.map(|stat| stat.ephemeral_owner != SessionId::NONE),
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
    let shown = |entry: &Acl| json!({ "scheme": entry.id.scheme, "id": entry.id.id, "perms": permission_names(entry.perms) });
    Some(entries.iter().map(shown).collect())
}

/// Sessions of this member that watch the znode itself.
fn watchers(shared: &Shared, path: &str) -> Vec<String> {
    let mut conns: HashSet<ConnId> = HashSet::new();
    for slice in 0.. {
        let Some(paths) = shared.state.read().state().watches().paths(slice) else { break };
        conns
            .extend(paths.into_iter().filter(|(watched, _)| &**watched == path).flat_map(|(_, conns)| conns));
    }
    let mut sessions = Vec::new();
    for slice in 0.. {
        let Some(all) = shared.state.read().state().watches().watchers(slice) else { break };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_names_from_a_place_on() {
        let all: Vec<String> = (0..500).map(|number| format!("{:03}", number * 7 % 500)).collect();
        for (first, limit, expected) in
            [(0, 3, "000 001 002"), (250, 2, "250 251"), (498, 9, "498 499"), (500, 3, "")]
        {
            let mut names: Vec<&str> = all.iter().map(String::as_str).collect();
            assert_eq!(page_of(&mut names, first, limit).join(" "), expected, "{first}");
        }
        assert!(page_of(&mut [], 0, 3).is_empty());
    }
}
