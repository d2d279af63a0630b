//! Frames on their way into a socket. Small ones share a chunk, large payloads are not copied, and one write takes
//! many.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use super::frame::HEADER_BYTES;
use super::stream::Stream;

/// A larger payload gets a chunk of its own.
const COPIED_BYTES_MAX: usize = 16 << 10;
/// A chunk of small frames takes no more when it has this many bytes.
const SHARED_BYTES: usize = 64 << 10;
/// Number of chunks that go into one write.
const PIECES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that have been taken.
    taken: usize,
    /// True if the last chunk takes more frames.
    is_open: bool,
}

impl Chunks {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn push(&mut self, header: [u8; HEADER_BYTES], payload: Vec<u8>) {
        self.append(&header);
        if payload.len() <= COPIED_BYTES_MAX {
            self.append(&payload);
        } else {
            self.chunks.push_back(payload);
            self.is_open = false;
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        match self.chunks.back_mut().filter(|_| self.is_open) {
            Some(last) => last.extend_from_slice(bytes),
            None => self.chunks.push_back(bytes.to_vec()),
        }
        self.is_open = self.chunks.back().is_some_and(|last| last.len() < SHARED_BYTES);
    }

    /// Writes what the socket takes of the first chunks, and returns how much that was.
    pub(super) fn write_to(&mut self, stream: &Stream) -> io::Result<usize> {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let count = self.pieces(&mut pieces);
        let written = stream.try_write(&pieces[..count])?;
        self.advance(written);
        Ok(written)
    }

    fn pieces<'a>(&'a self, pieces: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (piece, chunk) in pieces.iter_mut().zip(&self.chunks) {
            *piece = IoSlice::new(if count == 0 { &chunk[self.taken..] } else { chunk });
            count += 1;
        }
        count
    }

    fn advance(&mut self, written: usize) {
        self.taken += written;
        while let Some(first) = self.chunks.front().filter(|first| first.len() <= self.taken) {
            self.taken -= first.len();
            self.chunks.pop_front();
        }
        assert!(self.taken == 0 || !self.chunks.is_empty(), "more was written than there was");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes out everything, `step` bytes at a time.
    fn drain(mut chunks: Chunks, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !chunks.is_empty() {
            let mut pieces = [IoSlice::new(&[]); 3];
            let count = chunks.pieces(&mut pieces);
            let bytes = pieces[..count].iter().flat_map(|piece| piece.iter().copied());
            let before = out.len();
            out.extend(bytes.take(step));
            let written = out.len() - before;
            chunks.advance(written);
        }
        out
    }

    #[test]
    fn bytes_leave_in_order_however_many_the_socket_takes() {
        let lengths = [1, 100, COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1, 5, 3 * SHARED_BYTES, 0, 7];
        for step in [1, 12, 4096, 70_000, usize::MAX] {
            let (mut chunks, mut expected) = (Chunks::default(), Vec::new());
            for (n, length) in lengths.into_iter().enumerate() {
                let (header, payload) = ([n as u8; HEADER_BYTES], vec![n as u8; length]);
                expected.extend_from_slice(&header);
                expected.extend_from_slice(&payload);
                chunks.push(header, payload);
            }
            assert!(drain(chunks, step) == expected, "in steps of {step}");
        }
    }

    #[test]
    fn small_frames_share_chunks() {
        let mut chunks = Chunks::default();
        (0..1000).for_each(|_| chunks.push([0; HEADER_BYTES], vec![0; 100]));
        assert_eq!(chunks.chunks.len(), 2);
    }
}
