//! ZooKeeper's command `shed_connections`: closes a share of this member's connections, so that their clients spread over the members anew.

use hyper::StatusCode;
use paddock_http::{Request, Response};
use serde::Deserialize;
use serde_json::json;

use super::authorization;
use super::commands::{Failure, Fields, answer, fields};
use super::parts::Admin;

/// Bytes of its body.
pub(super) const SHARE_BYTES_MAX: usize = 1024;

const NAME: &str = "shed_connections";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Share {
    percentage: i64,
}

/// Closes as many percent of the connections as the body says: `{"percentage": N}`, from 0 to 100.
pub(super) fn shed_connections(admin: &Admin, request: Request) -> Response {
    answer(NAME, shed(admin, &request))
}

fn shed(admin: &Admin, request: &Request) -> Result<Fields, Failure> {
    authorization::administrator(&admin.shared, request)?;
    let wrong = |why: String| Failure::new(StatusCode::BAD_REQUEST, why);
    let Share { percentage } = serde_json::from_slice(&request.body)
        .map_err(|error| wrong(format!("The body is like {{\"percentage\": 10}}: {error}")))?;
    let share = usize::try_from(percentage).ok().filter(|share| *share <= 100);
    let share = share.ok_or_else(|| wrong(format!("percentage is from 0 to 100, not {percentage}")))?;
    let shed = admin.operator.shed_connections(share);
    tracing::info!(client = %request.peer, percentage, connections = shed, "closed connections on request");
    fields(json!({ "percentage_requested": percentage, "connections_shed": shed }))
}
