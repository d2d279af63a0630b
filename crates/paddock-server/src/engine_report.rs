//! Reports of the engine on itself, for all other threads: whether it can serve, and its place among others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use paddock_replica::{Role, Standing};
use paddock_state::CONTACT_MAX_LEAST_MS;
use parking_lot::Mutex;

/// Facts that change from tick to tick.
#[derive(Clone, Debug)]
pub(crate) struct EngineReport {
    pub(crate) role: Role,
    /// The place of a member in its ensemble; that of no member is empty.
    pub(crate) standing: Standing,
    /// Monotonic time of the last contact with what orders writes, in milliseconds: no session can have been ended before without
    /// being told here.
    pub(crate) confirmed_ms: u64,
}

/// The last report.
#[derive(Debug)]
pub(crate) struct EngineBoard {
    last: Mutex<LastReport>,
    confirmed_ms: AtomicU64,
    /// Connections are being closed for want of contact.
    is_out_of_contact: AtomicBool,
}

#[derive(Debug)]
struct LastReport {
    role: Role,
    standing: Standing,
    /// Monotonic time in milliseconds at which this member began to lead, if it leads.
    leads_since_ms: Option<u64>,
}

impl Default for EngineBoard {
    fn default() -> EngineBoard {
        EngineBoard {
            last: Mutex::new(LastReport {
                role: Role::Looking,
                standing: Standing::default(),
                leads_since_ms: None,
            }),
            confirmed_ms: AtomicU64::new(0),
            is_out_of_contact: AtomicBool::new(false),
        }
    }
}

impl EngineBoard {
    /// Takes a report; returns the standing of the last one.
    pub(crate) fn publish(&self, report: EngineReport, now_ms: u64) -> Standing {
        let EngineReport { role, standing, confirmed_ms } = report;
        self.note_contact(confirmed_ms, now_ms);
        let mut last = self.last.lock();
        last.role = role;
        let since_ms = last.leads_since_ms.or(Some(now_ms));
        last.leads_since_ms = since_ms.filter(|_| role == Role::Leader);
        std::mem::replace(&mut last.standing, standing)
    }

    /// The engine has had contact, between two reports.
    pub(crate) fn note_contact(&self, confirmed_ms: u64, now_ms: u64) {
        self.confirmed_ms.store(confirmed_ms, Ordering::Release);
        let has_contact = || now_ms.saturating_sub(confirmed_ms) <= CONTACT_MAX_LEAST_MS;
        if self.is_out_of_contact.load(Ordering::Relaxed) && has_contact() {
            self.is_out_of_contact.store(false, Ordering::Relaxed);
            tracing::info!("regained contact to a quorum: keeping client connections");
        }
    }

    /// A connection is closed because the member has had no contact to a quorum for too long.
    pub(crate) fn note_lost_contact(&self, silence_ms: u64, session_timeout_ms: i32) {
        if !self.is_out_of_contact.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                silence_ms,
                session_timeout_ms,
                "lost contact to a quorum: closing client connections"
            );
        }
    }

    pub(crate) fn role(&self) -> Role {
        self.last.lock().role
    }

    pub(crate) fn standing(&self) -> Standing {
        self.last.lock().standing.clone()
    }

    /// Monotonic time in milliseconds at which this member began to lead; `None` if it does not.
    pub(crate) fn leads_since_ms(&self) -> Option<u64> {
        self.last.lock().leads_since_ms
    }

    /// Monotonic time of the last contact with what orders writes, in milliseconds.
    pub(crate) fn confirmed_ms(&self) -> u64 {
        self.confirmed_ms.load(Ordering::Acquire)
    }
}
