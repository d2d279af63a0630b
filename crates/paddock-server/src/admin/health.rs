//! Readiness and liveness, for Kubernetes and for load balancers.

use hyper::StatusCode;
use paddock_replica::{ReadOnlyReason, Role};
use serde_json::{Value, json};

use super::parts::Admin;
use crate::http::{Request, Response};
use crate::reports::status::role_name;
use crate::shared::Shared;

/// ClickHouse Keeper's path of readiness, unless a setting moves it.
pub(super) const READY: &str = "/ready";

/// 200 while the member serves reads and writes, in ClickHouse Keeper's form; otherwise 503 with a reason.
pub(super) fn ready(admin: &Admin, _: Request) -> Response {
    let shared = &admin.shared;
    let role = shared.engine.role();
    let has_leader = !matches!(role, Role::Looking | Role::ReadOnly);
    let mut details = json!({ "role": role_name(role), "hasLeader": has_leader });
    let (word, status) = match obstacle(shared, role) {
        None => ("ok", StatusCode::OK),
        Some(reason) => {
            details["reason"] = Value::from(reason);
            ("fail", StatusCode::SERVICE_UNAVAILABLE)
        }
    };
    Response::json(&json!({ "details": details, "status": word })).with_status(status)
}

/// Reason for which the member is not ready; `None` if it is. A copy that only serves reads, which is what it was started for, is.
fn obstacle(shared: &Shared, role: Role) -> Option<&'static str> {
    if shared.life.is_draining() {
        return Some("the member is about to stop");
    }
    let standing = shared.engine.standing();
    match standing.read_only {
        Some(ReadOnlyReason::NoQuorum) => Some("no quorum: other members do not answer"),
        Some(ReadOnlyReason::DiskFull) => Some("the disk is full: only reads are served"),
        Some(ReadOnlyReason::Learning) => Some("learning: the member has not caught up with the ensemble"),
        Some(ReadOnlyReason::Removed) => Some("the member was removed from the ensemble"),
        Some(ReadOnlyReason::InDoubt) => {
            Some("the state differs from other members', and no majority says which is right")
        }
        Some(ReadOnlyReason::Disputed) => Some(
            "a member that the configuration names leads another ensemble, and this one has no majority of those named",
        ),
        None if standing.awaits_admission => Some("learning: the others have not admitted the member yet"),
        None if role == Role::Looking => Some("no leader is known"),
        None => None,
    }
}

/// 200 while the member runs.
pub(super) fn alive(_: &Admin, _: Request) -> Response {
    Response::text(StatusCode::OK, "ok\n")
}
