//! `/keeper`: what ClickHouse asks its keeper about itself. A member computes it when it is read, so it cannot be written.

use paddock_proto::ErrorCode;

/// Parent of the computed znodes.
pub const COMPUTED: &str = "/keeper";

/// Refuses a write to a znode that is computed.
pub(crate) fn refuse_computed(path: &str) -> Result<(), ErrorCode> {
    match path.strip_prefix(COMPUTED) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Err(ErrorCode::BadArguments),
        _ => Ok(()),
    }
}
