//! Account of the rounds: a line for each, and the sum in the end, here and in a file.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::round::{Ended, Played};
use super::size::Size;
use super::{Options, TortureOutcome};

#[derive(Debug)]
pub(super) struct Account {
    wanted: usize,
    seed: u64,
    size: Size,
    begun: Instant,
    /// Time of its begin, and its source.
    origin: String,
    played: usize,
    requests: usize,
    unknown: usize,
    refused: usize,
    moves: usize,
    /// Times that each fault was done.
    faults: BTreeMap<String, usize>,
    /// Seeds and why.
    violations: Vec<(u64, String)>,
    is_interrupted: bool,
}

impl Account {
    pub(super) fn new(options: &Options) -> Account {
        Account {
            wanted: options.rounds,
            seed: options.seed,
            size: options.size,
            begun: Instant::now(),
            origin: format!(
                "{}, commit {}",
                said_by("date", &["-u", "+%F %H:%M:%S UTC"]),
                said_by("git", &["describe", "--always", "--dirty"])
            ),
            played: 0,
            requests: 0,
            unknown: 0,
            refused: 0,
            moves: 0,
            faults: BTreeMap::new(),
            violations: Vec::new(),
            is_interrupted: false,
        }
    }

    pub(super) fn heading(&self) -> String {
        format!(
            "{} rounds from seed {}, Raft groups: {}; members are 1 to {}, with * while they lead\n\
             round      seed  verdict        requests unknown refused   time  faults",
            self.wanted,
            self.seed,
            self.size.groups,
            self.size.members()
        )
    }

    /// Adds a round, and returns the line that tells of it, with more below it if something was wrong.
    pub(super) fn add(&mut self, round: Played) -> String {
        self.played += 1;
        self.requests += round.requests;
        self.unknown += round.unknown;
        self.refused += round.refused;
        self.moves += round.moves;
        for struck in round.spells.iter().flatten() {
            *self.faults.entry(struck.fault.to_string()).or_default() += 1;
        }
        let spells = round.spells.iter().map(|spell| {
            let strikes: Vec<String> = spell.iter().map(ToString::to_string).collect();
            strikes.join(" + ")
        });
        let mut told: Vec<String> = spells.collect();
        if round.moves > 0 {
            told.push(format!("{} moves", round.moves));
        }
        let verdict = if round.ended == Ended::Good { "linearizable" } else { "VIOLATED" };
        let mut line = format!(
            "{:>5} {:>9}  {verdict:<13} {:>9} {:>7} {:>7} {:>4.1} s  {}",
            self.played,
            round.seed,
            round.requests,
            round.unknown,
            round.refused,
            round.time.as_secs_f64(),
            told.join(", ")
        );
        if let Ended::Violated(why, directory) = round.ended {
            let again = self.again(round.seed);
            write!(line, "\n  {why}\n  kept in {}\n  again: {again}", directory.display())
                .expect("a string takes everything");
            self.violations.push((round.seed, why));
        }
        line
    }

    /// The command that plays a round once more.
    fn again(&self, seed: u64) -> String {
        format!("cargo xtask torture --seed {seed} --rounds 1{}", self.size)
    }

    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    pub(super) fn outcome(&self) -> TortureOutcome {
        match (self.violations.is_empty(), self.is_interrupted) {
            (false, _) => TortureOutcome::Violated,
            (true, true) => TortureOutcome::Interrupted,
            (true, false) => TortureOutcome::Good,
        }
    }

    pub(super) fn write(&self, file: Option<&Path>) {
        let Some(file) = file else { return };
        fs::write(file, format!("{}\n{self}\n", self.origin))
            .unwrap_or_else(|error| panic!("write {}: {error}", file.display()));
        println!("this is in {}", file.display());
    }
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.seed.wrapping_add(self.played as u64);
        let interrupted = if self.is_interrupted { ", interrupted" } else { "" };
        writeln!(
            formatter,
            "{} of {} rounds, seeds {}..{end}, in {:.0} s{interrupted}: {} requests, {} unknown, {} refused",
            self.played,
            self.wanted,
            self.seed,
            self.begun.elapsed().as_secs_f64(),
            self.requests,
            self.unknown,
            self.refused
        )?;
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(fault, count)| format!("{count} {}", fault.trim_end_matches(" of")))
            .collect();
        writeln!(formatter, "faults: {}", faults.join(", "))?;
        if self.size.groups > 1 {
            writeln!(formatter, "moves of a znode from group to group: {}", self.moves)?;
        }
        for (seed, why) in &self.violations {
            writeln!(
                formatter,
                "violation: seed {seed}: {}\n  again: {}",
                why.lines().next().unwrap_or_default(),
                self.again(*seed)
            )?;
        }
        write!(formatter, "{} good, {} violated", self.played - self.violations.len(), self.violations.len())
    }
}

/// One line from a program; "unknown" if it has nothing to say.
fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let text = output.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
