//! A line of the audit log.

use std::fmt;
use std::net::IpAddr;

use paddock_proto::{IdList, SessionId};

/// The result that a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditResult {
    Success,
    Failure,
    /// It was asked for, and the result is not known.
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
        let users: Vec<&str> = ids.iter().filter_map(user_name).collect();
        let event = if users.is_empty() { event } else { event.with("user", &users.join(",")) };
        event.with("ip", &address.to_canonical().to_string())
    }

    /// Adds a pair. A value loses the characters that would end it.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> AuditEvent {
        if !self.0.is_empty() {
            self.0.push('\t');
        }
        self.0.push_str(key);
        self.0.push('=');
        self.0.extend(value.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')));
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

/// The name in an identity: without the hash of a password. A superuser is known by its other identities.
fn user_name<'a>((scheme, id): (&'a str, &'a str)) -> Option<&'a str> {
    let name = match scheme {
        "super" => return None,
        "digest" => id.split(':').next().unwrap_or_default(),
        _ => id,
    };
    (!name.trim().is_empty()).then_some(name)
}
