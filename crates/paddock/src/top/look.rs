//! One look at a member: its counters.

use std::time::Instant;

use paddock_bench::ShownIdentity;
use paddock_client::Tls;
use serde_json::Value;

use crate::http_client::{HttpAddress, get};

/// Members that are looked at, and as whom.
#[derive(Debug)]
pub(super) struct Watching {
    pub(super) hosts: Vec<HttpAddress>,
    pub(super) tls: Option<Tls>,
    pub(super) identity: Option<ShownIdentity>,
}

/// Facts of a member at one time.
#[derive(Clone, Debug)]
pub(super) struct TopLook {
    /// `host:port` of its HTTP interface.
    pub(super) address: String,
    pub(super) at: Instant,
    /// An error is the reason for which it told nothing.
    pub(super) facts: Result<MemberLook, String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MemberLook {
    pub(super) role: String,
    /// Requests since its start.
    pub(super) received: u64,
    pub(super) connections: u64,
    pub(super) sessions: u64,
    pub(super) outstanding: u64,
    pub(super) znodes: u64,
    /// Ends of the buckets of request times in microseconds; one more bucket is behind the last.
    pub(super) bounds_us: Vec<u64>,
    /// Requests since its start by the time that they took.
    pub(super) times: Vec<u64>,
    /// Time in milliseconds in which the busiest were counted.
    pub(super) covered_ms: u64,
    /// Paths, or `None` for those that the requester may not see.
    pub(super) paths: Vec<(Option<String>, AskedTotals)>,
    pub(super) sessions_busy: Vec<(String, AskedTotals)>,
    pub(super) slow: Vec<SlowLook>,
}

/// Requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AskedTotals {
    pub(super) requests: u64,
    pub(super) bytes: u64,
}

/// A slow request.
#[derive(Clone, Debug)]
pub(super) struct SlowLook {
    pub(super) took_ms: u64,
    pub(super) operation: String,
    pub(super) path: Option<String>,
    pub(super) session: String,
}

pub(super) async fn look(host: &HttpAddress, tls: Option<&Tls>, identity: Option<&ShownIdentity>) -> TopLook {
    let facts = ask(host, tls, identity).await;
    TopLook { address: host.host.clone(), at: Instant::now(), facts }
}

async fn ask(
    host: &HttpAddress,
    tls: Option<&Tls>,
    identity: Option<&ShownIdentity>,
) -> Result<MemberLook, String> {
    let page = async |path| {
        let reply = get(host, tls, identity, path).await.map_err(|error| paddock_tls::with_causes(&error))?;
        serde_json::from_str::<Value>(&reply.body).ok().filter(|_| reply.status.is_success()).ok_or_else(
            || format!("{path}: {}: this is no interface of Paddock's, or it refuses", reply.status),
        )
    };
    let (overview, activity) = (page("/api/overview").await?, page("/api/activity").await?);
    Ok(read(&overview, &activity))
}

/// The facts of both pages.
pub(super) fn read(overview: &Value, activity: &Value) -> MemberLook {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let asked =
        |value: &Value| AskedTotals { requests: number(&value["requests"]), bytes: number(&value["bytes"]) };
    let bounds_us: Vec<u64> = list(&overview["bounds"]["request_us"]).iter().map(number).collect();
    let mut times = vec![0; bounds_us.len() + 1];
    for counts in overview["operations"].as_object().into_iter().flat_map(|all| all.values()) {
        for (time, count) in times.iter_mut().zip(list(counts)) {
            *time += number(&count);
        }
    }
    let counts = &overview["counts"];
    MemberLook {
        role: text(&overview["role"]),
        received: number(&overview["totals"]["received"]),
        connections: number(&counts["connections"]),
        sessions: number(&counts["sessions"]),
        outstanding: number(&counts["outstanding"]),
        znodes: number(&counts["znodes"]),
        bounds_us,
        times,
        covered_ms: number(&activity["covered_ms"]),
        paths: list(&activity["paths"])
            .iter()
            .map(|row| (row["path"].as_str().map(str::to_owned), asked(row)))
            .collect(),
        sessions_busy: list(&activity["sessions"]).iter().map(|row| (text(&row["id"]), asked(row))).collect(),
        slow: list(&activity["slow"])
            .iter()
            .map(|row| SlowLook {
                took_ms: number(&row["took_ms"]),
                operation: text(&row["operation"]),
                path: row["path"].as_str().map(str::to_owned),
                session: text(&row["session"]),
            })
            .collect(),
    }
}
