//! Bytes that are no snapshot, and shapes that would exhaust a stack.

use paddock_model::{Call, Wish, acl, dump};
use paddock_proto::jute::Writer;
use paddock_proto::{Acl, ErrorCode, OpCode, Read, SessionId, WriteReply};
use paddock_tree::fuzzing::assemble;
use paddock_tree::{Asker, Command, LoadError, Tree, TreeLoader};

use crate::saved::{load, snapshot};

/// A tree with something of everything.
fn motley_tree() -> Tree {
    let mut tree = Tree::new();
    let session = SessionId(7);
    let mut run = |session, wish| {
        Call { session, member: 0, time_ms: 5, ids: Vec::new(), enforces_quotas: false, wish }.must(&mut tree)
    };
    let create = |op, path: &str, acl, flags, ttl_ms| Wish::Create {
        op,
        path: path.to_owned(),
        data: None,
        acl,
        flags,
        ttl_ms,
    };
    run(session, Wish::CreateSession { timeout_ms: 4000 });
    run(session, create(OpCode::Create, "/a", vec![Acl::open()], 0, 0));
    run(session, create(OpCode::Create, "/a/e", vec![acl(1, "ip", "10.0.0.1")], 1, 0));
    run(session, create(OpCode::CreateContainer, "/a/c", vec![Acl::open()], 4, 0));
    run(session, create(OpCode::CreateTtl, "/a/t", vec![acl(31, "digest", "u:h")], 5, 60));
    tree
}

fn load_all(blocks: &[Vec<u8>]) -> Result<Tree, LoadError> {
    let mut loader = TreeLoader::new();
    for block in blocks {
        loader.block(block)?;
    }
    assemble(loader)
}

