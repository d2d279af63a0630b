//! Access: ACLs checked, and ACLs of requests made ready to be stored.

use std::collections::HashSet;

use paddock_proto::{Acl, AclList, ErrorCode, Id, IdList, Perms};

use subtle::ConstantTimeEq;

use crate::distinguished_name::is_distinguished_name;
use crate::ip::IpExpression;
use crate::store::is_world;

/// True if a client with these identities has one of the wanted permissions.
pub fn allows(acl: &[Acl], wanted: Perms, ids: IdList<'_>) -> bool {
    if acl.is_empty() || ids.iter().any(|(scheme, _)| scheme == "super") {
        return true;
    }
    acl.iter().filter(|entry| entry.perms.any_of(wanted)).any(|entry| {
        is_world(entry)
            || ids.iter().any(|(scheme, id)| scheme == entry.id.scheme && matches(scheme, id, &entry.id.id))
    })
}

/// True if the one who is `id` under the scheme is meant by `expression`.
fn matches(scheme: &str, id: &str, expression: &str) -> bool {
    match scheme {
        "ip" => IpExpression::parse(expression).is_some_and(|expression| expression.matches(id)),
        // The time that it takes tells nothing of another user's password.
        "digest" => id.as_bytes().ct_eq(expression.as_bytes()).into(),
        _ => id == expression,
    }
}

/// Bytes of identities that take the place of `auth` in one list, at most: enough for all that a client may show with each set of
/// permissions that there is.
const EXPANDED_BYTES_MAX: usize = 1 << 20;

/// The list as it is to be stored: without repetitions, `auth` replaced by what the requester has proved to be.
/// `None` stands for the open ACL.
pub(crate) fn resolve_acl(list: AclList<'_>, ids: IdList<'_>) -> Result<Option<Vec<Acl>>, ErrorCode> {
    if list.is_open() {
        return Ok(None);
    }
    let mut entries = list.to_vec();
    let mut seen = HashSet::new();
    entries.retain(|entry| seen.insert(entry.clone()));
    if entries.is_empty() {
        return Err(ErrorCode::InvalidAcl);
    }
    let mut resolved = Vec::with_capacity(entries.len());
    let mut expanded_bytes = 0;
    for entry in entries {
        if entry.id.scheme == "auth" {
            // A list of many different ones would be a thousand times as large as its request.
            expanded_bytes += ids.wire().len();
            if expanded_bytes > EXPANDED_BYTES_MAX {
                return Err(ErrorCode::InvalidAcl);
            }
            expand_auth(entry.perms, ids, &mut resolved)?;
        } else if is_world(&entry) || is_valid(&entry.id) {
            resolved.push(entry);
        } else {
            return Err(ErrorCode::InvalidAcl);
        }
    }
    Ok(Some(resolved))
}

/// An entry for each identity that was proved. An address is only observed.
fn expand_auth(perms: Perms, ids: IdList<'_>, resolved: &mut Vec<Acl>) -> Result<(), ErrorCode> {
    let before = resolved.len();
    let proved = ids.iter().filter(|&(scheme, _)| matches!(scheme, "digest" | "sasl" | "x509"));
    resolved.extend(proved.map(|(scheme, id)| Acl { perms, id: Id::new(scheme, id) }));
    if resolved.len() == before {
        return Err(ErrorCode::InvalidAcl);
    }
    Ok(())
}

fn is_valid(id: &Id) -> bool {
    match id.scheme.as_str() {
        // As Java splits: empty parts at the end do not count.
        "digest" => id.id.trim_end_matches(':').split(':').count() == 2,
        "ip" => IpExpression::parse(&id.id).is_some(),
        "x509" => is_distinguished_name(&id.id),
        // Valid wherever it stands: members decide alike, whether or not they offer SASL to their clients.
        "sasl" => is_principal(&id.id),
        _ => false,
    }
}

/// True for a name as Kerberos has them, `user`, `user@REALM` or `service/host@REALM`, and for any other without an `@`.
fn is_principal(name: &str) -> bool {
    let Some((service, realm)) = name.split_once('@') else { return true };
    !realm.contains(['/', '@']) && service.matches('/').count() <= 1
}

