//! `paddock tail`: the changes of a running member as they come, from its HTTP interface.
//!
//! Exit codes: 0 after an orderly end, 1 when the member does not answer at first, or cannot go on from the position.

use std::io::{self, Write as _};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use paddock_config::printable;
use paddock_shell::time_text;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::admin_client::{AdminArgs, AdminError, AdminInterface, next_data};
use crate::logs;
use crate::moving::MovingFailure;

const WHAT: &str = "changes";
/// A member says something at least every few seconds; one that was silent for this time is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// Time that a member has to take a connection and begin its answer.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before a member that is away is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// A line with the data of a request is shorter.
const LINE_BYTES_MAX: usize = 1 << 30;

const EXAMPLES: &str = "\
Examples:
  paddock tail paddock1:8080 --auth @identity                    what changes from now on
  paddock tail paddock1:8080 --auth @identity --from 0x1f        from a transaction on
  paddock tail paddock1:8080 --auth @identity --path /app        one znode, and those below it
  paddock tail paddock1:8080 --auth @identity --json --data      JSON, with what was written (Base64)
  paddock tail paddock1:8080,paddock2:8080 --auth @identity      another member when one is away
  paddock tail https://paddock1:8443 --tls-ca ca.pem --auth @identity

The only line of the file is digest:USER:PASSWORD, an identity that the ACL of / names with every permission. To go on where it
ended, say --from with the last zxid and 1 more: in JSON that is the field next.";

/// Follow the changes of a running member: every transaction, with what came of it
///
/// Only what is committed and applied there is shown. When the member goes away and returns, it goes on where it was. Data are not shown
/// unless --data asks for them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TailArgs {
    /// HTTP interface of a member (admin_listen), with commas between those of several
    #[arg(value_name = "HOST:ADMINPORT")]
    hosts: String,
    /// First transaction to show, as 0x1f or 31 [default: the next one]
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    from: Option<i64>,
    /// Show only what changes this znode or one below it
    #[arg(long, value_name = "ZNODE")]
    path: Option<String>,
    /// Show the data that was written: as text if it is text, else in Base64
    #[arg(long)]
    data: bool,
    /// End when all that there is now was shown
    #[arg(long)]
    once: bool,
    /// Print JSON, one transaction a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AdminArgs,
}

/// A zxid, hexadecimal with 0x in front, or decimal.
pub(crate) fn parse_zxid(text: &str) -> Result<i64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().filter(|number| *number >= 0).ok_or_else(|| "expected a zxid, as 0x1f or 31".to_owned())
}

#[derive(Debug, thiserror::Error)]
enum TailFailure {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("{address} did not answer in time")]
    Silent { address: String },
    #[error("{address} broke off")]
    BrokenOff {
        address: String,
        #[source]
        source: Option<hyper::Error>,
    },
    #[error("{address}: {why}")]
    Ended { address: String, why: String, is_for_good: bool },
    #[error("{address} says what is no change: {line}")]
    Unreadable { address: String, line: String },
    #[error("write the output: {0}")]
    Output(#[from] io::Error),
}

impl TailFailure {
    /// True if the member may go on from the same position later, or another one.
    fn may_pass(&self) -> bool {
        match self {
            TailFailure::Silent { .. } | TailFailure::BrokenOff { .. } => true,
            TailFailure::Admin(AdminError::Connect { .. } | AdminError::Http { .. }) => true,
            // A member that starts, or whose streams are taken.
            TailFailure::Admin(AdminError::Refused { status, .. }) => {
                *status == StatusCode::SERVICE_UNAVAILABLE
            }
            TailFailure::Ended { is_for_good, .. } => !is_for_good,
            _ => false,
        }
    }

    /// True if the member no longer has what comes next.
    fn is_gone(&self) -> bool {
        matches!(
            self,
            TailFailure::Admin(AdminError::Gone { .. }) | TailFailure::Ended { is_for_good: true, .. }
        )
    }
}

