//! Everything a member has, znode by znode.

use std::collections::BTreeMap;

use paddock_client::{Acl, Client, Stat};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedZnode {
    pub data: Option<Vec<u8>>,
    pub stat: Stat,
    pub acl: Vec<Acl>,
}

pub type Tree = BTreeMap<String, DumpedZnode>;

/// Reads the whole tree, level by level. The client needs the right to read all of it.
pub async fn read_tree(client: &Client) -> Tree {
    let mut tree = Tree::new();
    let mut level = vec!["/".to_string()];
    while !level.is_empty() {
        let asked: Vec<_> = level
            .iter()
            .map(|path| (path, client.get_data(path), client.get_acl(path), client.get_children(path)))
            .collect();
        let mut below = Vec::new();
        for (path, data, acl, children) in asked {
            let data = data.await.unwrap_or_else(|error| panic!("read {path}: {error:?}"));
            let (acl, _) = acl.await.unwrap_or_else(|error| panic!("read the ACL of {path}: {error:?}"));
            let children = children.await.unwrap_or_else(|error| panic!("list {path}: {error:?}"));
            below.extend(children.iter().map(|name| join(path, name)));
            tree.insert(path.clone(), DumpedZnode { data: data.bytes, stat: data.stat, acl });
        }
        level = below;
    }
    tree
}

/// Fails with the first znode that differs, not with all of them.
#[track_caller]
pub fn check_same(found: &Tree, expected: &Tree, what: &str) {
    for (path, znode) in expected {
        assert_eq!(found.get(path), Some(znode), "{what}: {path}");
    }
    let more = found.keys().find(|path| !expected.contains_key(*path));
    assert_eq!(more, None, "{what}: nobody made this znode");
}

pub fn join(parent: &str, name: &str) -> String {
    format!("{}/{name}", parent.trim_end_matches('/'))
}