/// Whatever a flipped bit makes of the bytes, they load as some tree or as none; a tree that loads can be used.
#[test]
fn flipped_bytes_never_panic() {
    let blocks = snapshot(&mut motley_tree(), 3, |_| {});
    let mut refused = 0;
    for block in 0..blocks.len() {
        for at in 0..blocks[block].len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut blocks = blocks.clone();
                blocks[block][at] ^= flip;
                match load_all(&blocks) {
                    Ok(tree) => drop(dump(&tree)),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(refused > 500, "only {refused} refused");
}

#[test]
fn a_part_of_a_snapshot_is_refused() {
    let blocks = snapshot(&mut motley_tree(), 3, |_| {});
    for block in 0..blocks.len() {
        for end in 0..blocks[block].len() {
            let mut blocks = blocks.clone();
            blocks[block].truncate(end);
            assert!(load_all(&blocks).is_err(), "block {block} cut at {end}");
        }
        let mut blocks = blocks.clone();
        blocks.remove(block);
        assert!(load_all(&blocks).is_err(), "without block {block}");
    }
    let twice = [blocks.clone(), blocks].concat();
    assert_eq!(load_all(&twice).unwrap_err(), LoadError::Header);
    assert_eq!(load_all(&[]).unwrap_err(), LoadError::Header);
    assert_eq!(load_all(&[vec![b'?']]).unwrap_err(), LoadError::UnknownBlock(b'?'));
}

/// Counts that no bytes stand behind reserve no memory.
#[test]
fn a_count_is_not_believed() {
    let mut header = vec![b'H'];
    header.put_i32(3);
    header.put_i64(9);
    header.put_i64(i64::MAX);
    header.put_i64(0);
    header.put_i32(i32::MAX);
    assert!(matches!(load_all(&[header.clone()]), Err(LoadError::Decode(_))));
    let sessions = header.len() - 4;
    header.truncate(sessions);
    // Sessions, members, no ensemble, ACLs.
    (0..2).for_each(|_| header.put_count(0));
    header.put_bool(false);
    header.put_count(0);
    assert_eq!(load_all(&[header]).unwrap_err(), LoadError::Count { expected: i64::MAX, found: 0 });
}

#[test]
fn what_is_not_what_was_saved_is_refused() {
    let mut tree = motley_tree();
    let mut blocks = snapshot(&mut tree, 1000, |_| {});
    let at = blocks[1].windows(1).rposition(|byte| byte == b"t").expect("the znode /a/t");
    blocks[1][at] = b'u';
    assert!(load_all(&blocks).is_ok(), "it is a tree all the same");
    let mut loader = TreeLoader::new();
    blocks.iter().for_each(|block| loader.block(block).unwrap());
    assert!(matches!(loader.finish(), Err(LoadError::Digest { .. })));
}

#[test]
fn a_snapshot_given_up_leaves_no_trace() {
    let mut tree = motley_tree();
    let mut scan = tree.begin_snapshot();
    tree.scan_snapshot(&mut scan, 1, &mut Vec::new());
    Call::plain_create("/b").must(&mut tree);
    tree.end_snapshot(scan);
    let before = dump(&tree);
    assert_eq!(dump(&load(&snapshot(&mut tree, 1000, |_| {}))), before);
}

#[test]
fn a_deep_tree_is_walked_without_a_stack() {
    const DEPTH: usize = 100_000;
    let mut tree = load_all(&chain(DEPTH)).unwrap();
    let path = "/x".repeat(DEPTH);
    assert!(tree.stat(&path).is_some());
    assert!(tree.stat(&format!("{path}/x")).is_none());
    let mut out = Vec::new();
    tree.read(&Read::GetAllChildrenNumber { path: "/x" }, &Asker::NOBODY, &mut out).unwrap();
    assert_eq!(out, (DEPTH as i32 - 1).to_be_bytes());

    let child = format!("{path}/y");
    Call::plain_create(&child).must(&mut tree);
    Call::plain_create("/zookeeper/quota/x").must(&mut tree);
    Call::plain_create("/zookeeper/quota/x/zookeeper_stats").must(&mut tree);
    let mut out = Vec::new();
    let stats = "/zookeeper/quota/x/zookeeper_stats";
    tree.read(&Read::GetData { path: stats, watch: false }, &Asker::NOBODY, &mut out).unwrap();
    assert!(out[4..].starts_with(format!("count={},bytes=1", DEPTH + 1).as_bytes()));
    load(&snapshot(&mut tree, 1 << 20, |_| {}));
}

/// The blocks of a snapshot with `/x/x/x…`, which no client could make in one go.
fn chain(depth: usize) -> Vec<Vec<u8>> {
    let mut blocks = snapshot(&mut Tree::new(), 1000, |_| {});
    for n in 0..depth as i32 {
        put_record(&mut blocks, 4 + n, if n == 0 { 0 } else { 3 + n }, 0);
    }
    blocks
}

/// Adds a znode `x` that has been written and has had children `count` times.
fn put_record(blocks: &mut [Vec<u8>], id: i32, parent: i32, count: i32) {
    blocks[0][13..21].copy_from_slice(&(i64::from(id) + 1).to_be_bytes());
    let block = &mut blocks[1];
    [id, parent, 0].iter().for_each(|&int| block.put_i32(int));
    block.put_string("x");
    block.put_buffer(Some(b""));
    [1; 5].iter().for_each(|&long| block.put_i64(long));
    [count; 3].iter().for_each(|&int| block.put_i32(int));
    block.put_bool(false);
    block.put_i64(0);
}

/// As in Java, what is counted in 32 bits goes on below zero.
#[test]
fn counters_wrap() {
    let mut blocks = snapshot(&mut Tree::new(), 1000, |_| {});
    put_record(&mut blocks, 4, 0, i32::MAX);
    let mut tree = load_all(&blocks).unwrap();
    let mut create = || {
        let mut call = Call::plain_create("/x/n-");
        if let Wish::Create { flags, .. } = &mut call.wish {
            *flags = 2;
        }
        let bytes = call.encode();
        match tree.apply(&Command::decode(&bytes).unwrap()).result {
            Ok(WriteReply::Created { path }) => path.into_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(create(), "/x/n-2147483647");
    assert_eq!(create(), "/x/n--2147483648");
    assert_eq!(create(), "/x/n--2147483647");

    let set = Wish::SetData { path: "/x".to_owned(), data: None, version: i32::MAX };
    Call {
        session: SessionId::NONE,
        member: 0,
        time_ms: 0,
        ids: Vec::new(),
        enforces_quotas: false,
        wish: set,
    }
    .must(&mut tree);
    assert_eq!(tree.stat("/x").unwrap().version, i32::MIN);
    assert_eq!(tree.stat("/x").unwrap().cversion, 2i32.wrapping_mul(i32::MIN + 2).wrapping_sub(3));
}

#[test]
fn many_children_and_long_names_are_no_trouble() {
    let mut tree = Tree::new();
    Call::plain_create("/d").must(&mut tree);
    for n in 0..100_000 {
        Call::plain_create(&format!("/d/{n}")).must(&mut tree);
    }
    let long = format!("/{}", "n".repeat(3_000_000));
    Call::plain_create(&long).must(&mut tree);
    let bytes = Call::plain_create(&long).encode();
    assert_eq!(tree.apply(&Command::decode(&bytes).unwrap()).result, Err(ErrorCode::NodeExists));
    for n in (0..100_000).step_by(2) {
        let wish = Wish::Delete { path: format!("/d/{n}"), version: -1 };
        let bytes = Call {
            session: SessionId::NONE,
            member: 0,
            time_ms: 0,
            ids: Vec::new(),
            enforces_quotas: false,
            wish,
        }
        .encode();
        assert_eq!(tree.apply(&Command::decode(&bytes).unwrap()).result, Ok(WriteReply::Done));
    }
    assert_eq!(tree.stat("/d").unwrap().num_children, 50_000);
}
