//! The last minutes of this member, which the charts of the page begin with.

use paddock_http::{Request, Response};
use paddock_statistics::history::Moment;
use serde_json::{Value, json};

use crate::admin::parts::Admin;

pub(crate) fn history(admin: &Admin, _: Request) -> Response {
    let moments: Vec<Value> = admin.shared.statistics.history.moments().iter().map(shown).collect();
    Response::json(&json!({ "moments": moments }))
}

fn shown(moment: &Moment) -> Value {
    let [p50, p95, p99] = moment.request_ms;
    json!({
        "at": moment.at_ms,
        "reads": moment.reads,
        "writes": moment.writes,
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "sync": moment.sync_ms,
        "watches": moment.watches,
        "sessions": moment.sessions,
        "connections": moment.connections,
    })
}
