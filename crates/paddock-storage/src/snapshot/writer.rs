//! Writing a snapshot file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zstd::bulk::Compressor;

use super::format::{BlockHeader, Footer, SnapshotTotals, encode_header};
use super::reader::SnapshotReader;
use super::{SnapshotDamage, SnapshotError, SnapshotFile, SnapshotMeta, snapshot_path, unfinished_path};
use crate::disk::{Disk, DiskFile};

const COMPRESSION_LEVEL: i32 = 1;

/// Bytes that may wait for the disk. A disk that is asked to sync something else has to write them, too, first: they are
/// is what a write to the log may have to wait for.
const UNSYNCED_BYTES_MAX: u64 = 1 << 20;

/// A snapshot file being written. After an error its unfinished file is removed and the writer is of no more use.
/// A writer that is dropped leaves its file to [`remove_unfinished`](super::remove_unfinished).
pub struct SnapshotWriter {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    unfinished: PathBuf,
    meta: SnapshotMeta,
    file: Box<dyn DiskFile>,
    compressor: Compressor<'static>,
    /// Offset of the next bytes.
    offset: u64,
    /// Up to here all is on disk.
    synced: u64,
    file_crc: u32,
    raw_crc: u32,
    totals: SnapshotTotals,
    failed: bool,
}

impl fmt::Debug for SnapshotWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unfinished, meta, totals, .. } = self;
        f.debug_struct("SnapshotWriter")
            .field("unfinished", unfinished)
            .field("meta", meta)
            .field("totals", totals)
            .finish_non_exhaustive()
    }
}

impl SnapshotWriter {
    /// Starts a file in a directory, which is created if need be. What an earlier attempt at this index left is replaced.
    pub fn create(disk: Arc<dyn Disk>, dir: &Path, meta: SnapshotMeta) -> Result<Self, SnapshotError> {
        let unfinished = unfinished_path(&snapshot_path(dir, meta.index));
        disk.create_dir(dir).map_err(SnapshotError::io("create directory", dir))?;
        // Whether there was one does not matter, and any other trouble shows in the next line.
        let _ = disk.remove(&unfinished);
        let file = disk.create(&unfinished).map_err(SnapshotError::io("create", &unfinished))?;
        let compressor = Compressor::new(COMPRESSION_LEVEL).expect("the level is a valid one");
        let mut writer = Self {
            disk,
            dir: dir.to_owned(),
            unfinished,
            meta,
            file,
            compressor,
            offset: 0,
            synced: 0,
            file_crc: 0,
            raw_crc: 0,
            totals: SnapshotTotals::default(),
            failed: false,
        };
        writer.write(&encode_header(&writer.meta))?;
        Ok(writer)
    }

    /// Writes the next block, of 1 byte to [`BLOCK_BYTES_MAX`](super::BLOCK_BYTES_MAX).
    pub fn block(&mut self, raw: &[u8]) -> Result<(), SnapshotError> {
        let compressed =
            self.compressor.compress(raw).map_err(SnapshotError::io("compress for", &self.unfinished))?;
        let header = BlockHeader::new(self.totals.blocks, raw.len(), &compressed);
        self.write(&header.encode())?;
        self.write(&compressed)?;
        self.raw_crc = crc32c::crc32c_append(self.raw_crc, raw);
        self.totals.blocks += 1;
        self.totals.raw_bytes += raw.len() as u64;
        Ok(())
    }

    /// Ends the file, makes it durable, reads it back and gives it its name. `items` is what the blocks hold, in the
    /// owner's units; a reader can compare.
    pub fn finish(mut self, items: u64) -> Result<SnapshotFile, SnapshotError> {
        self.totals.items = items;
        let footer = Footer { totals: self.totals, file_crc: self.file_crc };
        self.write(&footer.encode())?;
        self.sync()?;
        match self.publish() {
            Ok(file) => Ok(file),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Gives up.
    pub fn abandon(mut self) -> Result<(), SnapshotError> {
        self.remove()
    }

    fn publish(&self) -> Result<SnapshotFile, SnapshotError> {
        self.read_back()?;
        let path = snapshot_path(&self.dir, self.meta.index);
        self.disk.rename(&self.unfinished, &path).map_err(SnapshotError::io("name", &path))?;
        self.disk.sync_dir(&self.dir).map_err(SnapshotError::io("sync directory", &self.dir))?;
        Ok(SnapshotFile { index: self.meta.index, path })
    }

    fn read_back(&self) -> Result<(), SnapshotError> {
        let mut reader = SnapshotReader::open_any_name(self.disk.as_ref(), &self.unfinished)?;
        let mut raw_crc = 0;
        while let Some(block) = reader.next_block()? {
            raw_crc = crc32c::crc32c_append(raw_crc, &block);
        }
        let same = raw_crc == self.raw_crc && *reader.meta() == self.meta && reader.totals() == self.totals;
        if same { Ok(()) } else { Err(SnapshotError::damaged(&self.unfinished, 0, SnapshotDamage::ReadBack)) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        assert!(!self.failed, "the writer of {} has failed before", self.unfinished.display());
        if let Err(error) = self.file.write_at(bytes, self.offset) {
            let error = SnapshotError::io("write", &self.unfinished)(error);
            return Err(self.fail(error));
        }
        self.offset += bytes.len() as u64;
        self.file_crc = crc32c::crc32c_append(self.file_crc, bytes);
        if self.offset - self.synced >= UNSYNCED_BYTES_MAX {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), SnapshotError> {
        if let Err(error) = self.file.sync_data() {
            let error = SnapshotError::io("sync", &self.unfinished)(error);
            return Err(self.fail(error));
        }
        self.synced = self.offset;
        Ok(())
    }

    /// Frees the room. The first error is the one worth telling; an unfinished file is removed at the next start, too.
    fn fail(&mut self, error: SnapshotError) -> SnapshotError {
        let _ = self.remove();
        error
    }

    fn remove(&mut self) -> Result<(), SnapshotError> {
        self.failed = true;
        self.disk.remove(&self.unfinished).map_err(SnapshotError::io("remove", &self.unfinished))
    }
}
