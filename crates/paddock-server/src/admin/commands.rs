//! ZooKeeper's AdminServer: `/commands` and what stands below it, with its names, aliases and fields.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use hyper::StatusCode;
use hyper::header::ALLOW;
use paddock_http::{Request, Response};
use paddock_proto::SessionId;
use paddock_replica::Role;
use paddock_statistics::metric;
use paddock_statistics::stats::ConnStats;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::authorization::Refusal;
use super::ensemble::{leader, observers, voting_view, zabstate};
use super::parts::Admin;
use super::snapshot;
use super::visibility::Viewer;
use crate::reports::four_letter_words::last_operation;
use crate::reports::metrics;
use crate::reports::status::{self, SettingValue, Status};
use crate::version::version_and_date;

/// Fields of an answer by their names.
pub(super) type Fields = Map<String, Value>;
type AnswerFunction = fn(&Admin, &Request) -> Result<Fields, Failure>;

/// A command that is not carried out.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Failure {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::new(refusal.status(), refusal.text())
    }
}

struct AdminCommand {
    /// The first name is the one that the list shows.
    names: &'static [&'static str],
    /// Answered only while there is a leader.
    needs_quorum: bool,
    answer: AnswerFunction,
}

const fn command(names: &'static [&'static str], answer: AnswerFunction) -> AdminCommand {
    AdminCommand { names, needs_quorum: true, answer }
}

/// A command that is answered without a quorum, too.
const fn always(names: &'static [&'static str], answer: AnswerFunction) -> AdminCommand {
    AdminCommand { needs_quorum: false, ..command(names, answer) }
}

/// ZooKeeper's commands by name, as `GET` has them, but for `restore`, which is refused.
const COMMANDS: &[AdminCommand] = &[
    command(&["configuration", "conf", "config"], configuration),
    command(&["connection_stat_reset", "crst"], refuse_get),
    command(&["connections", "cons"], connections),
    command(&["dirs"], dirs),
    command(&["dump"], dump),
    always(&["environment", "env", "envi"], environment),
    always(&["get_trace_mask", "gtmk"], get_trace_mask),
    command(&["hash"], hash),
    always(&["initial_configuration", "icfg"], initial_configuration),
    command(&["is_read_only", "isro"], is_read_only),
    command(&["last_snapshot", "lsnp"], last_snapshot),
    command(&["leader", "lead"], leader),
    command(&["monitor", "mntr"], monitor),
    command(&["observer_connection_stat_reset", "orst"], refuse_get),
    command(&["observers", "obsr"], observers),
    command(&["ruok"], |_, _| Ok(Fields::new())),
    command(&["server_stats", "srvr"], server_stats),
    always(&["set_trace_mask", "stmk"], refuse_get),
    command(&[SNAPSHOT, "snap"], |_, _| Ok(Fields::new())),
    command(&["stat_reset", "srst"], refuse_get),
    command(&["stats", "stat"], stats),
    always(&["system_properties", "sysp"], system_properties),
    command(&["voting_view"], voting_view),
    command(&["watch_summary", "wchs"], watch_summary),
    command(&["watches", "wchc"], watches),
    command(&["watches_by_path", "wchp"], watches_by_path),
    always(&["zabstate"], zabstate),
];

/// Syncs that took so many milliseconds count as slow ones: the first bucket of their times that begins behind ZooKeeper's threshold of a
/// second.
const SLOW_SYNC_MS: u64 = 1024;

/// The command whose answer is not JSON but a file.
pub(super) const SNAPSHOT: &str = "snapshot";

/// ZooKeeper's text where there is no quorum.
pub(super) const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests";

/// All names of commands.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|command| command.names).copied()
}

/// The list of all commands, as a page of links.
pub(super) fn list(admin: &Admin, _: Request) -> Response {
    let mut page = String::new();
    let settings = admin.shared.settings();
    let base = &settings.admin.command_url;
    for AdminCommand { names, .. } in COMMANDS {
        let name = names[0];
        let _ = writeln!(page, "<a href=\"{base}/{name}\">{name}</a>\n<br/>");
    }
    Response::of("text/html; charset=utf-8", page)
}

