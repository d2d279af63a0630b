use paddock_proto::{Id, Perms};

use super::*;

/// Lists as Go's `encoding/gob` writes them: the types of a list and of its structure, then the values.
const TYPES: &str = "0dff81020102ff820001ff8000002c7f0301010341434c01ff8000010301055065726d730104000106536368656d65010c0001024944010c000000";
const OPEN: &str = "16ff820001013e0105776f726c640106616e796f6e6500";
const THREE: &str = "2aff820003010201066469676573740105616e6e3a310000013e01026970010a31302e302e302e302f3800";

fn bytes(digits: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(digit).collect()
}

fn acls(digits: &str) -> Vec<u8> {
    [bytes(TYPES), bytes(digits)].concat()
}

fn number(number: i64) -> Vec<u8> {
    let mut rest = (number << 1 ^ number >> 63) as u64;
    let mut written = Vec::new();
    while rest > 0x7f {
        written.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    written.push(rest as u8);
    written
}

/// The seven keys of a znode, all written once in this revision.
fn znode(path: &str, revision: i64, lease: i64, acl: &str) -> Vec<Pair> {
    let parts =
        [b"data".to_vec(), number(0), vec![], number(5_000_123), number(6_000_456), acls(acl), number(0)];
    let depth = path.bytes().filter(|byte| *byte == b'/').count() as u8;
    let key = |part: usize| [b"/zk/", &[part as u8 + 1, depth][..], path.as_bytes()].concat();
    let parts = parts.into_iter().enumerate();
    parts
        .map(|(part, value)| Pair { key: key(part), value, version: 1, mod_revision: revision, lease })
        .collect()
}

fn read(pairs: impl IntoIterator<Item = Pair>) -> Result<Zetcd, ZetcdError> {
    let mut zetcd = Zetcd::default();
    pairs.into_iter().try_for_each(|pair| zetcd.take(pair))?;
    Ok(zetcd)
}

#[test]
fn lists_of_gob_are_read_and_others_are_not() {
    let acl = |perms, scheme: &str, id: &str| Acl { perms: Perms(perms), id: Id::new(scheme, id) };
    assert_eq!(decode_acls(&acls(OPEN)), Some(vec![Acl::open()]));
    let three = vec![acl(1, "digest", "ann:1"), acl(0, "", ""), acl(31, "ip", "10.0.0.0/8")];
    let written = acls(THREE);
    assert_eq!(decode_acls(&written), Some(three));
    assert!((0..written.len()).all(|end| decode_acls(&written[..end]).is_none()));
    assert_eq!(decode_acls(&[written, vec![0]].concat()), None);
}

#[test]
fn a_znode_has_the_stat_that_zetcd_tells_of_it() {
    let mut pairs = znode("/a", 7, 0, THREE);
    (pairs[1].value, pairs[4].mod_revision, pairs[5].version) = (number(300), 9, 2);
    (pairs[2].mod_revision, pairs[6].value) = (12, number(2));
    pairs.extend(znode("/a/b", 12, 0, OPEN));
    pairs.push(Pair { key: b"/zk/\x07\x01/".into(), value: number(4), ..Pair::default() });
    pairs.push(Pair { key: b"/zk/e".into(), value: b"1".into(), ..Pair::default() });
    let (tree, report) = read(pairs).unwrap().finish(20, false, 1).unwrap();
    let a = tree.znode("/a").unwrap();
    assert_eq!((a.czxid, a.mzxid, a.pzxid, tree.zxid()), (6, 8, 11, Zxid(20)));
    assert_eq!((a.version, a.children_created, a.aversion), (300, 2, 1));
    assert_eq!((a.ctime_ms, a.mtime_ms, a.data.as_deref()), (5000, 6000, Some(&b"data"[..])));
    assert_eq!((a.acl.len(), &tree.znode("/a/b").unwrap().acl[..]), (3, &[Acl::open()][..]));
    assert_eq!(tree.znode("/").unwrap().children_created, 4);
    assert_eq!(report.keys, 16);
}

#[test]
fn ephemerals_have_their_sessions_and_no_children() {
    let pairs = || {
        let session = Pair { key: b"/zk/\x08ab12".into(), lease: 0xab12, ..Pair::default() };
        let ended = Pair { key: b"/zk/\x08ab13".into(), lease: 0xab13, ..Pair::default() };
        let znodes = [("/a", 0), ("/a/e", 0xab12), ("/a/e/f", 0), ("/g/h", 0), ("/o", 0xab13)];
        let znodes = znodes.into_iter().flat_map(|(path, lease)| znode(path, 7, lease, OPEN));
        znodes.chain([session, ended])
    };
    let mut zetcd = read(pairs()).unwrap();
    assert_eq!(zetcd.sessions(), [SessionId(0xab12), SessionId(0xab13)]);
    zetcd.set_timeout(SessionId(0xab12), Some(4000));
    zetcd.set_timeout(SessionId(0xab13), None);
    let (tree, report) = zetcd.finish(9, false, 1).unwrap();
    assert_eq!(tree.session_timeout_ms(SessionId(0xab12)), Some(4000));
    assert_eq!(tree.ephemerals_of(SessionId(0xab12)), ["/a/e"]);
    assert_eq!(
        (report.misplaced, report.repairs.orphans),
        (vec!["/g/h".into(), "/a/e/f".into()], vec!["/o".into()])
    );
    let (tree, report) = read(pairs()).unwrap().finish(9, true, 1).unwrap();
    assert_eq!((tree.session_count(), tree.ephemeral_count(), report.dropped_sessions), (0, 0, 2));
    assert_eq!(report.dropped, ["/o", "/a/e"]);
}

#[test]
fn keys_of_others_and_of_other_builds_are_refused() {
    let stranger = |key: &[u8]| read([Pair { key: key.into(), value: number(0), ..Pair::default() }]).err();
    for key in [&b"/zk/\x01\x02/a"[..], b"/zk/\x01\x01a", b"/zk/\x09\x01/a", b"/zk/x", b"/zk/\x08no", b"/zk/"]
    {
        assert!(matches!(stranger(key), Some(ZetcdError::Stranger(_))), "{key:?}");
    }
    assert!(matches!(stranger(b"/zk/key/\x01/a"), Some(ZetcdError::OtherLayout(_))));
    assert!(matches!(stranger(b"/zk/\x06\x01/a"), Some(ZetcdError::Value(_))));
    for missing in [0, 1, 4, 5, 6] {
        let mut pairs = znode("/a", 7, 0, OPEN);
        pairs.remove(missing);
        let refused = read(pairs).unwrap().finish(9, false, 1).unwrap_err();
        assert!(matches!(refused, ZetcdError::Incomplete { .. }), "{refused}");
    }
}
