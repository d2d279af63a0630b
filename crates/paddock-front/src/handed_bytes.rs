//! Room for the bytes of requests that a front hands to its engine.
//!
//! The front's thread fills it, and the engine's lets it go. With an allocation for each request the two threads meet at the allocator's lock
//! for each one. So the bytes of many requests lie side by side in a block, which is freed when the engine has taken them all.

use bytes::{Bytes, BytesMut};

/// Capacity of a block in bytes.
const BLOCK_BYTES: usize = 16 << 10;
/// A request of more bytes has an allocation of its own.
const SMALL_BYTES_MAX: usize = BLOCK_BYTES / 8;

#[derive(Debug, Default)]
pub(crate) struct HandedBytes {
    /// The bytes that are being put together; empty between calls.
    draft: Vec<u8>,
    /// Rest of the block.
    block: BytesMut,
}

impl HandedBytes {
    /// The bytes that `put` appends to an empty buffer, `bytes` of them or fewer as a rule.
    pub(crate) fn put_together(&mut self, bytes: usize, put: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        if bytes > SMALL_BYTES_MAX {
            let mut own = Vec::with_capacity(bytes);
            put(&mut own);
            return own.into();
        }
        let mut draft = std::mem::take(&mut self.draft);
        put(&mut draft);
        let copied = self.copy_of(&draft);
        draft.clear();
        self.draft = draft;
        copied
    }

    pub(crate) fn copy_of(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > SMALL_BYTES_MAX {
            return Bytes::copy_from_slice(bytes);
        }
        if self.block.capacity() < bytes.len() {
            // Begins the block anew if the engine has taken all of it.
            self.block.reserve(BLOCK_BYTES);
        }
        self.block.extend_from_slice(bytes);
        self.block.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_lie_side_by_side() {
        let mut handed = HandedBytes::default();
        let first = handed.put_together(5, |out| out.extend_from_slice(b"first"));
        let second = handed.copy_of(b"second");
        assert_eq!((&first[..], &second[..]), (&b"first"[..], &b"second"[..]));
        assert_eq!(first.as_ptr().wrapping_add(first.len()), second.as_ptr());
    }

    #[test]
    fn a_large_request_keeps_no_block_and_leaves_none() {
        let mut handed = HandedBytes::default();
        let small = handed.copy_of(b"small");
        let large = handed.put_together(1 << 20, |out| out.resize(1 << 20, 7));
        assert_eq!(large.len(), 1 << 20);
        assert_eq!(handed.draft.capacity(), 0);
        assert_eq!(small.as_ptr().wrapping_add(small.len()), handed.copy_of(b"next").as_ptr());
    }

    #[test]
    fn a_full_block_is_followed_by_another() {
        let mut handed = HandedBytes::default();
        let all: Vec<Bytes> = (0..100_u8).map(|number| handed.copy_of(&[number; 1000])).collect();
        for (number, bytes) in (0..).zip(all) {
            assert_eq!(&bytes[..], &[number; 1000]);
        }
    }
}
