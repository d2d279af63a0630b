//! Values as ClickHouse writes them: little-endian numbers, and strings behind their length in seven bits a byte.

use std::io::{BufRead, BufReader, Read};

use crate::error::Problem;

const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of the longest length: seven bits in each.
const LENGTH_BYTES_MAX: u32 = 10;

pub(super) struct ByteStream<R> {
    input: BufReader<R>,
    offset: u64,
}

impl<R: Read> ByteStream<R> {
    pub(super) fn new(input: R) -> ByteStream<R> {
        ByteStream { input: BufReader::with_capacity(BUFFER_BYTES, input), offset: 0 }
    }

    /// Bytes of the (decompressed) stream that have been read.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn is_at_end(&mut self) -> Result<bool, Problem> {
        Ok(self.input.fill_buf()?.is_empty())
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.offset += N as u64;
        Ok(bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Problem> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Problem> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Problem> {
        self.array().map(i64::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        self.array().map(u64::from_le_bytes)
    }

    fn length(&mut self) -> Result<u64, Problem> {
        let mut length = 0;
        for at in 0..LENGTH_BYTES_MAX {
            let byte = self.u8()?;
            length |= u64::from(byte & 0x7f).checked_shl(7 * at).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(length);
            }
        }
        Err(Problem::Length(-1))
    }

    /// Reads `len` bytes. Memory grows only with what is really there.
    pub(super) fn fill(&mut self, bytes: &mut Vec<u8>, len: u64) -> Result<(), Problem> {
        bytes.clear();
        (&mut self.input).take(len).read_to_end(bytes)?;
        self.offset += bytes.len() as u64;
        if (bytes.len() as u64) < len { Err(Problem::Truncated) } else { Ok(()) }
    }

    /// A string, of any bytes.
    pub(super) fn blob(&mut self, bytes: &mut Vec<u8>) -> Result<(), Problem> {
        let len = self.length()?;
        self.fill(bytes, len)
    }

    pub(super) fn string(&mut self) -> Result<String, Problem> {
        let mut bytes = Vec::new();
        self.blob(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| Problem::NotUtf8)
    }
}
