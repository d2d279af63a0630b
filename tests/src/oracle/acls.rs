//! Access control lists and identities, good and bad.

use paddock_chance::Chance;
use paddock_proto::OpCode;

use super::arguments::Paths;
use super::body::Body;
use super::sequence::OracleCall;

/// SHA-1 identities of `alice:secret` and `bob:builder`.
const ALICE: &str = "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=";
const BOB: &str = "bob:4rsXV9JgUbFl9ZE40xENilxlRV8=";

type AclEntry = (i32, Option<&'static str>, Option<&'static str>);

const OPEN: &[AclEntry] = &[(31, Some("world"), Some("anyone"))];

const ACLS: &[&[AclEntry]] = &[
    &[(1, Some("world"), Some("anyone"))],
    &[(30, Some("world"), Some("anyone"))],
    &[(15, Some("world"), Some("anyone"))],
    &[(0, Some("world"), Some("anyone"))],
    &[(-1, Some("world"), Some("anyone"))],
    &[(31, Some("digest"), Some(ALICE))],
    &[(31, Some("digest"), Some(BOB)), (1, Some("world"), Some("anyone"))],
    &[(31, Some("digest"), Some(BOB)), (31, Some("digest"), Some(ALICE))],
    &[(17, Some("digest"), Some(BOB)), (5, Some("world"), Some("anyone"))],
    &[(31, Some("auth"), Some(""))],
    &[(31, Some("auth"), Some("ignored")), (1, Some("world"), Some("anyone"))],
    &[(31, Some("ip"), Some("127.0.0.1"))],
    &[(31, Some("ip"), Some("127.0.0.0/8"))],
    &[(31, Some("ip"), Some("10.0.0.0/8"))],
    &[(31, Some("ip"), Some("::1"))],
    &[(31, Some("ip"), Some("127.0.0.1/0"))],
    &[
        (1, Some("world"), Some("anyone")),
        (1, Some("world"), Some("anyone")),
        (31, Some("ip"), Some("127.0.0.1")),
    ],
];

/// ACLs that let everybody read.
const READABLE_ACLS: &[&[AclEntry]] = &[
    &[(1, Some("world"), Some("anyone"))],
    &[(15, Some("world"), Some("anyone"))],
    &[(-1, Some("world"), Some("anyone"))],
    &[(31, Some("digest"), Some(BOB)), (1, Some("world"), Some("anyone"))],
    &[(17, Some("digest"), Some(BOB)), (5, Some("world"), Some("anyone"))],
    &[(1, Some("world"), Some("anyone")), (31, Some("ip"), Some("127.0.0.1"))],
];

/// ACLs that name who connections prove to be by TLS and SASL, good ones and bad ones.
const ACLS_OF_IDENTITIES: &[&[AclEntry]] = &[
    &[(31, Some("x509"), Some("CN=alice"))],
    &[(31, Some("x509"), Some("CN=bob")), (1, Some("world"), Some("anyone"))],
    &[(31, Some("x509"), Some("CN=alice")), (31, Some("sasl"), Some("carol"))],
    &[(31, Some("sasl"), Some("carol"))],
    &[(5, Some("sasl"), Some("dave")), (31, Some("sasl"), Some("carol")), (1, Some("x509"), Some("CN=bob"))],
    &[(15, Some("sasl"), Some("dave")), (31, Some("digest"), Some(ALICE))],
    &[(31, Some("auth"), Some(""))],
    &[(31, Some("x509"), Some("alice"))],
    &[(31, Some("x509"), Some("CN=nobody here"))],
    &[(31, Some("sasl"), Some("nobody"))],
];

/// ACLs that look wrong and are taken: no client has such an identity.
const NOBODYS_ACLS: &[&[AclEntry]] =
    &[&[(31, Some("digest"), Some(":b"))], &[(31, Some("digest"), Some("a:b:"))]];

const BAD_ACLS: &[&[AclEntry]] = &[
    &[],
    &[(31, Some("world"), Some("someone"))],
    &[(31, Some("nobody"), Some("knows"))],
    &[(31, Some(""), Some(""))],
    &[(31, Some("digest"), Some("alice"))],
    &[(31, Some("digest"), Some("a:b:c"))],
    &[(31, Some("digest"), Some("a:"))],
    &[(31, Some("ip"), Some("127.0.0"))],
    &[(31, Some("ip"), Some("127.0.0.256"))],
    &[(31, Some("ip"), Some("127.0.0.1/33"))],
    &[(31, Some("ip"), Some("127.0.0.1/x"))],
    &[(31, Some("ip"), Some("1:2:3"))],
    &[(31, Some("ip"), Some("fe80::/10")), (31, Some("ip"), Some(""))],
    &[(31, Some("world"), Some("anyone")), (31, Some("nobody"), Some("knows"))],
    &[(31, Some("super"), Some(""))],
];

fn entry(body: Body, &(perms, scheme, id): &AclEntry) -> Body {
    body.int("perms", perms).string(scheme).string(id)
}

pub(super) fn open(body: Body) -> Body {
    body.list("acl", Some(OPEN), entry)
}

/// Alone it counts as empty; in a multi it is one of the wanted differences.
pub(super) fn null(body: Body) -> Body {
    body.list("acl", None, entry)
}

pub(super) fn acl(chance: &mut Chance, body: Body, paths: &Paths) -> Body {
    if paths.names_identities && !paths.all_may_read && chance.percent(40) {
        return body.list("acl", Some(*chance.pick(ACLS_OF_IDENTITIES)), entry);
    }
    // On the whole tree a closed root would make the rest of the sequence dull.
    let usually_open = if paths.root.is_empty() { 90 } else { 70 };
    match chance.index(100) {
        roll if roll < usually_open => open(body),
        roll if roll < 95 => {
            let acls = if paths.all_may_read { READABLE_ACLS } else { ACLS };
            body.list("acl", Some(*chance.pick(acls)), entry)
        }
        _ if !paths.all_may_read && chance.percent(12) => {
            body.list("acl", Some(*chance.pick(NOBODYS_ACLS)), entry)
        }
        _ => body.list("acl", Some(*chance.pick(BAD_ACLS)), entry),
    }
}

pub(super) fn auth(chance: &mut Chance) -> OracleCall {
    if chance.percent(70) {
        return good_auth(chance);
    }
    let bad: [(Option<&str>, Option<&[u8]>); 5] = [
        (Some("nobody"), Some(&b"x"[..])),
        (Some("world"), Some(b"anyone")),
        (Some("auth"), Some(b"")),
        (Some("digest"), None),
        (Some(""), None),
    ];
    let (scheme, auth) = *chance.pick(&bad);
    auth_call(scheme, auth).ending()
}

pub(super) fn good_auth(chance: &mut Chance) -> OracleCall {
    let good: [(&str, &[u8]); 8] = [
        ("digest", b"alice:secret"),
        ("digest", b"alice:secret"),
        ("digest", b"bob:builder"),
        ("digest", b"bob:builder"),
        ("digest", b"nopassword"),
        ("digest", b""),
        ("digest", b"a:b:c"),
        ("ip", b"whatever"),
    ];
    let (scheme, auth) = *chance.pick(&good);
    auth_call(Some(scheme), Some(auth))
}

fn auth_call(scheme: Option<&str>, auth: Option<&[u8]>) -> OracleCall {
    let body = Body::new().int("type", 0).string(scheme).buffer(auth);
    OracleCall { xid: Some(-4), ..OracleCall::of("auth", OpCode::Auth, body) }
}
