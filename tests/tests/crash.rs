//! A server that is killed at random moments under load loses nothing that it acknowledged.
//!
//! Each writer has a session, an ephemeral znode and, in every cycle, a counter: a write sets the counter from n to n+1
//! and makes the child n, both or neither, and only if the write before it was carried out. So after a restart the
//! counter says which writes are there, and its children must say the same.
//!
//! - `CRASH_CYCLES`: how many cycles, 50 unless told.
//! - `CRASH_SEED`: chooses the moments as that run did.
//! - `CRASH_AGAINST=zookeeper`: kills ZooKeeper, to prove the test itself.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, thread};

use paddock_chance::Chance;
use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode, Multi, SessionId};
use paddock_tests::server::{Server, ServerKind};

const CYCLES: usize = 50;
const WRITERS: usize = 3;
const IN_FLIGHT: usize = 40;
const LOAD_MS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(30);

struct CrashWriter {
    name: String,
    client: Client,
    session: SessionId,
    /// Number of acknowledged writes of each cycle.
    acknowledged: Vec<i32>,
}

impl CrashWriter {
    async fn start(server: &Server, number: usize) -> CrashWriter {
        let options = ClientOptions { session_timeout: Duration::from_secs(40), ..ClientOptions::default() };
        let client = Client::connect(&server.address().to_string(), options).await.expect("connect");
        let name = format!("/writer-{number}");
        client.create(&name, b"", CreateMode::Persistent).await.expect("make the writer's znode");
        client
            .create(&format!("{name}/alive"), b"", CreateMode::Ephemeral)
            .await
            .expect("make the ephemeral");
        let session = client.session();
        CrashWriter { name, client, session, acknowledged: Vec::new() }
    }

    fn counter(&self, cycle: usize) -> String {
        format!("{}/cycle-{cycle}", self.name)
    }

    async fn start_cycle(&self, cycle: usize) {
        let created = self.client.create(&self.counter(cycle), b"0", CreateMode::Persistent).await;
        created.unwrap_or_else(|error| panic!("{} starts cycle {cycle}: {error:?}", self.name));
    }

    /// Writes until the connection breaks, or, if it broke while nothing was under way, until the crash is `over`;
    /// remembers what was acknowledged.
    async fn write(mut self, cycle: usize, over: Arc<AtomicBool>) -> CrashWriter {
        let mut in_flight = VecDeque::new();
        let (mut next, mut acknowledged, mut lost) = (0, 0, false);
        loop {
            let ends = lost || over.load(Ordering::Relaxed);
            while !ends && in_flight.len() < IN_FLIGHT {
                in_flight.push_back((next, self.send(cycle, next)));
                next += 1;
            }
            let Some((number, answer)) = in_flight.pop_front() else { break };
            match answer.await {
                Ok(_) => acknowledged = number + 1,
                Err(Error::ConnectionLost) => lost = true,
                // The multi waited for the next connection, and the write before it was lost with the old one.
                Err(Error::MultiFailed { code: ErrorCode::BadVersion, .. }) if lost => {}
                Err(error) => panic!("{} writes {number} in cycle {cycle}: {error:?}", self.name),
            }
        }
        self.acknowledged.push(acknowledged);
        self
    }

    fn send(
        &self,
        cycle: usize,
        number: i32,
    ) -> paddock_client::Pending<Vec<paddock_client::WriteReply<'static>>> {
        let counter = self.counter(cycle);
        let multi = Multi::new()
            .set_data(&counter, (number + 1).to_string().as_bytes(), Some(number))
            .create(&format!("{counter}/{number}"), b"", CreateMode::Persistent);
        self.client.multi(&multi)
    }

    /// Everything acknowledged is there, and whatever else is there is whole.
    async fn check(&self, cycle: usize) {
        let counter = self.counter(cycle);
        let data =
            self.client.get_data(&counter).await.unwrap_or_else(|error| panic!("{counter}: {error:?}"));
        let writes = data.stat.version;
        let acknowledged = self.acknowledged[cycle];
        assert!(writes >= acknowledged, "{counter} has {writes} of {acknowledged} acknowledged writes");
        assert_eq!(data.bytes, Some(writes.to_string().into_bytes()), "{counter} has half a write");
        let children = self.client.get_children(&counter).await.expect("list the writes");
        let children: BTreeSet<i32> = children.iter().map(|name| name.parse().expect("a number")).collect();
        assert!(children.iter().copied().eq(0..writes), "{counter} has {writes} writes but {children:?}");
    }

    async fn check_session(&self) {
        let alive =
            self.client.exists(&format!("{}/alive", self.name)).await.expect("the ephemeral is there");
        assert_eq!(alive.ephemeral_owner, self.session);
        assert_eq!(self.client.session(), self.session);
    }

    /// Returns when the session goes on.
    async fn resume(&self) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.client.sync("/").await {
            assert!(matches!(error, Error::ConnectionLost), "{}: {error:?}", self.name);
            assert!(Instant::now() < deadline, "{} does not get back to its server", self.name);
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

fn kind() -> ServerKind {
    match env::var("CRASH_AGAINST").as_deref() {
        Ok("zookeeper") => ServerKind::ZooKeeper,
        _ => ServerKind::Paddock,
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost() {
    let cycles = number("CRASH_CYCLES").map_or(CYCLES, |cycles| cycles as usize);
    let seed = number("CRASH_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_micros() as u64
    });
    println!("CRASH_SEED={seed}");
    let mut chance = Chance::new(seed);
    let mut server = Server::start(kind());
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        writers.push(CrashWriter::start(&server, writer).await);
    }
    for cycle in 0..cycles {
        for writer in &writers {
            writer.start_cycle(cycle).await;
        }
        let over = Arc::new(AtomicBool::new(false));
        let load = writers.drain(..).map(|writer| tokio::spawn(writer.write(cycle, Arc::clone(&over))));
        let load: Vec<_> = load.collect();
        let moment = Duration::from_millis(chance.index(LOAD_MS) as u64);
        server =
            tokio::task::spawn_blocking(move || crash(server, moment)).await.expect("the server comes back");
        over.store(true, Ordering::Relaxed);
        for writer in load {
            let writer = writer.await.expect("the writer ends");
            writer.resume().await;
            writer.check(cycle).await;
            writer.check_session().await;
            writers.push(writer);
        }
    }
    for writer in &writers {
        for cycle in 0..cycles {
            writer.check(cycle).await;
        }
        println!("{} had {} writes acknowledged", writer.name, writer.acknowledged.iter().sum::<i32>());
    }
    let writes: i32 = writers.iter().flat_map(|writer| &writer.acknowledged).sum();
    assert!(writes > 0, "nothing was ever acknowledged: the test shows nothing");
}

fn crash(mut server: Server, moment: Duration) -> Server {
    thread::sleep(moment);
    server.kill();
    server.restart();
    server
}
