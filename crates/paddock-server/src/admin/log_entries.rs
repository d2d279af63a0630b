//! The log of a member as it is, `GET /api/v1/log?from=INDEX`: every entry from an index to the last one that was applied, for a backup. The bytes are
//! those of `paddock_member::EntryStreamWriter`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use paddock_http::{BodyWriter, Request, Response};
use paddock_member::{EntryStreamWriter, StreamHead, find_entries};
use paddock_os::threads::try_spawn;
use paddock_storage::{Disk, LiveEntries, LiveLogError, OsDisk};
use serde_json::json;

use super::follow::place;
use super::page::either;
use super::parts::Admin;
use super::requester::refused;
use crate::shared::Shared;

/// Pause before the state is looked at again that is in the middle of an entry.
const WITHIN_ENTRY_PAUSE: Duration = Duration::from_micros(100);

/// Sends the log.
pub(super) fn send(admin: &Admin, request: Request) -> Response {
    either(begin(admin, &request))
}

/// Place in the log up to which the state has come.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// Index and term of the last entry applied.
    applied: (u64, u64),
    zxid: i64,
    /// Id of the ensemble, or 0.
    cluster: u64,
}

fn begin(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let first = request.parameter("from").and_then(|from| from.parse().ok()).filter(|from| *from > 0);
    let Some(first) = first else {
        return Err(refused(StatusCode::BAD_REQUEST, "from is the index of an entry of the log, from 1 on"));
    };
    if !admin.operator.is_member() {
        return Err(refused(StatusCode::CONFLICT, "This process has no log: ask a member of the ensemble"));
    }
    let place = place(admin)?;
    let reached = reached(&admin.shared);
    let last = reached.applied.0;
    if first > last + 1 {
        let why = format!("This member has applied no entry {first} yet: the last one is {last}");
        return Err(refused(StatusCode::CONFLICT, why));
    }
    let found = find(&admin.shared, first, reached)?;
    let (body, response) = Response::stream("application/octet-stream");
    let started = try_spawn("http-log", move || {
        write(found.as_ref(), first, reached, body);
        drop(place);
    });
    started.map_err(|_| {
        refused(StatusCode::SERVICE_UNAVAILABLE, "The system has no thread for another stream")
    })?;
    Ok(response)
}

fn reached(shared: &Shared) -> Reached {
    loop {
        let state = shared.state.read();
        if !state.is_within_entry() {
            let cluster = state.tree().ensemble().map_or(0, |ensemble| ensemble.cluster);
            return Reached { applied: state.applied(), zxid: state.tree().zxid().0, cluster };
        }
        drop(state);
        std::thread::sleep(WITHIN_ENTRY_PAUSE);
    }
}

/// The entries; `None` if there are none yet from `first` on.
fn find(shared: &Shared, first: u64, reached: Reached) -> Result<Option<LiveEntries>, Response> {
    if first > reached.applied.0 {
        return Ok(None);
    }
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    find_entries(&disk, &shared.config.log_dir(), first, reached.applied).map(Some).map_err(|error| {
        match error {
            LiveLogError::Gone { oldest, .. } => {
                let why = format!("{error}; take a snapshot, and the log from there");
                let oldest = oldest.map(|oldest| oldest.0);
                Response::json(&json!({ "error": why, "oldest": oldest })).with_status(StatusCode::GONE)
            }
            LiveLogError::NotYet { .. } => {
                refused(StatusCode::SERVICE_UNAVAILABLE, format!("{error}: try again"))
            }
            LiveLogError::Log(error) => {
                tracing::warn!(error = %paddock_tls::with_causes(&error), "log not sent over HTTP");
                refused(StatusCode::INTERNAL_SERVER_ERROR, paddock_tls::with_causes(&error))
            }
        }
    })
}

fn write(found: Option<&LiveEntries>, first: u64, reached: Reached, mut body: BodyWriter) {
    let head = StreamHead { cluster: reached.cluster, first };
    let written = EntryStreamWriter::begin(&mut body, head).and_then(|mut writer| {
        if let Some(found) = found {
            copy(found, &mut writer)?;
        }
        writer.finish(reached.zxid).map(drop)
    });
    match written {
        // A reader that has gone has seen to it itself.
        Ok(()) => drop(body.finish()),
        Err(error) => {
            tracing::warn!(%error, "log not sent to the end over HTTP");
            body.abort(error);
        }
    }
}

fn copy(found: &LiveEntries, writer: &mut EntryStreamWriter<&mut BodyWriter>) -> io::Result<()> {
    let mut written = Ok(());
    let read = found.read(&mut |index, term, payload| {
        written = writer.entry(index.0, term.0, payload);
        written.is_ok()
    });
    written.and(read.map_err(io::Error::other))
}
