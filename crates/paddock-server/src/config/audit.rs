//! Destination of the audit log.

use std::path::PathBuf;

/// Target of the lines of an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// The member's own log, with the target `audit`.
    Log,
    /// A file, which is appended to.
    File(PathBuf),
}
