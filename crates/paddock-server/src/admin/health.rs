//! Readiness and liveness, for Kubernetes and for load balancers.

use hyper::StatusCode;
use paddock_replica::Role;
use serde_json::json;

use super::parts::Admin;
use crate::http::{Request, Response};
use crate::observability::status::role_name;

/// ClickHouse Keeper's path of readiness, unless a setting moves it.
pub(super) const READY: &str = "/ready";

/// 200 while the member serves clients, as ClickHouse Keeper says it.
pub(super) fn ready(admin: &Admin, _: Request) -> Response {
    let shared = &admin.shared;
    let role = shared.role();
    let has_leader = !matches!(role, Role::Looking | Role::ReadOnly);
    let is_ready = role != Role::Looking && !shared.is_draining();
    let (word, status) =
        if is_ready { ("ok", StatusCode::OK) } else { ("fail", StatusCode::SERVICE_UNAVAILABLE) };
    let details = json!({ "role": role_name(role), "hasLeader": has_leader });
    Response::json(&json!({ "details": details, "status": word })).with_status(status)
}

/// 200 while the member runs.
pub(super) fn alive(_: &Admin, _: Request) -> Response {
    Response::text(StatusCode::OK, "ok\n")
}
