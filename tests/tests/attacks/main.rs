//! Attacks on a real server, each beside a client that behaves. `cargo xtask test attacks` runs them; docs/security.md has the figures.

mod http;
mod identities;
mod large;
mod neighbours;
mod rude;
mod scene;
mod tenants;
mod witness;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paddock_proto::jute::Writer as _;
use paddock_proto::{AddWatchMode, CreateMode, OpCode, encode};
use paddock_tests::server::Server;

use rude::{Rude, greeting, request};
use scene::{Goal, MIB, Scene, scaled};

const RUDE_CLIENTS: usize = 100;
/// Requests of a client that reads its answers, before it reads the next ones.
const PIPELINE: usize = 500;

fn sleep_until(deadline: Instant) {
    std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
}

/// Does the same on several threads until the deadline. Returns how often it was done.
fn on_threads(threads: usize, deadline: Instant, work: impl Fn(usize) + Sync) -> u64 {
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (work, done) = (&work, &done);
            scope.spawn(move || {
                while Instant::now() < deadline {
                    work(thread);
                    done.fetch_add(1, Relaxed);
                }
            });
        }
    });
    done.into_inner()
}

/// Bytes that look like chance and are the same in every run.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| byte()).collect()
}

#[test]
fn connections_that_send_nothing() {
    let scene = Scene::new();
    scene.attack("connections that send nothing", Goal::SET, |server, deadline| {
        let silent: Vec<_> = (0..scaled(8000)).map(|_| Rude::call(server).expect("connect")).collect();
        sleep_until(deadline);
        silent
    });
}

