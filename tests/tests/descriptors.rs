//! A process that may not have many descriptors: its clients are refused before its files are.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::server::{Server, ServerKind};

/// More than a member needs at rest, and fewer than the connections that are tried.
const LIMIT: &str = "ulimit -n 300; exec \"$0\" \"$@\"";
const SOFT_LIMIT: &str = "ulimit -S -n 300; exec \"$0\" \"$@\"";
const CONNECTIONS: usize = 400;
/// The log rolls, and snapshots are taken, many times within the writes of a test.
const SETTINGS: [(&str, &str); 3] = [("preAllocSize", "64"), ("snapCount", "100"), ("maxClientCnxns", "0")];
const WRITES: usize = 400;
const VALUE: [u8; 4000] = [b'v'; 4000];
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn clients_are_refused_before_the_log_lacks_a_descriptor() {
    let mut server = Server::prepare(ServerKind::Paddock, &SETTINGS);
    server.set_runner(&["sh", "-c", LIMIT]);
    server.restart();
    let client = connect(&server).await;

    let address = server.address();
    let sessions: Vec<TcpStream> = (0..CONNECTIONS).filter_map(|_| begin_session(address)).collect();
    let refused = CONNECTIONS - sessions.len();
    assert!((1..CONNECTIONS).contains(&refused), "{refused} of {CONNECTIONS} were refused");
    for number in 0..WRITES {
        let created = client.create(&format!("/{number}"), &VALUE, CreateMode::Persistent).await;
        created.unwrap_or_else(|error| panic!("write {number}: {error:?}\n{}", server.log()));
    }
    server.wait_for_log("connection refused: the process has as many descriptors open as it may");
    server.wait_for_log("snapshot taken");
    let log = server.log();
    assert!(!log.contains("Too many open files"), "{log}");
    assert_eq!(server.ended_by_itself(), None);

    drop(sessions);
    server.kill();
    server.restart();
    let client = connect(&server).await;
    for number in 0..WRITES {
        client.get_data(&format!("/{number}")).await.expect("what was acknowledged is there");
    }
}

#[test]
fn the_limit_is_raised_to_what_the_system_allows() {
    let mut server = Server::prepare(ServerKind::Paddock, &[]);
    server.set_runner(&["sh", "-c", SOFT_LIMIT]);
    server.restart();
    server.wait_for_log("raised the limit of open file descriptors");
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect")
}

/// The connection of a new session; `None` if it is closed without one.
fn begin_session(address: SocketAddr) -> Option<TcpStream> {
    let mut greeting = 44_i32.to_be_bytes().to_vec();
    // No protocol version, no zxid, half a minute, no session, and a password of 16 bytes.
    greeting.extend([0; 12]);
    greeting.extend(30_000_i32.to_be_bytes());
    greeting.extend([0; 8]);
    greeting.extend(16_i32.to_be_bytes());
    greeting.extend([0; 16]);
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(PATIENCE)).ok()?;
    connection.write_all(&greeting).ok()?;
    connection.read_exact(&mut [0; 4]).ok()?;
    Some(connection)
}
