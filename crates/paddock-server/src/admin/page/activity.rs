//! The slowest requests of late, and what is asked for most.

use paddock_http::{Request, Response};
use paddock_member::Clock as _;
use paddock_statistics::hot::SlowRequest;
use paddock_statistics::request_times::operation_name;
use serde_json::{Value, json};

use super::{either, hexadecimal};
use crate::admin::parts::Admin;
use crate::admin::requester::refused_by;
use crate::admin::visibility::Viewer;

/// Busiest paths and sessions that are told.
const TOP: usize = 20;

/// Paths that the requester may not see are `null`.
pub(crate) fn activity(admin: &Admin, request: Request) -> Response {
    either(answer(admin, &request))
}

fn answer(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let shared = &*admin.shared;
    let viewer = Viewer::of(admin, request).map_err(refused_by)?;
    let now = shared.clock.now();
    let (paths, sessions) = shared.statistics.hot.top(now.monotonic_ms, TOP);
    let covered_ms = shared.statistics.hot.covered_ms(now.monotonic_ms);
    let paths = paths.iter().map(|(path, weight)| {
        json!({ "path": viewer.shown(path), "requests": weight.requests, "bytes": weight.bytes })
    });
    let sessions = sessions.iter().map(|(session, weight)| {
        json!({ "id": hexadecimal(session.0), "requests": weight.requests, "bytes": weight.bytes })
    });
    Ok(Response::json(&json!({
        "covered_ms": covered_ms,
        "paths": paths.collect::<Vec<_>>(),
        "sessions": sessions.collect::<Vec<_>>(),
        "slow": shared.statistics.hot.slowest(now.wall_ms).iter().map(|request| slow(request, &viewer)).collect::<Vec<_>>(),
    })))
}

fn slow(request: &SlowRequest, viewer: &Viewer<'_>) -> Value {
    json!({
        "at_ms": request.at_ms,
        "operation": operation_name(request.op),
        "path": request.path.as_deref().and_then(|path| viewer.shown(path)),
        "has_path": request.path.is_some(),
        "session": hexadecimal(request.session.0),
        "client": request.client.to_string(),
        "took_ms": request.took_ms,
        "reply_bytes": request.reply_bytes,
        "zxid": hexadecimal(request.zxid),
        "stages_us": request.stages_us,
    })
}
