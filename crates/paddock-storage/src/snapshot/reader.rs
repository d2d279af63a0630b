//! Reading a snapshot file. Whatever is in it, nothing larger than a block is allocated.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use zstd::bulk::Decompressor;

use super::format::{
    BLOCK_HEADER_BYTES, BlockHeader, FOOTER_BYTES, Footer, HEADER_BYTES, Header, SnapshotTotals,
};
use super::{SnapshotDamage, SnapshotError, SnapshotMeta, files};
use crate::disk::{Access, Disk, DiskFile};

/// A snapshot file being read from front to back. Header and footer are checked when it is opened, each block when it
/// is read, and the whole file when its end is reached: nothing read is certain to be all of it before `None` came.
#[derive(Debug)]
pub struct SnapshotReader {
    path: Arc<Path>,
    file: Box<dyn DiskFile>,
    meta: SnapshotMeta,
    footer: Footer,
    /// Offset of the next block.
    offset: u64,
    /// Offset of the footer.
    end: u64,
    seen: SnapshotTotals,
    file_crc: u32,
}

/// A block whose checksum is right. It can be decompressed anywhere, such as in another thread.
pub struct CompressedBlock {
    path: Arc<Path>,
    offset: u64,
    number: u64,
    raw_bytes: usize,
    bytes: Vec<u8>,
}

impl SnapshotReader {
    /// Opens a file under its own name.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Self, SnapshotError> {
        let reader = Self::open_any_name(disk, path)?;
        if files::index_of(path) != Some(reader.meta.index) {
            return Err(SnapshotError::damaged(path, 0, SnapshotDamage::WrongIndex));
        }
        Ok(reader)
    }

    /// Opens a file whatever its name: one that was copied, or has no name yet.
    pub fn open_any_name(disk: &dyn Disk, path: &Path) -> Result<Self, SnapshotError> {
        let file = disk.open(path, Access::Read).map_err(SnapshotError::io("open", path))?;
        let len = file.len().map_err(SnapshotError::io("read length of", path))?;
        let damaged = |offset, what| SnapshotError::damaged(path, offset, what);
        let fixed = read(file.as_ref(), path, 0)?.ok_or_else(|| damaged(0, SnapshotDamage::Header))?;
        let header = Header::decode(fixed).map_err(|what| damaged(0, what))?;
        if !header.is_known_version() {
            return Err(SnapshotError::UnknownVersion { path: path.to_owned(), version: header.version });
        }
        let blocks_start = (HEADER_BYTES + header.app_bytes) as u64;
        let end = len.checked_sub(FOOTER_BYTES as u64).filter(|end| *end >= blocks_start);
        let end = end.ok_or_else(|| damaged(len, SnapshotDamage::Footer))?;
        let mut app = vec![0; header.app_bytes];
        read_into(file.as_ref(), path, HEADER_BYTES as u64, &mut app)?;
        let file_crc = crc32c::crc32c_append(crc32c::crc32c(&fixed), &app);
        let meta = header.with_app(app).map_err(|what| damaged(0, what))?;
        let footer = read(file.as_ref(), path, end)?.and_then(|bytes| Footer::decode(&bytes));
        let footer = footer.ok_or_else(|| damaged(end, SnapshotDamage::Footer))?;
        let seen = SnapshotTotals::default();
        Ok(Self { path: path.into(), file, meta, footer, offset: blocks_start, end, seen, file_crc })
    }

    /// Origin of the snapshot.
    pub fn meta(&self) -> &SnapshotMeta {
        &self.meta
    }

    /// Totals of the footer. They are checked against the blocks when the last one was read.
    pub fn totals(&self) -> SnapshotTotals {
        self.footer.totals
    }

    /// The next block, or `None` after the last one of a file that is whole.
    pub fn next_block(&mut self) -> Result<Option<Vec<u8>>, SnapshotError> {
        self.next_compressed()?.map(|block| block.decompress()).transpose()
    }

    /// The next block as it is in the file, or `None` after the last one of a file that is whole.
    pub fn next_compressed(&mut self) -> Result<Option<CompressedBlock>, SnapshotError> {
        if self.offset == self.end {
            return self.check_totals().map(|()| None);
        }
        let (fixed, header) = self.block_header()?.ok_or_else(|| self.damaged_block())?;
        let mut bytes = vec![0; header.bytes];
        read_into(self.file.as_ref(), &self.path, self.offset + BLOCK_HEADER_BYTES as u64, &mut bytes)?;
        let number = self.seen.blocks;
        if !header.is_of(number, &bytes) {
            return Err(self.damaged_block());
        }
        let block = CompressedBlock {
            path: self.path.clone(),
            offset: self.offset,
            number,
            raw_bytes: header.raw_bytes,
            bytes,
        };
        self.file_crc = crc32c::crc32c_append(crc32c::crc32c_append(self.file_crc, &fixed), &block.bytes);
        self.seen.blocks += 1;
        self.seen.raw_bytes += block.raw_bytes as u64;
        self.offset += (BLOCK_HEADER_BYTES + block.bytes.len()) as u64;
        Ok(Some(block))
    }

    /// The header of the next block, if it is one and the block ends before the footer.
    fn block_header(&self) -> Result<Option<([u8; BLOCK_HEADER_BYTES], BlockHeader)>, SnapshotError> {
        let Some(fixed) = read(self.file.as_ref(), &self.path, self.offset)? else { return Ok(None) };
        let header = BlockHeader::decode(&fixed);
        let room = self.end - self.offset;
        Ok(header
            .filter(|header| (BLOCK_HEADER_BYTES + header.bytes) as u64 <= room)
            .map(|header| (fixed, header)))
    }

    fn check_totals(&self) -> Result<(), SnapshotError> {
        let Footer { totals, file_crc } = self.footer;
        let seen = SnapshotTotals { items: totals.items, ..self.seen };
        if seen != totals || self.file_crc != file_crc {
            return Err(SnapshotError::damaged(&self.path, self.end, SnapshotDamage::Totals));
        }
        Ok(())
    }

    fn damaged_block(&self) -> SnapshotError {
        SnapshotError::damaged(&self.path, self.offset, SnapshotDamage::Block)
    }
}

impl CompressedBlock {
    /// Its place among the blocks, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The length it will have.
    pub fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// The block as it was written.
    pub fn decompress(&self) -> Result<Vec<u8>, SnapshotError> {
        let mut decompressor = Decompressor::new().map_err(SnapshotError::io("decompress", &self.path))?;
        let raw = decompressor.decompress(&self.bytes, self.raw_bytes).ok();
        let raw = raw.filter(|raw| raw.len() == self.raw_bytes);
        raw.ok_or_else(|| SnapshotError::damaged(&self.path, self.offset, SnapshotDamage::Block))
    }
}

impl fmt::Debug for CompressedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, raw_bytes, bytes, .. } = self;
        write!(f, "CompressedBlock {number}: {} bytes of {raw_bytes}", bytes.len())
    }
}

/// Bytes of a fixed size, or `None` if the file ends before.
fn read<const N: usize>(
    file: &dyn DiskFile,
    path: &Path,
    offset: u64,
) -> Result<Option<[u8; N]>, SnapshotError> {
    let mut bytes = [0; N];
    let count = file.read_at(&mut bytes, offset).map_err(SnapshotError::io("read", path))?;
    Ok((count == N).then_some(bytes))
}

/// Fills a buffer from a place that the length of the file has room for. A file that became shorter shows in a checksum.
fn read_into(file: &dyn DiskFile, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<(), SnapshotError> {
    file.read_at(buffer, offset).map_err(SnapshotError::io("read", path))?;
    Ok(())
}