impl From<TailFailure> for MovingFailure {
    fn from(failure: TailFailure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}

pub(crate) fn run(args: &TailArgs) -> Result<(), MovingFailure> {
    let interfaces =
        args.hosts.split(',').map(|host| args.access.interface(host)).collect::<Result<Vec<_>, _>>()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(TailFailure::Output)?;
    let mut tail = TailSession { args, next: args.from, has_begun: false };
    match runtime.block_on(tail.follow(&interfaces)) {
        // A reader that has seen enough is no failure.
        Err(TailFailure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

/// A tail with its position.
struct TailSession<'a> {
    args: &'a TailArgs,
    /// The first transaction that was not shown; `None` until a member has said where its end is.
    next: Option<i64>,
    /// A member has answered.
    has_begun: bool,
}

impl TailSession<'_> {
    async fn follow(&mut self, interfaces: &[AdminInterface]) -> Result<(), TailFailure> {
        let (mut is_told, mut gone) = (false, 0);
        for (turn, interface) in interfaces.iter().cycle().enumerate() {
            let before = self.next;
            let failure = match self.stream(interface).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            let was_first_look = !self.has_begun && turn + 1 >= interfaces.len();
            // Another member may keep more.
            gone = if failure.is_gone() { gone + 1 } else { 0 };
            let may_pass = failure.may_pass() || (failure.is_gone() && gone < interfaces.len());
            if !may_pass || was_first_look {
                return Err(failure);
            }
            // Once in a row: a member may be away for hours.
            if self.next != before || !is_told {
                let position =
                    self.next.map_or("the next transaction".to_owned(), |next| format!("zxid 0x{next:x}"));
                logs::say(format_args!("{}; going on from {position}", paddock_tls::with_causes(&failure)));
                is_told = true;
            }
            sleep(RETRY).await;
        }
        unreachable!("the list of members is not empty, and is gone through for ever")
    }

    /// Shows what one member tells, until that ends.
    async fn stream(&mut self, interface: &AdminInterface) -> Result<(), TailFailure> {
        let address = || interface.address.clone();
        let silent = |_| TailFailure::Silent { address: address() };
        let mut response =
            timeout(BEGIN_TIMEOUT, interface.get(&self.request(), WHAT)).await.map_err(silent)??;
        self.has_begun = true;
        if self.next.is_none() {
            self.next = last_zxid(&response).map(|last| last + 1);
        }
        let mut line = Vec::new();
        loop {
            let data = timeout(SILENCE, next_data(response.body_mut())).await.map_err(silent)?;
            let data =
                data.map_err(|source| TailFailure::BrokenOff { address: address(), source: Some(source) })?;
            let Some(data) = data else {
                return Err(TailFailure::BrokenOff { address: address(), source: None });
            };
            let mut rest = &data[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
                if self.line(&address(), &line)? {
                    return Ok(());
                }
                line.clear();
            }
            line.extend_from_slice(rest);
            if line.len() > LINE_BYTES_MAX {
                return Err(TailFailure::Unreadable {
                    address: address(),
                    line: "a line without an end".to_owned(),
                });
            }
        }
    }

    fn request(&self) -> String {
        let mut request = format!("/api/v1/changes?follow={}&data={}", !self.args.once, self.args.data);
        if let Some(next) = self.next {
            request += &format!("&from=0x{next:x}");
        }
        if let Some(path) = &self.args.path {
            request += "&path=";
            path.bytes().for_each(|byte| request += &format!("%{byte:02x}"));
        }
        request
    }

    /// Takes a line. True if it is the end, and the end is wanted.
    fn line(&mut self, address: &str, line: &[u8]) -> Result<bool, TailFailure> {
        let unreadable = || TailFailure::Unreadable {
            address: address.to_owned(),
            line: printable(&String::from_utf8_lossy(&line[..line.len().min(100)])).into_owned(),
        };
        let change: Value = serde_json::from_slice(line).map_err(|_| unreadable())?;
        if let Some(why) = change.get("end").and_then(Value::as_str) {
            if self.args.once && change.get("oldest").is_none() {
                return Ok(true);
            }
            let is_for_good = change.get("oldest").is_some();
            return Err(TailFailure::Ended {
                address: address.to_owned(),
                why: printable(why).into_owned(),
                is_for_good,
            });
        }
        let zxid = |field: &str| parse_zxid(change.get(field)?.as_str()?).ok();
        if change.get("reached").is_some() {
            // Nothing up to there is wanted.
            self.next = self.next.max(zxid("reached").map(|reached| reached + 1));
            return Ok(false);
        }
        let next = zxid("next").ok_or_else(unreadable)?;
        let mut out = io::stdout().lock();
        if self.args.json {
            out.write_all(line)?;
            out.write_all(b"\n")?;
        } else {
            writeln!(out, "{}", text_of(&change))?;
        }
        out.flush()?;
        // Only what is written was shown.
        self.next = Some(next);
        Ok(false)
    }
}

fn last_zxid(response: &Response<Incoming>) -> Option<i64> {
    parse_zxid(response.headers().get("last_zxid")?.to_str().ok()?).ok()
}

/// A change as a line: zxid, time, session, what was asked for, and what came of it.
fn text_of(change: &Value) -> String {
    let text =
        |field: &str| printable(change.get(field).and_then(Value::as_str).unwrap_or_default()).into_owned();
    let time = time_text(change.get("time_ms").and_then(Value::as_i64).unwrap_or_default());
    let words = ["operation", "path", "detail"].map(text);
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut line = format!(
        "{:>12} {time:<24} {:>18}  {} → {}",
        text("zxid"),
        text("session"),
        words.join(" "),
        text("outcome")
    );
    let parts = change.get("operations").and_then(Value::as_array).map(Vec::as_slice);
    for one in parts.unwrap_or(std::slice::from_ref(change)) {
        if let Some(data) = one.get("data").and_then(Value::as_str) {
            line += &format!("\n{:>12} {}", "", shown_data(data));
        }
    }
    line
}

/// Data as text if they are text, else as they came.
fn shown_data(base64: &str) -> String {
    let text = BASE64_STANDARD.decode(base64).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map_or_else(|| format!("base64:{base64}"), |text| printable(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_line() {
        let change = serde_json::json!({
            "zxid": "0x1f", "next": "0x20", "time_ms": 0, "session": "0x7", "operation": "create", "path": "/a-", "detail": "3 bytes",
            "outcome": "ok /a-0000000001", "data": "YWJj",
        });
        let expected = "        0x1f 1970-01-01T00:00:00.000Z                0x7  create /a- 3 bytes → ok /a-0000000001\n             abc";
        assert_eq!(text_of(&change), expected);
        assert_eq!(shown_data("//8="), "base64://8=");
    }

    #[test]
    fn a_zxid_is_read_as_it_is_shown() {
        for (text, expected) in
            [("0x1f", Some(31)), ("31", Some(31)), ("-1", None), ("0x-1", None), ("zxid", None)]
        {
            assert_eq!(parse_zxid(text).ok(), expected, "{text}");
        }
    }
}
