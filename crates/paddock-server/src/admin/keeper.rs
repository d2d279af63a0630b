//! ClickHouse Keeper's HTTP control: its four-letter words, and the commands of keeper-client, as `/api/v1/commands?command=TEXT`, or with the
//! text in the path or as the body.
//!
//! There anyone may run every one. Here that is so for those that only tell something; orders are for administrators, by `POST`.

use hyper::header::ALLOW;
use hyper::{Method, StatusCode};
use paddock_http::{Request, Response};
use serde_json::json;

use super::keeper_client::Order;
use super::parts::Admin;
use super::visibility::Viewer;
use super::{authorization, browsers};
use crate::reports::four_letter_words;
use crate::reports::status::Status;
use crate::version::VERSION;

/// Bytes of a command that comes as a body.
pub(super) const COMMAND_BYTES_MAX: usize = 4096;
/// Words that change something.
pub(super) const ORDERS: [&str; 8] = ["csnp", "rqld", "ydld", "rcvr", "srst", "crst", "stmk", "lgrq"];

pub(super) fn command(admin: &Admin, request: Request) -> Response {
    run(admin, &request).unwrap_or_else(|refused| refused)
}

fn run(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let in_path = Some(&*request.rest).filter(|rest| !rest.is_empty());
    let body = || std::str::from_utf8(&request.body).unwrap_or_default();
    let asked = request.parameter("command").or(in_path).unwrap_or_else(body).trim();
    let refused = |status, text: String| Response::json(&json!({ "error": text })).with_status(status);
    let may_order = || {
        if request.method != Method::POST {
            let text = "This command changes something: send it by POST, as an administrator".to_owned();
            return Err(refused(StatusCode::METHOD_NOT_ALLOWED, text).with_header(ALLOW, "POST"));
        }
        browsers::require_intent(request)?;
        let proven = authorization::administrator(&admin.shared, request);
        proven.map_err(|refusal| refused(refusal.status(), refusal.text().to_owned()))
    };
    if ORDERS.contains(&asked) {
        may_order()?;
    }
    let viewer = Viewer::or_nobody(admin, request);
    let result = match four_letter_words::answer_over_http(asked, &admin.operator, &|path| viewer.sees(path))
    {
        Some(result) => result,
        None => {
            let order = Order::parse(asked, request.parameter("cwd").unwrap_or("/"));
            let order = order.map_err(|why| refused(StatusCode::BAD_REQUEST, why))?;
            if order.is_change() {
                may_order()?;
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
