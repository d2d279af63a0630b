//! A server, a client that behaves beside each attack, and what the two have to show.
//!
//! Each attack is measured against the same server without it, just before. `PADDOCK_ATTACK_SECONDS` says how long an attack lasts. With
//! `PADDOCK_ATTACK_STRICT=1`, for a machine that does nothing else, waits are held to the limits of docs/security.md; without it a
//! wait of seconds is a failure, which is what attacks do where there are no limits.

use std::time::{Duration, Instant};

use paddock_proto::{CreateMode, OpCode, encode};
use paddock_tests::ensemble::Ensemble;
use paddock_tests::server::{Server, ServerKind, metric};
use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};

use crate::rude::{Rude, request};
use crate::witness::{Waits, Witness, longest, p99};

pub(crate) const MIB: u64 = 1 << 20;
/// The default of `client_buffers_max`.
const CLIENT_BUFFERS_MAX: u64 = 256 * MIB;
/// With this much held by clients, the server closes those that do not read.
const SHORT: u64 = CLIENT_BUFFERS_MAX / 4 * 3;
/// Memory that the allocator and connections need beside that.
const SLACK: u64 = 128 * MIB;
/// Memory that buffers and tables keep when clients have gone.
const KEPT: u64 = 16 * MIB;
/// Memory of a server beside what its clients hold, while they hold that much.
const BESIDE_CLIENTS: u64 = 32 * MIB;
/// Time in which the server gives memory back.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);
/// The priority of attackers, as `nice` counts.
const LOWEST_PRIORITY: i32 = 19;
/// Longest wait that is tolerated on a machine that does much else.
const LONGEST_ANYWHERE: Duration = Duration::from_secs(2);

/// Limits of what the client that behaves may notice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// The 99th percentile of its reads, as a multiple of that without the attack,
    pub(crate) p99_times: u32,
    /// below which it does not matter.
    pub(crate) p99_floor: Duration,
    /// The longest wait of a read or a write.
    pub(crate) longest: Duration,
    /// Bytes that may stay resident of what the attack took, beside a fifth of what there was before.
    pub(crate) kept: u64,
}

impl Goal {
    /// The goal of every attack that leaves cores for others.
    pub(crate) const SET: Goal = Goal {
        p99_times: 3,
        p99_floor: Duration::from_millis(1),
        longest: Duration::from_millis(50),
        kept: KEPT,
    };

    /// An attack that keeps all cores busy: the witness waits for its turn on a core, and not for the server.
    pub(crate) const BUSY: Goal =
        Goal { p99_floor: Duration::from_millis(20), longest: Duration::from_millis(100), ..Goal::SET };
}

pub(crate) fn attack_time() -> Duration {
    let seconds = std::env::var("PADDOCK_ATTACK_SECONDS").map_or(2, |text| text.parse().expect("a number"));
    Duration::from_secs(seconds)
}

/// A number that the full form of an attack has; the short one has a tenth.
pub(crate) fn scaled(full: usize) -> usize {
    if attack_time() >= Duration::from_secs(10) { full } else { full / 10 }
}

pub(crate) fn is_strict() -> bool {
    std::env::var("PADDOCK_ATTACK_STRICT").is_ok_and(|strict| strict == "1")
}