/// Carries out the command that the path names.
pub(super) fn run(admin: &Admin, request: Request) -> Response {
    let asked = request.rest.trim_end_matches('/');
    if asked.is_empty() {
        return list(admin, request);
    }
    let Some(command) = COMMANDS.iter().find(|command| command.names.contains(&asked)) else {
        // As ZooKeeper answers it.
        return answer(asked, Err(Failure::new(StatusCode::OK, format!("Unknown command: {asked}"))));
    };
    if command.names[0] == SNAPSHOT {
        return snapshot::take(admin, &request).unwrap_or_else(|failure| answer(SNAPSHOT, Err(failure)));
    }
    let result = match command {
        AdminCommand { needs_quorum: true, .. } if admin.shared.engine.role() == Role::Looking => {
            Err(Failure::new(StatusCode::OK, NOT_SERVING))
        }
        _ => (command.answer)(admin, &request),
    };
    answer(command.names[0], result)
}

/// The answer of a command that changes something to a `GET`.
fn refuse_get(_: &Admin, _: &Request) -> Result<Fields, Failure> {
    let text = "This command changes something: send it by POST, as an administrator, for example with the header Authorization: \
                digest USER:PASSWORD";
    Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, text))
}

/// A running member takes no other state: what its ensemble has acknowledged since would be lost on it alone.
pub(super) fn refuse_restore(_: &Admin, _: Request) -> Response {
    let text = "Restore is not offered. Stop all members; make a data directory of the snapshot, or of a backup, with: paddock restore \
                --from FILE --data-dir NEW; start one member from it, and others with empty directories";
    answer("restore", Err(Failure::new(StatusCode::NOT_IMPLEMENTED, text)))
}

/// ZooKeeper's form of an answer: the fields, the command, and the error or null; each on a line of its own.
pub(super) fn answer(command: &str, result: Result<Fields, Failure>) -> Response {
    let (fields, status, error) = match result {
        Ok(fields) => (fields, StatusCode::OK, None),
        Err(failure) => (Fields::new(), failure.status, Some(failure.text)),
    };
    let response = Response::pretty_json(&CommandAnswer { fields, command, error }).with_status(status);
    if status == StatusCode::METHOD_NOT_ALLOWED { response.with_header(ALLOW, "POST") } else { response }
}

#[derive(Serialize)]
struct CommandAnswer<'a> {
    #[serde(flatten)]
    fields: Fields,
    command: &'a str,
    error: Option<String>,
}

/// The fields of a JSON object.
pub(super) fn fields(value: Value) -> Result<Fields, Failure> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => unreachable!("{other} has no fields"),
    }
}

fn configuration(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let named = status::configuration(&admin.shared).into_iter().filter_map(|setting| {
        let value = match setting.value {
            SettingValue::Number(number) => number.into(),
            SettingValue::Text(text) => text.into(),
        };
        Some((setting.command_name?.to_owned(), value))
    });
    Ok(named.collect())
}

fn connections(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    Ok(listed_connections(admin, |conn| {
        let mut fields = brief(conn);
        if conn.session.load(Relaxed) != 0 {
            fields.append(&mut details(conn));
        }
        fields
    }))
}

/// Connections with plaintext, and those with TLS.
fn listed_connections(admin: &Admin, fields: fn(&ConnStats) -> Fields) -> Fields {
    let (secure, plain): (Vec<_>, Vec<_>) = admin
        .shared
        .statistics
        .clients
        .conns()
        .into_iter()
        .partition(|(_, conn)| conn.is_secure.load(Relaxed));
    let list = |conns: Vec<(_, std::sync::Arc<ConnStats>)>| -> Value {
        conns.iter().map(|(_, conn)| Value::Object(fields(conn))).collect()
    };
    let (plain, secure) = (list(plain), list(secure));
    Fields::from_iter([("connections".to_owned(), plain), ("secure_connections".to_owned(), secure)])
}

