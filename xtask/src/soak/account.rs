//! The account of a soak: the simulator's results for ranges of seeds, and their sum.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::counts::TestCounts;
use crate::process::Error;

/// Facts of a run that its figures depend on.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) commit: String,
    pub(super) date: String,
    pub(super) cores: usize,
    /// Options of the simulator that all ensembles share.
    pub(super) ensembles: String,
}

/// The simulator's results for one range of seeds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    seeds: u64,
    failed: u64,
    /// Each with the command that repeats it, in the simulator's words.
    pub(super) violations: Vec<String>,
    /// Other counters of the simulator, by name.
    totals: Vec<(String, u64)>,
}

impl Chunk {
    pub(super) fn read(output: &str, is_good: bool, first: u64, seeds: u64) -> Chunk {
        let counts = TestCounts::from_simulator(output);
        let mut violations: Vec<String> = Vec::new();
        let last = output.lines().rfind(|line| line.contains(" seeds passed, "));
        for line in output.lines().filter(|line| Some(*line) != last) {
            // What belongs to a violation is indented.
            match violations.last_mut() {
                Some(violation) if line.starts_with(' ') => *violation = format!("{violation}\n{line}"),
                _ => violations.push(line.to_owned()),
            }
        }
        let mut failed = counts.failed;
        if !is_good && (failed == 0 || last.is_none()) {
            violations
                .push(format!("seeds {first}..{}: the simulator itself failed, or hung", first + seeds));
            failed += 1;
        }
        let totals =
            last.and_then(|line| line.split_once(": ")).map(|(_, totals)| totals).unwrap_or_default();
        let totals = totals.split(", ").filter_map(|total| {
            let (number, name) = total.split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        });
        Chunk { seeds, failed, violations, totals: totals.collect() }
    }
}

#[derive(Debug)]
pub(super) struct Account {
    facts: Facts,
    first: u64,
    seeds: u64,
    failed: u64,
    violations: Vec<String>,
    totals: Vec<(String, u64)>,
    time: Duration,
    is_interrupted: bool,
}

impl Account {
    pub(super) fn new(facts: Facts, first: u64) -> Account {
        Account {
            facts,
            first,
            seeds: 0,
            failed: 0,
            violations: Vec::new(),
            totals: Vec::new(),
            time: Duration::ZERO,
            is_interrupted: false,
        }
    }

    pub(super) fn next_seed(&self) -> u64 {
        self.first + self.seeds
    }

    /// Adds a range of seeds; `time` is how long all of them took.
    pub(super) fn add(&mut self, chunk: Chunk, time: Duration) {
        self.seeds += chunk.seeds;
        self.failed += chunk.failed;
        self.violations.extend(chunk.violations);
        for (name, number) in chunk.totals {
            match self.totals.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += number,
                None => self.totals.push((name, number)),
            }
        }
        self.time = time;
    }

    /// Notes that the run was interrupted. Seeds that were under way are not counted.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    pub(super) fn is_good(&self) -> bool {
        self.failed == 0
    }

    pub(super) fn progress(&self, left: Duration) -> String {
        let minutes = left.as_secs().div_ceil(60);
        format!(
            "{} seeds, {} violations, {:.1} seeds/s, {} h {:02} min left",
            self.seeds,
            self.failed,
            self.seeds_per_second(),
            minutes / 60,
            minutes % 60
        )
    }

    fn seeds_per_second(&self) -> f64 {
        self.seeds as f64 / self.time.as_secs_f64().max(0.001)
    }

    pub(super) fn write(&self, file: &Path) -> Result<(), Error> {
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
        }
        fs::write(file, format!("{self}\n")).map_err(Error::io("write", file))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { commit, date, cores, ensembles } = &self.facts;
        let ensembles = if ensembles.is_empty() { "out of each seed" } else { ensembles };
        writeln!(
            formatter,
            "commit:     {commit}\nbegun:      {date}\ncores:      {cores}\nensembles:  {ensembles}"
        )?;
        writeln!(formatter, "seeds:      {}..{}", self.first, self.next_seed())?;
        let seconds = self.time.as_secs_f64();
        let interrupted = if self.is_interrupted { ", interrupted" } else { "" };
        writeln!(
            formatter,
            "time:       {seconds:.0} s, {:.1} seeds/s{interrupted}",
            self.seeds_per_second()
        )?;
        let totals: Vec<String> = self.totals.iter().map(|(name, sum)| format!("{sum} {name}")).collect();
        writeln!(formatter, "totals:     {}", totals.join(", "))?;
        write!(formatter, "violations: {}", self.failed)?;
        self.violations.iter().try_for_each(|violation| write!(formatter, "\n{violation}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Account, Chunk, Facts};

    const GOOD: &str =
        "8 seeds passed, 0 failed in 1.5 s: 70 writes acknowledged, 9 entries, 5 faults, 100 steps\n";
    const BAD: &str = "seed 11, step 9, commit x: a write was lost\n  again: cargo run -- --seed 11\n\
                       7 seeds passed, 1 failed in 1.5 s: 60 writes acknowledged, 8 entries, 5 faults, 100 steps\n";

    fn account(chunks: [(&str, bool); 2]) -> Account {
        let facts = Facts {
            commit: "c0ffee".to_owned(),
            date: "today".to_owned(),
            cores: 2,
            ensembles: String::new(),
        };
        let mut account = Account::new(facts, 4);
        for (output, is_good) in chunks {
            account.add(Chunk::read(output, is_good, account.next_seed(), 8), Duration::from_secs(4));
        }
        account
    }

    #[test]
    fn what_the_simulator_counts_is_added_up() {
        let account = account([(GOOD, true), (BAD, false)]);
        let told = account.to_string();
        assert!(!account.is_good());
        for line in [
            "seeds:      4..20",
            "totals:     130 writes acknowledged, 17 entries, 10 faults, 200 steps",
            "violations: 1\nseed 11, step 9, commit x: a write was lost\n  again: cargo run -- --seed 11",
        ] {
            assert!(told.contains(line), "{line:?} is not in {told}");
        }
        let left = Duration::from_secs(3601);
        assert_eq!(account.progress(left), "16 seeds, 1 violations, 4.0 seeds/s, 1 h 01 min left");
    }

    #[test]
    fn a_simulator_that_fails_without_a_word_is_a_violation() {
        let account = account([(GOOD, true), ("", false)]);
        assert!(!account.is_good());
        assert!(account.to_string().contains("seeds 12..20: the simulator itself failed"));
    }

    #[test]
    fn without_violations_all_is_good() {
        assert!(account([(GOOD, true), (GOOD, true)]).is_good());
    }
}
