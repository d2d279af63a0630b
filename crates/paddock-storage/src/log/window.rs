//! A file read from front to back through a buffer, so that a segment of any size is scanned in little memory.

use std::path::{Path, PathBuf};

use super::LogError;
use crate::disk::DiskFile;

const WINDOW_BYTES: usize = 256 * 1024;

/// A window on a file. Beyond the end of the file it shows zeros, as a segment has them where nothing was written.
#[derive(Debug)]
pub(super) struct Window {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    len: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl Window {
    pub(super) fn new(file: Box<dyn DiskFile>, path: PathBuf) -> Result<Self, LogError> {
        let len = file.len().map_err(LogError::io("read length of", &path))?;
        Ok(Self { file, path, len, start: 0, buffer: Vec::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes at an offset. Fastest when offsets go up.
    pub(super) fn bytes(&mut self, offset: u64, length: usize) -> Result<&[u8], LogError> {
        let shown = self.start..self.start + self.buffer.len() as u64;
        if !(shown.start <= offset && offset + length as u64 <= shown.end) {
            let rest = self.len.saturating_sub(offset).min(WINDOW_BYTES as u64) as usize;
            self.fill(offset, length.max(rest))?;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.buffer[from..from + length])
    }

    pub(super) fn into_file(self) -> (Box<dyn DiskFile>, PathBuf) {
        (self.file, self.path)
    }

    fn fill(&mut self, offset: u64, length: usize) -> Result<(), LogError> {
        self.buffer.clear();
        self.buffer.resize(length, 0);
        self.start = offset;
        let read = self.file.read_at(&mut self.buffer, offset);
        read.map_err(LogError::io("read", &self.path))?;
        Ok(())
    }
}
