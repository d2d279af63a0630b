//! Apache ZooKeeper and the server that is compared with it, and what is done with both.
//!
//! Variables of the environment:
//!
//! - `ORACLE_SEQUENCES`: how many sequences, instead of what each test wants.
//! - `ORACLE_FRESH_SERVERS`: how many longer ones on the whole tree of servers of their own.
//! - `ORACLE_FINDINGS`: goes on until it has found this number of differences (1 unless told).
//! - `ORACLE_SEED`: performs the one sequence of this seed.

use std::env;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use super::arguments::Multis;
use super::identities::{Entrance, Identities};
use super::judge::{Mismatch, compare, perform, shrink};
use super::play::{OracleStage, Transcript, Zxids};
use super::sequence::Sequence;
use crate::etcd::EtcdCluster;
use crate::server::{Server, ServerKind, free_port};

/// Number of shorter sequences that are tried for a failing one.
const SHRINKING: usize = 400;
const SHRINKING_WITH_FRESH_SERVERS: usize = 25;

/// The removal of empty containers would take zxids at times of its own.
const QUIET: (&str, &str) = ("znode.container.checkIntervalMs", "86400000");

/// A server that is compared with Apache ZooKeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    Paddock,
    /// ZooKeeper itself, to prove that the generator leaves nothing to chance.
    ZooKeeper,
    /// A front end of Paddock's on an etcd.
    OnEtcd(OnEtcd),
}

