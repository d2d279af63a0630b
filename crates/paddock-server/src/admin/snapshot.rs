//! ZooKeeper's command `snapshot`: takes one, and sends it. The file has Paddock's own format, of which `docs/formats.md` tells.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderName;
use paddock_http::{Request, Response};
use paddock_os::threads::try_spawn;
use paddock_replica::Role;

use super::authorization;
use super::commands::Failure;
use super::parts::Admin;
use super::requester::refused;
use crate::whole_copy::WholeSnapshotError;

const LAST_ZXID: HeaderName = HeaderName::from_static("last_zxid");
const SNAPSHOT_SIZE: HeaderName = HeaderName::from_static("snapshot_size");
/// Id of the ensemble in hexadecimal digits, 0 of a member alone.
const CLUSTER: HeaderName = HeaderName::from_static("cluster");

/// Takes a snapshot at a route that is for administrators alone, whose connections may take their time.
pub(super) fn send(admin: &Admin, request: Request) -> Response {
    take(admin, &request).unwrap_or_else(|failure| refused(failure.status, failure.text))
}

/// Takes a snapshot. With `streaming=true`, or without that parameter, it is the body of the answer.
pub(super) fn take(admin: &Admin, request: &Request) -> Result<Response, Failure> {
    let shared = &admin.shared;
    if shared.engine.role() == Role::Looking {
        return Err(Failure::new(StatusCode::OK, super::commands::NOT_SERVING));
    }
    authorization::administrator(shared, request)?;
    let settings = shared.settings();
    if !settings.admin.has_snapshots {
        return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "Snapshot command is disabled"));
    }
    if !admin.snapshot_limit.admit(Duration::from_millis(settings.admin.rate_limit_ms)) {
        shared.statistics.server_metrics.snapshots_rate_limited.fetch_add(1, Relaxed);
        return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, "Rate limit exceeded"));
    }
    let is_streamed =
        request.parameter("streaming").is_none_or(|streaming| streaming.eq_ignore_ascii_case("true"));
    let (file, zxid) = if is_streamed { take_whole(admin)? } else { take_own(admin)? };
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let response = if is_streamed {
        stream(file).map_err(|_| failed("The system has no thread to send the snapshot"))?
    } else {
        Response::of("application/octet-stream", "")
    };
    let cluster = shared.state.read().tree().cluster();
    let response = response.with_header(CLUSTER, &format!("{cluster:016x}"));
    let response = response.with_header(LAST_ZXID, &format!("0x{zxid:x}"));
    Ok(response.with_header(SNAPSHOT_SIZE, &bytes.to_string()).may_take_long())
}

fn failed(what: &str) -> Failure {
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, what)
}

/// Takes the member's own snapshot: one of each Raft group, and this is the home group's.
fn take_own(admin: &Admin) -> Result<(File, i64), Failure> {
    let taken = admin.operator.take_snapshot().ok_or_else(|| failed("The snapshot failed"))?;
    let file = File::open(&taken.path).map_err(|_| failed("The snapshot is gone already"))?;
    Ok((file, taken.zxid))
}

/// Takes a snapshot that has all znodes, also while they are spread over several Raft groups.
fn take_whole(admin: &Admin) -> Result<(File, i64), Failure> {
    let taken = admin.operator.take_whole_snapshot().map_err(|error| {
        tracing::warn!(%error, "no snapshot over HTTP");
        let status = match error {
            WholeSnapshotError::Behind { .. } | WholeSnapshotError::Away { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure::new(status, format!("The snapshot failed: {error}"))
    })?;
    Ok((taken.file, taken.zxid))
}

/// A response whose body is the file.
fn stream(mut file: File) -> io::Result<Response> {
    let (mut body, response) = Response::stream("application/octet-stream");
    try_spawn("http-snapshot", move || match io::copy(&mut file, &mut body) {
        Ok(_) => body.finish(),
        Err(error) => {
            tracing::warn!(%error, "snapshot not sent to the end over HTTP");
            body.abort(error);
            Ok(())
        }
    })?;
    Ok(response)
}
