//! Torture: real members under kazoo and ZooKeeper's Java client at once, round after round, while they are killed, paused, cut
//! off and run out of disk. A round heals everything in the end, and then Porcupine judges what all clients saw, the
//! members have to hold the same, and none may have stopped by itself.
//!
//! The simulator does the same in one thread and with a clock of its own; this is the second opinion, with nothing simulated.
//! A seed makes a round's plan and decides what its clients ask. What the machine makes of it is another time every time.

mod abilities;
mod account;
mod clients;
mod evidence;
mod faults;
mod mover;
mod plan;
mod round;
mod size;
mod znodes;

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use abilities::Abilities;
use account::Account;
use round::Ended;
pub use size::Size;

/// Rounds that are asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub rounds: usize,
    /// Seed of the first round; each one behind it has the next.
    pub seed: u64,
    pub size: Size,
    /// File of the account of all rounds.
    pub summary: Option<PathBuf>,
}

impl Options {
    /// As `TORTURE_ROUNDS`, `TORTURE_SEED`, `TORTURE_GROUPS`, `TORTURE_REPLICAS` and `TORTURE_SUMMARY` say, or `rounds` rounds, any seed, one group, replicas on all members and no file.
    pub fn from_environment(rounds: usize) -> Options {
        let seed = env::var("TORTURE_SEED").map(|seed| seed.parse().expect("TORTURE_SEED is a number"));
        Options {
            rounds: crate::rounds("TORTURE_ROUNDS", rounds),
            // Short enough to be typed.
            seed: seed.unwrap_or_else(|_| RandomState::new().hash_one(0) % 1_000_000_000),
            size: Size {
                groups: crate::rounds("TORTURE_GROUPS", 1),
                replicas: crate::rounds("TORTURE_REPLICAS", 0),
            },
            summary: env::var_os("TORTURE_SUMMARY").map(PathBuf::from),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TortureOutcome {
    Good,
    Violated,
    Interrupted,
}

/// Plays all rounds, and tells of each in a line. Ends early, with nothing left behind, once `is_interrupted` is true.
pub fn run(options: &Options, is_interrupted: &AtomicBool) -> TortureOutcome {
    let abilities = Abilities::find();
    let mut account = Account::new(options);
    println!("{}", account.heading());
    for number in 0..options.rounds {
        let seed = options.seed.wrapping_add(number as u64);
        let played = round::play(seed, options.size, &abilities, is_interrupted);
        if played.ended == Ended::Interrupted || is_interrupted.load(Ordering::Relaxed) {
            account.interrupt();
            break;
        }
        println!("{}", account.add(played));
    }
    println!("{account}");
    account.write(options.summary.as_deref());
    account.outcome()
}
