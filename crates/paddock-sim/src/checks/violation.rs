//! Violations: what a checker says that has noticed something.

use std::fmt;

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
