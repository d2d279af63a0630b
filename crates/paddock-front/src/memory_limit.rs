//! The limit of a member's memory: above it, writes that make the state larger are refused.
//!
//! The front refuses them before they are proposed, so that what a write does never depends on the memory of one member. Reads and
//! deletes go on.
//!
//! The memory of a process does not fall when znodes are deleted: an allocator keeps what it was given back. So the limit looks at
//! the size of the state, too. Once the process has reached the limit, the state may grow again when it has become smaller than it was then,
//! because what it needs next was given back before.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use paddock_proto::Write;

/// Bytes that a znode takes beside its path and its data, roughly.
const ZNODE_BYTES: i64 = 100;
/// Parts of 100 that may be in use when the state may grow again.
const AGAIN_PERCENT: u64 = 95;

/// Memory of a member, and its limit.
#[derive(Debug)]
pub struct MemoryLimit {
    max: AtomicU64,
    is_exceeded: AtomicBool,
    /// Size of the state when the process reached the limit; `u64::MAX` while it has not.
    state_bytes_at_limit: AtomicU64,
}

impl Default for MemoryLimit {
    fn default() -> MemoryLimit {
        MemoryLimit::new(u64::MAX)
    }
}

impl MemoryLimit {
    const NEVER: u64 = u64::MAX;

    /// A limit of `max` bytes; `u64::MAX` is none.
    pub fn new(max: u64) -> MemoryLimit {
        MemoryLimit {
            max: AtomicU64::new(max),
            is_exceeded: AtomicBool::new(false),
            state_bytes_at_limit: AtomicU64::new(MemoryLimit::NEVER),
        }
    }

    pub fn max(&self) -> u64 {
        self.max.load(Relaxed)
    }

    /// Sets another limit. The next [`MemoryLimit::note`] judges by it alone.
    pub fn set_max(&self, max: u64) {
        if max != self.max.swap(max, Relaxed) {
            self.state_bytes_at_limit.store(MemoryLimit::NEVER, Relaxed);
        }
    }

    /// True while nothing may be written that makes the state larger.
    #[inline]
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Relaxed)
    }

    /// Takes note of the memory that the process has, and of the state's part in it, both in bytes. Returns whether the limit is exceeded
    /// now if that has changed. To be called by one thread, several times a second.
    pub fn note(&self, resident_bytes: u64, state_bytes: u64) -> Option<bool> {
        let part = |bytes: u64| bytes / 100 * AGAIN_PERCENT;
        let max = self.max();
        if resident_bytes >= max && self.state_bytes_at_limit.load(Relaxed) == MemoryLimit::NEVER {
            self.state_bytes_at_limit.store(state_bytes, Relaxed);
        } else if resident_bytes < part(max) {
            self.state_bytes_at_limit.store(MemoryLimit::NEVER, Relaxed);
        }
        let at_limit = self.state_bytes_at_limit.load(Relaxed);
        let was_exceeded = self.is_exceeded();
        let is_exceeded = match at_limit {
            MemoryLimit::NEVER => false,
            at_limit if was_exceeded => state_bytes > part(at_limit),
            at_limit => state_bytes >= at_limit,
        };
        self.is_exceeded.store(is_exceeded, Relaxed);
        (is_exceeded != was_exceeded).then_some(is_exceeded)
    }
}

/// Bytes by which a write makes the state larger, roughly; below 0 if it makes it smaller. The data that it overwrites do not count.
pub(crate) fn growth(write: &Write<'_>) -> i64 {
    let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let data_size = |data: Option<&[u8]>| size(data.map_or(0, <[u8]>::len));
    match write {
        Write::Create(create) => ZNODE_BYTES + size(create.path.len()) + data_size(create.data),
        Write::SetData { data, .. } => data_size(*data),
        Write::SetAcl { .. } => 1,
        Write::Delete { path, .. } | Write::TryRemove { path, .. } | Write::RemoveRecursive { path, .. } => {
            -(ZNODE_BYTES + size(path.len()))
        }
        Write::Multi(writes) => writes.iter().map(growth).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_below_its_limit_takes_everything() {
        let limit = MemoryLimit::new(1000);
        assert_eq!((limit.note(999, 500), limit.is_exceeded()), (None, false));
    }

    #[test]
    fn what_falls_a_little_is_still_too_much() {
        let limit = MemoryLimit::new(10_000);
        assert_eq!(limit.note(10_000, 8000), Some(true));
        assert_eq!(limit.note(9600, 7900), None);
        assert_eq!(limit.note(9400, 7900), Some(false));
        assert_eq!(limit.note(9900, 7900), None);
        assert_eq!(limit.note(10_100, 7900), Some(true));
    }

    #[test]
    fn another_limit_counts_at_once() {
        let limit = MemoryLimit::new(1000);
        assert_eq!(limit.note(1500, 500), Some(true));
        limit.set_max(2000);
        assert_eq!(limit.note(1500, 500), Some(false), "below the new limit");
        limit.set_max(1200);
        assert_eq!(limit.note(1500, 500), Some(true));
        limit.set_max(u64::MAX);
        assert_eq!(limit.note(1500, 500), Some(false), "without a limit");
    }

    #[test]
    fn an_allocator_that_keeps_memory_keeps_nobody_from_using_it() {
        let limit = MemoryLimit::new(10_000);
        assert_eq!(limit.note(10_000, 8000), Some(true));
        assert_eq!(limit.note(10_000, 7500), Some(false), "the state has become smaller");
        assert_eq!(limit.note(10_000, 7999), None);
        assert_eq!(limit.note(10_000, 8000), Some(true), "it is as large as it was");
        assert_eq!(limit.note(5000, 8000), Some(false));
    }

    #[test]
    fn a_multi_that_deletes_more_than_it_creates_goes_on() {
        let delete = || Write::Delete { path: "/a", version: -1 };
        let set = |len| Write::SetData { path: "/a", data: Some(&[7; 300][..len]), version: -1 };
        assert!(growth(&set(1)) > 0 && growth(&set(0)) == 0 && growth(&delete()) < 0);
        assert!(growth(&Write::Multi(vec![delete(), set(90)])) < 0);
        assert!(growth(&Write::Multi(vec![delete(), set(300)])) > 0);
        assert_eq!(growth(&Write::CloseSession), 0);
    }
}
