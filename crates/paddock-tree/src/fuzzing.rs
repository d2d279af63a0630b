//! Loading a snapshot whatever its bytes are. For the fuzzer, and for replaying what it found.

use crate::{LoadError, Tree, TreeLoader};

/// The tree of blocks that were made up, whose digest was not known.
pub fn assemble(loader: TreeLoader) -> Result<Tree, LoadError> {
    loader.assemble()
}

/// Takes `data` as the blocks of a snapshot, each behind its length (u16, little-endian). What the loader accepts is
/// a tree: saved and loaded again it is the same.
pub fn tree_snapshot(mut data: &[u8]) {
    let mut blocks = Vec::new();
    while let Some((len, rest)) = data.split_first_chunk::<2>() {
        let (block, rest) = rest.split_at(usize::from(u16::from_le_bytes(*len)).min(rest.len()));
        blocks.push(block.to_vec());
        data = rest;
    }
    let Some(mut tree) = load(&blocks) else { return };
    let mut again = saved_and_loaded(&mut tree);
    assert!(facts(&again) == facts(&tree), "a tree changed by being saved and loaded");
    // The numbers of ACLs are a tree's own affair. Loading numbers them anew, so from here on nothing may differ.
    let mut third = saved_and_loaded(&mut again);
    assert!(save(&mut third) == save(&mut again), "a tree changed by being saved and loaded again");
}

fn saved_and_loaded(tree: &mut Tree) -> Tree {
    load(&save(tree)).expect("what a tree saves can be loaded")
}

fn facts(tree: &Tree) -> (i64, usize, usize, u64, Vec<(i64, i32)>) {
    let sessions = tree.sessions().map(|(session, timeout_ms)| (session.0, timeout_ms)).collect();
    (tree.zxid().0, tree.node_count(), tree.ephemeral_count(), tree.data_bytes(), sessions)
}

fn load(blocks: &[Vec<u8>]) -> Option<Tree> {
    let mut loader = TreeLoader::new();
    blocks.iter().try_for_each(|block| loader.block(block)).ok()?;
    assemble(loader).ok()
}

fn save(tree: &mut Tree) -> Vec<Vec<u8>> {
    let (mut scan, mut blocks) = (tree.begin_snapshot(), Vec::new());
    let mut more = true;
    while more {
        let mut block = Vec::new();
        more = tree.scan_snapshot(&mut scan, 4, &mut block);
        blocks.push(block);
    }
    tree.end_snapshot(scan);
    blocks
}