#[test]
fn one_byte_per_second() {
    let scene = Scene::new();
    scene.attack("one byte per second", Goal::SET, |server, deadline| {
        let mut slow: Vec<_> = (0..1000).map(|_| Rude::call(server).expect("connect")).collect();
        for byte in greeting() {
            slow.retain_mut(|client| client.try_send(&[byte]));
            if Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        slow
    });
}

#[test]
fn frames_that_claim_gigabytes() {
    // ZooKeeper's default of the largest request.
    let scene = Scene::with(&[("jute.maxbuffer", "0xfffff")]);
    scene.attack("frames that claim gigabytes", Goal::BUSY, |server, deadline| {
        let part = vec![0; 1 << 20];
        on_threads(8, deadline, |_| {
            let mut client = Rude::connect(server);
            client.send(&i32::MAX.to_be_bytes());
            while Instant::now() < deadline && client.try_send(&part) {}
        });
    });
    scene.server.wait_for_log("frame_bytes_max");
}

/// Without a lower limit of the request's size, what is held of it is bounded by what clients may hold together.
#[test]
fn frames_that_claim_half_a_gigabyte_and_may() {
    let scene = Scene::new();
    scene.attack("frames that claim 500 MiB, no lower limit", Goal::BUSY, |server, deadline| {
        let part = vec![0; 1 << 20];
        on_threads(8, deadline, |_| {
            let mut client = Rude::connect(server);
            client.send(&(500_i32 << 20).to_be_bytes());
            while Instant::now() < deadline && client.try_send(&part) {}
        });
    });
}

#[test]
fn clients_that_ask_for_much_and_read_nothing() {
    let scene = Scene::new();
    Rude::connect(&scene.server).create("/large", &vec![7; 900_000]);
    let read = request(1, OpCode::GetData, |out| encode::path_and_watch(out, "/large", false));
    let pipeline = read.repeat(200);
    let held = scene.attack("reads of 900 kB, nothing read", Goal::SET, |server, deadline| {
        let mut rude: Vec<Rude> = (0..RUDE_CLIENTS).map(|_| Rude::connect_deaf(server)).collect();
        rude.iter_mut().for_each(|client| client.send(&pipeline));
        sleep_until(deadline.max(Instant::now() + Duration::from_secs(4)));
        rude
    });
    scene.check_closed(held);
}

/// Creates znodes with long names: for each watcher an event of 1 KiB each.
fn make_znodes(server: &Server, kind: &str, count: usize) {
    let mut client = Rude::connect(server);
    let name = format!("{kind}-{}", "n".repeat(1000));
    for first in (0..count).step_by(PIPELINE) {
        for number in first..first + PIPELINE {
            let path = format!("/{name}-{number}");
            client.send(&request(1, OpCode::Create, |out| {
                encode::create_open(out, &path, None, CreateMode::Persistent);
            }));
        }
        (0..PIPELINE).for_each(|_| drop(client.receive()));
    }
}

#[test]
fn watchers_that_read_nothing() {
    let scene = Scene::new();
    let znodes = scaled(50_000);
    // The znodes themselves are no attack.
    make_znodes(&scene.server, "watched", znodes);
    let add = request(1, OpCode::AddWatch, |out| {
        out.put_string("/");
        out.put_i32(encode::add_watch_mode(AddWatchMode::PersistentRecursive));
    });
    // The znodes that it makes stay.
    let goal = Goal { kept: 80 * MIB, ..Goal::BUSY };
    let held = scene.attack("recursive watchers, nothing read", goal, |server, deadline| {
        let mut rude: Vec<Rude> = (0..RUDE_CLIENTS).map(|_| Rude::connect_deaf(server)).collect();
        rude.iter_mut().for_each(|client| client.send(&add));
        make_znodes(server, "unread", znodes);
        sleep_until(deadline);
        rude
    });
    scene.check_closed(held);
}

#[test]
fn a_million_watches_set_and_dropped() {
    let scene = Scene::new();
    scene.attack("watches set and dropped", Goal::BUSY, |server, deadline| {
        let watches = scaled(1_000_000);
        while Instant::now() < deadline {
            let mut client = Rude::connect(server);
            let reader = client.drain();
            for first in (0..watches).step_by(PIPELINE) {
                let batch: Vec<u8> = (first..first + PIPELINE)
                    .flat_map(|number| {
                        request(1, OpCode::Exists, |out| {
                            encode::path_and_watch(out, &format!("/service/instance-{number:09}"), true);
                        })
                    })
                    .collect();
                client.send(&batch);
            }
            client.close();
            reader.join().expect("it reads to the end");
        }
    });
}

#[test]
fn a_storm_of_sessions() {
    let scene = Scene::new();
    let sessions = AtomicU64::new(0);
    scene.attack("session storm", Goal::BUSY, |server, deadline| {
        let count = on_threads(8, deadline, |_| drop(Rude::connect(server)));
        sessions.store(count, Relaxed);
    });
    println!("{} sessions", sessions.into_inner());
}

#[test]
fn connections_that_close_without_a_greeting() {
    let scene = Scene::new();
    scene.attack("connect and close", Goal::BUSY, |server, deadline| {
        on_threads(4, deadline, |_| drop(Rude::call(server)));
    });
}

/// A multi that creates `operations` znodes and deletes them.
fn multi(operations: usize, thread: usize) -> Vec<u8> {
    request(1, OpCode::Multi, |out| {
        for number in 0..operations / 2 {
            encode::multi_operation(out, OpCode::Create);
            let path = format!("/multi-{thread}-{number:05}");
            encode::create_open(out, &path, None, CreateMode::Persistent);
        }
        for number in 0..operations / 2 {
            encode::multi_operation(out, OpCode::Delete);
            encode::path_and_version(out, &format!("/multi-{thread}-{number:05}"), -1);
        }
        encode::multi_end(out);
    })
}

#[test]
fn deep_pipelines_of_long_multis() {
    let scene = Scene::new();
    let is_over = AtomicBool::new(false);
    scene.attack("pipelines of multis of 10,000 operations", Goal::BUSY, |server, deadline| {
        on_threads(4, deadline, |thread| {
            let request = multi(10_000, thread);
            let mut client = Rude::connect(server);
            let reader = client.drain();
            while Instant::now() < deadline && client.try_send(&request) {}
            client.close();
            reader.join().expect("it reads to the end");
        });
        is_over.store(true, Relaxed);
    });
}

#[test]
fn malformed_bytes_tokens_and_handshakes() {
    let scene = Scene::new();
    let tls_hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &noise(500)].concat();
    let token = request(1, OpCode::Sasl, |out| out.put_buffer(Some(&noise(10_000))));
    let junk = [&500_u32.to_be_bytes()[..], &noise(500)].concat();
    scene.attack("malformed TLS, SASL and requests", Goal::BUSY, |server, deadline| {
        on_threads(4, deadline, |_| {
            if let Ok(mut client) = Rude::call(server) {
                client.try_send(&tls_hello);
            }
            for bytes in [&token, &junk] {
                let mut client = Rude::connect(server);
                client.try_send(bytes);
            }
        });
    });
    let lines = scene.server.log().lines().count();
    assert!(lines < 2000, "an attacker has filled the log with {lines} lines");
}
