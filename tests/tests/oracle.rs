//! Apache ZooKeeper and Paddock answer the same requests with the same bytes.
//!
//! - `ORACLE_SEQUENCES`: how many sequences, 3000 unless told, 400 with quotas and 200 with identities.
//! - `ORACLE_FRESH_SERVERS`: how many longer ones on the whole tree of servers of their own, 4 unless told.
//! - `ORACLE_FINDINGS`: goes on until it has found so many differences, 1 unless told.
//! - `ORACLE_SEED`: performs the one sequence of this seed.
//! - `ORACLE_AGAINST=zookeeper`: compares ZooKeeper with itself, to prove that the generator leaves nothing to chance.

use std::env;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use paddock_tests::oracle::differences::DIFFERENCES;
use paddock_tests::oracle::generate;
use paddock_tests::oracle::identities::{Entrance, Identities};
use paddock_tests::oracle::judge::{Mismatch, compare, perform, shrink};
use paddock_tests::oracle::play::{Stage, Transcript};
use paddock_tests::oracle::quotas;
use paddock_tests::oracle::sequence::Sequence;
use paddock_tests::server::{Server, ServerKind, free_port};

const SEQUENCES: u64 = 3000;
const SEQUENCES_WITH_QUOTAS: u64 = 400;
const SEQUENCES_WITH_IDENTITIES: u64 = 200;
const WHOLE_TREE_SEQUENCES: u64 = 4;

/// Number of shorter sequences that are tried for a failing one.
const SHRINKING: usize = 400;
const SHRINKING_WITH_FRESH_SERVERS: usize = 25;

/// Two servers side by side.
struct Pair {
    left: Stage,
    right: Stage,
    roots: u32,
    _servers: [Server; 2],
}

impl Pair {
    fn start() -> Pair {
        Pair::start_with(&[])
    }

    fn start_with(settings: &[(&str, &str)]) -> Pair {
        // The removal of empty containers would take zxids at times of its own.
        let quiet = [&[("znode.container.checkIntervalMs", "86400000")], settings].concat();
        let servers = thread::scope(|scope| {
            let left = scope.spawn(|| Server::start_with(ServerKind::ZooKeeper, settings));
            let right = Server::start_with(other(), &quiet);
            [left.join().expect("ZooKeeper starts"), right]
        });
        let [left, right] = servers.each_ref().map(|server| Stage::new(Entrance::new(server.address())));
        Pair { left, right, roots: 0, _servers: servers }
    }

    /// Servers that take all identities.
    fn start_with_identities() -> Pair {
        let identities = Arc::new(Identities::new());
        let start = |kind| {
            let port = free_port();
            let settings = identities.settings(port);
            let mut settings: Vec<(&str, &str)> =
                settings.iter().map(|(key, value)| (*key, &**value)).collect();
            settings.push(("znode.container.checkIntervalMs", "86400000"));
            let server = Server::start_with(kind, &settings);
            (Stage::new(Entrance::with_identities(server.address(), port, identities.clone())), server)
        };
        let ((left, zookeeper), (right, other)) = thread::scope(|scope| {
            let left = scope.spawn(|| start(ServerKind::ZooKeeper));
            let right = start(other());
            (left.join().expect("ZooKeeper starts"), right)
        });
        Pair { left, right, roots: 0, _servers: [zookeeper, other] }
    }

    /// Performs a sequence below a fresh root.
    fn perform(&mut self, sequence: &Sequence) -> Option<Mismatch> {
        compare(sequence, self.transcripts(sequence))
    }

    fn transcripts(&mut self, sequence: &Sequence) -> (Transcript, Transcript) {
        self.roots += 1;
        let root = format!("/o{:06}", self.roots);
        perform(sequence, &root, &mut self.left, &mut self.right)
    }
}

/// The server that is compared with ZooKeeper.
fn other() -> ServerKind {
    match env::var("ORACLE_AGAINST").as_deref() {
        Ok("zookeeper") => ServerKind::ZooKeeper,
        _ => ServerKind::Paddock,
    }
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
    stories: Vec<String>,
    enough: usize,
}

impl Findings {
    fn new() -> Findings {
        Findings { stories: Vec::new(), enough: number("ORACLE_FINDINGS").unwrap_or(1) as usize }
    }

    fn add(&mut self, seed: u64, mismatch: &Mismatch) {
        let story = mismatch.story("ZooKeeper", &format!("{:?}", other()));
        self.stories.push(format!("ORACLE_SEED={seed} shows a difference:\n{story}"));
        if self.stories.len() == self.enough {
            self.fail_if_any();
        }
    }

    fn fail_if_any(&self) {
        assert!(self.stories.is_empty(), "{}", self.stories.join("\n"));
    }
}

#[test]
fn below_a_root() {
    agree_below_roots(&mut Pair::start(), SEQUENCES, generate::below_a_root);
}

#[test]
fn with_quotas_enforced() {
    let mut pair = Pair::start_with(&[("enforceQuota", "true")]);
    let (zookeeper, paddock) = pair.transcripts(&quotas::above_a_limit());
    assert_eq!(zookeeper, paddock);
    assert!(zookeeper[5][0].contains("error=QuotaExceeded"), "the last create is refused: {zookeeper:?}");

    let differs = pair.perform(&quotas::multi_above_a_limit()).is_some();
    assert!(differs || other() == ServerKind::ZooKeeper, "ZooKeeper lets a multi go above a limit no more");
    agree_below_roots(&mut pair, SEQUENCES_WITH_QUOTAS, generate::with_quotas);
}

#[test]
fn with_identities_of_tls_and_sasl() {
    agree_below_roots(
        &mut Pair::start_with_identities(),
        SEQUENCES_WITH_IDENTITIES,
        generate::with_identities,
    );
}

/// Performs so many sequences below roots of their own, unless the variables of this test ask for others.
fn agree_below_roots(pair: &mut Pair, count: u64, generate: fn(u64) -> Sequence) {
    let mut findings = Findings::new();
    let (first, count) = match number("ORACLE_SEED") {
        Some(seed) => (seed, 1),
        None => (seed_of_this_run(), number("ORACLE_SEQUENCES").unwrap_or(count)),
    };
    for seed in first..first + count {
        let _performing = Performing(seed);
        let sequence = generate(seed);
        if let Some(mismatch) = pair.perform(&sequence) {
            findings.add(seed, &shrink(mismatch, SHRINKING, |sequence| pair.perform(sequence)));
        }
    }
    findings.fail_if_any();
    println!("{count} sequences agree");
}

#[test]
fn on_the_whole_tree_of_fresh_servers() {
    let mut findings = Findings::new();
    let first = number("ORACLE_SEED").unwrap_or_else(seed_of_this_run);
    let count = number("ORACLE_FRESH_SERVERS").unwrap_or(WHOLE_TREE_SEQUENCES);
    for seed in first..first + count {
        let _performing = Performing(seed);
        let sequence = generate::on_the_whole_tree(seed);
        let perform = |sequence: &Sequence| Pair::start().perform(sequence);
        if let Some(mismatch) = perform(&sequence) {
            findings.add(seed, &shrink(mismatch, SHRINKING_WITH_FRESH_SERVERS, perform));
        }
    }
    findings.fail_if_any();
}

#[test]
fn the_wanted_differences_are_there() {
    if other() == ServerKind::ZooKeeper {
        return;
    }
    let mut pair = Pair::start();
    for difference in DIFFERENCES {
        let differs = pair.perform(&(difference.example)()).is_some();
        assert!(differs, "no difference any more: {} ({})", difference.what, difference.why);
    }
}
