//! Looking ahead: what requests that came together will look at is fetched for all of them at once.
//!
//! A large tree lies in memory that no cache holds. To answer about one znode after the other is to wait for that memory
//! several times for each: its index entry says where its row is, and its row where its name and data are. Those of
//! different znodes do not depend on each other, and a processor that is asked for many at a time waits for all together.

use std::hint::black_box;

use smallvec::SmallVec;

use super::Store;
use super::blobs::BlobId;
use super::index::NameHash;
use super::node::NodeId;

/// A smaller tree is in the caches anyway, about.
const NODES_MIN: usize = 100_000;

impl Store {
    pub(crate) fn is_worth_looking_ahead(&self) -> bool {
        self.node_count >= NODES_MIN
    }

    /// Changes nothing, and finds nothing out: whoever asks about these paths next only gets the answer sooner.
    pub(crate) fn look_ahead(&self, paths: &[&str]) {
        if paths.len() < 2 {
            return;
        }
        let hashes: SmallVec<[NameHash; 64]> =
            paths.iter().filter_map(|path| self.hash_of_path(path)).collect();
        self.look_at_index(&hashes);
        // The node of this path, or another one with a similar hash.
        let guess = |&hash| self.index.find(hash, |_| true);
        let nodes: SmallVec<[NodeId; 64]> = hashes.iter().filter_map(guess).collect();
        let blobs: SmallVec<[BlobId; 64]> = nodes.iter().map(|id| self.nodes[id.0].blob).collect();
        let bytes: usize = blobs.iter().map(|blob| self.blobs.look_at(*blob)).sum();
        black_box(bytes);
    }

    /// The same for the index alone.
    pub(super) fn look_at_index(&self, hashes: &[NameHash]) {
        let bytes: usize = hashes.iter().map(|hash| self.index.look_at(*hash)).sum();
        black_box(bytes);
    }

    fn hash_of_path(&self, path: &str) -> Option<NameHash> {
        let (parent, name) = path.rsplit_once('/')?;
        Some(self.index.hash(self.find(parent)?, name.as_bytes()))
    }
}
