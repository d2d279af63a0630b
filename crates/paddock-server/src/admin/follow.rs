//! The changes of a member as they come, one a line of JSON: `GET /api/v1/changes`. `docs/backup.md` tells of its parameters and fields.
//!
//! Only what is committed and applied here is told, with what came of it. A thread for each stream reads from the changes that the state keeps
//! ([`paddock_replica::AppliedLog`]), a few at a time, and waits for its own reader alone.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use hyper::header::HeaderName;
use paddock_http::{BodyWriter, Request, Response};
use paddock_os::threads::try_spawn;
use paddock_proto::{Zxid, is_at_or_below};
use paddock_replica::{AppliedEntry, NotKept};
use paddock_tree::{Command, CommandWords, OperationWords, OutcomeNote};
use serde_json::{Map, Value, json};

use super::page::either;
use super::parts::Admin;
use super::requester::refused;
use super::stream_places::{StreamPlace, StreamPlaces};
use crate::shared::Shared;

/// Entries that are read at a time. Until they are told they stay in memory.
const ENTRIES_AT_ONCE: usize = 64;
/// Longest time without a line, if the idle timeout of connections is not shorter.
const HEARTBEAT: Duration = Duration::from_secs(5);
const OLDEST_ZXID: HeaderName = HeaderName::from_static("oldest_zxid");
const LAST_ZXID: HeaderName = HeaderName::from_static("last_zxid");

/// Begins to tell of changes, from the transaction `from` on.
pub(super) fn follow(admin: &Admin, request: Request) -> Response {
    either(begin(admin, &request))
}

fn begin(admin: &Admin, request: &Request) -> Result<Response, Response> {
    let wish = Wish::of(request)?;
    if !admin.operator.is_member() {
        return Err(refused(StatusCode::CONFLICT, "This process has no log: ask a member of the ensemble"));
    }
    let place = place(admin)?;
    let state = admin.shared.state.read();
    let (log, last) = (state.applied_log(), state.tree().zxid());
    if !log.is_kept() {
        return Err(refused(
            StatusCode::CONFLICT,
            "This member keeps no changes: its setting change_bytes_kept is 0",
        ));
    }
    // The first transaction of all has the zxid 1.
    let from = wish.from.unwrap_or(Zxid(last.0 + 1)).max(Zxid(1));
    let (found, oldest) = (log.find(from), log.oldest());
    drop(state);
    let next = found.map_err(|not_kept| {
        let why = no_longer(not_kept);
        Response::json(&json!({ "error": why, "oldest": not_kept.oldest.to_string() }))
            .with_status(StatusCode::GONE)
    })?;
    let (body, response) = Response::stream("application/x-ndjson");
    let heartbeat = HEARTBEAT.min(Duration::from_millis(admin.shared.settings().admin.idle_timeout_ms / 3));
    let mut stream = ChangeStream { shared: admin.shared.clone(), wish, from, next, heartbeat };
    let started = try_spawn("http-changes", move || {
        stream.run(body);
        drop(place);
    });
    started.map_err(|_| {
        refused(StatusCode::SERVICE_UNAVAILABLE, "The system has no thread for another stream")
    })?;
    Ok(response.with_header(LAST_ZXID, &last.to_string()).with_header(OLDEST_ZXID, &oldest.to_string()))
}

/// A place for one more stream, or the refusal when all are taken.
pub(super) fn place(admin: &Admin) -> Result<StreamPlace, Response> {
    let max = StreamPlaces::MAX;
    admin.streams.take().ok_or_else(|| {
        let why = format!("{max} streams are open at this member: end one, or ask another member");
        refused(StatusCode::SERVICE_UNAVAILABLE, why)
    })
}

fn no_longer(NotKept { oldest }: NotKept) -> String {
    format!(
        "This member no longer has the changes that far back: the oldest is zxid {}; take a snapshot, and follow from there",
        oldest
    )
}

/// Parameters of a request.
#[derive(Debug)]
struct Wish {
    /// The first transaction; what comes next without it.
    from: Option<Zxid>,
    /// Only what changes this znode, or one below it.
    path: Option<String>,
    /// Data of znodes are told.
    has_data: bool,
    /// The stream goes on when there is nothing more for now.
    goes_on: bool,
}

impl Wish {
    fn of(request: &Request) -> Result<Wish, Response> {
        let wrong = |why: &str| refused(StatusCode::BAD_REQUEST, why);
        let flag = |name: &str, default: bool| match request.parameter(name) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(wrong(&format!("{name} is true or false"))),
        };
        let from = request
            .parameter("from")
            .map(|text| parse(text).ok_or_else(|| wrong("from is a zxid, as 0x1f or 31")));
        let path = request.parameter("path").map(str::to_owned);
        if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
            return Err(wrong("path begins with /"));
        }
        Ok(Wish {
            from: from.transpose()?,
            path,
            has_data: flag("data", false)?,
            goes_on: flag("follow", true)?,
        })
    }

    /// True if a path is the one that is wanted, or below it.
    fn holds(&self, path: &str) -> bool {
        self.path.as_ref().is_none_or(|wanted| is_at_or_below(path, wanted))
    }

    fn wants(&self, operations: &[OperationWords<'_>], note: &OutcomeNote) -> bool {
        let Some(wanted) = &self.path else { return true };
        let named = |operation: &OperationWords<'_>| {
            let path = operation.words.path.as_deref();
            path.is_some_and(|path| {
                self.holds(path) || (operation.is_recursive && is_at_or_below(wanted, path))
            })
        };
        operations.iter().any(named) || note.created.iter().chain(&note.removed).any(|path| self.holds(path))
    }
}

