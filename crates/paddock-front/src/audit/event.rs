//! A line of the audit log.

use std::fmt;
use std::net::IpAddr;

use paddock_proto::{IdList, SessionId};

use super::escape::escaped;

/// Mark behind a user that was not checked.
const UNPROVEN: &str = "(unproven)";

/// The result that a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditResult {
    Success,
    Failure,
    /// The operation was asked for, and the result is not known.
    Invoked,
}

impl AuditResult {
    fn name(self) -> &'static str {
        match self {
            AuditResult::Success => "success",
            AuditResult::Failure => "failure",
            AuditResult::Invoked => "invoked",
        }
    }
}

/// `key=value` pairs with tabs between them, as ZooKeeper's `AuditEvent` prints them.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent(String);

impl AuditEvent {
    /// The pairs that name a client.
    pub(super) fn of_client(session: SessionId, ids: IdList<'_>, address: IpAddr) -> AuditEvent {
        let event = AuditEvent::default().with("session", &format!("{:#x}", session.0));
        let users = users(ids);
        let event = if users.is_empty() { event } else { event.with_escaped("user", &users) };
        event.with("ip", &address.to_canonical().to_string())
    }

    /// Adds a pair. Characters of the value that would end it, or do something to a terminal, are escaped, and so are backslashes.
    #[must_use]
    pub fn with(self, key: &str, value: &str) -> AuditEvent {
        self.with_escaped(key, &escaped(value))
    }

    fn with_escaped(mut self, key: &str, value: &str) -> AuditEvent {
        if !self.0.is_empty() {
            self.0.push('\t');
        }
        self.0.push_str(key);
        self.0.push('=');
        self.0.push_str(value);
        self
    }

    /// The whole line.
    pub fn line(&self, result: AuditResult) -> String {
        format!("{self}\tresult={}", result.name())
    }
}

impl fmt::Display for AuditEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names in these identities, with commas between them. One with a comma or a quotation mark of its own is quoted. One that was
/// not checked is followed by a mark: any user name may be said under `digest`, whose password is compared with nothing but the super
/// user's and with hashes in ACLs.
fn users(ids: IdList<'_>) -> String {
    let mut users = String::new();
    let mut ids = ids.iter().peekable();
    while let Some(id) = ids.next() {
        // The identity of the super user stands behind the one that has proved it.
        let is_super = ids.peek().is_some_and(|(scheme, _)| *scheme == "super");
        let Some(name) = user_name(id) else { continue };
        if !users.is_empty() {
            users.push(',');
        }
        let name = escaped(name);
        if name.contains([',', '"']) {
            users.extend(["\"", &name.replace('"', "\\\""), "\""]);
        } else {
            users.push_str(&name);
        }
        if id.0 == "digest" && !is_super {
            users.push_str(UNPROVEN);
        }
    }
    users
}

/// The name in an identity: without the hash of a password. A superuser is known by its other identities.
fn user_name<'a>((scheme, id): (&'a str, &'a str)) -> Option<&'a str> {
    let name = match scheme {
        "super" => return None,
        "digest" => id.split(':').next().unwrap_or_default(),
        _ => id,
    };
    (!name.trim().is_empty()).then_some(name)
}
