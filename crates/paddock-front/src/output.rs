//! Bytes on their way to a client.

use paddock_proto::blocks;

/// A buffer that grew beyond this is let go when it is empty, in bytes.
pub(crate) const BUFFER_BYTES_KEPT: usize = 16 << 10;

/// Replies and events of a connection that the client has not been sent yet, in the order in which it must see them.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// The same in compressed blocks, which are sent in its place where the client wants that.
    packed: Vec<u8>,
    /// Bytes of `bytes`, or of `packed`, that were sent.
    sent: usize,
}

impl Output {
    /// Bytes that are not sent yet. Those that are still to be compressed count as they are.
    #[inline]
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.bytes.len() + self.packed.len() - self.sent
    }

    /// Bytes of memory that it takes, beside buffers that are kept.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        held_bytes(&self.bytes) + held_bytes(&self.packed)
    }

    /// The first packet of a connection is never compressed, whatever the client has asked for in its greeting.
    #[inline]
    pub(crate) fn greeting(&mut self, is_compressed: bool) -> &mut Vec<u8> {
        if is_compressed { &mut self.packed } else { &mut self.bytes }
    }

    /// The bytes to send next.
    #[inline]
    pub(crate) fn unsent(&mut self, is_compressed: bool) -> &[u8] {
        if is_compressed {
            blocks::pack(&self.bytes, &mut self.packed);
            clear(&mut self.bytes);
        }
        let sending = if is_compressed { &self.packed } else { &self.bytes };
        &sending[self.sent..]
    }

    /// The client was sent so many of these.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize, is_compressed: bool) {
        self.sent += bytes;
        let sending = if is_compressed { &mut self.packed } else { &mut self.bytes };
        assert!(self.sent <= sending.len(), "more was sent than there is");
        if self.sent == sending.len() {
            clear(sending);
            self.sent = 0;
        }
    }

    /// Drops what is not sent.
    pub(crate) fn drop_all(&mut self) {
        *self = Output::default();
    }
}

/// Bytes of memory that a buffer takes, beside what it keeps when it is empty.
#[inline]
pub(crate) fn held_bytes(buffer: &Vec<u8>) -> usize {
    if buffer.capacity() <= BUFFER_BYTES_KEPT { buffer.len() } else { buffer.capacity() }
}

/// Empties a buffer that may have become large.
#[inline]
pub(crate) fn clear(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(BUFFER_BYTES_KEPT);
}
