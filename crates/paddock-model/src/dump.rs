//! All that a tree can be seen to hold, for comparing two of them.

use std::collections::BTreeMap;

use paddock_proto::jute::Reader;
use paddock_proto::{Acl, Id, IdList, MemberNumber, Read, SessionId, Stat, Zxid};
use paddock_tree::{Asker, Tree};

#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    pub zxid: Zxid,
    pub znodes: BTreeMap<String, Znode>,
    /// Each with its timeout and the member that serves it.
    pub sessions: Vec<(SessionId, i32, MemberNumber)>,
    /// Sessions with a password of the ensemble's own, or an identity that they are bound to.
    pub rights: Vec<(SessionId, bool, Option<Id>)>,
    pub ephemerals: Vec<(SessionId, Vec<String>)>,
    /// `Tree::node_count`, `ephemeral_count`, `data_bytes`.
    pub counts: (usize, usize, u64),
    /// By the hour of doom, in the order of their paths.
    pub perishable: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Znode {
    pub data: Option<Vec<u8>>,
    pub acl: Vec<Acl>,
    pub stat: Stat,
}

pub fn dump(tree: &Tree) -> Dump {
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
        sessions: tree.sessions().map(|(id, timeout_ms)| (id, timeout_ms, owner(tree, id))).collect(),
        rights: tree.sessions().map(|(id, _)| rights(tree, id)).collect(),
        ephemerals: tree.ephemerals().collect(),
        counts: (tree.node_count(), tree.ephemeral_count(), tree.data_bytes()),
        perishable,
    }
}

fn rights(tree: &Tree, session: SessionId) -> (SessionId, bool, Option<Id>) {
    (session, tree.is_session_keyed(session), tree.session_identity(session).cloned())
}

fn owner(tree: &Tree, session: SessionId) -> MemberNumber {
    tree.session_owner(session).expect("a session has an owner")
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
fn children(tree: &Tree, path: &str) -> Vec<String> {
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
    let asker = Asker { ids, ..Asker::NOBODY };
    tree.read(read, &asker, &mut out).unwrap_or_else(|error| panic!("{read:?}: {error:?}"));
    out
}
