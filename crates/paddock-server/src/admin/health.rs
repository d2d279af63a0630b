//! Readiness and liveness, for Kubernetes and for load balancers.

use hyper::StatusCode;
use paddock_http::{Request, Response};
use paddock_replica::{ReadOnlyReason, Role};
use serde_json::{Value, json};

use super::parts::Admin;
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
        Some(obstacle) => {
            details["reason"] = Value::from(obstacle.text);
            ("fail", StatusCode::SERVICE_UNAVAILABLE)
        }
    };
    Response::json(&json!({ "details": details, "status": word })).with_status(status)
}

/// Something that keeps a member from serving everything.
pub(super) struct Obstacle {
    /// One word for it, for the page.
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

/// The obstacle of a member that is not ready; `None` if it is. A copy that only serves reads, which is what it was started for, is.
pub(super) fn obstacle(shared: &Shared, role: Role) -> Option<Obstacle> {
    let obstacle = |kind, text| Some(Obstacle { kind, text });
    if shared.life.is_draining() {
        return obstacle("stopping", "the member is about to stop");
    }
    let standing = shared.engine.standing();
    match standing.read_only {
        Some(ReadOnlyReason::NoQuorum) => obstacle("no_quorum", "no quorum: other members do not answer"),
        Some(ReadOnlyReason::DiskFull) => obstacle("disk_full", "the disk is full: only reads are served"),
        Some(ReadOnlyReason::Learning) => {
            obstacle("learning", "learning: the member has not caught up with the ensemble")
        }
        Some(ReadOnlyReason::Removed) => obstacle("removed", "the member was removed from the ensemble"),
        Some(ReadOnlyReason::InDoubt) => {
            obstacle("in_doubt", "the state differs from other members', and no majority says which is right")
        }
        Some(ReadOnlyReason::Disputed) => obstacle(
            "disputed",
            "a member that the configuration names leads another ensemble, and this one has no majority of those named",
        ),
        None if standing.awaits_admission => {
            obstacle("learning", "learning: the others have not admitted the member yet")
        }
        None if standing.awaits_vote => obstacle("joining", "joining: the member has no vote yet"),
        None if standing.groups_joining > 0 => {
            obstacle("joining", "joining: the member has no say yet in some Raft groups")
        }
        None if role == Role::Looking => obstacle("no_leader", "no leader is known"),
        None => None,
    }
}

/// 200 while the member runs.
pub(super) fn alive(_: &Admin, _: Request) -> Response {
    Response::text(StatusCode::OK, "ok\n")
}
