//! Work that every engine needs of its process: what it has for connections goes into the workers' mailboxes, and ends of sessions and
//! of quotas are told.

mod quota_report;

use std::time::Instant;

use paddock_proto::SessionId;
use paddock_state::Outboxes;

use crate::shared::Shared;
pub(crate) use quota_report::QuotaReport;

/// Writes ephemerals that went with their sessions to the audit log.
pub(crate) fn audit_deaths(shared: &Shared, deaths: &[(SessionId, String)]) {
    if let Some(audit) = &shared.audit {
        deaths.iter().for_each(|(session, path)| audit.ephemeral_deleted(session.0, path));
    }
}

/// Puts what has to leave into the workers' mailboxes. To be called while the state is held, so that a thread which reads it
/// afterwards finds in its box all events that came before. Returns the workers to wake when it is not.
pub(crate) fn post(shared: &Shared, outboxes: &mut Outboxes, now: Option<Instant>) -> Vec<usize> {
    let mut woken = Vec::new();
    for (worker, outbox) in outboxes.iter_mut() {
        if !outbox.is_empty() {
            shared.mailbox(worker).post(outbox, now);
            woken.push(worker);
        }
    }
    woken
}
