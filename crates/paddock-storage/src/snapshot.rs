//! Snapshot files: the whole state of a group at one index, in compressed blocks of opaque bytes.
//!
//! A file is written under a temporary name, synced, read back and compared, and only then given its name
//! `snapshot-<index as 16 hex digits>`, durably. So a file with that name is whole, unless the disk has damaged it since;
//! every reader checks that.
//!
//! # Falling back
//!
//! [`newest_valid`] passes over damaged files and says so. The log may have released the entries between an older
//! snapshot and its own beginning by then. So a member that starts from a snapshot has to ask
//! [`Log::check_follows`](crate::Log::check_follows) with its index first, and refuse to start if there is a gap. To make
//! falling back possible at all, release the log only up to the oldest snapshot that [`retain`] keeps.
//!
//! # Format
//!
//! Little-endian; checksums are CRC-32C.
//! ```text
//! header   0 8 bytes magic
//!          8 u32 version
//!         12 u32 group
//!         16 u64 term
//!         24 u64 index
//!         32 i64 zxid
//!         40 u32 length of the app bytes
//!         44 u32 crc            of the bytes above and the app bytes
//!         48 app bytes
//! block    0 u32 raw length     1 byte to 16 MiB
//!          4 u32 length
//!          8 u32 crc            of the number of the block (u64), the bytes above and the compressed bytes
//!         12 compressed bytes   one zstd frame
//! footer   0 u32 zero           where a block has its raw length
//!          4 u64 blocks
//!         12 u64 raw bytes      of all blocks
//!         20 u64 items          what the writer counted in them
//!         28 u32 file crc       of everything before the footer
//!         32 u32 crc            of the footer's bytes above
//! ```

mod error;
mod files;
mod format;
mod reader;
mod writer;

pub use error::{SnapshotDamage, SnapshotError};
pub use files::{
    Newest, Skipped, SnapshotFile, list, newest_valid, remove_unfinished, retain, snapshot_path,
    unfinished_path, verify, verify_unfinished,
};
pub use format::{BLOCK_BYTES_MAX, SNAPSHOT_FILE_VERSION, SnapshotTotals};
pub use reader::{CompressedBlock, SnapshotReader};
pub use writer::SnapshotWriter;

use crate::{GroupNumber, Index, Term};

/// Origin of a snapshot: its group, its place in the log, and the application's own bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMeta {
    pub group: GroupNumber,
    /// The term of the last entry in it.
    pub term: Term,
    /// The last entry in it.
    pub index: Index,
    /// The last transaction in it. Of no meaning here.
    pub zxid: i64,
    /// Whatever the owner wants to know before reading the blocks, such as the membership. At most 16 MiB.
    pub app: Vec<u8>,
}

#[cfg(test)]
mod tests;
