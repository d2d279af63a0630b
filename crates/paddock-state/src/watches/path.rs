//! The connections that watch one path.

use std::collections::HashMap;
use std::sync::Arc;

use super::Interest;
use super::gradual::Hashed;
use crate::ConnId;

/// A watched path and its watchers, those whose connections are gone and that have not been removed yet included.
#[derive(Debug)]
pub(super) struct PathWatches {
    hash: u64,
    path: Arc<str>,
    conns: Conns,
    /// Number of connections that watch the znode itself, and all their numbers in one: with one watcher that is its own.
    data_watchers: u32,
    data_watchers_xor: u64,
}

/// Most paths are watched by one connection.
#[derive(Debug)]
#[expect(
    clippy::box_collection,
    reason = "there are millions of these, and few have so many that they need a map"
)]
enum Conns {
    None,
    One(ConnId, Interest),
    Many(Box<HashMap<ConnId, Interest>>),
}

/// The watchers of the znode itself, as far as it matters when one comes or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataWatchers {
    None,
    One(ConnId),
    Many,
}

impl Hashed for PathWatches {
    fn hash(&self) -> u64 {
        self.hash
    }
}

impl PathWatches {
    pub(super) fn new(hash: u64, path: &str) -> PathWatches {
        PathWatches { hash, path: path.into(), conns: Conns::None, data_watchers: 0, data_watchers_xor: 0 }
    }

    pub(super) fn path(&self) -> &Arc<str> {
        &self.path
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self.conns, Conns::None)
    }

    pub(super) fn data_watchers(&self) -> DataWatchers {
        match self.data_watchers {
            0 => DataWatchers::None,
            1 => DataWatchers::One(ConnId::from_bits(self.data_watchers_xor)),
            _ => DataWatchers::Many,
        }
    }

    pub(super) fn interest(&self, conn: ConnId) -> Interest {
        match &self.conns {
            Conns::One(one, interest) if *one == conn => *interest,
            Conns::None | Conns::One(..) => Interest::default(),
            Conns::Many(conns) => conns.get(&conn).copied().unwrap_or_default(),
        }
    }

    /// The connections of whose interest `is_meant` says so.
    pub(super) fn conns(&self, is_meant: impl Fn(Interest) -> bool) -> Vec<ConnId> {
        match &self.conns {
            Conns::None => vec![],
            Conns::One(conn, interest) => Vec::from_iter(is_meant(*interest).then_some(*conn)),
            Conns::Many(conns) => {
                conns.iter().filter(|(_, interest)| is_meant(**interest)).map(|(conn, _)| *conn).collect()
            }
        }
    }

    /// From now on the connection watches for this; nothing removes it.
    pub(super) fn set(&mut self, conn: ConnId, interest: Interest) {
        if self.interest(conn).data.is_empty() != interest.data.is_empty() {
            self.data_watchers_xor ^= conn.to_bits();
            self.data_watchers =
                if interest.data.is_empty() { self.data_watchers - 1 } else { self.data_watchers + 1 };
        }
        match &mut self.conns {
            Conns::Many(conns) if interest.is_empty() => {
                conns.remove(&conn);
                if let (1, Some((&conn, &interest))) = (conns.len(), conns.iter().next()) {
                    self.conns = Conns::One(conn, interest);
                }
            }
            Conns::Many(conns) => drop(conns.insert(conn, interest)),
            Conns::One(one, known) if *one != conn && !interest.is_empty() => {
                self.conns = Conns::Many(Box::new(HashMap::from([(*one, *known), (conn, interest)])));
            }
            Conns::One(one, _) if *one != conn => {}
            Conns::None | Conns::One(..) if interest.is_empty() => self.conns = Conns::None,
            Conns::None | Conns::One(..) => self.conns = Conns::One(conn, interest),
        }
    }
}