pub(crate) fn world_readable() -> Acl {
    Acl { perms: Perms::READ, id: Id::new("world", "anyone") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paddock_proto::jute::Reader;

    fn with_ids<T>(ids: &[(&str, &str)], check: impl FnOnce(IdList<'_>) -> T) -> T {
        let ids: Vec<Id> = ids.iter().map(|&(scheme, id)| Id::new(scheme, id)).collect();
        check(IdList::decode(&mut Reader::new(&IdList::encode(&ids))).unwrap())
    }

    fn acl(perms: Perms, scheme: &str, id: &str) -> Acl {
        Acl { perms, id: Id::new(scheme, id) }
    }

    #[test]
    fn only_who_is_meant_may() {
        let list = [acl(Perms::READ, "digest", "a:x"), acl(Perms::WRITE, "ip", "10.0.0.0/8")];
        let may = |wanted, ids: &[(&str, &str)]| with_ids(ids, |ids| allows(&list, wanted, ids));
        assert!(may(Perms::READ, &[("ip", "1.2.3.4"), ("digest", "a:x")]));
        assert!(!may(Perms::READ, &[("ip", "10.2.3.4"), ("digest", "a:y")]));
        assert!(may(Perms::WRITE, &[("ip", "10.2.3.4")]));
        assert!(!may(Perms::WRITE, &[("digest", "a:x")]));
        assert!(may(Perms::READ | Perms::ADMIN, &[("digest", "a:x")]));
        assert!(may(Perms::ADMIN, &[("super", "")]));
        assert!(!may(Perms::READ, &[]));
        assert!(with_ids(&[], |ids| allows(&[], Perms::ALL, ids)));
    }

    #[test]
    fn a_digest_has_a_name_and_a_hash() {
        for (id, valid) in
            [("a:b", true), ("a:b::", true), (":b", true), ("a", false), ("a:", false), ("", false)]
        {
            assert_eq!(is_valid(&Id::new("digest", id)), valid, "{id}");
        }
        assert!(!is_valid(&Id::new("digest", "a:b:c")));
        assert!(!is_valid(&Id::new("world", "somebody")));
    }

    #[test]
    fn a_sasl_identity_is_a_name_or_a_principal() {
        for id in ["bob", "a/b", "bob@R", "bob@", "zk/host@R", ""] {
            assert!(is_valid(&Id::new("sasl", id)), "{id}");
        }
        for id in ["a@b@c", "a/b/c@R", "bob@R/x"] {
            assert!(!is_valid(&Id::new("sasl", id)), "{id}");
        }
    }

    #[test]
    fn a_certificate_is_a_proof() {
        let ids = [Id::new("ip", "1.2.3.4"), Id::new("x509", "CN=a,O=b")];
        let of = |scheme: &str, id: &str| {
            let mut list = 1i32.to_be_bytes().to_vec();
            acl(Perms::ALL, scheme, id).encode(&mut list);
            list
        };
        let resolve = |list: &[u8]| {
            let list = AclList::decode(&mut Reader::new(list)).unwrap();
            let ids = IdList::encode(&ids);
            resolve_acl(list, IdList::decode(&mut Reader::new(&ids)).unwrap())
        };
        let expected = Ok(Some(vec![acl(Perms::ALL, "x509", "CN=a,O=b")]));
        assert_eq!(resolve(&of("auth", "")), expected);
        assert_eq!(resolve(&of("x509", "CN=a,O=b")), expected);
        assert_eq!(resolve(&of("x509", "a")), Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn a_list_of_many_auth_entries_does_not_grow_without_end() {
        let list = |count: i32| {
            let mut list = count.to_be_bytes().to_vec();
            (0..count).for_each(|number| acl(Perms::ALL, "auth", &number.to_string()).encode(&mut list));
            list
        };
        let ids: Vec<Id> =
            (0..64).map(|number| Id::new("digest", format!("{number}:{}", "h".repeat(230)))).collect();
        let ids = IdList::encode(&ids);
        let ids = IdList::decode(&mut Reader::new(&ids)).unwrap();
        let resolve = |list: &[u8]| resolve_acl(AclList::decode(&mut Reader::new(list)).unwrap(), ids);
        let most = EXPANDED_BYTES_MAX / ids.wire().len();
        assert!(most > 31, "as many as there are sets of permissions");
        assert_eq!(resolve(&list(most as i32)).unwrap().unwrap().len(), most * 64);
        assert_eq!(resolve(&list(most as i32 + 1)), Err(ErrorCode::InvalidAcl));
    }
}
