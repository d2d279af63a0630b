//! Attacks with commands, reads and words whose work grows with what is stored.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use paddock_proto::jute::Writer as _;
use paddock_proto::{CreateMode, OpCode, encode};
use paddock_tests::server::Server;

use crate::rude::{Rude, request};
use crate::scene::{Goal, MIB, Scene, scaled};
use crate::{PIPELINE, on_threads};

/// Creates `count` znodes below another one.
fn make_children(client: &mut Rude, parent: &str, mode: CreateMode, count: usize) {
    for first in (0..count).step_by(PIPELINE) {
        let batch: Vec<u8> = (first..first + PIPELINE)
            .flat_map(|number| {
                let path = format!("{parent}/child-{number:07}");
                request(1, OpCode::Create, |out| encode::create_open(out, &path, None, mode))
            })
            .collect();
        client.send(&batch);
        (0..PIPELINE).for_each(|_| drop(client.receive()));
    }
}

#[test]
fn a_session_with_very_many_ephemerals_ends() {
    let scene = Scene::new();
    Rude::connect(&scene.server).create("/parent", b"");
    let ended = AtomicU64::new(0);
    let longest_ms = AtomicU64::new(0);
    // The tree keeps the room for as many znodes.
    let goal = Goal { kept: 48 * MIB, ..Goal::BUSY };
    scene.attack("100,000 ephemerals of one session ended", goal, |server, deadline| {
        while Instant::now() < deadline {
            let mut client = Rude::connect(server);
            make_children(&mut client, "/parent", CreateMode::Ephemeral, scaled(100_000));
            let since = Instant::now();
            client.send(&request(2, OpCode::CloseSession, |_| {}));
            client.receive();
            longest_ms.fetch_max(since.elapsed().as_millis() as u64, Relaxed);
            ended.fetch_add(1, Relaxed);
        }
    });
    println!("{} sessions ended, the longest took {} ms", ended.into_inner(), longest_ms.into_inner());
}

#[test]
fn long_lists_of_children() {
    let scene = Scene::new();
    let mut maker = Rude::connect(&scene.server);
    maker.create("/parent", b"");
    make_children(&mut maker, "/parent", CreateMode::Persistent, scaled(1_000_000));
    let list = request(1, OpCode::GetChildren, |out| encode::path_and_watch(out, "/parent", false));
    let lists = AtomicU64::new(0);
    scene.attack("lists of 1,000,000 children", Goal::BUSY, |server, deadline| {
        let count = on_threads(2, deadline, |_| {
            let mut client = Rude::connect(server);
            client.send(&list);
            client.receive();
        });
        lists.store(count, Relaxed);
    });
    println!("{} lists", lists.into_inner());
}

#[test]
fn a_large_tree_is_removed() {
    let scene = Scene::new();
    Rude::connect(&scene.server).create("/parent", b"");
    let longest_ms = AtomicU64::new(0);
    // The tree keeps the room for as many znodes.
    let goal = Goal { kept: 48 * MIB, ..Goal::BUSY };
    scene.attack("trees of 100,000 znodes removed", goal, |server, deadline| {
        while Instant::now() < deadline {
            let mut client = Rude::connect(server);
            client.create("/parent/tree", b"");
            make_children(&mut client, "/parent/tree", CreateMode::Persistent, scaled(100_000));
            let since = Instant::now();
            client.send(&request(2, OpCode::RemoveRecursive, |out| {
                out.put_string("/parent/tree");
                out.put_i32(i32::MAX);
            }));
            let reply = client.receive();
            assert_eq!(reply[12..16], [0; 4], "the tree is removed");
            longest_ms.fetch_max(since.elapsed().as_millis() as u64, Relaxed);
        }
    });
    println!("the longest took {} ms", longest_ms.into_inner());
}

#[test]
fn words_about_all_watches_and_ephemerals() {
    let scene = Scene::with(&[("4lw.commands.whitelist", "*")]);
    let mut client = Rude::connect(&scene.server);
    client.create("/parent", b"");
    make_children(&mut client, "/parent", CreateMode::Ephemeral, scaled(100_000));
    for first in (0..scaled(100_000)).step_by(PIPELINE) {
        let exists = |number| {
            let path = format!("/watched/by-{number:07}");
            request(1, OpCode::Exists, |out| encode::path_and_watch(out, &path, true))
        };
        client.send(&(first..first + PIPELINE).flat_map(exists).collect::<Vec<u8>>());
        (0..PIPELINE).for_each(|_| drop(client.receive()));
    }
    let bytes = AtomicU64::new(0);
    scene.attack("words about 100,000 watches and ephemerals", Goal::BUSY, |server, deadline| {
        on_threads(2, deadline, |_| {
            for word in ["wchp", "wchc", "dump", "cons", "mntr"] {
                bytes.fetch_add(ask(server, word), Relaxed);
            }
        });
    });
    println!("{} MiB", bytes.into_inner() / MIB);
}

/// Sends a word and reads the answer to its end; its length in bytes.
fn ask(server: &Server, word: &str) -> u64 {
    let mut stream = Rude::call(server).expect("connect").stream;
    stream.write_all(word.as_bytes()).expect("the server takes a word");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer to its end");
    assert!(answer.len() > 100, "{word}: {}", String::from_utf8_lossy(&answer));
    answer.len() as u64
}