fn brief(conn: &ConnStats) -> Fields {
    Fields::from_iter([
        ("remote_socket_address".to_owned(), conn.address().to_string().into()),
        ("interest_ops".to_owned(), 1.into()),
        ("outstanding_requests".to_owned(), conn.waiting.load(Relaxed).into()),
        ("packets_received".to_owned(), conn.received.load(Relaxed).into()),
        ("packets_sent".to_owned(), conn.sent.load(Relaxed).into()),
    ])
}

fn details(conn: &ConnStats) -> Fields {
    Fields::from_iter([
        ("session_id".to_owned(), conn.session.load(Relaxed).into()),
        ("last_operation".to_owned(), last_operation(conn).into()),
        ("established".to_owned(), conn.established_ms.into()),
        ("session_timeout".to_owned(), conn.timeout_ms.load(Relaxed).into()),
        ("last_cxid".to_owned(), conn.last_xid.load(Relaxed).into()),
        ("last_zxid".to_owned(), conn.last_zxid.load(Relaxed).into()),
        ("last_response_time".to_owned(), conn.last_response_ms.load(Relaxed).into()),
        ("last_latency".to_owned(), conn.last_latency_ms.load(Relaxed).into()),
        ("min_latency".to_owned(), conn.latency.min().into()),
        ("avg_latency".to_owned(), (conn.latency.average() as u64).into()),
        ("max_latency".to_owned(), conn.latency.max().into()),
    ])
}

fn dirs(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let (data, log) = (status::data_bytes(&admin.shared), status::log_bytes(&admin.shared));
    fields(json!({ "datadir_size": data, "logdir_size": log }))
}

fn dump(admin: &Admin, request: &Request) -> Result<Fields, Failure> {
    let viewer = Viewer::or_nobody(admin, request);
    let sessions: Fields = status::sessions(&admin.shared)
        .into_iter()
        .map(|(expiry_ms, sessions)| (expiry_ms.to_string(), numbers(sessions)))
        .collect();
    let ephemerals: Fields = status::ephemerals(&admin.shared, &|path| viewer.sees(path))
        .into_iter()
        .map(|(session, paths)| (session.0.to_string(), paths.into()))
        .collect();
    fields(json!({ "expiry_time_to_session_ids": sessions, "session_id_to_ephemeral_paths": ephemerals }))
}

/// Session ids as ZooKeeper's commands have them.
fn numbers(sessions: impl IntoIterator<Item = SessionId>) -> Value {
    sessions.into_iter().map(|session| Value::from(session.0)).collect()
}

