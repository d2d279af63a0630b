//! Facts of one server: what its words and its HTTP interface tell.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use paddock_client::Tls;
use paddock_tls::certificate_end;
use serde_json::Value;

use super::ask;
use super::facts::{ClockFacts, ServerFacts};
use super::parse;
use crate::http_client::{HttpAddress, HttpReply, get};

/// Half a second: the header `Date` has whole ones.
const DATE_ERROR_MS: u64 = 500;

/// Asks a server all that it tells.
pub(super) async fn gather(address: &str, http: &HttpAddress, tls: Option<&Tls>) -> ServerFacts {
    let mut facts =
        ServerFacts { address: address.to_owned(), http: (http.url(), None), ..ServerFacts::default() };
    let answer = match ask::word(address, tls, "srvr").await {
        Ok(reply) => {
            facts.certificate_end_s = reply.certificate.as_deref().and_then(certificate_end);
            reply.text
        }
        Err(error) => {
            facts.unreachable = Some(paddock_tls::with_causes(&error));
            String::new()
        }
    };
    parse::server_word(&answer, &mut facts);
    facts.http.1 = over_http(http, tls, &mut facts, parse::is_refusal(&answer)).await.err();
    if facts.unreachable.is_none() {
        words(address, tls, &mut facts).await;
    }
    facts
}

/// Words tell what HTTP did not, if the server allows them.
async fn words(address: &str, tls: Option<&Tls>, facts: &mut ServerFacts) {
    let asked = async |word| {
        let reply = ask::word(address, tls, word).await.ok()?;
        Some(reply.text).filter(|text| !parse::is_refusal(text) && !parse::is_not_serving(text))
    };
    if !facts.metrics.contains_key("znode_count")
        && let Some(answer) = asked("mntr").await
    {
        parse::monitor_word(&answer, &mut facts.metrics);
    }
    if facts.settings.is_empty()
        && let Some(answer) = asked("conf").await
    {
        facts.settings = parse::settings_word(&answer);
    }
    if facts.connections.is_empty()
        && let Some(answer) = asked("cons").await
    {
        facts.connections = parse::connections_word(&answer);
    }
}

/// Commands and pages of the HTTP interface; an error is the reason for which there are none.
async fn over_http(
    http: &HttpAddress,
    tls: Option<&Tls>,
    facts: &mut ServerFacts,
    wants_stats: bool,
) -> Result<(), String> {
    // ZooKeeper has metrics elsewhere; a port for metrics alone has no commands.
    let (page, at) = timed(http, tls, "/metrics?names=zookeeper").await?;
    facts.clock = clock_of(&page, at);
    if page.status.is_success() {
        parse::prometheus(&page.body, &mut facts.metrics);
    }
    let is_paddock = facts.metric("paddock_clock_seconds");
    if let Some(seconds) = is_paddock {
        facts.clock = Some(at.against((seconds * 1e3) as i64, 0));
    }
    let commands = commands(http, tls, facts, wants_stats).await;
    if is_paddock.is_some() { Ok(()) } else { commands }
}

async fn commands(
    http: &HttpAddress,
    tls: Option<&Tls>,
    facts: &mut ServerFacts,
    wants_stats: bool,
) -> Result<(), String> {
    let command = async |path| {
        let (reply, at) = timed(http, tls, path).await?;
        let answer = serde_json::from_str::<Value>(&reply.body).map_err(|_| {
            format!("it answers {path} with {} and no JSON: another service may listen there", reply.status)
        })?;
        Ok::<_, String>((answer, clock_of(&reply, at)))
    };
    let (monitor, clock) = command("/commands/monitor").await?;
    // ZooKeeper's server sends no date with a page that it does not have.
    facts.clock = facts.clock.or(clock);
    parse::monitor_command(&monitor, &mut facts.metrics);
    facts.settings = parse::settings_command(&command("/commands/configuration").await?.0);
    facts.connections = parse::connections_command(&command("/commands/connections").await?.0);
    if wants_stats {
        parse::server_command(&command("/commands/server_stats").await?.0, facts);
    }
    // ZooKeeper has no such page.
    if let Ok((ready, _)) = command("/ready").await {
        facts.not_ready = ready["details"]["reason"].as_str().map(str::to_owned);
    }
    Ok(())
}

/// The middle of the time that a question took, in milliseconds since 1970, and half of that time.
#[derive(Clone, Copy)]
struct AskedAt {
    middle_ms: i64,
    half_ms: u64,
}

impl AskedAt {
    /// A clock that showed this meanwhile.
    fn against(self, shown_ms: i64, error_ms: u64) -> ClockFacts {
        ClockFacts { ahead_ms: shown_ms - self.middle_ms, error_ms: self.half_ms + error_ms }
    }
}

async fn timed(http: &HttpAddress, tls: Option<&Tls>, path: &str) -> Result<(HttpReply, AskedAt), String> {
    let (began, began_ms) = (Instant::now(), wall_ms());
    let reply = get(http, tls, None, path).await.map_err(|error| paddock_tls::with_causes(&error))?;
    let half = began.elapsed() / 2;
    let half_ms = half.as_millis() as u64;
    Ok((reply, AskedAt { middle_ms: began_ms + half_ms as i64, half_ms: half_ms + 1 }))
}

fn clock_of(reply: &HttpReply, at: AskedAt) -> Option<ClockFacts> {
    let date = httpdate::parse_http_date(reply.date.as_deref()?).ok()?;
    Some(at.against(since_1970(date).as_millis() as i64 + DATE_ERROR_MS as i64, DATE_ERROR_MS))
}

fn wall_ms() -> i64 {
    since_1970(SystemTime::now()).as_millis() as i64
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The newest zxid of a server, asked again.
pub(super) async fn zxid(facts: &ServerFacts, http: &HttpAddress, tls: Option<&Tls>) -> Option<i64> {
    let mut later = ServerFacts::default();
    match ask::word(&facts.address, tls, "srvr").await {
        Ok(reply) if !parse::is_refusal(&reply.text) => parse::server_word(&reply.text, &mut later),
        _ => {
            let reply = get(http, tls, None, "/commands/server_stats").await.ok()?;
            parse::server_command(&serde_json::from_str(&reply.body).ok()?, &mut later);
        }
    }
    later.zxid
}
