//! Snapshots of earlier builds.

use std::collections::BTreeSet;

use paddock_model::{Call, Wish, dump};
use paddock_proto::{MEMBER_NUMBER_MAX, MemberNumber, SessionId};
use paddock_tree::{FeatureLevel, Origin, RaisedLevel, Tree, TreeLoader};

use crate::saved::{load, snapshot};

/// Bytes of a header in front of the first session, and of a session without its password's kind and its identity.
const BEFORE_SESSIONS: usize = 1 + 4 + 3 * 8 + 4;
const SESSION: usize = 8 + 4 + 1;
/// Count of members that have written, and that there is no ensemble.
const ORIGINS_AND_ENSEMBLE: usize = 4 + 1;

/// Blocks of a snapshot with one session, and the tree. The first of three parts of the header ends behind the session's owner, the next
/// has what is written of its password, identity and moves.
fn saved() -> (Tree, Vec<Vec<u8>>, [Vec<u8>; 3]) {
    let (tree, blocks) = saved_at(1);
    assert_eq!(blocks[0][1..5], 5i32.to_be_bytes());
    let (known, rest) = blocks[0][5..].split_at(BEFORE_SESSIONS - 5 + SESSION);
    let (rights_and_moves, rest) = rest.split_at(2 + 4);
    assert_eq!(rights_and_moves, [0; 6], "ZooKeeper's password, no identity, and no move");
    let parts = [known, rights_and_moves, rest].map(<[u8]>::to_vec);
    (tree, blocks, parts)
}

/// Blocks of a snapshot with one session, which a member serves, and the tree.
fn saved_at(member: MemberNumber) -> (Tree, Vec<Vec<u8>>) {
    let mut tree = Tree::new();
    let session = Call {
        session: SessionId(7),
        member,
        wish: Wish::CreateSession { timeout_ms: 4000 },
        ..Call::plain_create("/unused")
    };
    session.must(&mut tree);
    Call::plain_create("/a").must(&mut tree);
    let blocks = snapshot(&mut tree, 10, |_| {});
    (tree, blocks)
}

/// Format 5: members were numbered from 1 to 255. A snapshot without another number is as such a build writes it.
#[test]
fn a_snapshot_is_of_the_earlier_format_unless_a_number_needs_the_newer() {
    for (member, format) in [(1, 5i32), (255, 5), (0, 6), (256, 6), (1001, 6), (MEMBER_NUMBER_MAX, 6)] {
        let (mut tree, _) = saved_at(member);
        let origin = Origin { member, incarnation: 9 };
        assert!(tree.admit(origin, 1));
        let blocks = snapshot(&mut tree, 10, |_| {});
        assert_eq!(blocks[0][1..5], format.to_be_bytes(), "member {member}");
        let loaded = load(&blocks);
        assert_eq!(dump(&loaded), dump(&tree));
        assert_eq!(loaded.digest(), tree.digest());
        assert_eq!((loaded.session_owner(SessionId(7)), loaded.incarnation(member)), (Some(member), Some(9)));
    }
    let digests = [0, 1, 255, 256, 257, 1001].map(|member| saved_at(member).0.digest());
    assert_eq!(BTreeSet::from(digests).len(), 6, "who serves a session is part of the state");
}

/// Format 6: there were no feature levels. The level is only written once it is raised.
#[test]
fn a_snapshot_tells_the_feature_level_once_it_is_raised() {
    let (mut tree, blocks) = saved_at(256);
    assert_eq!(
        (blocks[0][1..5].to_vec(), load(&blocks).feature_level()),
        (6i32.to_be_bytes().to_vec(), FeatureLevel::NONE)
    );
    let before = tree.digest();
    tree.raise_level(&RaisedLevel::default());
    assert_eq!(tree.digest(), before, "a level that is not higher is none");
    tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
    assert_ne!(tree.digest(), before, "the level is part of the state");
    let mut blocks = snapshot(&mut tree, 10, |_| {});
    assert_eq!(
        blocks[0][1..9],
        [7i32.to_be_bytes(), i32::from(FeatureLevel::KNOWN.0).to_be_bytes()].concat()
    );
    let loaded = load(&blocks);
    assert_eq!((loaded.raised_level(), loaded.digest()), (tree.raised_level(), tree.digest()));
    assert_eq!(dump(&loaded), dump(&tree));

    blocks[0][8] += 1;
    let refused = TreeLoader::new().block(&blocks[0]).unwrap_err().to_string();
    assert!(refused.ends_with(": run release 0.9.0 or a later one"), "{refused}");
}

/// Format 4: the moves of sessions were not counted.
#[test]
fn a_snapshot_without_moves_is_read() {
    let (tree, mut blocks, [known, rights_and_moves, rest]) = saved();
    blocks[0] = [&b"H\0\0\0\x04"[..], &known, &rights_and_moves[..2], &rest].concat();
    let loaded = load(&blocks);
    assert_eq!((dump(&loaded), loaded.session_moves(SessionId(7))), (dump(&tree), 0));
}

/// Format 3: sessions had ZooKeeper's passwords, and there was no secret.
#[test]
fn a_snapshot_without_a_secret_is_read() {
    let (tree, mut blocks, [known, _, rest]) = saved();
    let (origins_and_ensemble, rest) = rest.split_at(ORIGINS_AND_ENSEMBLE);
    let (secret, acls) = rest.split_at(4);
    assert_eq!(secret, (-1i32).to_be_bytes(), "no secret");
    blocks[0] = [b"H\0\0\0\x03", &known[..], origins_and_ensemble, acls].concat();
    let loaded = load(&blocks);
    assert_eq!(dump(&loaded), dump(&tree));
    assert!(!loaded.has_secret() && !loaded.is_session_keyed(SessionId(7)));
}
