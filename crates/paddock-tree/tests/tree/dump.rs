//! All that a tree can be seen to hold, for comparing two of them.

use std::collections::BTreeMap;

use paddock_proto::jute::Reader;
use paddock_proto::{Acl, Id, IdList, Read, SessionId, Stat, Zxid};
use paddock_tree::{Asker, Tree, TreeLoader};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dump {
    pub(crate) zxid: Zxid,
    pub(crate) znodes: BTreeMap<String, Znode>,
    pub(crate) sessions: Vec<(SessionId, i32)>,
    pub(crate) ephemerals: Vec<(SessionId, Vec<String>)>,
    /// `Tree::node_count`, `ephemeral_count`, `data_bytes`.
    pub(crate) counts: (usize, usize, u64),
    /// By the hour of doom, in the order of their paths.
    pub(crate) perishable: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Znode {
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) acl: Vec<Acl>,
    pub(crate) stat: Stat,
}

pub(crate) fn dump(tree: &Tree) -> Dump {
    let mut znodes = BTreeMap::new();
    let mut open = vec!["/".to_owned()];
    while let Some(path) = open.pop() {
        let prefix = if path == "/" { "" } else { &path };
        open.extend(children(tree, &path).iter().map(|name| format!("{prefix}/{name}")));
        znodes.insert(path.clone(), znode(tree, &path));
    }
    let mut perishable = tree.expired_nodes(i64::MAX, usize::MAX);
    perishable.sort();
    Dump {
        zxid: tree.zxid(),
        znodes,
        sessions: tree.sessions().collect(),
        ephemerals: tree.ephemerals().collect(),
        counts: (tree.node_count(), tree.ephemeral_count(), tree.data_bytes()),
        perishable,
    }
}

fn znode(tree: &Tree, path: &str) -> Znode {
    let data = ask(tree, &Read::GetData { path, watch: false });
    let mut reader = Reader::new(&data);
    let data = reader.buffer().expect("data").map(<[u8]>::to_vec);
    let stat = Stat::decode(&mut reader).expect("a stat");
    assert_eq!(tree.stat(path), Some(stat), "{path}");
    let acl = ask(tree, &Read::GetAcl { path });
    let acl = Reader::new(&acl).list(Acl::decode).expect("an ACL");
    Znode { data, acl, stat }
}

/// Names, sorted: a tree gives them in any order.
pub(crate) fn children(tree: &Tree, path: &str) -> Vec<String> {
    let list = ask(tree, &Read::GetChildren { path, watch: false });
    let names = Reader::new(&list).strings().expect("names");
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

/// Asks as one whom no ACL stops.
fn ask(tree: &Tree, read: &Read<'_>) -> Vec<u8> {
    let ids = IdList::encode(&[Id::new("super", "")]);
    let ids = IdList::decode(&mut Reader::new(&ids)).expect("ids come back as encoded");
    let mut out = Vec::new();
    let asker = Asker { session: SessionId::NONE, ids };
    tree.read(read, &asker, &mut out).unwrap_or_else(|error| panic!("{read:?}: {error:?}"));
    out
}

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