fn parse(text: &str) -> Option<Zxid> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().filter(|number| *number >= 0).map(Zxid)
}

/// One stream.
struct ChangeStream {
    shared: Arc<Shared>,
    wish: Wish,
    from: Zxid,
    /// Index of the next entry.
    next: u64,
    heartbeat: Duration,
}

impl ChangeStream {
    fn run(&mut self, mut body: BodyWriter) {
        // The reader may go at any time, which is no fault.
        let _ = self.tell(&mut body).and_then(|()| body.finish());
    }

    fn tell(&mut self, body: &mut BodyWriter) -> io::Result<()> {
        let shared = self.shared.clone();
        let following = shared.change_signal.follow();
        let mut last_line = Instant::now();
        loop {
            let seen = following.changes();
            let state = shared.state.read();
            let entries = state.applied_log().from(self.next, ENTRIES_AT_ONCE);
            let reached = (!state.is_within_entry()).then(|| state.tree().zxid());
            drop(state);
            let entries = match entries {
                Ok(entries) => entries,
                Err(not_kept) => {
                    return line(
                        body,
                        &json!({ "end": no_longer(not_kept), "oldest": not_kept.oldest.to_string() }),
                    );
                }
            };
            for entry in &entries {
                if self.entry(entry, body)? {
                    last_line = Instant::now();
                }
                self.next = entry.index() + 1;
            }
            let is_over = entries.is_empty() && !self.wish.goes_on;
            if is_over || shared.life.is_stopping() {
                let why = if is_over { "all that there is now was told" } else { "the member stops" };
                return line(body, &json!({ "end": why }));
            }
            if last_line.elapsed() >= self.heartbeat {
                // All changes before the next entry were told, or are not wanted.
                let reached = reached.filter(|_| entries.is_empty());
                line(body, &json!({ "reached": reached.map(|zxid| zxid.to_string()) }))?;
                last_line = Instant::now();
            }
            body.flush()?;
            if entries.is_empty() {
                following.wait(
                    seen,
                    self.heartbeat.saturating_sub(last_line.elapsed()).max(Duration::from_millis(1)),
                );
            }
        }
    }

    /// Tells of an entry. True if there was a line.
    fn entry(&self, entry: &AppliedEntry, body: &mut BodyWriter) -> io::Result<bool> {
        let mut was_told = false;
        for (command, note) in entry.commands().filter(|(_, note)| note.zxid >= self.from) {
            let operations = OperationWords::list(&command);
            if self.wish.wants(&operations, note) {
                line(body, &self.change(entry.index(), &command, &operations, note))?;
                was_told = true;
            }
        }
        Ok(was_told)
    }

    fn change(
        &self,
        index: u64,
        command: &Command<'_>,
        operations: &[OperationWords<'_>],
        note: &OutcomeNote,
    ) -> Value {
        let CommandWords { operation, path, detail } = CommandWords::of(command);
        let mut change = json!({
            "zxid": note.zxid.to_string(), "next": note.zxid.next().to_string(), "entry": index, "time_ms": command.time_ms,
            "session": format!("0x{:x}", command.session.0), "operation": operation, "path": path, "detail": detail,
            "outcome": note.in_words(), "is_ok": note.error.is_none(),
        });
        let fields = change.as_object_mut().expect("it is an object");
        let list = |paths: &[Box<str>]| paths.iter().map(AsRef::as_ref).collect::<Value>();
        if !note.created.is_empty() {
            fields.insert("created".into(), list(&note.created));
        }
        if !note.removed.is_empty() {
            fields.insert("removed".into(), list(&note.removed));
        }
        match operations {
            [one] if operation != "multi" => self.put_data(one, fields),
            _ => {
                // A multi of tenants may touch what is not wanted: it is told whole, as it came about whole.
                let operations = operations.iter().map(|one| {
                    let CommandWords { operation, path, detail } = &one.words;
                    let mut fields = Map::new();
                    fields.insert("operation".into(), json!(operation));
                    fields.insert("path".into(), json!(path));
                    fields.insert("detail".into(), json!(detail));
                    self.put_data(one, &mut fields);
                    Value::Object(fields)
                });
                fields.insert("operations".into(), operations.collect());
            }
        }
        change
    }

    fn put_data(&self, operation: &OperationWords<'_>, fields: &mut Map<String, Value>) {
        if let Some(data) = operation.data.filter(|_| self.wish.has_data) {
            fields.insert("data".into(), BASE64_STANDARD.encode(data).into());
        }
    }
}

fn line(body: &mut BodyWriter, value: &Value) -> io::Result<()> {
    writeln!(body, "{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zxid_is_hexadecimal_or_decimal() {
        for (text, expected) in
            [("0x1f", Some(31)), ("31", Some(31)), ("0", Some(0)), ("-1", None), ("0x", None), ("x", None)]
        {
            assert_eq!(parse(text).map(|zxid| zxid.0), expected, "{text}");
        }
    }
}
