//! Clients that take what they can of a member's memory, beside one that behaves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_proto::{
    AddWatchMode, ConnectRequest, Extensions, OpCode, SessionId, Zxid, encode, frame, jute::Writer as _,
};
use paddock_tests::server::{Server, ServerKind};

const MIB: u64 = 1 << 20;
/// The default of `client_buffers_max`.
const CLIENT_BUFFERS_MAX: u64 = 256 * MIB;
/// Memory that the allocator and 100 connections need beside that.
const SLACK: u64 = 128 * MIB;
const RUDE_CLIENTS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// Resident memory of a server in bytes.
fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory is known");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect")
}

/// A client that sends what it is told to send, and reads the answer to its greeting and nothing more.
fn rude_client(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("connect");
    let request = ConnectRequest {
        protocol_version: 0,
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(0),
        timeout_ms: 40_000,
        session: SessionId::NONE,
        password: Some(&[0; 16]),
        read_only: Some(false),
    };
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    stream.write_all(&bytes).expect("greet");
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("the length of an answer");
    stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize]).expect("an answer");
    stream
}

fn request(xid: i32, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        out.put_i32(xid);
        out.put_i32(op as i32);
        body(out);
    });
    bytes
}

/// Time that the requests of a client that behaves took, and the memory of its server meanwhile.
#[derive(Debug, Default)]
struct Witness {
    waits: Vec<Duration>,
    resident_bytes_max: u64,
}

impl Witness {
    /// Reads a small znode again and again until `is_over`.
    async fn watch(&mut self, server: &Server, client: &Client, mut is_over: impl FnMut() -> bool) {
        while !is_over() {
            let since = Instant::now();
            client.get_data("/small").await.expect("a client that behaves is served");
            self.waits.push(since.elapsed());
            if self.waits.len().is_multiple_of(20) {
                self.resident_bytes_max = self.resident_bytes_max.max(resident_bytes(server));
            }
        }
        self.waits.sort();
    }

    fn describe(&self) -> String {
        let part = |of_thousand: usize| self.waits[(self.waits.len() - 1) * of_thousand / 1000];
        format!(
            "{} reads, p50 {:?}, p99 {:?}, longest {:?}, resident {} MiB",
            self.waits.len(),
            part(500),
            part(990),
            part(1000),
            self.resident_bytes_max / MIB,
        )
    }

    /// Nobody waits for seconds, whatever else this machine does.
    fn check_waits(&self) {
        let longest = self.waits.last().expect("it has read");
        assert!(*longest < Duration::from_secs(1), "{}", self.describe());
    }
}

/// The server, what it took before the attack, and how long a client waited that had it for itself.
async fn attacked() -> (Server, Client, Witness) {
    let server =
        Server::start_with(ServerKind::Paddock, &[("maxClientCnxns", "0"), ("4lw.commands.whitelist", "*")]);
    let client = connect(&server).await;
    client.create("/small", b"1", CreateMode::Persistent).await.expect("create");
    let mut alone = Witness::default();
    let until = Instant::now() + Duration::from_millis(500);
    alone.watch(&server, &client, || Instant::now() > until).await;
    alone.resident_bytes_max = alone.resident_bytes_max.max(resident_bytes(&server));
    println!("alone: {}", alone.describe());
    (server, client, alone)
}

fn metric(server: &Server, name: &str) -> u64 {
    let mntr = server.four_letter_word("mntr").expect("it answers");
    let line = mntr.lines().find_map(|line| line.strip_prefix(name)).expect("the metric is there");
    line.trim().parse().expect("a number")
}

/// The member holds nothing for clients any more, and has given the memory back but for so many bytes, which its allocator keeps.
fn check_returns(server: &Server, before: u64, kept: u64) {
    let deadline = Instant::now() + PATIENCE;
    let most = before + before / 5 + kept;
    while metric(server, "zk_client_buffer_bytes") > 0 || resident_bytes(server) > most {
        assert!(
            Instant::now() < deadline,
            "{} MiB resident, {} before the attack; {} bytes of clients",
            resident_bytes(server) / MIB,
            before / MIB,
            metric(server, "zk_client_buffer_bytes"),
        );
        std::thread::sleep(POLL);
    }
}

#[tokio::test]
async fn clients_that_ask_for_much_and_read_nothing_are_bounded_together() {
    let (server, client, alone) = attacked().await;
    client.create("/large", &vec![7; 900_000], CreateMode::Persistent).await.expect("create");
    let before = resident_bytes(&server);
    let read = request(1, OpCode::GetData, |out| encode::path_and_watch(out, "/large", false));
    let pipeline = read.repeat(200);
    let mut rude: Vec<TcpStream> = (0..RUDE_CLIENTS).map(|_| rude_client(&server)).collect();
    let mut beside = Witness::default();
    for stream in &mut rude {
        stream.write_all(&pipeline).expect("ask");
    }
    let since = Instant::now();
    let is_over = || since.elapsed() > Duration::from_secs(4);
    beside.watch(&server, &client, is_over).await;
    println!("beside: {}", beside.describe());
    assert!(beside.resident_bytes_max < before + CLIENT_BUFFERS_MAX + SLACK, "{}", beside.describe());
    assert!(alone.resident_bytes_max < before, "the large znode counts");
    beside.check_waits();
    assert!(metric(&server, "zk_client_buffer_closed") > 0, "nobody was closed: {}", server.log());
    assert!(
        server.log().contains("connection closed: it holds memory and does not read"),
        "{}",
        server.log()
    );
    drop(rude);
    check_returns(&server, before, 32 * MIB);
}

/// Creates 10,000 znodes with long names: an event for each is 10 MiB for each watcher.
async fn make_znodes(client: &Client, kind: &str) {
    let name = format!("{kind}-{}", "n".repeat(1000));
    for round in 0..100 {
        let paths: Vec<String> = (0..100).map(|number| format!("/{name}-{round}-{number}")).collect();
        let pending: Vec<_> =
            paths.iter().map(|path| client.create(path, b"", CreateMode::Persistent)).collect();
        for created in pending {
            created.await.expect("create");
        }
    }
}

#[tokio::test]
async fn watchers_that_read_nothing_are_bounded_together() {
    let (server, client, alone) = attacked().await;
    let writer = connect(&server).await;
    make_znodes(&writer, "calm").await;
    let before = resident_bytes(&server);
    let state = before - alone.resident_bytes_max;
    let add = request(1, OpCode::AddWatch, |out| {
        out.put_string("/");
        out.put_i32(encode::add_watch_mode(AddWatchMode::PersistentRecursive));
    });
    let mut rude: Vec<TcpStream> = (0..RUDE_CLIENTS).map(|_| rude_client(&server)).collect();
    for stream in &mut rude {
        stream.write_all(&add).expect("watch");
    }
    let is_done = AtomicBool::new(false);
    let writes = async {
        make_znodes(&writer, "watched").await;
        is_done.store(true, Ordering::Relaxed);
    };
    let mut beside = Witness::default();
    tokio::join!(writes, beside.watch(&server, &client, || is_done.load(Ordering::Relaxed)));
    println!("beside: {}", beside.describe());
    assert!(beside.resident_bytes_max < before + CLIENT_BUFFERS_MAX + SLACK + state, "{}", beside.describe());
    beside.check_waits();
    assert!(metric(&server, "zk_client_buffer_closed") > 0, "nobody was closed");
    drop(rude);
    check_returns(&server, before + state, 96 * MIB);
}
