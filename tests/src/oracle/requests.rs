//! Single requests, with arguments good and bad.

use paddock_chance::Chance;
use paddock_proto::OpCode;

use super::acls::{self, acl, auth};
use super::arguments::{Paths, data, version};
use super::body::Body;
use super::multis::{multi, multi_read};
use super::sequence::OracleCall;

#[derive(Clone, Copy)]
enum RequestKind {
    Create,
    Create2,
    CreateContainer,
    CreateTtl,
    Delete,
    SetData,
    SetAcl,
    Exists,
    GetData,
    GetAcl,
    GetChildren,
    GetChildren2,
    Sync,
    Ping,
    Multi,
    MultiRead,
    Auth,
    SetWatches,
    AddWatch,
    CheckWatches,
    RemoveWatches,
    GetEphemerals,
    GetAllChildrenNumber,
    WhoAmI,
    CloseSession,
    Unknown,
}

const KINDS: &[(u64, RequestKind)] = &[
    (28, RequestKind::Create),
    (10, RequestKind::Create2),
    (4, RequestKind::CreateContainer),
    (5, RequestKind::CreateTtl),
    (20, RequestKind::Delete),
    (14, RequestKind::SetData),
    (9, RequestKind::SetAcl),
    (11, RequestKind::Exists),
    (10, RequestKind::GetData),
    (7, RequestKind::GetAcl),
    (6, RequestKind::GetChildren),
    (9, RequestKind::GetChildren2),
    (3, RequestKind::Sync),
    (2, RequestKind::Ping),
    (22, RequestKind::Multi),
    (8, RequestKind::MultiRead),
    (5, RequestKind::Auth),
    (8, RequestKind::SetWatches),
    (10, RequestKind::AddWatch),
    (6, RequestKind::CheckWatches),
    (7, RequestKind::RemoveWatches),
    (5, RequestKind::GetEphemerals),
    (4, RequestKind::GetAllChildrenNumber),
    (3, RequestKind::WhoAmI),
    (2, RequestKind::CloseSession),
    (1, RequestKind::Unknown),
];

/// Any request a client may send.
pub(super) fn any(chance: &mut Chance, paths: &Paths) -> OracleCall {
    let path = |chance: &mut Chance| Body::new().string(paths.any(chance).as_deref());
    let watched = |chance: &mut Chance| path(chance).flag("watch", chance.percent(50));
    let mut call = match chance.weighted(KINDS) {
        RequestKind::Create => create(chance, paths, "create", OpCode::Create),
        RequestKind::Create2 => create(chance, paths, "create2", OpCode::Create2),
        RequestKind::CreateContainer => create(chance, paths, "createContainer", OpCode::CreateContainer),
        RequestKind::CreateTtl => create_ttl(chance, paths),
        RequestKind::Delete => {
            OracleCall::of("delete", OpCode::Delete, path(chance).int("version", version(chance)))
        }
        RequestKind::SetData => OracleCall::of("setData", OpCode::SetData, set_data(chance, paths)),
        RequestKind::SetAcl => {
            let path = path(chance);
            let body = if chance.percent(2) { acls::null(path) } else { acl(chance, path, paths) };
            let body = body.int("version", version(chance));
            OracleCall::of("setACL", OpCode::SetAcl, body)
        }
        RequestKind::Exists => OracleCall::of("exists", OpCode::Exists, watched(chance)),
        RequestKind::GetData => OracleCall::of("getData", OpCode::GetData, watched(chance)),
        RequestKind::GetAcl => OracleCall::of("getACL", OpCode::GetAcl, path(chance)),
        RequestKind::GetChildren => OracleCall::of("getChildren", OpCode::GetChildren, watched(chance)),
        RequestKind::GetChildren2 => OracleCall::of("getChildren2", OpCode::GetChildren2, watched(chance)),
        RequestKind::Sync => OracleCall::of("sync", OpCode::Sync, path(chance)),
        RequestKind::Ping => {
            OracleCall { xid: Some(-2), ..OracleCall::of("ping", OpCode::Ping, Body::new()) }
        }
        RequestKind::Multi => multi(chance, paths),
        RequestKind::MultiRead => multi_read(chance, paths),
        RequestKind::Auth => auth(chance),
        RequestKind::SetWatches => set_watches(chance, paths),
        RequestKind::AddWatch => {
            let mode = chance.weighted(&[(8, 0), (8, 1), (1, 2), (1, -1)]);
            OracleCall::of("addWatch", OpCode::AddWatch, path(chance).int("mode", mode))
        }
        RequestKind::CheckWatches => {
            OracleCall::of("checkWatches", OpCode::CheckWatches, watcher(chance, path))
        }
        RequestKind::RemoveWatches => {
            OracleCall::of("removeWatches", OpCode::RemoveWatches, watcher(chance, path))
        }
        RequestKind::GetEphemerals => {
            let body = match chance.index(4) {
                0 => Body::new().string(*chance.pick(&[None, Some(""), Some(" "), Some("/"), Some(" / ")])),
                _ => path(chance),
            };
            OracleCall::of("getEphemerals", OpCode::GetEphemerals, body)
        }
        RequestKind::GetAllChildrenNumber => {
            let path = Body::new().string(paths.to_count_below(chance).as_deref());
            OracleCall::of("getAllChildrenNumber", OpCode::GetAllChildrenNumber, path)
        }
        RequestKind::WhoAmI => OracleCall::of("whoAmI", OpCode::WhoAmI, Body::new()),
        RequestKind::CloseSession => close_session(),
        RequestKind::Unknown if chance.percent(50) => {
            OracleCall::of("check", OpCode::Check, path(chance).int("version", version(chance))).ending()
        }
        RequestKind::Unknown => {
            let op = *chance.pick(&[0, 10, 23, 99, 108, 508, -1, -12, i32::MIN]);
            OracleCall::new("unknown", op, path(chance)).ending()
        }
    };
    if call.xid.is_none() && chance.percent(2) {
        call.xid = Some(*chance.pick(&[0, -3, -8, -100, i32::MIN, i32::MAX]));
    }
    call
}

