//! Everything that must be true, whatever happens. Each checker is a file; a violation names the one that noticed.

pub(crate) mod agreement;
pub(crate) mod answers;
pub(crate) mod elections;
pub(crate) mod ephemerals;
pub(crate) mod once;
pub(crate) mod order;
pub(crate) mod recovery;
pub(crate) mod sessions;
pub(crate) mod truth;
pub(crate) mod watching;

use std::fmt;

use paddock_replica::LogEntry;

use answers::Acknowledged;
use elections::Elections;
use once::Once;
use order::RealTime;
use sessions::Sessions;
use truth::Truth;

/// Something that must never be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) checker: &'static str,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.what)
    }
}

pub(crate) type Checked<T = ()> = Result<T, Violation>;

/// Fails with a violation unless something is true.
macro_rules! ensure {
    ($fact:expr, $checker:expr, $($what:tt)+) => {
        if !$fact {
            return Err($crate::checks::Violation { checker: $checker, what: format!($($what)+) });
        }
    };
}
pub(crate) use ensure;

/// All checkers, and what they share.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) truth: Truth,
    pub(crate) once: Once,
    pub(crate) sessions: Sessions,
    pub(crate) elections: Elections,
    pub(crate) real_time: RealTime,
    pub(crate) acknowledged: Acknowledged,
}

impl Checks {
    pub(crate) fn new(linearizable_reads: bool) -> Checks {
        Checks { real_time: RealTime::of_every_read(linearizable_reads), ..Checks::default() }
    }

    /// A member is about to apply an entry. Its monotonic clock shows `now_ms`.
    pub(crate) fn committed(&mut self, member: u8, entry: &LogEntry, now_ms: u64) -> Checked {
        for happened in self.truth.observe(member, entry)? {
            self.once.happened(&happened)?;
            self.sessions.happened(&happened)?;
        }
        for session in self.truth.begun_at(entry.index) {
            self.sessions.heard(member, session, now_ms);
        }
        Ok(())
    }
}
