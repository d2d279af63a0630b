//! Alerts for what a member has little of: watches, files, memory for its clients.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use paddock_client::CreateMode;
use paddock_proto::{OpCode, Password, SessionId, encode, frame, jute::Writer as _};
use paddock_tests::deaf;
use paddock_tests::oracle::connection::greeting;

use crate::members::LoneMember;
use crate::prometheus::Prometheus;
use crate::{connect, wait_for, wait_for_silence, wait_until};

const WATCHES: &str = "PaddockWatchesNearLimit";
const MEMORY: &str = "PaddockClientMemoryNearlyFull";
const FILES: &str = "PaddockFilesNearlyExhausted";

const WATCHES_MAX: usize = 10;
const FILES_MAX: usize = 80;
/// Each connection may hold an eighth of what is left: ten of them hold between 70 % and 75 %, from where on the member closes some. If it has
/// closed some of the first ten, others come.
const DEAF_CLIENTS: usize = 10;
const DEAF_CLIENTS_MAX: usize = 20;
const LARGE_BYTES: usize = 10_000;
/// Requests whose replies, 30 MB, do not fit into the buffers of sockets: a small one here, and the server's, of the kernel's making.
const READS: usize = 3000;

#[tokio::test]
async fn limits_that_are_nearly_reached_are_told_of() {
    let settings = format!("watches_max = {WATCHES_MAX}\nclient_buffers_max = {}", 16 << 20);
    let member = LoneMember::start(&settings, &format!("ulimit -n {FILES_MAX}")).await;
    let prometheus = Prometheus::start(&[member.metrics_port]);
    let client = connect(&member.address.to_string()).await;
    client.create("/large", &[7; LARGE_BYTES], CreateMode::Persistent).await.expect("create");
    for number in 1..WATCHES_MAX {
        // There is no such znode, and a watch for it.
        let _ = client.watch_exists(&format!("/{number}")).await;
    }
    let mut deaf: Vec<TcpStream> = (0..DEAF_CLIENTS).map(|_| deaf_client(member.address)).collect();
    wait_for(&prometheus, &[WATCHES]).await;
    wait_until(MEMORY, || {
        if deaf.len() < DEAF_CLIENTS_MAX {
            deaf.push(deaf_client(member.address));
        }
        prometheus.is_firing(MEMORY)
    })
    .await;
    assert!(!prometheus.is_firing(FILES), "there are files left");
    drop(deaf);
    client.close().await.expect("close");

    let mut connections: Vec<TcpStream> = Vec::new();
    wait_until(FILES, || {
        // They say nothing, so they stay open for a while.
        connections.extend(TcpStream::connect(member.address).ok());
        prometheus.is_firing(FILES)
    })
    .await;
    drop(connections);
    wait_for_silence(&prometheus, &[WATCHES, MEMORY, FILES]).await;
}

/// A client that asks for more than the buffers of its sockets take, and reads nothing.
fn deaf_client(member: SocketAddr) -> TcpStream {
    let mut read = Vec::new();
    frame::write(&mut read, |out| {
        out.put_i32(1);
        out.put_i32(OpCode::GetData.code());
        encode::path_and_watch(out, "/large", false);
    });
    let mut stream = deaf::connect(member).expect("connect");
    stream.write_all(&greeting(SessionId::NONE, &Password::ZERO, 40_000, false)).expect("greet");
    // The member may close it meanwhile.
    let _ = stream.write_all(&read.repeat(READS));
    stream
}
