//! `GET /api/v1/log?from=INDEX`: the log of a member from an entry on, for a backup.

use hyper::StatusCode;
use paddock_http::{BodyWriter, Request, Response};
use paddock_os::threads::try_spawn;
use paddock_storage::LiveLogError;
use paddock_tls::with_causes;
use serde_json::json;

use super::follow::place;
use super::page::either;
use super::parts::Admin;
use super::requester::refused;
use crate::own_log::{OwnLog, OwnLogError};

/// Sends the log.
pub(super) fn send(admin: &Admin, request: Request) -> Response {
    either(begin(admin, &request))
}

fn begin(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let first = request.parameter("from").and_then(|from| from.parse().ok()).filter(|from| *from > 0);
    let Some(first) = first else {
        return Err(refused(StatusCode::BAD_REQUEST, "from is the index of an entry of the log, from 1 on"));
    };
    if !admin.operator.is_member() {
        return Err(refused(StatusCode::CONFLICT, "This process has no log: ask a member of the ensemble"));
    }
    if admin.operator.are_znodes_spread() {
        return Err(refused(StatusCode::CONFLICT, OwnLogError::Spread.to_string()));
    }
    let place = place(admin)?;
    let log = OwnLog::find(&admin.shared, first).map_err(no_log)?;
    let (body, response) = Response::stream("application/octet-stream");
    let started = try_spawn("http-log", move || {
        write(&log, body);
        drop(place);
    });
    started.map_err(|_| {
        refused(StatusCode::SERVICE_UNAVAILABLE, "The system has no thread for another stream")
    })?;
    Ok(response)
}

fn no_log(error: OwnLogError) -> Response {
    match error {
        OwnLogError::Ahead { .. } | OwnLogError::Spread => refused(StatusCode::CONFLICT, error.to_string()),
        OwnLogError::Log(LiveLogError::Gone { oldest, .. }) => {
            let why = format!("{error}; take a snapshot, and the log from there");
            let oldest = oldest.map(|oldest| oldest.0);
            Response::json(&json!({ "error": why, "oldest": oldest })).with_status(StatusCode::GONE)
        }
        OwnLogError::Log(LiveLogError::NotYet { .. }) => {
            refused(StatusCode::SERVICE_UNAVAILABLE, format!("{error}: try again"))
        }
        OwnLogError::Log(LiveLogError::Log(_)) => {
            tracing::warn!(error = %with_causes(&error), "log not sent over HTTP");
            refused(StatusCode::INTERNAL_SERVER_ERROR, with_causes(&error))
        }
    }
}

fn write(log: &OwnLog, mut body: BodyWriter) {
    match log.write(&mut body) {
        // A reader that has gone has seen to it itself.
        Ok(()) => drop(body.finish()),
        Err(error) => {
            tracing::warn!(%error, "log not sent to the end over HTTP");
            body.abort(error);
        }
    }
}
