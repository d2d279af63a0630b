//! A znode as a client sees it, and the differences of two of them.

use std::cmp::Ordering;
use std::fmt::Debug;

use paddock_client::{Acl, Stat};
use paddock_tree::{StoredZnode, ZnodeKind};

#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) acl: Vec<Acl>,
    pub(crate) stat: Stat,
    /// Kind of the znode with its TTL, which no server tells.
    pub(crate) kind: Option<ZnodeKind>,
}

impl Seen {
    pub(crate) fn of_stored(path: &str, znode: &StoredZnode<'_>, stat: Stat) -> Seen {
        Seen {
            path: path.to_owned(),
            data: znode.data.map(<[u8]>::to_vec),
            acl: znode.acl.to_vec(),
            stat,
            kind: Some(znode.kind),
        }
    }

    /// Names of all that differs, the numbers with both values.
    pub(crate) fn differences(&self, other: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        if self.data != other.data {
            found.push(format!("data ({} and {})", bytes(self), bytes(other)));
        }
        if self.acl != other.acl {
            found.push("ACL".to_owned());
        }
        let (a, b) = (&self.stat, &other.stat);
        let mut note = |name: &str, a: &dyn Debug, b: &dyn Debug| {
            let (a, b) = (format!("{a:?}"), format!("{b:?}"));
            if a != b {
                found.push(format!("{name} ({a} and {b})"));
            }
        };
        note("czxid", &a.czxid, &b.czxid);
        note("mzxid", &a.mzxid, &b.mzxid);
        note("pzxid", &a.pzxid, &b.pzxid);
        note("ctime", &a.ctime_ms, &b.ctime_ms);
        note("mtime", &a.mtime_ms, &b.mtime_ms);
        note("version", &a.version, &b.version);
        note("cversion", &a.cversion, &b.cversion);
        note("aversion", &a.aversion, &b.aversion);
        note("ephemeralOwner", &a.ephemeral_owner, &b.ephemeral_owner);
        note("numChildren", &a.num_children, &b.num_children);
        if let (Some(a), Some(b)) = (self.kind, other.kind) {
            note("kind", &a, &b);
        }
        found
    }
}

fn bytes(seen: &Seen) -> String {
    seen.data.as_ref().map_or_else(|| "null".to_owned(), |data| format!("{} bytes", data.len()))
}

/// Children that were ever made: the number that the next sequential child gets. A Stat counts creates and deletes together; where it
/// counts more, as ClickHouse Keeper's does, this is more than were made, and never less.
pub(crate) fn creates(stat: &Stat) -> i64 {
    (i64::from(stat.cversion) + i64::from(stat.num_children) + 1).div_euclid(2)
}

/// True if the password of an identity is hidden from who asks.
pub(crate) fn has_hidden_acl(znode: &Seen) -> bool {
    znode.acl.iter().any(|entry| entry.id.scheme == "digest" && entry.id.id.ends_with(":x"))
}

/// Order in which a walk meets paths: a parent before its children, children by the bytes of their names.
pub(crate) fn walk_order(a: &str, b: &str) -> Ordering {
    // The root is the one path whose only name is empty, and an empty name comes first.
    a.split('/').skip(1).cmp(b.split('/').skip(1))
}

/// Order of the next znodes: a side that has ended comes last.
pub(crate) fn order_of(a: Option<&Seen>, b: Option<&Seen>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => walk_order(&a.path, &b.path),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// The path of a znode, as an option names it.
pub(crate) fn parse_path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && (text.len() == 1 || !text.ends_with('/'));
    if is_path { Ok(text.to_owned()) } else { Err("expected the path of a znode, as in /a/b".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_down_before_it_goes_on() {
        // Compared byte by byte, "/a-b" would come before "/a/x".
        let paths = ["/", "/a", "/a/x", "/a/x/y", "/a-b", "/b"];
        for (i, a) in paths.iter().enumerate() {
            for (j, b) in paths.iter().enumerate() {
                assert_eq!(walk_order(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
    }
}