pub(crate) struct Scene {
    /// The server that is measured.
    pub(crate) server: Server,
    /// Members beside it.
    others: Vec<Server>,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene::with(&[])
    }

    pub(crate) fn with(settings: &[(&str, &str)]) -> Scene {
        allow_files();
        Scene::of(Server::start_with(ServerKind::Paddock, settings), Vec::new())
    }

    /// Three members, of which the leader is measured.
    pub(crate) fn of_three() -> Scene {
        allow_files();
        let mut ensemble = Ensemble::start(3);
        let leader = ensemble.leader();
        let mut members = ensemble.into_members();
        Scene::of(members.swap_remove(leader), members)
    }

    fn of(server: Server, others: Vec<Server>) -> Scene {
        Rude::connect(&server).create("/small", b"1");
        Scene { server, others }
    }

    /// All members.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.server).chain(&self.others)
    }

    /// Measures the witness alone, and then beside the attack, which returns when its time is over and lets go of what it has when it is
    /// dropped.
    /// Returns the memory that the server took for it.
    pub(crate) fn attack<T: Send>(
        &self,
        name: &str,
        goal: Goal,
        attack: impl FnOnce(&Server, Instant) -> T + Send,
    ) -> u64 {
        let alone = self.witnessed(|| std::thread::sleep(attack_time() / 2)).0;
        let before = self.resident_bytes();
        let sampler = Sampler::start(&self.server);
        let (beside, held) =
            self.witnessed(|| from_elsewhere(|| attack(&self.server, Instant::now() + attack_time())));
        drop(held);
        let most = sampler.end();
        let after = self.wait_for_memory(before, goal.kept);
        let row = |waits: &Waits| {
            format!(
                "{} | {:?} | {:?} | {:?} | {:?}",
                waits.reads.len(),
                p99(&waits.reads),
                longest(&waits.reads),
                p99(&waits.writes),
                longest(&waits.writes)
            )
        };
        println!(
            "ATTACK | {name} | {} | {} | {} | {} | {}",
            row(&alone),
            row(&beside),
            before / MIB,
            most / MIB,
            after / MIB
        );
        assert!(
            most < before + CLIENT_BUFFERS_MAX + SLACK,
            "{name}: {} MiB resident, {} before",
            most / MIB,
            before / MIB
        );
        check_waits(name, goal, &alone, &beside);
        most - before
    }

    fn witnessed<T>(&self, meanwhile: impl FnOnce() -> T) -> (Waits, T) {
        let witness = Witness::start(&self.server);
        let result = meanwhile();
        (witness.end(), result)
    }

    /// Resident memory of the server, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        resident_bytes(self.server.pid())
    }

    /// Waits until the server has given memory back but for `kept` bytes.
    fn wait_for_memory(&self, before: u64, kept: u64) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        let most = before + before / 5 + kept;
        while self.metric("zk_client_buffer_bytes") > 0 || self.resident_bytes() > most {
            assert!(
                Instant::now() < deadline,
                "{} MiB resident, {} before the attack; {} bytes of clients",
                self.resident_bytes() / MIB,
                before / MIB,
                self.metric("zk_client_buffer_bytes"),
            );
            std::thread::sleep(POLL);
        }
        self.resident_bytes()
    }

    /// Clients that read nothing were closed, unless the server that grew by `held` bytes did not hold enough for them.
    pub(crate) fn check_closed(&self, held: u64) {
        assert!(
            held < SHORT + BESIDE_CLIENTS || self.metric("zk_client_buffer_closed") > 0,
            "nobody was closed"
        );
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mntr = self.server.four_letter_word("mntr").expect("it answers");
        let told = metric(&mntr, name).unwrap_or_else(|| panic!("no {name} in {mntr}"));
        told.trim().parse().expect("a number")
    }
}

/// Lets this process, and the servers that it starts, have as many connections as the machine allows: many give a program 1,024 only.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .expect("a soft limit may be raised");
}

/// Runs an attack on a thread whose threads get what the server and the client that behaves leave of the cores: attackers
/// bring machines of their own.
pub(crate) fn from_elsewhere<T: Send>(attack: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            // Linux takes the priority for that of the thread, and gives it to all that this one starts.
            setpriority_process(None, LOWEST_PRIORITY).expect("a thread may lower its priority");
            attack()
        });
        attacker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn check_waits(name: &str, goal: Goal, alone: &Waits, beside: &Waits) {
    let worst = longest(&beside.reads).max(longest(&beside.writes));
    assert!(worst < LONGEST_ANYWHERE, "{name}: a client that behaves waited {worst:?}");
    if is_strict() {
        assert!(worst <= goal.longest, "{name}: a client that behaves waited {worst:?}");
        let limit = (p99(&alone.reads) * goal.p99_times).max(goal.p99_floor);
        assert!(p99(&beside.reads) <= limit, "{name}: p99 {:?}, {limit:?} is the limit", p99(&beside.reads));
    }
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory is known");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Looks at the server's memory until it is ended.
struct Sampler {
    stop: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<u64>,
}

impl Sampler {
    const INTERVAL: Duration = Duration::from_millis(50);

    fn start(server: &Server) -> Sampler {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let pid = server.pid();
        let thread = std::thread::spawn(move || {
            let mut most = resident_bytes(pid);
            while stopped.recv_timeout(Sampler::INTERVAL) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                most = most.max(resident_bytes(pid));
            }
            most
        });
        Sampler { stop, thread }
    }

    /// The most that there was.
    fn end(self) -> u64 {
        drop(self.stop);
        self.thread.join().expect("the server runs")
    }
}

impl Rude {
    pub(crate) fn create(&mut self, path: &str, data: &[u8]) {
        let body = |out: &mut Vec<u8>| encode::create_open(out, path, Some(data), CreateMode::Persistent);
        self.send(&request(1, OpCode::Create, body));
        self.receive();
    }
}
