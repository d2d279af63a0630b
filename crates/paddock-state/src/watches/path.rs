//! The connections that watch one path.

use std::collections::HashMap;

use super::number_set::NumberSet;
use super::{Interest, Modes};

/// A watched path and its watchers by their numbers, those whose connections are gone and that have not been removed yet included.
#[derive(Debug)]
pub(super) struct PathWatches {
    path: Box<str>,
    watchers: Watchers,
}

/// Most paths are watched by one connection.
#[derive(Debug)]
enum Watchers {
    None,
    One(u32, Interest),
    Many(Box<ManyWatchers>),
}

/// Most watchers of a path have asked for one thing: its next change, or that of its children.
#[derive(Debug, Default)]
struct ManyWatchers {
    /// Watchers that wait for the next change of the znode, and of its children. One may be in both, and in `others` with more.
    data: NumberSet,
    children: NumberSet,
    /// Interests of watchers beside standard watches.
    others: HashMap<u32, Interest>,
    /// Number of watchers.
    len: u32,
    /// Number of those that watch the znode itself, and all their numbers in one: with one such watcher that is its own.
    data_watchers: u32,
    data_watchers_xor: u32,
}

/// The watchers of the znode itself, as far as it matters when one comes or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataWatchers {
    None,
    One(u32),
    Many,
}

impl PathWatches {
    pub(super) fn new(path: &str) -> PathWatches {
        PathWatches { path: path.into(), watchers: Watchers::None }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self.watchers, Watchers::None)
    }

    pub(super) fn data_watchers(&self) -> DataWatchers {
        match &self.watchers {
            Watchers::One(one, interest) if !interest.data.is_empty() => DataWatchers::One(*one),
            Watchers::None | Watchers::One(..) => DataWatchers::None,
            Watchers::Many(many) => match many.data_watchers {
                0 => DataWatchers::None,
                1 => DataWatchers::One(many.data_watchers_xor),
                _ => DataWatchers::Many,
            },
        }
    }

    pub(super) fn interest(&self, watcher: u32) -> Interest {
        match &self.watchers {
            Watchers::One(one, interest) if *one == watcher => *interest,
            Watchers::None | Watchers::One(..) => Interest::default(),
            Watchers::Many(many) => many.interest(watcher),
        }
    }

    /// The watchers with an interest that shares a mode with this one.
    pub(super) fn watchers(&self, any_of: Interest) -> Vec<u32> {
        match &self.watchers {
            Watchers::None => vec![],
            Watchers::One(one, interest) => Vec::from_iter(interest.has(any_of).then_some(*one)),
            Watchers::Many(many) => many.watchers(any_of),
        }
    }

    /// From now on the watcher watches for this; nothing removes it.
    pub(super) fn set(&mut self, watcher: u32, interest: Interest) {
        match &mut self.watchers {
            Watchers::Many(many) => {
                many.set(watcher, interest);
                if let Some((one, interest)) = many.only_one() {
                    self.watchers = Watchers::One(one, interest);
                }
            }
            Watchers::One(one, known) if *one != watcher && !interest.is_empty() => {
                let mut many = ManyWatchers::default();
                many.set(*one, *known);
                many.set(watcher, interest);
                self.watchers = Watchers::Many(Box::new(many));
            }
            Watchers::One(one, _) if *one != watcher => {}
            Watchers::None | Watchers::One(..) if interest.is_empty() => self.watchers = Watchers::None,
            Watchers::None | Watchers::One(..) => self.watchers = Watchers::One(watcher, interest),
        }
    }
}

impl ManyWatchers {
    fn interest(&self, watcher: u32) -> Interest {
        let standard = |numbers: &NumberSet| {
            if numbers.contains(watcher) { Modes::STANDARD } else { Modes::default() }
        };
        let others = self.others.get(&watcher).copied().unwrap_or_default();
        others.with(Interest { data: standard(&self.data), children: standard(&self.children) })
    }

    fn watchers(&self, any_of: Interest) -> Vec<u32> {
        let mut all = Vec::new();
        for (modes, standard) in [(any_of.data, &self.data), (any_of.children, &self.children)] {
            if modes.has(Modes::STANDARD) {
                all.extend(standard.iter());
            }
        }
        let others = self.others.iter().filter(|(_, interest)| interest.has(any_of));
        all.extend(others.map(|(watcher, _)| *watcher));
        // A watcher that has asked for more than one thing stands in several sets.
        all.sort_unstable();
        all.dedup();
        all
    }

    fn set(&mut self, watcher: u32, interest: Interest) {
        let before = self.interest(watcher);
        if before.is_empty() != interest.is_empty() {
            self.len = if interest.is_empty() { self.len - 1 } else { self.len + 1 };
        }
        if before.data.is_empty() != interest.data.is_empty() {
            self.data_watchers_xor ^= watcher;
            self.data_watchers =
                if interest.data.is_empty() { self.data_watchers - 1 } else { self.data_watchers + 1 };
        }
        for (numbers, modes) in [(&mut self.data, interest.data), (&mut self.children, interest.children)] {
            if modes.has(Modes::STANDARD) {
                numbers.insert(watcher);
            } else {
                numbers.remove(watcher);
            }
        }
        let others = interest.without(Interest { data: Modes::STANDARD, children: Modes::STANDARD });
        if others.is_empty() {
            self.others.remove(&watcher);
        } else {
            self.others.insert(watcher, others);
        }
    }

    /// The only watcher that is left, if there are no more.
    fn only_one(&self) -> Option<(u32, Interest)> {
        if self.len != 1 {
            return None;
        }
        let mut all = self.data.iter().chain(self.children.iter()).chain(self.others.keys().copied());
        let one = all.next().expect("there is one");
        Some((one, self.interest(one)))
    }
}
