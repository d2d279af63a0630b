//! The fixed parts of a snapshot file as bytes. The layout is in the parent's documentation.

use super::{SnapshotDamage, SnapshotMeta};
use crate::{GroupNumber, Index, Term};

/// The largest block, before compression.
pub const BLOCK_BYTES_MAX: usize = 16 << 20;

pub(super) const APP_BYTES_MAX: usize = 16 << 20;
pub(super) const HEADER_BYTES: usize = 48;
pub(super) const BLOCK_HEADER_BYTES: usize = 12;
pub(super) const FOOTER_BYTES: usize = 36;

const MAGIC: &[u8; 8] = b"PADKSNAP";
/// Version of a snapshot file, which is read and written.
pub const SNAPSHOT_FILE_VERSION: u32 = 1;

/// Totals of the whole file, from its footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotTotals {
    pub blocks: u64,
    /// The bytes of all blocks before compression.
    pub raw_bytes: u64,
    /// Items that the writer counted.
    pub items: u64,
}

/// The fixed part of a header, not yet checked as a whole.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) app_bytes: usize,
    fixed: [u8; HEADER_BYTES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) raw_bytes: usize,
    pub(super) bytes: usize,
    crc: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) totals: SnapshotTotals,
    pub(super) file_crc: u32,
}

pub(super) fn encode_header(meta: &SnapshotMeta) -> Vec<u8> {
    assert!(meta.app.len() <= APP_BYTES_MAX, "{} app bytes are too many", meta.app.len());
    let mut out = Vec::with_capacity(HEADER_BYTES + meta.app.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&SNAPSHOT_FILE_VERSION.to_le_bytes());
    out.extend_from_slice(&meta.group.0.to_le_bytes());
    out.extend_from_slice(&meta.term.0.to_le_bytes());
    out.extend_from_slice(&meta.index.0.to_le_bytes());
    out.extend_from_slice(&meta.zxid.to_le_bytes());
    out.extend_from_slice(&(meta.app.len() as u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out), &meta.app);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&meta.app);
    out
}

impl Header {
    pub(super) fn decode(fixed: [u8; HEADER_BYTES]) -> Result<Self, SnapshotDamage> {
        let app_bytes = u32_at(&fixed, 40) as usize;
        if &fixed[..8] != MAGIC || app_bytes > APP_BYTES_MAX {
            return Err(SnapshotDamage::Header);
        }
        Ok(Self { version: u32_at(&fixed, 8), app_bytes, fixed })
    }

    pub(super) fn is_known_version(&self) -> bool {
        self.version == SNAPSHOT_FILE_VERSION
    }

    pub(super) fn with_app(self, app: Vec<u8>) -> Result<SnapshotMeta, SnapshotDamage> {
        let fixed = &self.fixed;
        if crc32c::crc32c_append(crc32c::crc32c(&fixed[..44]), &app) != u32_at(fixed, 44) {
            return Err(SnapshotDamage::Header);
        }
        Ok(SnapshotMeta {
            group: GroupNumber(u32_at(fixed, 12)),
            term: Term(u64_at(fixed, 16)),
            index: Index(u64_at(fixed, 24)),
            zxid: u64_at(fixed, 32) as i64,
            app,
        })
    }
}

impl BlockHeader {
    pub(super) fn new(number: u64, raw_bytes: usize, compressed: &[u8]) -> Self {
        assert!((1..=BLOCK_BYTES_MAX).contains(&raw_bytes), "a block of {raw_bytes} bytes");
        let mut header = Self { raw_bytes, bytes: compressed.len(), crc: 0 };
        header.crc = header.checksum(number, compressed);
        header
    }

    pub(super) fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut out = [0; BLOCK_HEADER_BYTES];
        out[..4].copy_from_slice(&(self.raw_bytes as u32).to_le_bytes());
        out[4..8].copy_from_slice(&(self.bytes as u32).to_le_bytes());
        out[8..].copy_from_slice(&self.crc.to_le_bytes());
        out
    }

    /// Refuses lengths that no block has, before anyone allocates them.
    pub(super) fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Option<Self> {
        let header = Self {
            raw_bytes: u32_at(bytes, 0) as usize,
            bytes: u32_at(bytes, 4) as usize,
            crc: u32_at(bytes, 8),
        };
        let sane = (1..=BLOCK_BYTES_MAX).contains(&header.raw_bytes)
            && header.bytes <= zstd::zstd_safe::compress_bound(header.raw_bytes);
        sane.then_some(header)
    }

    pub(super) fn is_of(&self, number: u64, compressed: &[u8]) -> bool {
        self.crc == self.checksum(number, compressed)
    }

    fn checksum(&self, number: u64, compressed: &[u8]) -> u32 {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &self.encode()[..8]);
        crc32c::crc32c_append(crc, compressed)
    }
}

impl Footer {
    pub(super) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut out = [0; FOOTER_BYTES];
        out[4..12].copy_from_slice(&self.totals.blocks.to_le_bytes());
        out[12..20].copy_from_slice(&self.totals.raw_bytes.to_le_bytes());
        out[20..28].copy_from_slice(&self.totals.items.to_le_bytes());
        out[28..32].copy_from_slice(&self.file_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[..32]);
        out[32..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        if u32_at(bytes, 0) != 0 || crc32c::crc32c(&bytes[..32]) != u32_at(bytes, 32) {
            return None;
        }
        let totals = SnapshotTotals {
            blocks: u64_at(bytes, 4),
            raw_bytes: u64_at(bytes, 12),
            items: u64_at(bytes, 20),
        };
        Some(Self { totals, file_crc: u32_at(bytes, 28) })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
