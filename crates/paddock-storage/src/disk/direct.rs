//! Writing past the page cache, for batches that have to be durable at once.
//!
//! One `pwritev2` with `RWF_DSYNC` on a descriptor with `O_DIRECT` takes the bytes to the device and makes them durable. A
//! write through the page cache marks pages as changed, and `fdatasync` has to look for them.
//!
//! The device takes whole blocks. So a batch that begins inside a block is written together with what the block has in
//! front of it, and one that ends inside a block together with zeros up to the block's end. A file that is written batch
//! after batch remembers the block that it has begun; otherwise the beginning is read.
//!
//! Not everything can be written so. What is left, the caller writes through the page cache: the end of a file that does not
//! end with a block, a batch larger than the buffer, and all batches where the file system refuses `O_DIRECT`. Both ways may
//! take turns on one file as long as the page cache is synced each time: it forgets what is written past it, but what it
//! has not yet written itself would go over that later.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Alignment of the device's writes, in the file and in memory, in bytes. The blocks of every common device and file system
/// divide it; one with larger blocks refuses the write.
const BLOCK_BYTES: usize = 4096;

/// A larger batch goes through the page cache: the device takes so long for it that the way there makes no difference.
const BUFFER_BYTES: usize = 1 << 20;

/// Way in which the batches of one file are written.
#[derive(Debug)]
pub(super) enum Direct {
    /// Nothing has been written yet, so the file system was not asked.
    Untried,
    Ready(DirectWriter),
    /// Everything goes through the page cache.
    Never,
}

impl Direct {
    /// Writes all of it, with the zeros behind it, and makes it durable. `false`: it has to go through the page cache.
    pub(super) fn write(&mut self, file: &File, data: &[u8], offset: u64) -> io::Result<bool> {
        if matches!(self, Self::Untried) {
            // Whatever the reason is, the file itself is open, and writing it will show what is wrong with it.
            *self = DirectWriter::open(file).map_or(Self::Never, Self::Ready);
        }
        let Self::Ready(writer) = self else { return Ok(false) };
        match writer.write(file, data, offset) {
            // This is no failure of the device, so the page cache can be trusted with the same bytes. After any other error
            // it could not be.
            Err(error) if is_refusal(&error) => {
                *self = Self::Never;
                Ok(false)
            }
            written => written,
        }
    }

    /// To be called before the file is written in another way: what is remembered of it may not be true any more.
    pub(super) fn forget(&mut self) {
        if let Self::Ready(writer) = self {
            writer.end = None;
        }
    }
}

/// Writes one file in whole blocks.
#[derive(Debug)]
pub(super) struct DirectWriter {
    direct: File,
    /// Least length of the file. It is not asked for again, as no one makes files shorter, and as it would cost a write of
    /// metadata: the next change of a file whose times have been looked at has to get a time of its own.
    len: u64,
    /// Long enough to have `BUFFER_BYTES` in it that begin as the device needs it.
    memory: Vec<u8>,
    /// End of the last write. The buffer begins with what its block has up to there.
    end: Option<u64>,
}

impl DirectWriter {
    fn open(file: &File) -> io::Result<Self> {
        Ok(Self::new(system::open(file)?, file.metadata()?.len()))
    }

    fn new(direct: File, len: u64) -> Self {
        Self { direct, len, memory: vec![0; BUFFER_BYTES + BLOCK_BYTES], end: None }
    }

    fn write(&mut self, file: &File, data: &[u8], offset: u64) -> io::Result<bool> {
        let begun = (offset % BLOCK_BYTES as u64) as usize;
        let start = offset - begun as u64;
        let end = begun + data.len();
        let whole = end.next_multiple_of(BLOCK_BYTES);
        // The file must not become longer: that would be a change of metadata with every batch.
        if whole > BUFFER_BYTES || start + whole as u64 > self.len {
            return Ok(false);
        }
        let remembered = self.end.take() == Some(offset);
        let aligned = self.memory.as_ptr().align_offset(BLOCK_BYTES);
        let buffer = &mut self.memory[aligned..aligned + whole];
        if !remembered {
            file.read_exact_at(&mut buffer[..begun], start)?;
        }
        buffer[begun..end].copy_from_slice(data);
        buffer[end..].fill(0);
        write_blocks(&self.direct, buffer, start)?;
        buffer.copy_within(end / BLOCK_BYTES * BLOCK_BYTES..end, 0);
        self.end = Some(offset + data.len() as u64);
        Ok(true)
    }
}

/// True if the system will not do this at all: it opens such files and yet cannot write them, has larger blocks, or a sandbox
/// does not know the call.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported)
}

/// Writes whole blocks. Each call makes durable what it has written, and maybe nothing else (the device may be told so with
/// the write itself, without a flush of what it holds). So it does not matter in how many pieces the system takes them.
fn write_blocks(direct: &File, blocks: &[u8], start: u64) -> io::Result<()> {
    let mut done = 0;
    while done < blocks.len() {
        match system::write(direct, &blocks[done..], start + done as u64) {
            // A part of a block is written again.
            Ok(count) if count >= BLOCK_BYTES => done += count / BLOCK_BYTES * BLOCK_BYTES,
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io::{self, IoSlice};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;
    use rustix::io::{ReadWriteFlags, pwritev2};

    /// Opens a file once more, for direct writes. Not by its path: it may have got another name.
    pub(super) fn open(file: &File) -> io::Result<File> {
        let same = format!("/proc/self/fd/{}", file.as_raw_fd());
        File::options().write(true).custom_flags(OFlags::DIRECT.bits().cast_signed()).open(same)
    }

    /// Writes a part of it and makes that durable; says how much it was.
    pub(super) fn write(direct: &File, data: &[u8], offset: u64) -> io::Result<usize> {
        Ok(pwritev2(direct, &[IoSlice::new(data)], offset, ReadWriteFlags::DSYNC)?)
    }
}

/// Elsewhere everything goes through the page cache.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;

    pub(super) fn open(_file: &File) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn write(_direct: &File, _data: &[u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests;
