//! Large buffers that outputs have let go, for the next ones that become large.
//!
//! A turn of many requests may leave half a megabyte of replies. A buffer that grows that far is copied again and again, and one that is let go at its end is mapped into
//! memory anew for the next. So a front keeps a few, which its connections have in turns: an idle connection has none.

use super::BUFFER_BYTES_KEPT;

/// Capacities that a front keeps together, in bytes.
const KEPT_MAX: usize = 4 << 20;
/// Small buffers that are kept for connections that have large ones now.
const SMALL_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct LargeBuffers {
    large: Vec<Vec<u8>>,
    /// Capacities of the large ones together, in bytes.
    bytes: usize,
    small: Vec<Vec<u8>>,
}

impl LargeBuffers {
    /// Puts a large buffer in the place of an empty one, if there is one. Returns true if there was.
    #[inline]
    pub(crate) fn lend(&mut self, buffer: &mut Vec<u8>) -> bool {
        if self.large.is_empty() {
            return false;
        }
        self.lend_last(buffer);
        true
    }

    #[inline(never)]
    fn lend_last(&mut self, buffer: &mut Vec<u8>) {
        assert!(buffer.is_empty(), "a buffer is lent in the place of an empty one");
        let Some(large) = self.large.pop() else { return };
        self.bytes -= large.capacity();
        let small = std::mem::replace(buffer, large);
        if self.small.len() < SMALL_MAX && small.capacity() > 0 {
            self.small.push(small);
        }
    }

    /// Takes a large buffer that holds little, or nothing since all was sent, and leaves what it holds in a small one.
    #[inline]
    pub(crate) fn take_back(&mut self, buffer: &mut Vec<u8>) {
        if buffer.len() <= BUFFER_BYTES_KEPT && buffer.capacity() > BUFFER_BYTES_KEPT {
            self.take_back_large(buffer);
        }
    }

    #[inline(never)]
    fn take_back_large(&mut self, buffer: &mut Vec<u8>) {
        let mut small = self.small.pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES_KEPT));
        small.extend_from_slice(buffer);
        let mut large = std::mem::replace(buffer, small);
        if self.bytes + large.capacity() <= KEPT_MAX {
            large.clear();
            self.bytes += large.capacity();
            self.large.push(large);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_large_buffers_in_turns() {
        let mut buffers = LargeBuffers::default();
        let mut first = Vec::with_capacity(100);
        assert!(!buffers.lend(&mut first), "there is none yet");
        first = vec![1; BUFFER_BYTES_KEPT + 1];
        buffers.take_back(&mut first);
        assert_eq!(first.len(), BUFFER_BYTES_KEPT + 1, "it is not sent");
        first.clear();
        buffers.take_back(&mut first);
        assert!(first.capacity() <= BUFFER_BYTES_KEPT);

        let mut second = Vec::with_capacity(100);
        assert!(buffers.lend(&mut second) && second.capacity() > BUFFER_BYTES_KEPT);
        assert!(!buffers.lend(&mut first), "another connection has it");
        second.extend_from_slice(b"few");
        buffers.take_back(&mut second);
        assert_eq!((&second[..], second.capacity()), (&b"few"[..], 100));
        assert!(buffers.lend(&mut first));
    }

    #[test]
    fn no_more_than_a_few_megabytes_are_kept() {
        let mut buffers = LargeBuffers::default();
        for _ in 0..100 {
            buffers.take_back(&mut Vec::with_capacity(1 << 20));
        }
        assert_eq!((buffers.large.len(), buffers.bytes), (4, 4 << 20));
        (0..4).for_each(|_| assert!(buffers.lend(&mut Vec::new())));
        assert_eq!((buffers.large.len(), buffers.bytes), (0, 0));
    }
}
