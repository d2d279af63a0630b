//! ClickHouse Keeper's HTTP control: its four-letter words as `/api/v1/commands?command=WORD`.
//!
//! There anyone may run every word. Here that is so for those that only tell something; orders are for administrators.

use hyper::StatusCode;
use serde_json::json;

use super::authorization;
use super::parts::Admin;
use crate::http::{Request, Response};
use crate::observability::four_letter_words;

/// Bytes of a command that comes as a body.
pub(super) const COMMAND_BYTES_MAX: usize = 4096;
/// Words that change something.
const ORDERS: [&str; 8] = ["csnp", "rqld", "ydld", "rcvr", "srst", "crst", "stmk", "lgrq"];

pub(super) fn command(admin: &Admin, request: Request) -> Response {
    let body = std::str::from_utf8(&request.body).unwrap_or_default();
    let asked = request.parameter("command").unwrap_or(body).trim();
    let refused = |status, text: String| Response::json(&json!({ "error": text })).with_status(status);
    if ORDERS.contains(&asked)
        && let Err(refusal) = authorization::administrator(&admin.shared, &request)
    {
        return refused(refusal.status(), refusal.text().to_owned());
    }
    match four_letter_words::answer_to_administrator(asked, &admin.operator) {
        Some(result) => Response::json(&json!({ "result": result })),
        None => refused(
            StatusCode::BAD_REQUEST,
            format!("There is no command {asked:?}: it takes four-letter words"),
        ),
    }
}
