//! Memory that the clients of a member share: what they have sent and was not answered, and what they were answered and have not read.
//!
//! A connection may hold an eighth of what is left: one that reads nothing stops asking early, and many that read nothing leave something
//! for the others. A connection that holds little is never kept from asking for little, so such clients do not notice.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of all connections of a member, and their limit.
#[derive(Debug)]
pub struct ClientBuffers {
    max: AtomicUsize,
    held: AtomicUsize,
}

impl Default for ClientBuffers {
    fn default() -> ClientBuffers {
        ClientBuffers::new(ClientBuffers::MAX_BY_DEFAULT)
    }
}

impl ClientBuffers {
    /// 256 MiB.
    pub const MAX_BY_DEFAULT: usize = 256 << 20;
    /// Share of one connection in what is left.
    const SHARE: usize = 8;

    /// Buffers that may have `max` bytes together.
    pub fn new(max: usize) -> ClientBuffers {
        ClientBuffers { max: AtomicUsize::new(max), held: AtomicUsize::new(0) }
    }

    /// Bytes that connections may hold together.
    #[inline]
    pub fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Sets how many bytes connections may hold together from now on. What they hold already stays.
    pub fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Bytes that connections hold; those of connections that hold little are not counted.
    #[inline]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Bytes that are left.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.max().saturating_sub(self.held())
    }

    /// Bytes that one connection may hold now.
    #[inline]
    pub(crate) fn share(&self) -> usize {
        self.left() / ClientBuffers::SHARE
    }

    /// True if little is left, so that a connection that does not read is in the way of others.
    pub(crate) fn is_short(&self) -> bool {
        self.left() < self.max() / 4
    }

    /// A connection that held `before` bytes holds `now`.
    pub(crate) fn change(&self, before: usize, now: usize) {
        // Wraps around to subtract: the sum is that of what connections hold.
        self.held.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_held_the_less_a_connection_may_hold() {
        let buffers = ClientBuffers::new(8000);
        assert_eq!((buffers.share(), buffers.is_short()), (1000, false));
        buffers.change(0, 7200);
        assert_eq!((buffers.share(), buffers.left(), buffers.is_short()), (100, 800, true));
        buffers.change(7200, 9000);
        assert_eq!((buffers.share(), buffers.left()), (0, 0), "one reply may be larger than what is left");
        buffers.change(9000, 0);
        assert_eq!((buffers.held(), buffers.share()), (0, 1000));
    }
}
