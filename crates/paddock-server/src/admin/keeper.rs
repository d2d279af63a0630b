//! ClickHouse Keeper's HTTP control: its four-letter words, and the commands of keeper-client, as `/api/v1/commands?command=TEXT`, or with the
//! text in the path or as the body.
//!
//! There anyone may run every one. Here that is so for those that only tell something; orders are for administrators.

use hyper::StatusCode;
use serde_json::json;

use super::authorization;
use super::keeper_client::Order;
use super::parts::Admin;
use crate::http::{Request, Response};
use crate::observability::four_letter_words;
use crate::observability::status::Status;
use crate::observability::version::VERSION;

/// Bytes of a command that comes as a body.
pub(super) const COMMAND_BYTES_MAX: usize = 4096;
/// Words that change something.
const ORDERS: [&str; 8] = ["csnp", "rqld", "ydld", "rcvr", "srst", "crst", "stmk", "lgrq"];

pub(super) fn command(admin: &Admin, request: Request) -> Response {
    run(admin, &request).unwrap_or_else(|refused| refused)
}

fn run(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let in_path = Some(&*request.rest).filter(|rest| !rest.is_empty());
    let body = || std::str::from_utf8(&request.body).unwrap_or_default();
    let asked = request.parameter("command").or(in_path).unwrap_or_else(body).trim();
    let refused = |status, text: String| Response::json(&json!({ "error": text })).with_status(status);
    let administrator = || {
        let proven = authorization::administrator(&admin.shared, request);
        proven.map_err(|refusal| refused(refusal.status(), refusal.text().to_owned()))
    };
    if ORDERS.contains(&asked) {
        administrator()?;
    }
    let result = match four_letter_words::answer_to_administrator(asked, &admin.operator) {
        Some(result) => result,
        None => {
            let order = Order::parse(asked, request.parameter("cwd").unwrap_or("/"));
            let order = order.map_err(|why| refused(StatusCode::BAD_REQUEST, why))?;
            if order.is_change() {
                administrator()?;
            }
            order.run(admin, request)?
        }
    };
    Ok(Response::json(&json!({ "result": result })))
}

/// Facts of ClickHouse Keeper's dashboard.
pub(super) fn dashboard_content(admin: &Admin, _: Request) -> Response {
    let s = Status::of(&admin.shared);
    Response::json(&json!({
        "ch_version": VERSION,
        "keeper_details": {
            "latency_avg": s.latency_ms_average,
            "role": s.mode.unwrap_or("looking"),
            "alive_connections": s.connections,
            "node_count": s.znodes,
        },
    }))
}