impl Other {
    /// Multis after which it has to have told the same events.
    fn multis(self) -> Multis {
        match self {
            Other::Paddock | Other::ZooKeeper => Multis::Anything,
            Other::OnEtcd(_) => Multis::UndoNothing,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnEtcd {
    /// Members of the etcd cluster.
    pub members: usize,
    /// Each write has a zxid of its own.
    pub separate_writes: bool,
}

/// Two servers side by side.
#[derive(Debug)]
pub struct Pair {
    other: Other,
    left: OracleStage,
    right: OracleStage,
    roots: u32,
    _servers: [Server; 2],
    _etcd: Option<EtcdCluster>,
}

impl Pair {
    /// Starts both with more lines in `zoo.cfg`.
    pub fn start(other: Other, settings: &[(&str, &str)]) -> Pair {
        Pair::start_servers(other, |server_of| {
            let settings: Vec<(&str, &str)> = settings.iter().copied().chain([QUIET]).collect();
            let server = server_of(&settings);
            (Entrance::new(server.address()), server)
        })
    }

    /// Starts servers that take all identities.
    pub fn start_with_identities(other: Other) -> Pair {
        let identities = Arc::new(Identities::new());
        Pair::start_servers(other, |server_of| {
            let port = free_port();
            let settings = identities.settings(port);
            let settings = settings.iter().map(|(key, value)| (*key, &**value));
            let server = server_of(&settings.chain([QUIET]).collect::<Vec<_>>());
            (Entrance::with_identities(server.address(), port, identities.clone()), server)
        })
    }

    fn start_servers(
        other: Other,
        start: impl Fn(&dyn Fn(&[(&str, &str)]) -> Server) -> (Entrance, Server) + Sync,
    ) -> Pair {
        let zxids = if matches!(other, Other::OnEtcd(_)) { Zxids::ByOrder } else { Zxids::Exactly };
        let start = &start;
        let zookeeper = move || start(&|settings| Server::start_with(ServerKind::ZooKeeper, settings));
        let (zookeeper, (started, etcd)) = thread::scope(|scope| {
            let zookeeper = scope.spawn(zookeeper);
            let other = match other {
                Other::Paddock => {
                    (start(&|settings| Server::start_with(ServerKind::Paddock, settings)), None)
                }
                Other::ZooKeeper => {
                    (start(&|settings| Server::start_with(ServerKind::ZooKeeper, settings)), None)
                }
                Other::OnEtcd(OnEtcd { members, separate_writes }) => {
                    let etcd = EtcdCluster::start(members);
                    let options: &[&str] = if separate_writes { &["--etcd-separate-writes"] } else { &[] };
                    let server = start(&|settings| {
                        let mut server = etcd.front_end_with(0, settings, options);
                        server.restart();
                        server
                    });
                    (server, Some(etcd))
                }
            };
            (zookeeper.join().expect("ZooKeeper starts"), other)
        });
        let ((left, left_server), (right, right_server)) = (zookeeper, started);
        Pair {
            other,
            left: OracleStage::new(left, zxids),
            right: OracleStage::new(right, zxids),
            roots: 0,
            _servers: [left_server, right_server],
            _etcd: etcd,
        }
    }

    /// Performs a sequence below a fresh root.
    pub fn perform(&mut self, sequence: &Sequence) -> Option<Mismatch> {
        compare(sequence, self.transcripts(sequence))
    }

    pub fn transcripts(&mut self, sequence: &Sequence) -> (Transcript, Transcript) {
        self.roots += 1;
        let root = format!("/o{:06}", self.roots);
        perform(sequence, &root, &mut self.left, &mut self.right)
    }

    /// Performs `count` sequences below roots of their own, unless the environment asks for others. Panics if answers differ.
    pub fn agree_below_roots(&mut self, count: u64, generate: fn(u64, Multis) -> Sequence) {
        let mut findings = Findings::new(self.other);
        let (first, count) = match number("ORACLE_SEED") {
            Some(seed) => (seed, 1),
            None => (seed_of_this_run(), number("ORACLE_SEQUENCES").unwrap_or(count)),
        };
        for seed in first..first + count {
            let _performing = Performing(seed);
            let sequence = generate(seed, self.other.multis());
            if let Some(mismatch) = self.perform(&sequence) {
                findings.add(seed, &shrink(mismatch, SHRINKING, |sequence| self.perform(sequence)));
            }
        }
        findings.fail_if_any();
        println!("{count} sequences agree");
    }
}

/// Performs `count` longer sequences, each on servers of its own, unless the environment asks for others. Panics if answers differ.
pub fn agree_on_fresh_servers(other: Other, count: u64, generate: fn(u64, Multis) -> Sequence) {
    let mut findings = Findings::new(other);
    let first = number("ORACLE_SEED").unwrap_or_else(seed_of_this_run);
    let count = number("ORACLE_FRESH_SERVERS").unwrap_or(count);
    for seed in first..first + count {
        let _performing = Performing(seed);
        let sequence = generate(seed, other.multis());
        let perform = |sequence: &Sequence| Pair::start(other, &[]).perform(sequence);
        if let Some(mismatch) = perform(&sequence) {
            findings.add(seed, &shrink(mismatch, SHRINKING_WITH_FRESH_SERVERS, perform));
        }
    }
    findings.fail_if_any();
}

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

/// Other sequences in every run.
fn seed_of_this_run() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    now.as_nanos() as u64 >> 10
}

/// Names the seed when the performance itself breaks off.
struct Performing(u64);

impl Drop for Performing {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("it happened with ORACLE_SEED={}", self.0);
        }
    }
}

/// Gathers differences, and fails when there are enough of them or at the end.
struct Findings {
    other: Other,
    stories: Vec<String>,
    enough: usize,
}

impl Findings {
    fn new(other: Other) -> Findings {
        Findings { other, stories: Vec::new(), enough: number("ORACLE_FINDINGS").unwrap_or(1) as usize }
    }

    fn add(&mut self, seed: u64, mismatch: &Mismatch) {
        let story = mismatch.story("ZooKeeper", &format!("{:?}", self.other));
        self.stories.push(format!("ORACLE_SEED={seed} shows a difference:\n{story}"));
        if self.stories.len() == self.enough {
            self.fail_if_any();
        }
    }

    fn fail_if_any(&self) {
        assert!(self.stories.is_empty(), "{}", self.stories.join("\n"));
    }
}
