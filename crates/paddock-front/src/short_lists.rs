//! Lists of children that were short a moment ago.
//!
//! A list behind writes of its connection goes to the engine, unless it is long. To see that takes the state's lock, for which a worker waits while the engine
//! applies those writes. A list that was short does not become very long within milliseconds, so a front remembers it for that time.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

/// Time for which a list counts as short, in milliseconds.
const KNOWN_MS: u64 = 10;
/// Lists that a front remembers.
const LISTS: usize = 64;
/// Bytes of a path that is remembered, at most.
const PATH_BYTES_MAX: usize = 256;

/// Lists by their paths, each in the one place that its path's hash has.
#[derive(Debug)]
pub(crate) struct ShortLists([Known; LISTS]);

#[derive(Debug, Default)]
struct Known {
    path: Vec<u8>,
    /// Monotonic time in milliseconds from which on the list may be long.
    until_ms: u64,
}

impl Default for ShortLists {
    fn default() -> ShortLists {
        ShortLists(std::array::from_fn(|_| Known::default()))
    }
}

impl ShortLists {
    /// True if the list at a path was short not long before this time.
    pub(crate) fn has(&self, path: &[u8], now_ms: u64) -> bool {
        let known = &self.0[place_of(path)];
        now_ms < known.until_ms && known.path == path
    }

    /// The list at a path is short at this time.
    pub(crate) fn note(&mut self, path: &[u8], now_ms: u64) {
        if path.len() <= PATH_BYTES_MAX {
            let known = &mut self.0[place_of(path)];
            known.path.clear();
            known.path.extend_from_slice(path);
            known.until_ms = now_ms + KNOWN_MS;
        }
    }
}

fn place_of(path: &[u8]) -> usize {
    FixedState::default().hash_one(path) as usize % LISTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_counts_as_short_for_a_moment() {
        let mut lists = ShortLists::default();
        assert!(!lists.has(b"/a", 0));
        lists.note(b"/a", 100);
        assert!(lists.has(b"/a", 100));
        assert!(lists.has(b"/a", 99 + KNOWN_MS));
        assert!(!lists.has(b"/a", 100 + KNOWN_MS));
        assert!(!lists.has(b"/b", 100), "nothing is known of that one");
    }
}
