//! The parts of a znode that a copy through the client protocol can keep: that it is there, its data, its ACL, and the counter of
//! its sequential children.

use paddock_client::SessionId;

use crate::diff::seen::{Seen, creates};

/// Owner that ClickHouse Keeper shows of containers and of znodes with a TTL, without saying which of them it is.
const CONTAINER_OR_TTL: SessionId = SessionId(i64::MIN);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Persistent,
    Ephemeral,
    /// A container, or one with a TTL: the copy of it is persistent.
    Passing,
}

pub(super) fn kind_of(znode: &Seen) -> Kind {
    match znode.stat.ephemeral_owner {
        SessionId::NONE => Kind::Persistent,
        CONTAINER_OR_TTL => Kind::Passing,
        _ => Kind::Ephemeral,
    }
}

/// Parts of a copy that differ from the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unequal {
    pub(super) data: bool,
    pub(super) acl: bool,
    /// Creates that the copy's counter is behind.
    pub(super) behind: i64,
}

impl Unequal {
    pub(super) fn between(source: &Seen, target: &Seen) -> Unequal {
        Unequal {
            data: source.data != target.data,
            acl: source.acl != target.acl,
            behind: (creates(&source.stat) - creates(&target.stat)).max(0),
        }
    }

    pub(super) fn is_none(self) -> bool {
        self == Unequal::default()
    }

    pub(super) fn names(self) -> String {
        let mut names = Vec::new();
        if self.data {
            names.push("data".to_owned());
        }
        if self.acl {
            names.push("ACL".to_owned());
        }
        if self.behind > 0 {
            names.push(format!("counter of sequential znodes ({} behind)", self.behind));
        }
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paddock_client::{Acl, Id, Perms, Stat, Zxid};

    use crate::diff::seen::has_hidden_acl;

    fn stat(cversion: i32, num_children: i32) -> Stat {
        let none = Zxid(0);
        Stat {
            czxid: none,
            mzxid: none,
            ctime_ms: 0,
            mtime_ms: 0,
            version: 0,
            cversion,
            aversion: 0,
            ephemeral_owner: SessionId::NONE,
            data_length: 0,
            num_children,
            pzxid: none,
        }
    }

    fn seen(stat: Stat, data: Option<&[u8]>, acl: Vec<Acl>) -> Seen {
        Seen { path: "/a".to_owned(), data: data.map(<[u8]>::to_vec), acl, stat, kind: None }
    }

    #[test]
    fn the_counter_is_the_number_of_creates() {
        // Five made, one deleted.
        assert_eq!(creates(&stat(6, 4)), 5);
        assert_eq!(creates(&stat(0, 0)), 0);
        // The root of a new server, whose children no client made.
        assert_eq!(creates(&stat(-1, 1)), 0);
        // ClickHouse Keeper also counts writes to children.
        assert_eq!(creates(&stat(7, 4)), 6);
    }

    #[test]
    fn a_copy_is_behind_but_never_ahead() {
        let with = |stat| seen(stat, Some(b"x"), vec![Acl::open()]);
        let behind = Unequal::between(&with(stat(6, 4)), &with(stat(4, 4)));
        assert_eq!(behind, Unequal { data: false, acl: false, behind: 1 });
        assert_eq!(behind.names(), "counter of sequential znodes (1 behind)");
        assert!(Unequal::between(&with(stat(4, 4)), &with(stat(6, 4))).is_none());
    }

    #[test]
    fn null_is_not_empty() {
        let null = seen(stat(0, 0), None, vec![Acl::open()]);
        let empty = seen(stat(0, 0), Some(b""), vec![]);
        assert_eq!(Unequal::between(&null, &empty).names(), "data, ACL");
    }

    #[test]
    fn a_hidden_password_is_seen() {
        let acl = |id| vec![Acl { perms: Perms::ALL, id: Id::new("digest", id) }];
        assert!(has_hidden_acl(&seen(stat(0, 0), None, acl("owner:x"))));
        assert!(!has_hidden_acl(&seen(stat(0, 0), None, acl("owner:0a1b="))));
        assert!(!has_hidden_acl(&seen(stat(0, 0), None, vec![Acl::open()])));
    }

    #[test]
    fn owners_tell_the_kind() {
        let owned = |owner| {
            let stat = Stat { ephemeral_owner: SessionId(owner), ..stat(0, 0) };
            kind_of(&seen(stat, None, vec![]))
        };
        assert_eq!([owned(0), owned(7), owned(i64::MIN)], [Kind::Persistent, Kind::Ephemeral, Kind::Passing]);
    }
}