pub(super) fn close_session() -> OracleCall {
    OracleCall::of("closeSession", OpCode::CloseSession, Body::new()).ending()
}

/// True if what ZooKeeper does around this in one write depends on how far its threads have come: an unknown operation
/// and a refused auth end the connection while earlier requests are under way; an accepted auth lets the events of
/// earlier requests through; a setACL, and a create whose operation and flags do not match, look different to later
/// requests before and after they are applied. And Paddock answers a ping at once, whatever is under way.
pub(super) fn depends_on_timing(call: &OracleCall) -> bool {
    let op = OpCode::from_code(call.op);
    call.ends_connection
        || matches!(op, Some(OpCode::Auth | OpCode::Ping | OpCode::SetAcl | OpCode::CreateContainer))
}

fn create(chance: &mut Chance, paths: &Paths, name: &'static str, op: OpCode) -> OracleCall {
    let common = if op == OpCode::CreateContainer { 4 } else { 0 };
    let flags =
        chance.weighted(&[(20, common), (6, 1), (4, 2), (3, 3), (2, 4), (1, 5), (1, 6), (1, 7), (1, -1)]);
    OracleCall::of(name, op, create_body(chance, paths, flags))
}

/// A create that usually succeeds.
pub(super) fn plant(chance: &mut Chance, paths: &Paths, path: &str) -> OracleCall {
    let flags = chance.weighted(&[(6, 0), (1, 1), (1, 4)]);
    let body = Body::new().string(Some(path)).buffer(data(chance).as_deref());
    let op = if flags == 4 { OpCode::CreateContainer } else { OpCode::Create };
    OracleCall::of("create", op, acl(chance, body, paths).int("flags", flags))
}

pub(super) fn create_body(chance: &mut Chance, paths: &Paths, flags: i32) -> Body {
    let path = paths.to_create(chance, flags);
    let body = Body::new().string(path.as_deref()).buffer(data(chance).as_deref());
    acl(chance, body, paths).int("flags", flags)
}

/// No negative TTL for modes without one: it ends ZooKeeper's process.
fn create_ttl(chance: &mut Chance, paths: &Paths) -> OracleCall {
    const HOUR_MS: i64 = 3_600_000;
    const MAX: i64 = 0xff_ffff_ffff;
    let flags = chance.weighted(&[(12, 5), (6, 6), (1, 0), (1, 1), (1, 4), (1, 7)]);
    let ttl = match flags {
        5 | 6 => {
            let bad = *chance.pick(&[MAX + 1, 0, -1, i64::MIN, i64::MAX]);
            chance.weighted(&[(8, HOUR_MS), (2, MAX), (2, bad)])
        }
        _ => *chance.pick(&[0, HOUR_MS]),
    };
    OracleCall::of("createTTL", OpCode::CreateTtl, create_body(chance, paths, flags).long("ttl", ttl))
}

pub(super) fn set_data(chance: &mut Chance, paths: &Paths) -> Body {
    let path = paths.any(chance);
    Body::new().string(path.as_deref()).buffer(data(chance).as_deref()).int("version", version(chance))
}

fn watcher(chance: &mut Chance, path: impl Fn(&mut Chance) -> Body) -> Body {
    let kind = chance.weighted(&[(3, 1), (3, 2), (3, 3), (2, 4), (2, 5), (1, 0), (1, 6)]);
    path(chance).int("type", kind)
}

pub(super) fn set_watches(chance: &mut Chance, paths: &Paths) -> OracleCall {
    let relative_zxid = *chance.pick(&[0, 0, 1, 5, 20, 1000, -1]);
    let second = chance.percent(40);
    let mut body = Body::new().long("zxid", relative_zxid);
    let names = ["data", "exist", "child", "persistent", "recursive"];
    for name in &names[..if second { 5 } else { 3 }] {
        let may_be_told = matches!(*name, "data" | "exist" | "child");
        let len_end = if may_be_told && !paths.all_may_read { 1 } else { 3 };
        let mut list: Vec<Option<String>> =
            (0..chance.index(len_end)).map(|_| Some(paths.good(chance))).collect();
        if len_end > 1 && chance.percent(3) {
            list.push(paths.any(chance));
        }
        body = body.list(name, Some(&list), |body, path: &Option<String>| body.string(path.as_deref()));
    }
    let (name, op) =
        if second { ("setWatches2", OpCode::SetWatches2) } else { ("setWatches", OpCode::SetWatches) };
    OracleCall { xid: Some(-8), relative_zxid: true, ..OracleCall::of(name, op, body) }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::Multis;
    use super::super::body::ROOT;
    use super::*;

    #[test]
    fn no_request_ends_zookeepers_process() {
        let mut chance = Chance::new(1);
        let paths = Paths::below(ROOT, Multis::Anything);
        for _ in 0..20_000 {
            let call = any(&mut chance, &paths);
            if call.name == "createTTL" {
                let story = &call.body.story;
                let has_ttl_mode = story.contains("flags=5") || story.contains("flags=6");
                assert!(has_ttl_mode || !story.contains("ttl=-"), "{call}");
            }
        }
    }
}
