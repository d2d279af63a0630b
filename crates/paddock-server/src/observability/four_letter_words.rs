//! The four-letter words: four bytes in place of a greeting, answered with text in ZooKeeper's format.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use paddock_proto::{OpCode, SessionId, Zxid};
use paddock_replica::Role;

use super::metrics;
use super::stats::ConnStats;
use super::status::{self, Status};
use super::version::version_and_date;
use crate::shared::Shared;

type Answer = fn(&Shared) -> String;

/// The words that are answered.
const WORDS: [(&str, Answer); 12] = [
    ("ruok", |_| "imok".into()),
    ("srvr", |shared| version_line() + &server(shared)),
    ("stat", |shared| version_line() + &clients(shared) + &server(shared)),
    ("mntr", monitor),
    ("conf", configuration),
    ("cons", connections),
    ("isro", |shared| if shared.role() == Role::ReadOnly { "ro" } else { "rw" }.into()),
    ("envi", |_| environment()),
    ("dirs", directories),
    ("wchs", watches),
    ("srst", reset_server),
    ("crst", reset_connections),
];

/// The words that ZooKeeper knows besides. They too are words, and any other one is the length of a frame.
const OTHER_WORDS: [&str; 6] = ["dump", "gtmk", "hash", "stmk", "wchc", "wchp"];

/// The answer to the first four bytes of a connection, if they are a word.
pub(crate) fn answer(word: [u8; 4], shared: &Shared) -> Option<String> {
    let word = std::str::from_utf8(&word).ok()?;
    let known = WORDS.iter().find(|(name, _)| *name == word);
    if known.is_none() && !OTHER_WORDS.contains(&word) {
        return None;
    }
    Some(match known {
        _ if !shared.config.words.allows(word) => {
            format!("{word} is not executed because it is not in the whitelist.\n")
        }
        Some((_, answer)) => answer(shared),
        None => format!("{word} is not executed because this server does not have it.\n"),
    })
}

fn version_line() -> String {
    format!("Zookeeper version: {}\n", version_and_date())
}

fn server(shared: &Shared) -> String {
    let Some(mode) = mode(shared) else { return NOT_SERVING.into() };
    let s = Status::of(shared);
    let read_only = if shared.role() == Role::ReadOnly { READ_ONLY } else { "" };
    format!(
        "{read_only}Latency min/avg/max: {}/{}/{}\n\
         Received: {}\nSent: {}\nConnections: {}\nOutstanding: {}\nZxid: {}\nMode: {mode}\nNode count: {}\n",
        s.latency_ms_min,
        status::rounded(s.latency_ms_average),
        s.latency_ms_max,
        s.received,
        s.sent,
        s.connections,
        s.outstanding,
        s.zxid,
        s.znodes
    )
}

/// ZooKeeper's answer where there is no quorum.
const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// Line that ZooKeeper adds where nothing can be written.
const READ_ONLY: &str = "READ-ONLY mode; serving only read-only clients\n";

/// The member's mode in ZooKeeper's words; `None` while nobody leads.
fn mode(shared: &Shared) -> Option<&'static str> {
    match shared.role() {
        Role::Alone => Some("standalone"),
        Role::Leader => Some("leader"),
        Role::Follower => Some("follower"),
        Role::Observer => Some("observer"),
        Role::ReadOnly => Some("read-only"),
        Role::Looking => None,
    }
}

fn clients(shared: &Shared) -> String {
    let mut out = String::from("Clients:\n");
    for conn in status::connections(shared) {
        out += &brief(&conn);
        out += ")\n";
    }
    out + "\n"
}

fn connections(shared: &Shared) -> String {
    let mut out = String::new();
    for conn in status::connections(shared) {
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
    let last_op = OpCode::from_code(conn.last_op.load(Relaxed)).map_or("NA", OpCode::short_name);
    let mut out = format!(
        ",sid={},lop={last_op},est={},to={}",
        SessionId(conn.session.load(Relaxed)),
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

fn monitor(shared: &Shared) -> String {
    let Some(mode) = mode(shared) else { return NOT_SERVING.into() };
    let mut lines = format!("zk_version\t{}\nzk_server_state\t{mode}\n", version_and_date());
    if let Some(state) = peer_state(shared.role()) {
        let _ = writeln!(lines, "zk_peer_state\t{state}");
    }
    for metric in metrics::of_zookeeper(shared) {
        let _ = writeln!(lines, "zk_{}\t{}", metric.name, metric.value());
    }
    lines
}

/// Part of a member of an ensemble that serves, in ZooKeeper's words.
fn peer_state(role: Role) -> Option<&'static str> {
    match role {
        Role::Leader => Some("leading - broadcast"),
        Role::Follower => Some("following - broadcast"),
        Role::Observer => Some("observing - broadcast"),
        Role::Alone | Role::ReadOnly | Role::Looking => None,
    }
}

fn configuration(shared: &Shared) -> String {
    let c = &shared.config;
    let secure_port = c.tls_address().map_or_else(|| "-1".to_owned(), |address| address.port().to_string());
    let facts = [
        ("clientPort", c.listen.port().to_string()),
        ("secureClientPort", secure_port),
        ("dataDir", c.data_dir.display().to_string()),
        ("dataDirSize", status::data_bytes(shared).to_string()),
        ("dataLogDir", c.log_dir().display().to_string()),
        ("dataLogSize", status::log_bytes(shared).to_string()),
        ("tickTime", c.tick_ms.to_string()),
        ("maxClientCnxns", c.connections_per_address_max.to_string()),
        ("minSessionTimeout", c.session_timeout_ms_min.to_string()),
        ("maxSessionTimeout", c.session_timeout_ms_max.to_string()),
        ("clientPortListenBacklog", "-1".into()),
        ("serverId", c.member.to_string()),
    ];
    facts.iter().map(|(name, value)| format!("{name}={value}\n")).collect()
}

fn directories(shared: &Shared) -> String {
    format!("datadir_size: {}\nlogdir_size: {}\n", status::data_bytes(shared), status::log_bytes(shared))
}

fn environment() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let directory = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    let facts = [
        ("zookeeper.version", version_and_date()),
        ("host.name", read("/proc/sys/kernel/hostname")),
        ("os.name", "Linux".into()),
        ("os.arch", std::env::consts::ARCH.into()),
        ("os.version", read("/proc/sys/kernel/osrelease")),
        ("user.name", status::user_name()),
        ("user.home", var("HOME")),
        ("user.dir", directory),
    ];
    let lines: String = facts.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    format!("Environment:\n{lines}")
}

fn watches(shared: &Shared) -> String {
    let s = status::watches(shared);
    format!("{} connections watching {} paths\nTotal watches:{}\n", s.connections, s.paths, s.watches)
}

fn reset_server(shared: &Shared) -> String {
    if mode(shared).is_none() {
        return NOT_SERVING.into();
    }
    shared.stats.reset();
    "Server stats reset.\n".into()
}

fn reset_connections(shared: &Shared) -> String {
    if mode(shared).is_none() {
        return NOT_SERVING.into();
    }
    for conn in status::connections(shared) {
        conn.reset();
    }
    "Connection stats reset.\n".into()
}
