//! Watch events, and the watches that a client has to register again when it reconnects.
//!
//! Watches live on a connection: the server forgets them with it. The table mirrors what the server has, from the
//! replies and events as they arrive in order.

use std::collections::HashSet;

use paddock_proto::{AddWatchMode, EventKind, SetWatches, WatchEvent, WatcherKind, Zxid};

/// An event on the channel of `ClientOptions::events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A watch fired.
    Znode {
        /// The change.
        kind: EventKind,
        /// The znode that has changed; of [`EventKind::NodeChildrenChanged`], the parent.
        path: String,
        /// The transaction that changed it; -1 from a server that does not say.
        zxid: Zxid,
    },
    /// The connection is gone; the client looks for another one.
    Disconnected,
    /// The session goes on, with its watches. Those whose change was missed fire now.
    Reconnected,
    /// The session is over, with its watches and ephemerals. The last event.
    SessionExpired,
}

/// The watch a request asks for, registered when the answer says that the server has set it.
#[derive(Debug)]
pub(crate) enum WatchIntent {
    /// By exists: also when there is no such znode.
    Exists(String),
    Data(String),
    Children(String),
    Add(String, AddWatchMode),
    Remove(String, WatcherKind),
}

#[derive(Debug, Default)]
pub(crate) struct WatchTable {
    data: HashSet<String>,
    exist: HashSet<String>,
    child: HashSet<String>,
    persistent: HashSet<String>,
    recursive: HashSet<String>,
}

impl WatchTable {
    /// The server carried the request out.
    pub(crate) fn set(&mut self, intent: WatchIntent) {
        match intent {
            WatchIntent::Exists(path) | WatchIntent::Data(path) => self.data.insert(path),
            WatchIntent::Children(path) => self.child.insert(path),
            WatchIntent::Add(path, AddWatchMode::Persistent) => self.persistent.insert(path),
            WatchIntent::Add(path, AddWatchMode::PersistentRecursive) => self.recursive.insert(path),
            WatchIntent::Remove(path, kind) => self.remove(&path, kind),
        };
    }

    /// The server answered that there is no such znode.
    pub(crate) fn set_on_missing(&mut self, intent: WatchIntent) {
        if let WatchIntent::Exists(path) = intent {
            self.exist.insert(path);
        }
    }

    fn remove(&mut self, path: &str, kind: WatcherKind) -> bool {
        let any = kind == WatcherKind::Any;
        let mut removed = false;
        let mut drop_from = |set: &mut HashSet<String>, wanted: bool| removed |= wanted && set.remove(path);
        drop_from(&mut self.data, any || kind == WatcherKind::Data);
        drop_from(&mut self.exist, any || kind == WatcherKind::Data);
        drop_from(&mut self.child, any || kind == WatcherKind::Children);
        drop_from(&mut self.persistent, any || kind == WatcherKind::Persistent);
        drop_from(&mut self.recursive, any || kind == WatcherKind::PersistentRecursive);
        removed
    }

    /// A one-shot watch is used up by its event.
    pub(crate) fn fired(&mut self, event: &WatchEvent<'_>) {
        let data = event.kind != EventKind::NodeChildrenChanged;
        let child = matches!(event.kind, EventKind::NodeChildrenChanged | EventKind::NodeDeleted);
        if data {
            self.data.remove(event.path);
            self.exist.remove(event.path);
        }
        if child {
            self.child.remove(event.path);
        }
    }

    /// Watches to set again after a reconnect, in portions of about `path_bytes_max`, so that no server finds one too long.
    pub(crate) fn portions(&self, relative_zxid: Zxid, path_bytes_max: usize) -> Vec<SetWatches<'_>> {
        type List<'a> = for<'b> fn(&'b mut SetWatches<'a>) -> &'b mut Vec<&'a str>;
        let lists: [(&HashSet<String>, List<'_>); 5] = [
            (&self.data, |portion| &mut portion.data),
            (&self.exist, |portion| &mut portion.exist),
            (&self.child, |portion| &mut portion.child),
            (&self.persistent, |portion| &mut portion.persistent),
            (&self.recursive, |portion| &mut portion.persistent_recursive),
        ];
        let mut portions = Vec::new();
        let mut bytes = usize::MAX;
        for (paths, list) in lists {
            for path in paths {
                if bytes > path_bytes_max {
                    portions.push(SetWatches { relative_zxid, ..SetWatches::default() });
                    bytes = 0;
                }
                bytes += path.len();
                list(portions.last_mut().expect("the first path opens a portion")).push(path);
            }
        }
        portions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, path: &str) -> WatchEvent<'_> {
        WatchEvent { kind, path, zxid: Zxid(1) }
    }

    /// The table as "data exist child persistent recursive" paths.
    fn check(table: &WatchTable, expected: [&[&str]; 5]) {
        let portions = table.portions(Zxid(7), 1 << 20);
        let all = portions.first().cloned().unwrap_or_default();
        let lists = [all.data, all.exist, all.child, all.persistent, all.persistent_recursive];
        for (mut list, expected) in lists.into_iter().zip(expected) {
            list.sort_unstable();
            assert_eq!(list, expected);
        }
    }

    #[test]
    fn an_event_uses_up_one_shot_watches_only() {
        let mut table = WatchTable::default();
        table.set(WatchIntent::Data("/a".into()));
        table.set(WatchIntent::Children("/a".into()));
        table.set_on_missing(WatchIntent::Exists("/b".into()));
        table.set_on_missing(WatchIntent::Data("/c".into()));
        table.set(WatchIntent::Add("/a".into(), AddWatchMode::Persistent));
        table.set(WatchIntent::Add("/".into(), AddWatchMode::PersistentRecursive));
        check(&table, [&["/a"], &["/b"], &["/a"], &["/a"], &["/"]]);

        table.fired(&event(EventKind::NodeCreated, "/b"));
        check(&table, [&["/a"], &[], &["/a"], &["/a"], &["/"]]);
        table.fired(&event(EventKind::NodeChildrenChanged, "/a"));
        check(&table, [&["/a"], &[], &[], &["/a"], &["/"]]);
        table.fired(&event(EventKind::NodeDeleted, "/a"));
        check(&table, [&[], &[], &[], &["/a"], &["/"]]);
    }

    #[test]
    fn removing_takes_only_the_kind_asked_for() {
        let mut table = WatchTable::default();
        table.set(WatchIntent::Data("/a".into()));
        table.set(WatchIntent::Add("/a".into(), AddWatchMode::Persistent));
        table.set(WatchIntent::Remove("/a".into(), WatcherKind::Data));
        check(&table, [&[], &[], &[], &["/a"], &[]]);
        table.set(WatchIntent::Remove("/a".into(), WatcherKind::Any));
        check(&table, [&[], &[], &[], &[], &[]]);
    }

    #[test]
    fn many_watches_go_in_portions() {
        let mut table = WatchTable::default();
        for number in 0..100 {
            table.set(WatchIntent::Data(format!("/{number:03}")));
        }
        let portions = table.portions(Zxid(7), 39);
        assert_eq!(portions.iter().map(|portion| portion.data.len()).sum::<usize>(), 100);
        assert_eq!(portions.len(), 10);
    }
}
