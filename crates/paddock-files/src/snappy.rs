//! The stream of snappy-java: a header, then blocks of raw Snappy, each behind its length.

use std::io::{self, Read};

/// `\x82SNAPPY\0`, then two version numbers.
const HEADER_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
/// Largest number of bytes that a byte of Snappy stands for.
const EXPANSION_MAX: usize = 64;
/// Largest size of a block in bytes, packed or unpacked. ZooKeeper's have 32 KiB.
const BLOCK_BYTES_MAX: u32 = 64 << 20;

pub(crate) struct SnappyReader<R> {
    input: R,
    block: Vec<u8>,
    next: usize,
    has_begun: bool,
}

impl<R: Read> SnappyReader<R> {
    pub(crate) fn new(input: R) -> SnappyReader<R> {
        SnappyReader { input, block: Vec::new(), next: 0, has_begun: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        self.input.read_exact(&mut header)?;
        if !header.starts_with(MAGIC) {
            return Err(invalid("no header of a Snappy stream"));
        }
        self.has_begun = true;
        Ok(())
    }

    /// Reads the next block; an empty one at the end.
    fn next_block(&mut self) -> io::Result<()> {
        (self.next, self.block) = (0, Vec::new());
        let mut len = [0; 4];
        match self.input.read(&mut len[..1])? {
            0 => return Ok(()),
            _ => self.input.read_exact(&mut len[1..])?,
        }
        let len = u32::from_be_bytes(len);
        if len > BLOCK_BYTES_MAX {
            return Err(invalid("unreasonable length of a Snappy block"));
        }
        let mut compressed = Vec::new();
        (&mut self.input).take(len.into()).read_to_end(&mut compressed)?;
        if compressed.len() < len as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let content = snap::raw::decompress_len(&compressed).map_err(|error| invalid(&error.to_string()))?;
        if content > compressed.len() * EXPANSION_MAX || content > BLOCK_BYTES_MAX as usize {
            return Err(invalid("a Snappy block claims more than its bytes can hold"));
        }
        let block = snap::raw::Decoder::new().decompress_vec(&compressed);
        self.block = block.map_err(|error| invalid(&error.to_string()))?;
        Ok(())
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl<R: Read> Read for SnappyReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.has_begun {
            self.begin()?;
        }
        if self.next == self.block.len() {
            self.next_block()?;
        }
        let count = out.len().min(self.block.len() - self.next);
        out[..count].copy_from_slice(&self.block[self.next..self.next + count]);
        self.next += count;
        Ok(count)
    }
}
