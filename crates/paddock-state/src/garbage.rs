//! Garbage of the tree: empty containers and expired TTL znodes, which an engine looks for now and then.

use crate::Now;
use paddock_proto::jute::Writer;
use paddock_tree::{ExpiryCursor, Tree};

/// Znodes that one step of a search looks at: it holds the state for some hundred microseconds at most.
const LOOKS_PER_STEP: usize = 1000;

#[derive(Debug)]
pub struct Garbage {
    interval_ms: u64,
    /// Number of znodes that one search removes at most.
    max: usize,
    /// Time of the next search, in milliseconds of the monotonic clock.
    next_ms: u64,
    search: Option<Search>,
}

/// A search under way.
#[derive(Debug)]
struct Search {
    cursor: ExpiryCursor,
    /// Number of znodes that it may still remove.
    left: usize,
}

impl Garbage {
    pub fn new(interval_ms: u64, max: usize, now: Now) -> Garbage {
        Garbage { interval_ms, max, next_ms: now.monotonic_ms + interval_ms, search: None }
    }

    /// A tick of an engine that may not remove them has passed: it leaves them alone for a whole interval from now on.
    pub fn rest(&mut self, now: Now) {
        self.next_ms = now.monotonic_ms + self.interval_ms;
        self.search = None;
    }

    /// A tick of an engine that may remove them has passed.
    pub fn tick(&mut self, now: Now) {
        if now.monotonic_ms >= self.next_ms {
            self.next_ms = now.monotonic_ms + self.interval_ms;
            let begun = Search { cursor: ExpiryCursor::default(), left: self.max };
            self.search.get_or_insert(begun);
        }
    }

    /// True while there is a step of a search to be done.
    pub fn is_due(&self) -> bool {
        self.search.is_some()
    }

    /// Bodies of the commands that remove what the next step of a search finds, if there is one to be done.
    pub fn find(&mut self, now: Now, tree: &Tree) -> Vec<Vec<u8>> {
        let Some(search) = &mut self.search else { return Vec::new() };
        let mut paths = tree.expired_behind(&mut search.cursor, now.wall_ms, LOOKS_PER_STEP);
        paths.truncate(search.left);
        search.left -= paths.len();
        if search.left == 0 || search.cursor.is_at_end() {
            self.search = None;
        }
        let body = |path: String| {
            let mut body = Vec::new();
            body.put_string(&path);
            body
        };
        paths.into_iter().map(body).collect()
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::{IdList, OpCode, SessionId};
    use paddock_tree::Command;

    use super::*;

    fn apply(tree: &mut Tree, op: OpCode, body: &[u8]) {
        let mut bytes = Vec::new();
        Command::encode(SessionId(7), 1, IdList::NONE, op, body, &mut bytes);
        let outcome = tree.apply(&Command::decode(&bytes).unwrap());
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    }

    /// TTL znodes that have expired after a second, and as many that have not.
    fn tree(each: usize) -> Tree {
        let mut tree = Tree::new();
        apply(&mut tree, OpCode::CreateSession, &4000i32.to_be_bytes());
        for number in 0..2 * each {
            let mut body = Vec::new();
            body.put_string(&format!("/{number}"));
            body.put_buffer(None);
            body.put_i32(1);
            body.put_i32(31);
            body.put_string("world");
            body.put_string("anyone");
            body.put_i32(5);
            body.put_i64(if number % 2 == 0 { 1 } else { 1_000_000 });
            apply(&mut tree, OpCode::CreateTtl, &body);
        }
        tree
    }

    /// Numbers of znodes that the steps of a search find.
    fn steps(each: usize, max: usize) -> Vec<usize> {
        let (tree, now) = (tree(each), Now { monotonic_ms: 1000, wall_ms: 1000 });
        let mut garbage = Garbage::new(1000, max, Now { monotonic_ms: 0, wall_ms: 0 });
        garbage.tick(now);
        std::iter::from_fn(|| garbage.is_due().then(|| garbage.find(now, &tree).len())).collect()
    }

    #[test]
    fn a_search_goes_in_steps_and_finds_each_once() {
        assert_eq!(steps(1200, 10_000), [500, 500, 200]);
        assert_eq!(steps(1000, 10_000), [500, 500]);
        assert_eq!(steps(1200, 700), [500, 200]);
        assert_eq!(steps(0, 700), [0]);
    }

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

    #[test]
    fn whoever_may_remove_nothing_for_a_while_waits_an_interval_afterwards() {
        let at = |monotonic_ms| Now { monotonic_ms, wall_ms: 0 };
        let mut garbage = Garbage::new(1000, 10, at(0));
        garbage.tick(at(1000));
        garbage.rest(at(7000));
        assert!(!garbage.is_due(), "a search goes on");
        garbage.tick(at(7999));
        assert!(!garbage.is_due());
        garbage.tick(at(8000));
        assert!(garbage.is_due());
    }
}
