//! Snapshots of a tree, as blocks in memory.

use paddock_tree::{Tree, TreeLoader};

/// The blocks of a snapshot, `max_nodes` to a slice; `between` may change the tree after each slice.
pub(crate) fn snapshot(
    tree: &mut Tree,
    max_nodes: usize,
    mut between: impl FnMut(&mut Tree),
) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    let mut scan = tree.begin_snapshot();
    loop {
        let mut block = Vec::new();
        let more = tree.scan_snapshot(&mut scan, max_nodes, &mut block);
        blocks.push(block);
        if !more {
            break;
        }
        between(tree);
    }
    tree.end_snapshot(scan);
    blocks
}

pub(crate) fn load(blocks: &[Vec<u8>]) -> Tree {
    let mut loader = TreeLoader::new();
    for block in blocks {
        loader.block(block).expect("a block of the tree's own");
    }
    loader.finish().expect("a snapshot of the tree's own")
}
