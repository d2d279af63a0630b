//! Attacks with identities, which any client may show: a user and a password that no server checks.

use std::io::Read;
use std::time::Instant;

use paddock_proto::jute::Writer as _;
use paddock_proto::{OpCode, Xid, encode};
use paddock_tests::server::Server;

use crate::on_threads;
use crate::rude::{Rude, request};
use crate::scene::{Goal, MIB, Scene, attack_time};

const CLIENTS: usize = 10;
/// Identities that a connection may show beside its address.
const SHOWN_MAX: usize = 63;
/// Bytes of a user's name with which as many take nearly all the bytes that a connection may show.
const NAME_BYTES: usize = 200;
/// Entries that a leader keeps in memory for followers that lag a little, in bytes.
const LOG_KEPT: u64 = 8 * MIB;
/// Writes that a client asks for before it reads the answers.
const WRITES: usize = 20;
/// Memory that the strangers may take together: the parts of requests that have come, and what is under way.
const TAKEN_MAX: u64 = 96 * MIB;

fn auth(user: &str) -> Vec<u8> {
    request(Xid::AUTH.0, OpCode::Auth, |out| {
        out.put_i32(0);
        out.put_string("digest");
        out.put_buffer(Some(format!("{user}:password").as_bytes()));
    })
}

/// A connection that has shown all that it may.
fn with_identities(server: &Server) -> Rude {
    let mut client = Rude::connect(server);
    for number in 0..SHOWN_MAX {
        client.send(&auth(&format!("{number:0NAME_BYTES$}")));
        assert_eq!(client.receive()[12..16], [0; 4], "identity {number} is taken");
    }
    client
}

/// Reads to the end of the connection, if the server has ended it.
fn read_to_end(mut client: Rude) {
    let mut answers = vec![0; 1 << 16];
    while client.stream.read(&mut answers).is_ok_and(|count| count > 0) {}
}

/// 68 MB in frames of 1 MiB, as far as the server takes them.
fn show_large_ones(server: &Server) {
    let mut client = Rude::connect(server);
    let large = auth(&"u".repeat(1 << 20));
    for _ in 0..68 {
        if !client.try_send(&large) {
            break;
        }
    }
    client.close();
}

fn show_ten_thousand_small_ones(server: &Server) {
    let mut client = Rude::connect(server);
    let small: Vec<u8> = (0..10_000).flat_map(|number| auth(&format!("u{number}"))).collect();
    client.try_send(&small);
    read_to_end(client);
}

fn show_one_again_and_again(server: &Server) {
    let mut client = Rude::connect(server);
    client.send(&auth("again").repeat(10_000));
    for _ in 0..10_000 {
        assert_eq!(client.receive()[12..16], [0; 4], "it counts once");
    }
}

/// Small writes, with each of which all identities travel.
fn write_with_identities(server: &Server, path: &str) {
    let mut client = with_identities(server);
    let set = request(1, OpCode::SetData, |out| encode::set_data(out, path, Some(b"1"), -1));
    for _ in 0..10 {
        client.send(&set.repeat(WRITES));
        for _ in 0..WRITES {
            assert_eq!(client.receive()[12..16], [0; 4], "the write is carried out");
        }
    }
}

/// Ten clients at once, each with a script of its own, at all members.
fn strangers(name: &str, scene: &Scene, kept: u64) {
    Rude::connect(&scene.server).create("/written", b"");
    let goal = Goal { longest: Goal::SET.longest, kept, ..Goal::BUSY };
    let servers: Vec<&Server> = scene.servers().collect();
    let taken = scene.attack(name, goal, |_, deadline| {
        let at = |number: usize| servers[number % servers.len()];
        let idle: Vec<Rude> = (0..CLIENTS).map(|number| with_identities(at(number))).collect();
        // That takes its time on a machine that does much else.
        let deadline = deadline.max(Instant::now() + attack_time());
        on_threads(CLIENTS, deadline, |thread| match thread % 4 {
            0 => show_large_ones(at(thread / 4)),
            1 => show_ten_thousand_small_ones(at(thread / 4)),
            2 => show_one_again_and_again(at(thread / 4)),
            _ => write_with_identities(at(thread / 4), "/written"),
        });
        idle
    });
    assert!(taken < TAKEN_MAX, "{} MiB", taken / MIB);
    for server in &servers {
        server.wait_for_log("more identities than a connection may");
        let mut client = with_identities(server);
        client.send(&auth("one more"));
        assert_eq!(client.receive()[12..16], (-115_i32).to_be_bytes(), "AUTHFAILED");
        assert_eq!(client.stream.read(&mut [0]).ok(), Some(0), "and the connection is closed");
    }
}

#[test]
fn strangers_with_identities() {
    strangers("strangers with identities", &Scene::new(), Goal::BUSY.kept);
}

#[test]
fn strangers_with_identities_at_three_members() {
    strangers("strangers with identities, three members", &Scene::of_three(), Goal::BUSY.kept + LOG_KEPT);
}
