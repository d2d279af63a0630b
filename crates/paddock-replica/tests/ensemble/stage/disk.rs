//! Contents of a member's disk: what it had synced when its process ended.

use paddock_replica::testing::MessageFacts;
use paddock_replica::{Cluster, HardState, LogEntry, Membership};
use paddock_tree::{Tree, TreeLoader};

#[derive(Clone, Default)]
pub(crate) struct Disk {
    /// Index and term, who took part, and the blocks one behind the other, each behind its length.
    pub(super) snapshot: Option<((u64, u64), Membership, Vec<u8>)>,
    /// A snapshot that is on its way here.
    pub(super) partial: Vec<u8>,
    /// Behind the snapshot.
    pub(super) entries: Vec<LogEntry>,
    pub(super) hard_state: HardState,
    pub(super) cluster: Cluster,
    /// The contents are wrong: the member begins anew without them.
    pub(super) has_diverged: bool,
}

impl Disk {
    /// The last entry that is here, and its term.
    fn last(&self) -> (u64, u64) {
        let snapshot = self.snapshot.as_ref().map_or((0, 0), |(applied, ..)| *applied);
        self.entries.last().map_or(snapshot, |entry| (entry.index, entry.term))
    }

    /// Asserts that the promise of a message is on disk when it leaves: a vote, entries that are acknowledged.
    pub(super) fn check_promise(&self, member: u64, to: u64, message: &[u8]) {
        let MessageFacts { campaign, vote, acknowledges, .. } = MessageFacts::of(message);
        let own = campaign.map(|(term, _)| (term, member));
        for (term, candidate) in own.into_iter().chain(vote.map(|term| (term, to))) {
            let HardState { term: written, vote, .. } = self.hard_state;
            let is_here = written > term || (written, vote) == (term, candidate);
            assert!(
                is_here,
                "member {member} votes for {candidate} in term {term}, with {vote} in {written} on disk"
            );
        }
        if let Some((index, term)) = acknowledges {
            let (last, last_term) = self.last();
            let is_here = last >= index || self.hard_state.term > term;
            assert!(is_here, "member {member} acknowledges {index}, with {last} of term {last_term} on disk");
        }
    }
}

/// True if the blocks are as long as they say.
pub(super) fn is_whole(mut bytes: &[u8]) -> bool {
    while let Some((len, rest)) = bytes.split_first_chunk::<4>() {
        let Some(behind) = rest.get(u32::from_le_bytes(*len) as usize..) else { return false };
        bytes = behind;
    }
    bytes.is_empty()
}

pub(super) fn load(mut bytes: &[u8]) -> Tree {
    let mut loader = TreeLoader::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<4>() {
        let (block, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        loader.block(block).expect("a snapshot comes as it was saved");
        bytes = rest;
    }
    loader.finish().expect("a snapshot is a tree")
}

pub(super) fn save(tree: &mut Tree) -> Vec<Vec<u8>> {
    let (mut scan, mut blocks) = (tree.begin_snapshot(), Vec::new());
    let mut more = true;
    while more {
        let mut block = Vec::new();
        more = tree.scan_snapshot(&mut scan, 1000, &mut block);
        blocks.push(block);
    }
    tree.end_snapshot(scan);
    blocks
}
