//! First figures: writes per second and latency, and the memory of a million znodes. Prints a Markdown table.
//!
//! Paddock and Apache ZooKeeper take turns on fresh directories, so that a noisy machine harms both alike; each figure
//! is the median of the repetitions. `PADDOCK_BIN` and `ZOOKEEPER_CLASSPATH` say where they are:
//! `cargo xtask baseline` sets both.

use std::time::{Duration, Instant};
use std::{env, fs};

use hdrhistogram::Histogram;
use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::server::{Kind, Server};

/// Sessions, and requests in flight on each.
const LOADS: [(usize, usize); 4] = [(1, 1), (10, 1), (100, 1), (10, 100)];
const VALUE: [u8; 100] = [b'x'; 100];
const PARENTS: usize = 1000;
const IN_FLIGHT: usize = 2000;

struct Plan {
    repetitions: usize,
    run: Duration,
    znodes: usize,
}

/// What one run of one load gave.
#[derive(Clone, Copy, Default)]
struct Figures {
    writes_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us_per_write: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let plan = match env::args().nth(1).as_deref() {
        None => Plan { repetitions: 5, run: Duration::from_secs(3), znodes: 1_000_000 },
        Some("--quick") => Plan { repetitions: 1, run: Duration::from_millis(500), znodes: 50_000 },
        Some(other) => panic!("unknown argument {other}; there is --quick"),
    };
    let mut runs = Vec::new();
    for repetition in 0..plan.repetitions {
        for kind in [Kind::Paddock, Kind::ZooKeeper] {
            eprintln!("repetition {} of {}: {kind:?}", repetition + 1, plan.repetitions);
            runs.push((kind, measure_writes(kind, plan.run).await));
        }
    }
    print_writes(&runs);
    print_memory(&plan).await;
}

async fn measure_writes(kind: Kind, run: Duration) -> Vec<Figures> {
    // The tests let ZooKeeper answer before its disk has written; here both have to wait for it.
    let server = Server::start_with(kind, &[("forceSync", "yes")]);
    let mut figures = Vec::new();
    for (number, (sessions, window)) in LOADS.into_iter().enumerate() {
        let root = format!("/load-{number}");
        let clients = connect(&server, sessions).await;
        clients[0].create(&root, b"", CreateMode::Persistent).await.expect("create the load's root");
        load(&clients, &root, window, run / 4).await;
        let cpu_before = cpu_seconds(&server);
        let started = Instant::now();
        let latencies = load(&clients, &root, window, run).await;
        let writes = latencies.len() as f64;
        figures.push(Figures {
            writes_per_second: writes / started.elapsed().as_secs_f64(),
            p50_us: latencies.value_at_quantile(0.5) as f64 / 1000.0,
            p99_us: latencies.value_at_quantile(0.99) as f64 / 1000.0,
            cpu_us_per_write: (cpu_seconds(&server) - cpu_before) * 1e6 / writes,
        });
        for client in &clients {
            client.close().await.expect("close a session");
        }
    }
    figures
}

async fn connect(server: &Server, sessions: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..sessions {
        let address = server.address().to_string();
        clients.push(Client::connect(&address, ClientOptions::default()).await.expect("connect a session"));
    }
    clients
}

/// Creates znodes on every session for some time, so many at once; latencies in nanoseconds.
async fn load(clients: &[Client], root: &str, window: usize, run: Duration) -> Histogram<u64> {
    let deadline = Instant::now() + run;
    let path = format!("{root}/n-");
    let lanes = clients.iter().flat_map(|client| std::iter::repeat_n(client, window)).map(|client| async {
        let mut latencies = Histogram::<u64>::new(3).expect("three digits are allowed");
        while Instant::now() < deadline {
            let sent = Instant::now();
            client.create(&path, &VALUE, CreateMode::PersistentSequential).await.expect("create a znode");
            latencies.record(sent.elapsed().as_nanos() as u64).expect("a latency fits");
        }
        latencies
    });
    let all = futures_util::future::join_all(lanes).await;
    all.into_iter().reduce(|sum, one| sum + one).expect("there is at least one session")
}

fn print_writes(runs: &[(Kind, Vec<Figures>)]) {
    println!("| sessions x in flight | | Paddock | ZooKeeper | ratio |\n|---|---|---:|---:|---:|");
    type Part = (&'static str, fn(&Figures) -> f64);
    let parts: [Part; 4] = [
        ("creates/s", |f| f.writes_per_second),
        ("p50, us", |f| f.p50_us),
        ("p99, us", |f| f.p99_us),
        ("server CPU, us per create", |f| f.cpu_us_per_write),
    ];
    for (number, (sessions, window)) in LOADS.into_iter().enumerate() {
        for (name, part) in parts {
            let of =
                |kind| median(runs.iter().filter(|(k, _)| *k == kind).map(|(_, all)| part(&all[number])));
            let (paddock, zookeeper) = (of(Kind::Paddock), of(Kind::ZooKeeper));
            println!(
                "| {sessions} x {window} | {name} | {paddock:.0} | {zookeeper:.0} | {:.2} |",
                paddock / zookeeper
            );
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Resident memory of Paddock before and after many znodes of 100 bytes with names of 13.
async fn print_memory(plan: &Plan) {
    let server = Server::start(Kind::Paddock);
    let client = connect(&server, 1).await.remove(0);
    for parent in 0..PARENTS {
        client.create(&format!("/p{parent:04}"), b"", CreateMode::Persistent).await.expect("create a parent");
    }
    let before = resident_bytes(&server);
    let mut waiting = std::collections::VecDeque::new();
    for number in 0..plan.znodes {
        let path = format!("/p{:04}/node-{number:08}", number % PARENTS);
        waiting.push_back(client.create(&path, &VALUE, CreateMode::Persistent));
        if waiting.len() == IN_FLIGHT {
            waiting.pop_front().expect("it was just counted").await.expect("create a znode");
        }
    }
    for pending in waiting {
        pending.await.expect("create a znode");
    }
    let after = resident_bytes(&server);
    let each = (after - before) as f64 / plan.znodes as f64;
    println!("\n{} znodes of 100 bytes, names of 13: {:.0} MiB resident in all,", plan.znodes, mib(after));
    println!("{each:.0} bytes each beyond the {:.0} MiB of the member with its parents.", mib(before));
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn resident_bytes(server: &Server) -> u64 {
    let status =
        fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("read the server's status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process has resident memory");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number of KiB");
    kib * 1024
}

/// User and system time, in the kernel's hundredths of a second.
fn cpu_seconds(server: &Server) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("read the server's times");
    let behind_name = stat.rsplit(')').next().expect("the name is in brackets");
    let ticks = |field: usize| -> f64 {
        behind_name.split_whitespace().nth(field).and_then(|f| f.parse().ok()).expect("a number of ticks")
    };
    (ticks(11) + ticks(12)) / 100.0
}
