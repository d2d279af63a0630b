//! Schemes of ACLs that count only where the member can tell who a client is: `sasl`, and `x509`.
//!
//! As in ZooKeeper, an ACL with a scheme that nothing provides is `INVALIDACL`: its creator would be locked out. Members may be configured
//! differently while the state has to decide alike on all of them, so the member that takes a request decides: it writes another scheme in
//! the place, one that there is nowhere, and the state refuses that in its turn, also within a multi.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use paddock_proto::jute::Reader;
use paddock_proto::{Acl, AclList, OpCode, Write};

use crate::Settings;
use crate::auth::X509;
use crate::sasl::SASL;

/// As long as those in whose place it is written.
const NOWHERE: &[u8; 4] = b"none";

static SASL_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(SASL));
static X509_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(X509));

impl Settings {
    fn lacks(&self, scheme: &str) -> bool {
        match scheme {
            SASL => self.sasl.is_none(),
            X509 => !self.has_certificates,
            _ => false,
        }
    }
}

/// True if a write, which is no multi, has an ACL other than the open one.
#[inline]
pub(crate) fn has_closed_acl(write: &Write<'_>) -> bool {
    match write {
        Write::Create(create) => !create.acl.is_open(),
        Write::SetAcl { acl, .. } => !acl.is_open(),
        _ => false,
    }
}

/// Places of schemes in the body of a multi, or of a write that has a closed ACL, that this member does not provide; none in most.
pub(crate) fn missing_schemes(op: OpCode, body: &[u8], settings: &Settings) -> Vec<usize> {
    let mut places = Vec::new();
    if !may_lack(body, settings) {
        return places;
    }
    match Write::decode(op, body) {
        Ok(Write::Create(create)) => add_places(create.acl, body, settings, &mut places),
        Ok(Write::SetAcl { acl, .. }) => add_places(acl, body, settings, &mut places),
        Ok(Write::Multi(ops)) => {
            for write in ops {
                if let Write::Create(create) = write {
                    add_places(create.acl, body, settings, &mut places);
                }
            }
        }
        _ => {}
    }
    places
}

/// Writes a scheme that there is nowhere in these places.
pub(crate) fn overwrite(body: &mut [u8], places: &[usize]) {
    for at in places {
        body[*at..*at + NOWHERE.len()].copy_from_slice(NOWHERE);
    }
}

/// A look at the bytes, which is quicker than to read the request: most name neither scheme.
fn may_lack(body: &[u8], settings: &Settings) -> bool {
    let has = |finder: &Finder<'_>| finder.find(body).is_some();
    (settings.lacks(SASL) && has(&SASL_FINDER)) || (settings.lacks(X509) && has(&X509_FINDER))
}

/// `list` lies in `body`.
fn add_places(list: AclList<'_>, body: &[u8], settings: &Settings, places: &mut Vec<usize>) {
    if list.is_open() {
        return;
    }
    let begin = list.wire().as_ptr().addr() - body.as_ptr().addr();
    let reader = &mut Reader::new(list.wire());
    let count = reader.count().expect("the list was checked when it was decoded");
    for _ in 0..count {
        let entry_at = begin + list.wire().len() - reader.rest().len();
        let entry = Acl::decode(reader).expect("the list was checked when it was decoded");
        if settings.lacks(&entry.id.scheme) {
            // Permissions and the scheme's length stand in front.
            places.push(entry_at + 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::jute::Writer;
    use paddock_proto::{Id, Perms, encode};

    use super::*;

    fn create(out: &mut Vec<u8>, schemes: &[&str]) {
        out.put_string("/sasl-x509");
        out.put_buffer(Some(b"sasl"));
        let acl = |scheme: &&str| Acl { perms: Perms::ALL, id: Id::new(*scheme, "sasl") };
        encode::put_acl(out, &schemes.iter().map(acl).collect::<Vec<_>>());
        out.put_i32(0);
    }

    fn schemes_after(op: OpCode, body: &[u8], settings: &Settings) -> Vec<String> {
        let mut body = body.to_vec();
        let places = missing_schemes(op, &body, settings);
        overwrite(&mut body, &places);
        let of = |acl: AclList<'_>| acl.to_vec().into_iter().map(|entry| entry.id.scheme).collect();
        match Write::decode(op, &body).unwrap() {
            Write::Create(create) => {
                assert_eq!((create.path, create.data), ("/sasl-x509", Some(&b"sasl"[..])));
                of(create.acl)
            }
            Write::SetAcl { acl, .. } => of(acl),
            write => panic!("{write:?}"),
        }
    }

    #[track_caller]
    fn check(schemes: &[&str], settings: &Settings, expected: &[&str]) {
        let mut body = Vec::new();
        create(&mut body, schemes);
        assert_eq!(schemes_after(OpCode::Create, &body, settings), expected);
        let mut body = Vec::new();
        body.put_string("/sasl");
        let acl = |scheme: &&str| Acl { perms: Perms::READ, id: Id::new(*scheme, "x509") };
        encode::put_acl(&mut body, &schemes.iter().map(acl).collect::<Vec<_>>());
        body.put_i32(-1);
        assert_eq!(schemes_after(OpCode::SetAcl, &body, settings), expected);
    }

    #[test]
    fn schemes_that_nothing_provides_are_written_over() {
        let none = Settings::of_zookeeper();
        let sasl = Settings { sasl: Some(crate::SaslUsers::default().into()), ..Settings::of_zookeeper() };
        let x509 = Settings { has_certificates: true, ..Settings::of_zookeeper() };
        let all = ["world", "sasl", "digest", "x509", "sasl"];
        check(&all, &none, &["world", "none", "digest", "none", "none"]);
        check(&all, &sasl, &["world", "sasl", "digest", "none", "sasl"]);
        check(&all, &x509, &["world", "none", "digest", "x509", "none"]);
        check(&all, &Settings { has_certificates: true, ..sasl }, &all);
        check(&["digest"], &none, &["digest"]);
        check(&[], &none, &[]);
    }
}