fn environment(_: &Admin, _: &Request) -> Result<Fields, Failure> {
    Ok(status::environment().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
}

pub(super) fn get_trace_mask(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    fields(json!({ "tracemask": admin.shared.statistics.clients.trace_mask.load(Relaxed) }))
}

fn hash(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let (zxid, digest) = status::digest(&admin.shared);
    fields(json!({ "digests": [{ "zxid": zxid.0, "digest": digest, "digestVersion": 0 }] }))
}

/// There is no text of a file here: settings may come from several places, and from files of three kinds.
fn initial_configuration(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let line = |setting: status::Setting| match setting.value {
        SettingValue::Number(number) => format!("{}={number}\n", setting.word_name),
        SettingValue::Text(text) => format!("{}={text}\n", setting.word_name),
    };
    let mut lines: String = status::configuration(&admin.shared).into_iter().map(line).collect();
    if let Some(ensemble) = admin.shared.state.read().tree().ensemble() {
        lines += &ensemble.text();
    }
    fields(json!({ "initial_configuration": lines }))
}

fn is_read_only(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    fields(json!({ "read_only": Status::of(&admin.shared).is_read_only }))
}

fn last_snapshot(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let (zxid, timestamp) =
        admin.shared.statistics.snapshots.newest().map_or((-1, -1), |(zxid, at_s)| (zxid, at_s as i64));
    fields(json!({ "zxid": format!("{zxid:x}"), "timestamp": timestamp }))
}

fn monitor(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let status = Status::of(&admin.shared);
    let mut all = fields(json!({ "version": version_and_date(), "server_state": status.mode }))?;
    if let Some(state) = status.peer_state {
        all.insert("peer_state".into(), state.into());
    }
    for metric in metrics::of_zookeeper(&admin.shared) {
        for (name, text) in metric.lines() {
            all.insert(name, serde_json::from_str(&text).unwrap_or_else(|_| text.into()));
        }
    }
    Ok(all)
}

fn server_stats(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let s = Status::of(&admin.shared);
    let (last, min, max) = s.reply_bytes;
    let replies = json!({ "last_buffer_size": last, "min_buffer_size": min, "max_buffer_size": max });
    let average: Value = serde_json::from_str(&metric::rounded(s.latency_ms_average)).expect("a number");
    let events = &admin.shared.statistics.server_metrics;
    let mut all = fields(json!({
        "version": version_and_date(),
        "read_only": s.is_read_only,
        "server_stats": {
            "packets_sent": s.sent,
            "packets_received": s.received,
            "fsync_threshold_exceed_count": events.syncs.count_from(SLOW_SYNC_MS),
            "client_response_stats": replies,
            "provider_null": false,
            "data_dir_size": status::data_bytes(&admin.shared),
            "log_dir_size": status::log_bytes(&admin.shared),
            "last_processed_zxid": s.zxid.0,
            "outstanding_requests": s.outstanding,
            "server_state": s.mode,
            "avg_latency": average,
            "max_latency": s.latency_ms_max,
            "min_latency": s.latency_ms_min,
            "num_alive_client_connections": s.connections,
            "uptime": s.uptime_ms,
            "auth_failed_count": s.auth_failed,
            "non_mtlsremote_conn_count": events.unproven_remote.load(Relaxed),
            "non_mtlslocal_conn_count": events.unproven_local.load(Relaxed),
        },
        "client_response": replies,
        "node_count": s.znodes,
    }))?;
    if let Some([last, min, max]) = s.proposal_sizes() {
        let sizes = json!({ "last_buffer_size": last, "min_buffer_size": min, "max_buffer_size": max });
        all.insert("proposal_stats".into(), sizes);
    }
    Ok(all)
}

fn stats(admin: &Admin, request: &Request) -> Result<Fields, Failure> {
    let mut all = server_stats(admin, request)?;
    all.append(&mut listed_connections(admin, brief));
    Ok(all)
}

/// The facts of `environment`, without the properties that only a process of Java has.
fn system_properties(admin: &Admin, request: &Request) -> Result<Fields, Failure> {
    let mut properties = environment(admin, request)?;
    // In ZooKeeper's answer these are the settings of a process of Java.
    properties.retain(|name, _| !name.starts_with("java."));
    Ok(properties)
}

fn watch_summary(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let s = status::watches(&admin.shared);
    fields(json!({ "num_connections": s.connections, "num_paths": s.paths, "num_total_watches": s.watches }))
}

fn watches(admin: &Admin, request: &Request) -> Result<Fields, Failure> {
    let viewer = Viewer::or_nobody(admin, request);
    let all: Fields = status::watches_by_session(&admin.shared, &|path| viewer.sees(path))
        .into_iter()
        .map(|(session, paths)| (session.0.to_string(), paths.iter().map(|path| &**path).collect()))
        .collect();
    fields(json!({ "session_id_to_watched_paths": all }))
}

fn watches_by_path(admin: &Admin, request: &Request) -> Result<Fields, Failure> {
    let viewer = Viewer::or_nobody(admin, request);
    let all: Fields = status::watches_by_path(&admin.shared, &|path| viewer.sees(path))
        .into_iter()
        .map(|(path, sessions)| (path.to_string(), numbers(sessions)))
        .collect();
    fields(json!({ "path_to_session_ids": all }))
}
