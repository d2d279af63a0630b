//! The ACLs in use, each held once. Most znodes share a few, and most of those the open one.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::quality::RandomState;
use paddock_proto::{Acl, Perms};

/// The number of an ACL within this member's memory; used again when no znode has the ACL any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AclId(pub(super) u32);

impl AclId {
    /// Everybody may do everything. It is always there and never counted.
    pub(crate) const OPEN: AclId = AclId(0);
}

#[derive(Debug)]
pub(crate) struct Acls {
    rows: Vec<AclRow>,
    free: Vec<u32>,
    // Never iterated, so its order cannot show.
    ids: HashMap<Arc<[Acl]>, AclId, RandomState>,
}

#[derive(Debug)]
struct AclRow {
    list: Arc<[Acl]>,
    world_readable: bool,
    uses: u64,
}

impl Acls {
    pub(super) fn new() -> Acls {
        let open: Arc<[Acl]> = Arc::new([Acl::open()]);
        let row = AclRow { list: open.clone(), world_readable: true, uses: 0 };
        Acls { rows: vec![row], free: Vec::new(), ids: HashMap::from_iter([(open, AclId::OPEN)]) }
    }

    pub(crate) fn list(&self, id: AclId) -> &Arc<[Acl]> {
        &self.rows[id.0 as usize].list
    }

    /// The list that decides who may read; `None` when everybody may.
    pub(crate) fn readers(&self, id: AclId) -> Option<Arc<[Acl]>> {
        let row = &self.rows[id.0 as usize];
        (!row.world_readable).then(|| row.list.clone())
    }

    /// The number of `list`, with one use more.
    pub(super) fn intern(&mut self, list: Vec<Acl>) -> AclId {
        let id = match self.ids.get(&list[..]) {
            Some(&id) => id,
            None => self.add(list),
        };
        self.retain(id);
        id
    }

    fn add(&mut self, list: Vec<Acl>) -> AclId {
        let list: Arc<[Acl]> = list.into();
        let world_readable =
            list.is_empty() || list.iter().any(|acl| acl.perms.any_of(Perms::READ) && is_world(acl));
        let row = AclRow { list: list.clone(), world_readable, uses: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.rows[id as usize] = row;
                AclId(id)
            }
            None => {
                self.rows.push(row);
                AclId(u32::try_from(self.rows.len() - 1).expect("there are fewer ACLs than znodes"))
            }
        };
        self.ids.insert(list, id);
        id
    }

    pub(super) fn retain(&mut self, id: AclId) {
        if id != AclId::OPEN {
            self.rows[id.0 as usize].uses += 1;
        }
    }

    pub(super) fn release(&mut self, id: AclId) {
        if id == AclId::OPEN {
            return;
        }
        let row = &mut self.rows[id.0 as usize];
        assert!(row.uses > 0, "an ACL is released as often as it is used");
        row.uses -= 1;
        if row.uses == 0 {
            let list = std::mem::replace(&mut row.list, Arc::new([]));
            self.ids.remove(&list);
            self.free.push(id.0);
        }
    }

    /// Every ACL in use, with its number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (AclId, &Arc<[Acl]>)> {
        let used = |(n, row): &(usize, &AclRow)| *n == 0 || row.uses > 0;
        self.rows.iter().enumerate().filter(used).map(|(n, row)| (AclId(n as u32), &row.list))
    }
}

pub(crate) fn is_world(acl: &Acl) -> bool {
    acl.id.scheme == "world" && acl.id.id == "anyone"
}

#[cfg(test)]
mod tests {
    use super::*;
    use paddock_proto::Id;

    fn acl(perms: Perms, scheme: &str, id: &str) -> Acl {
        Acl { perms, id: Id::new(scheme, id) }
    }

    #[test]
    fn equal_lists_have_one_number_until_nobody_uses_it() {
        let mut acls = Acls::new();
        let (a, b) = (vec![acl(Perms::ALL, "digest", "a:x")], vec![acl(Perms::ALL, "digest", "b:x")]);
        let first = acls.intern(a.clone());
        assert_eq!(acls.intern(a.clone()), first);
        acls.release(first);
        assert_eq!(acls.intern(a.clone()), first);
        acls.release(first);
        acls.release(first);
        assert_eq!(acls.intern(b.clone()), first);
        assert_ne!(acls.intern(a), first);
        assert_eq!(acls.list(first)[..], b[..]);
    }

    #[test]
    fn the_open_list_is_number_zero() {
        assert_eq!(Acls::new().intern(vec![Acl::open()]), AclId::OPEN);
    }

    #[test]
    fn readers_are_named_only_where_the_world_may_not_read() {
        let mut acls = Acls::new();
        let secret = vec![acl(Perms::ALL, "digest", "a:x"), acl(Perms::WRITE, "world", "anyone")];
        let public = vec![acl(Perms::ALL, "digest", "a:x"), acl(Perms::READ, "world", "anyone")];
        let (secret_id, public_id) = (acls.intern(secret.clone()), acls.intern(public));
        assert_eq!(acls.readers(secret_id).as_deref(), Some(&secret[..]));
        assert_eq!(acls.readers(public_id), None);
        assert_eq!(acls.readers(AclId::OPEN), None);
    }
}
