//! A file of ClickHouse's compressed blocks, one behind the other.

use std::io::{self, Read};

use paddock_proto::blocks::{BadBlock, Block};

use super::zstd_reader::ZstdReader;

/// Compression of recent versions of ClickHouse; older ones have LZ4.
const ZSTD: u8 = 0x90;
/// Bytes that are asked of the file at once.
const READ_BYTES: usize = 256 << 10;

pub(super) struct BlockReader<R> {
    input: R,
    /// Bytes of the file that have not been unpacked.
    packed: Vec<u8>,
    content: Vec<u8>,
    /// Bytes of the content that have been read.
    next: usize,
}

impl<R: Read> BlockReader<R> {
    pub(super) fn new(input: R) -> BlockReader<R> {
        BlockReader { input, packed: Vec::new(), content: Vec::new(), next: 0 }
    }

    /// Unpacks the next block; the content is empty at the end of the file.
    fn next_block(&mut self) -> io::Result<()> {
        self.content.clear();
        self.next = 0;
        loop {
            if let Some(block) = Block::first(&self.packed).map_err(invalid)? {
                unpack(&block, &mut self.content)?;
                self.packed.drain(..block.bytes);
                if !self.content.is_empty() {
                    return Ok(());
                }
            } else if (&mut self.input).take(READ_BYTES as u64).read_to_end(&mut self.packed)? == 0 {
                let is_end = self.packed.is_empty();
                return if is_end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }
}

fn unpack(block: &Block<'_>, content: &mut Vec<u8>) -> io::Result<()> {
    if block.method != ZSTD {
        return block.unpack(content).map_err(invalid);
    }
    let decoder = ZstdReader::new(block.compressed)?;
    decoder.take(block.content_bytes as u64 + 1).read_to_end(content)?;
    let is_whole = content.len() == block.content_bytes;
    if is_whole { Ok(()) } else { Err(invalid(BadBlock::Malformed)) }
}

fn invalid(bad: BadBlock) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, bad)
}

impl<R: Read> Read for BlockReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.next == self.content.len() {
            self.next_block()?;
        }
        let mut rest = &self.content[self.next..];
        let count = rest.read(buffer)?;
        self.next += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by the engine of ClickHouse 26.9: tables of the engine TinyLog with one column of UInt8, two blocks each.
    const OF_CLICKHOUSE: [&[u8]; 2] = [
        include_bytes!("../../tests/data/clickhouse_lz4.bin"),
        include_bytes!("../../tests/data/clickhouse_zstd.bin"),
    ];

    #[test]
    fn blocks_of_clickhouse_are_read() {
        let written: Vec<u8> = (0..9000u64).map(|n| (n * n % 251) as u8).collect();
        for file in OF_CLICKHOUSE {
            let mut content = Vec::new();
            BlockReader::new(file).read_to_end(&mut content).unwrap();
            assert!(content == written);
        }
    }

    #[test]
    fn a_file_that_ends_within_a_block_is_refused() {
        for file in OF_CLICKHOUSE {
            let whole = (1..file.len()).filter(|&end| {
                let read = BlockReader::new(&file[..end]).read_to_end(&mut Vec::new());
                let refusal = read.err().map(|error| error.kind());
                assert!(matches!(refusal, None | Some(io::ErrorKind::UnexpectedEof)), "{end}: {refusal:?}");
                refusal.is_none()
            });
            assert_eq!(whole.count(), 1, "the first block is whole");
        }
    }
}
