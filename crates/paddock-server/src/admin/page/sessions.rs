//! Sessions of the ensemble, with the connections that they have to this member, and what each holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hyper::StatusCode;
use paddock_http::{Request, Response};
use paddock_proto::SessionId;
use paddock_statistics::request_times::operation_name;
use paddock_statistics::stats::ConnStats;
use paddock_tree::EphemeralCursor;
use serde_json::{Value, json};

use super::{either, hexadecimal, limit_of, refused};
use crate::admin::parts::Admin;
use crate::admin::requester::refused_by;
use crate::admin::visibility::Viewer;
use crate::shared::Shared;

/// Ephemeral znodes that are counted while the state is locked once.
const PER_SLICE: usize = 512;
/// Paths that are told of one session.
const PATHS_MAX: usize = 500;

/// Sessions behind `after`, by id.
pub(crate) fn sessions(admin: &Admin, request: Request) -> Response {
    let (shared, limit) = (&*admin.shared, limit_of(&request));
    let after = request.parameter("after").and_then(session_id);
    let (mut sessions, total) = {
        let state = shared.state.read();
        let tree = state.state().tree();
        (tree.sessions_behind(after, limit + 1), tree.session_count())
    };
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    let (conns, ephemerals) = (connections(shared), ephemeral_counts(shared));
    let shown = |&(id, timeout_ms): &(SessionId, i32)| {
        json!({
            "id": hexadecimal(id.0),
            "timeout_ms": timeout_ms,
            "member": shared.state.read().state().tree().session_owner(id),
            "ephemerals": ephemerals.get(&id).copied().unwrap_or(0),
            "connection": conns.get(&id).map(|conn| connection(conn)),
        })
    };
    let sessions: Vec<Value> = sessions.iter().map(shown).collect();
    Response::json(&json!({ "total": total, "sessions": sessions, "more": has_more }))
}

fn session_id(text: &str) -> Option<SessionId> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).ok().map(|id| SessionId(id as i64))
}

/// Connections of this member, by the session that each serves.
fn connections(shared: &Shared) -> HashMap<SessionId, Arc<ConnStats>> {
    let conns = shared.statistics.clients.conns().into_iter();
    conns.map(|(_, conn)| (SessionId(conn.session.load(Relaxed)), conn)).collect()
}

fn connection(conn: &ConnStats) -> Value {
    let last_op = conn.last_op.load(Relaxed);
    json!({
        "address": conn.address().to_string(),
        "since_ms": conn.established_ms,
        "received": conn.received.load(Relaxed),
        "sent": conn.sent.load(Relaxed),
        "waiting": conn.waiting.load(Relaxed),
        "last_operation": if last_op == 0 { "none" } else { operation_name(last_op) },
        "last_zxid": hexadecimal(conn.last_zxid.load(Relaxed)),
        "latency_ms_average": conn.latency.average(),
        "latency_ms_max": conn.latency.max(),
    })
}

fn ephemeral_counts(shared: &Shared) -> HashMap<SessionId, usize> {
    let mut counts = HashMap::new();
    let mut cursor = EphemeralCursor::default();
    loop {
        let slice = shared.state.read().state().tree().ephemerals_behind(&mut cursor, PER_SLICE);
        if slice.is_empty() {
            return counts;
        }
        slice.into_iter().for_each(|(session, _)| *counts.entry(session).or_default() += 1);
    }
}

/// Ephemeral znodes and watches of one session; paths that the requester may not see are `null`.
pub(crate) fn session(admin: &Admin, request: Request) -> Response {
    either(held_by(admin, &request))
}

fn held_by(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let shared = &*admin.shared;
    let id = request.parameter("id").and_then(session_id);
    let id = id.ok_or_else(|| refused(StatusCode::BAD_REQUEST, "A session is named by its id."))?;
    let viewer = Viewer::of(admin, request).map_err(refused_by)?;
    let shown = |paths: Vec<String>| -> Vec<Option<String>> {
        paths.iter().take(PATHS_MAX).map(|path| viewer.shown(path)).collect()
    };
    let timeout = shared.state.read().state().tree().session_timeout_ms(id);
    Ok(Response::json(&json!({
        "id": hexadecimal(id.0),
        "is_known": timeout.is_some(),
        "ephemerals": shown(ephemerals_of(shared, id)),
        "watches": shown(watches_of(shared, id)),
    })))
}

fn ephemerals_of(shared: &Shared, id: SessionId) -> Vec<String> {
    let mut paths = Vec::new();
    let mut cursor = EphemeralCursor::default();
    loop {
        let slice = shared.state.read().state().tree().ephemerals_behind(&mut cursor, PER_SLICE);
        let is_past = slice.last().is_none_or(|(session, _)| *session > id);
        paths.extend(slice.into_iter().filter(|(session, _)| *session == id).map(|(_, path)| path));
        if is_past {
            return paths;
        }
    }
}

fn watches_of(shared: &Shared, id: SessionId) -> Vec<String> {
    let mut own = Vec::new();
    for slice in 0.. {
        let Some(watchers) = shared.state.read().state().watches().watchers(slice) else { break };
        own.extend(watchers.into_iter().filter(|(_, session)| *session == id).map(|(conn, _)| conn));
    }
    let mut paths = Vec::new();
    for slice in 0.. {
        let Some(watched) = shared.state.read().state().watches().paths(slice) else { break };
        let is_own = |conns: &[paddock_state::ConnId]| conns.iter().any(|conn| own.contains(conn));
        paths
            .extend(watched.into_iter().filter(|(_, conns)| is_own(conns)).map(|(path, _)| path.to_string()));
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}
