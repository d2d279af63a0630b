//! Garbage of the tree: empty containers and expired TTL znodes, which an engine looks for now and then.

use crate::Now;
use paddock_proto::jute::Writer;
use paddock_tree::Tree;

#[derive(Debug)]
pub struct Garbage {
    interval_ms: u64,
    /// Number of znodes that one search removes at most.
    max: usize,
    /// Time of the next search, in milliseconds of the monotonic clock.
    next_ms: u64,
    is_due: bool,
}

impl Garbage {
    pub fn new(interval_ms: u64, max: usize, now: Now) -> Garbage {
        Garbage { interval_ms, max, next_ms: now.monotonic_ms + interval_ms, is_due: false }
    }

    /// A tick of an engine that may remove them has passed.
    pub fn tick(&mut self, now: Now) {
        if now.monotonic_ms >= self.next_ms {
            self.next_ms = now.monotonic_ms + self.interval_ms;
            self.is_due = true;
        }
    }

    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Bodies of the commands that remove what is found, if a search is due.
    pub fn find(&mut self, now: Now, tree: &Tree) -> Vec<Vec<u8>> {
        if !std::mem::take(&mut self.is_due) {
            return Vec::new();
        }
        let body = |path: String| {
            let mut body = Vec::new();
            body.put_string(&path);
            body
        };
        tree.expired_nodes(now.wall_ms, self.max).into_iter().map(body).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_due_once_in_each_interval() {
        let at = |monotonic_ms| Now { monotonic_ms, wall_ms: 0 };
        let mut garbage = Garbage::new(1000, 10, at(0));
        garbage.tick(at(999));
        assert!(!garbage.is_due());
        garbage.tick(at(1000));
        assert!(garbage.is_due());
        assert!(garbage.find(at(1000), &Tree::new()).is_empty());
        assert!(!garbage.is_due());
        garbage.tick(at(1999));
        assert!(!garbage.is_due());
    }
}
