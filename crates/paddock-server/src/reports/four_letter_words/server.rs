//! Words about the member and its connections: `srvr`, `stat`, `mntr`, `cons` and the like.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use paddock_proto::{OpCode, SessionId, Zxid};
use paddock_statistics::metric;
use paddock_statistics::stats::ConnStats;

use super::NOT_SERVING;
use crate::operator::Operator;
use crate::reports::metrics;
use crate::reports::status::{self, Status};
use crate::shared::Shared;
use crate::version::version_and_date;

/// Line that ZooKeeper adds where nothing can be written.
const READ_ONLY: &str = "READ-ONLY mode; serving only read-only clients\n";

pub(super) fn server(operator: &Operator) -> String {
    version_line() + &facts(&operator.shared)
}

pub(super) fn server_and_clients(operator: &Operator) -> String {
    let mut clients = String::from("Clients:\n");
    for (_, conn) in operator.shared.statistics.clients.conns() {
        clients += &brief(&conn);
        clients += ")\n";
    }
    version_line() + &clients + "\n" + &facts(&operator.shared)
}

fn version_line() -> String {
    format!("Zookeeper version: {}\n", version_and_date())
}

fn facts(shared: &Shared) -> String {
    let s = Status::of(shared);
    let Some(mode) = s.mode else { return NOT_SERVING.into() };
    let proposals = s
        .proposal_sizes()
        .map(|[last, min, max]| format!("Proposal sizes last/min/max: {last}/{min}/{max}\n"));
    format!(
        "{}Latency min/avg/max: {}/{}/{}\n\
         Received: {}\nSent: {}\nConnections: {}\nOutstanding: {}\nZxid: {}\nMode: {mode}\nNode count: {}\n{}",
        if s.is_read_only { READ_ONLY } else { "" },
        s.latency_ms_min,
        metric::rounded(s.latency_ms_average),
        s.latency_ms_max,
        s.received,
        s.sent,
        s.connections,
        s.outstanding,
        s.zxid,
        s.znodes,
        proposals.unwrap_or_default()
    )
}

pub(super) fn connections(operator: &Operator) -> String {
    let mut out = String::new();
    for (_, conn) in operator.shared.statistics.clients.conns() {
        out += &brief(&conn);
        if conn.session.load(Relaxed) != 0 {
            out += &details(&conn);
        }
        out += ")\n";
    }
    out + "\n"
}

fn brief(conn: &ConnStats) -> String {
    format!(
        " /{}[1](queued={},recved={},sent={}",
        conn.address(),
        conn.waiting.load(Relaxed),
        conn.received.load(Relaxed),
        conn.sent.load(Relaxed)
    )
}

fn details(conn: &ConnStats) -> String {
    let mut out = format!(
        ",sid={},lop={},est={},to={}",
        SessionId(conn.session.load(Relaxed)),
        last_operation(conn),
        conn.established_ms,
        conn.timeout_ms.load(Relaxed)
    );
    let xid = conn.last_xid.load(Relaxed);
    if xid >= 0 {
        let _ = write!(out, ",lcxid=0x{xid:x}");
    }
    let _ = write!(
        out,
        ",lzxid={},lresp={},llat={},minlat={},avglat={},maxlat={}",
        Zxid(conn.last_zxid.load(Relaxed)),
        conn.last_response_ms.load(Relaxed),
        conn.last_latency_ms.load(Relaxed),
        conn.latency.min(),
        conn.latency.average() as u64,
        conn.latency.max()
    );
    out
}

/// ZooKeeper's short name of the last operation of a connection.
pub(crate) fn last_operation(conn: &ConnStats) -> &'static str {
    OpCode::from_code(conn.last_op.load(Relaxed)).map_or("NA", OpCode::short_name)
}

pub(super) fn monitor(operator: &Operator) -> String {
    let shared = &operator.shared;
    let status = Status::of(shared);
    let Some(mode) = status.mode else { return NOT_SERVING.into() };
    let mut lines = format!("zk_version\t{}\nzk_server_state\t{mode}\n", version_and_date());
    if let Some(state) = status.peer_state {
        let _ = writeln!(lines, "zk_peer_state\t{state}");
    }
    for metric in metrics::of_zookeeper(shared) {
        for (name, value) in metric.lines() {
            let _ = writeln!(lines, "zk_{name}\t{value}");
        }
    }
    lines
}

pub(super) fn reset(operator: &Operator) -> String {
    if status::mode(operator.shared.engine.role()).is_none() {
        return NOT_SERVING.into();
    }
    operator.shared.statistics.clients.reset();
    "Server stats reset.\n".into()
}

pub(super) fn reset_connections(operator: &Operator) -> String {
    if status::mode(operator.shared.engine.role()).is_none() {
        return NOT_SERVING.into();
    }
    operator.shared.statistics.clients.reset_conns();
    "Connection stats reset.\n".into()
}

pub(super) fn trace_mask(shared: &Shared) -> String {
    shared.statistics.clients.trace_mask.load(Relaxed).to_string()
}

pub(super) fn set_trace_mask(shared: &Shared, mask: i64) {
    shared.statistics.clients.trace_mask.store(mask, Relaxed);
}
