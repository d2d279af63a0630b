//! A tenant within its rate, and at ten times of it, beside a client that behaves: with a limit, without one, and at Apache ZooKeeper, which has none.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paddock_proto::OpCode;
use paddock_proto::jute::Writer as _;
use paddock_tests::server::{Server, ServerKind};

use crate::on_threads;
use crate::rude::{Rude, request};
use crate::scene::{attack_time, from_elsewhere, is_strict};
use crate::witness::{Waits, Witness, p99};

/// Writes a second that the tenant may ask for.
const RATE: u64 = 2000;
const CONNECTIONS: usize = 20;
/// Interval at which each connection sends what has become due.
const PACE: Duration = Duration::from_millis(5);
/// Repetitions in the full form.
const ROUNDS: usize = 5;
/// A difference below it is a turn of the processor.
const FLOOR: Duration = Duration::from_micros(50);

/// Writes that the tenant asks for in a second; `None` stands for a tenant that does nothing.
const OFFERS: [Option<u64>; 3] = [None, Some(RATE), Some(10 * RATE)];

/// Waits of the client that behaves, and writes of the tenant that were answered in a second.
struct Measured {
    waits: Waits,
    answered: u64,
}

/// Asks for `rate` writes a second, whether or not they are answered, until the time is over.
fn ask(client: &Rude, rate: u64, deadline: Instant, answered: &AtomicU64) {
    let set = request(1, OpCode::SetData, |out| {
        out.put_string("/greedy");
        out.put_buffer(Some(b"more"));
        out.put_i32(-1);
    });
    let (mut reader, mut writer) = (&client.stream, &client.stream);
    let since = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut frame = Vec::new();
            let mut len = [0; 4];
            while reader.read_exact(&mut len).is_ok() {
                frame.resize(u32::from_be_bytes(len) as usize, 0);
                if reader.read_exact(&mut frame).is_err() {
                    break;
                }
                answered.fetch_add(1, Relaxed);
            }
        });
        let mut sent = 0;
        while Instant::now() < deadline {
            let due = (rate as f64 * since.elapsed().as_secs_f64()) as usize;
            // A server that does not read on fills the socket: the tenant waits there, as its clients would.
            if writer.write_all(&set.repeat(due - sent)).is_err() {
                break;
            }
            sent = due;
            std::thread::sleep(PACE);
        }
        let _ = client.stream.shutdown(std::net::Shutdown::Both);
    });
}

fn measured(server: &Server, offer: Option<u64>) -> Measured {
    let witness = Witness::start(server);
    let (answered, since) = (AtomicU64::new(0), Instant::now());
    let deadline = since + attack_time();
    match offer {
        None => std::thread::sleep(attack_time()),
        Some(rate) => from_elsewhere(|| {
            on_threads(CONNECTIONS, deadline, |_| {
                let client = Rude::connect(server);
                client.stream.set_write_timeout(Some(attack_time())).expect("it is connected");
                ask(&client, rate / CONNECTIONS as u64, deadline, &answered);
            });
        }),
    }
    let answered = (answered.into_inner() as f64 / since.elapsed().as_secs_f64()) as u64;
    Measured { waits: witness.end(), answered }
}

fn median<T: Copy + Ord>(mut values: Vec<T>) -> T {
    values.sort();
    values[values.len() / 2]
}

#[test]
fn a_tenant_at_ten_times_its_rate_is_not_noticed_by_its_neighbour() {
    let rule = format!("path=/greedy:requests={RATE}");
    let servers = [
        ("Paddock with a limit", Server::start_with(ServerKind::Paddock, &[("paddock.rate_limits", &rule)])),
        ("Paddock without one", Server::start(ServerKind::Paddock)),
        ("ZooKeeper", Server::start(ServerKind::ZooKeeper)),
    ];
    for (_, server) in &servers {
        let mut client = Rude::connect(server);
        client.create("/small", b"1");
        client.create("/greedy", b"1");
    }
    let rounds = if is_strict() { ROUNDS } else { 1 };
    let mut told: Vec<Vec<Measured>> = Vec::new();
    for _ in 0..rounds {
        for (place, (_, server)) in servers.iter().enumerate() {
            for (offer, wanted) in OFFERS.into_iter().enumerate() {
                let at = place * OFFERS.len() + offer;
                if told.len() <= at {
                    told.push(Vec::new());
                }
                told[at].push(measured(server, wanted));
            }
        }
    }
    let p99_of = |at: usize| median(told[at].iter().map(|round| p99(&round.waits.reads)).collect());
    println!("NEIGHBOUR | server | the tenant asks for | and gets | p99 of reads | p99 of writes");
    for (at, rounds) in told.iter().enumerate() {
        let (name, offer) = (servers[at / OFFERS.len()].0, OFFERS[at % OFFERS.len()].unwrap_or(0));
        let answered = median(rounds.iter().map(|round| round.answered).collect());
        let writes = median(rounds.iter().map(|round| p99(&round.waits.writes)).collect());
        println!("NEIGHBOUR | {name} | {offer}/s | {answered}/s | {:?} | {writes:?}", p99_of(at));
    }
    let limited = median(told[2].iter().map(|round| round.answered).collect::<Vec<u64>>());
    // A quarter of a second of its rate comes at once.
    let most = RATE + RATE / 4 * 1000 / attack_time().as_millis() as u64;
    assert!(limited <= most + most / 20, "{limited} a second, {most} are the tenant's limit");
    assert!(told[2].iter().all(|round| !round.waits.reads.is_empty()), "the neighbour is served");
    if is_strict() {
        let (within, above) = (p99_of(1), p99_of(2));
        assert!(
            above <= within + (within / 10).max(FLOOR),
            "p99 {within:?} at the tenant's rate, {above:?} at ten times of it"
        );
    }
}
