//! Loading a snapshot whatever its bytes are. For the fuzzer, and for replaying what it found.

use crate::{Tree, TreeLoader};

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
    let saved = save(&mut tree);
    let mut again = load(&saved).expect("what a tree saves can be loaded");
    assert!(save(&mut again) == saved, "a tree changed by being saved and loaded");
}

fn load(blocks: &[Vec<u8>]) -> Option<Tree> {
    let mut loader = TreeLoader::new();
    blocks.iter().try_for_each(|block| loader.block(block)).ok()?;
    loader.finish().ok()
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
