//! Bytes of a member's files.

use paddock_os::process::directory_bytes;

use crate::shared::Shared;

/// Bytes of the data directory, without the log.
pub(crate) fn data_bytes(shared: &Shared) -> u64 {
    directory_bytes(&shared.config.data_dir, Some(&shared.config.log_dir()))
}

/// Bytes of the transaction log.
pub(crate) fn log_bytes(shared: &Shared) -> u64 {
    directory_bytes(&shared.config.log_dir(), None)
}
