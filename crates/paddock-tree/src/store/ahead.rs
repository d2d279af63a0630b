//! Looking ahead: what requests that came together will look at is fetched for all of them at once.
//!
//! A large tree lies in memory that no cache holds. To answer about one znode after the other is to wait for that memory
//! several times for each: its index entry says where its row is, and its row where its name and data are. Those of
//! different znodes do not depend on each other, and a processor that is asked for many at a time waits for all together.
//! Nothing is compared on the way, so what is found is a guess, and the next request compares.

use std::hint::black_box;

use smallvec::SmallVec;

use super::Store;
use super::blobs::BlobId;
use super::index::NameHash;
use super::look::names_of;
use super::node::{Node, NodeId};

/// A smaller tree is in the caches anyway, about.
const NODES_MIN: usize = 100_000;

/// As many as memory is asked about together.
pub(crate) const TOGETHER: usize = 64;
pub(crate) type Ahead<T> = SmallVec<[T; TOGETHER]>;

impl Store {
    pub(crate) fn is_worth_looking_ahead(&self) -> bool {
        self.node_count >= NODES_MIN
    }

    /// Changes nothing: the next request about these paths gets the answer sooner. Says of each where its node probably is,
    /// `NONE` if nowhere; nothing of one alone, for whom there is nothing to gain.
    pub(crate) fn look_ahead(&self, paths: &[&str]) -> Ahead<NodeId> {
        if paths.len() < 2 {
            return Ahead::new();
        }
        let hashes: Ahead<Option<NameHash>> = paths.iter().map(|path| self.guess_hash(path)).collect();
        self.look_at_index(hashes.iter().flatten());
        let guess = |hash: Option<NameHash>| self.index.guess(hash?);
        let guesses: Ahead<NodeId> = hashes.into_iter().map(|hash| guess(hash).unwrap_or_default()).collect();
        let rows = guesses.iter().filter_map(|id| id.some()).map(|id| &self.nodes[id.0]);
        // Of a row that lies in two lines of the cache, the first field is in the one and the last in the other.
        let mut last_fields = 0;
        let first = |row: &Node| {
            last_fields ^= row.ctime_ms;
            row.blob
        };
        let blobs: Ahead<BlobId> = rows.map(first).collect();
        let bytes: usize = blobs.iter().map(|blob| self.blobs.look_at(*blob)).sum();
        black_box((last_fields, bytes));
        guesses
    }

    /// Looks ahead in the index alone.
    pub(super) fn look_at_index<'a>(&self, hashes: impl Iterator<Item = &'a NameHash>) {
        let bytes: usize = hashes.map(|hash| self.index.look_at(*hash)).sum();
        black_box(bytes);
    }

    /// Under which the index has the node of this path, if there is one, and if each on the way to it is the first of those
    /// with a similar hash.
    fn guess_hash(&self, path: &str) -> Option<NameHash> {
        let mut names = names_of(path)?;
        let mut hash = self.index.hash(NodeId::ROOT, names.next()?);
        for name in names {
            hash = self.index.hash(self.index.guess(hash)?, name);
        }
        Some(hash)
    }
}
