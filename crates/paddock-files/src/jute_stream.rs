//! Jute values from a stream of bytes, with the Adler-32 of everything read.

use std::fmt;
use std::io::Read;

use simd_adler32::Adler32;

use crate::error::Problem;

const BUFFER_BYTES: usize = 256 << 10;

/// Adler-32 of what has been read.
struct Checksum(Adler32);

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0.finish())
    }
}

#[derive(Debug)]
pub(crate) struct JuteStream<R> {
    input: R,
    buffer: Box<[u8]>,
    /// Bytes of the buffer that have been read, and those that are there.
    next: usize,
    filled: usize,
    /// Bytes of the buffer that are in the checksum.
    summed: usize,
    /// Bytes of the stream before the buffer.
    base: u64,
    checksum: Checksum,
}

impl<R: Read> JuteStream<R> {
    pub(crate) fn new(input: R) -> JuteStream<R> {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        JuteStream {
            input,
            buffer,
            next: 0,
            filled: 0,
            summed: 0,
            base: 0,
            checksum: Checksum(Adler32::new()),
        }
    }

    /// Bytes of the (decompressed) stream that have been read.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.next as u64
    }

    /// The other side of the stream, if bytes can be written to it too.
    pub(crate) fn get_mut(&mut self) -> &mut R {
        &mut self.input
    }

    /// Adler-32 of all that has been read.
    pub(crate) fn checksum(&mut self) -> i64 {
        self.sum_up();
        i64::from(self.checksum.0.finish())
    }

    fn sum_up(&mut self) {
        self.checksum.0.write(&self.buffer[self.summed..self.next]);
        self.summed = self.next;
    }

    /// Bytes that are ready, after another read if there are none; an empty slice at the end.
    fn ready(&mut self) -> Result<&[u8], Problem> {
        if self.next == self.filled {
            self.sum_up();
            self.base += self.next as u64;
            (self.next, self.summed) = (0, 0);
            self.filled = 0;
            self.filled = self.input.read(&mut self.buffer)?;
        }
        Ok(&self.buffer[self.next..self.filled])
    }

    pub(crate) fn is_at_end(&mut self) -> Result<bool, Problem> {
        Ok(self.ready()?.is_empty())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        let mut have = 0;
        while have < N {
            let ready = self.ready()?;
            if ready.is_empty() {
                return Err(Problem::Truncated);
            }
            let count = ready.len().min(N - have);
            bytes[have..have + count].copy_from_slice(&ready[..count]);
            self.next += count;
            have += count;
        }
        Ok(bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Problem> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Problem> {
        self.array().map(i64::from_be_bytes)
    }

    /// The count of a vector; null counts as empty. Nothing may be reserved for it.
    pub(crate) fn count(&mut self) -> Result<u32, Problem> {
        match self.i32()? {
            -1 => Ok(0),
            count => u32::try_from(count).map_err(|_| Problem::Length(count)),
        }
    }

    /// Reads a buffer into `bytes`; false for null. Memory grows only with what is really there.
    pub(crate) fn buffer(&mut self, bytes: &mut Vec<u8>) -> Result<bool, Problem> {
        bytes.clear();
        let len = match self.i32()? {
            -1 => return Ok(false),
            len => usize::try_from(len).map_err(|_| Problem::Length(len))?,
        };
        self.fill(bytes, len).map(|()| true)
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, len: usize) -> Result<(), Problem> {
        while bytes.len() < len {
            let ready = self.ready()?;
            if ready.is_empty() {
                return Err(Problem::Truncated);
            }
            let count = ready.len().min(len - bytes.len());
            bytes.extend_from_slice(&ready[..count]);
            self.next += count;
        }
        Ok(())
    }

    /// Reads a buffer that may not be longer than this.
    pub(crate) fn short_buffer(&mut self, bytes: &mut Vec<u8>, bytes_max: i32) -> Result<bool, Problem> {
        bytes.clear();
        match self.i32()? {
            -1 => Ok(false),
            len if (0..=bytes_max).contains(&len) => self.fill(bytes, len as usize).map(|()| true),
            len => Err(Problem::Length(len)),
        }
    }

    /// A string; null counts as empty.
    pub(crate) fn string(&mut self, bytes: &mut Vec<u8>) -> Result<String, Problem> {
        self.buffer(bytes)?;
        String::from_utf8(bytes.clone()).map_err(|_| Problem::NotUtf8)
    }
}
