//! The stages of `cargo xtask test`: what they are, running them in order, and the account at the end.
//!
//! A stage that could not run, or ended badly without naming a failed test, counts as one failed test; so does a
//! stage that ran no test. The last line is therefore never better than what happened.

mod go;
mod java;
mod outcome;
mod python;
mod rust;

use std::io::{self, Write};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::counts::Counts;
use crate::layout::Layout;
use crate::process::Error;

use outcome::Outcome;

pub(crate) use rust::fault_variables;

struct Stage {
    name: &'static str,
    about: &'static str,
    /// Starts the server under test, so the stage `build` comes first.
    needs_server: bool,
    run: fn(&Layout) -> Result<Outcome, Error>,
}

/// In the order in which they run: cheap ones and those that others need first.
const STAGES: [Stage; 12] = [
    Stage {
        name: "unit",
        about: "tests beside the code of every crate",
        needs_server: false,
        run: rust::unit,
    },
    Stage {
        name: "simulator",
        about: "whole ensembles in one thread, from 200 seeds, with faults",
        needs_server: false,
        run: rust::simulator,
    },
    Stage {
        name: "instructions",
        about: "how many instructions requests, changes of the tree and the log take, against what is stored",
        needs_server: false,
        run: rust::instructions,
    },
    Stage { name: "etcd", about: "front ends that share a real etcd", needs_server: false, run: rust::etcd },
    Stage { name: BUILD, about: "the paddock binary, as released", needs_server: false, run: rust::build },
    Stage {
        name: "process",
        about: "server processes: crashes, damaged files, the same requests to Apache ZooKeeper",
        needs_server: true,
        run: rust::process,
    },
    Stage {
        name: "porcupine",
        about: "the checker of histories: that it notices stale reads and lost writes",
        needs_server: false,
        run: go::test,
    },
    Stage {
        name: "faults",
        about: "ensembles that lose members and are cut apart under load, beside Apache ZooKeeper's",
        needs_server: true,
        run: rust::faults,
    },
    Stage {
        name: "browser",
        about: "the pages of bench reports, opened in Chromium",
        needs_server: true,
        run: rust::browser,
    },
    Stage { name: "kazoo", about: "Python's client and its recipes", needs_server: true, run: python::kazoo },
    Stage {
        name: "java",
        about: "Apache ZooKeeper's client and command line, Curator",
        needs_server: true,
        run: java::run,
    },
    Stage {
        name: "clickhouse",
        about: "ClickHouse servers with replicated tables",
        needs_server: true,
        run: python::clickhouse,
    },
];

const BUILD: &str = "build";

pub(crate) fn list() {
    for stage in &STAGES {
        println!("{:<14}{}", stage.name, stage.about);
    }
}

/// Runs the named stages, or all if none is named; whether everything passed.
pub(crate) fn run(layout: &Layout, names: &[String]) -> Result<bool, Error> {
    let selected = select(names)?;
    let mut sum = Counts::default();
    let mut account = String::new();
    let mut no_server = false;
    let start = Instant::now();

    for stage in selected {
        print!("{:<14}", stage.name);
        io::stdout().flush().map_err(|error| Error::new(format!("print: {error}")))?;
        let stage_start = Instant::now();
        let counts = if no_server && stage.needs_server {
            println!("not run, there is no server to test");
            Counts { failed: 1, ..Counts::default() }
        } else {
            run_one(layout, stage)
        };
        no_server |= stage.name == BUILD && counts.failed > 0;
        sum += counts;
        account += &row(stage.name, counts, stage_start.elapsed());
    }

    println!("\n{:<14}{:>8}{:>8}{:>9}{:>10}", "stage", "passed", "failed", "skipped", "time");
    print!("{account}{}", row("all", sum, start.elapsed()));
    println!("{sum}");
    Ok(sum.failed == 0)
}

fn select(names: &[String]) -> Result<Vec<&'static Stage>, Error> {
    for name in names {
        if !STAGES.iter().any(|stage| stage.name == name) {
            let known = STAGES.map(|stage| stage.name).join(", ");
            return Err(Error::new(format!("there is no stage {name:?}; there are: {known}")));
        }
    }
    let named = |stage: &Stage| names.is_empty() || names.iter().any(|name| name == stage.name);
    let paddock_runs = env::var("TEST_SERVER").map_or(true, |server| server == "paddock");
    let build = paddock_runs && STAGES.iter().any(|stage| stage.needs_server && named(stage));
    Ok(STAGES.iter().filter(|stage| named(stage) || (build && stage.name == BUILD)).collect())
}

fn run_one(layout: &Layout, stage: &Stage) -> Counts {
    let start = Instant::now();
    let log = layout.log(stage.name);
    // Only this run's output belongs in the report of this run.
    let _ = fs::remove_file(&log);
    let outcome = (stage.run)(layout);
    let seconds = start.elapsed().as_secs_f64();
    let (mut counts, trouble) = match outcome {
        Ok(Outcome { counts, success }) => (counts, judge(stage, counts, success)),
        // It says itself what there was to see.
        Err(error) => {
            println!("FAILED in {seconds:.1} s: {error}");
            return Counts { failed: 1, ..Counts::default() };
        }
    };
    let Some(trouble) = trouble else {
        println!(
            "{} in {seconds:.1} s",
            if stage.name == BUILD { "done".to_owned() } else { counts.to_string() }
        );
        return counts;
    };
    let output = fs::read(&log).unwrap_or_default();
    println!("FAILED in {seconds:.1} s: {trouble}");
    println!("{}\n--- end of {}", String::from_utf8_lossy(&output), log.display());
    counts.failed = counts.failed.max(1);
    counts
}

/// The fault of a stage that ran to its end, if there is one.
fn judge(stage: &Stage, counts: Counts, success: bool) -> Option<String> {
    if counts.failed > 0 {
        return Some(counts.to_string());
    }
    if !success {
        return Some("the test program failed".to_owned());
    }
    let ran_nothing = counts.passed == 0 && stage.name != BUILD;
    ran_nothing.then(|| "no test ran".to_owned())
}

fn row(name: &str, counts: Counts, time: Duration) -> String {
    let Counts { passed, failed, skipped } = counts;
    format!("{name:<14}{passed:>8}{failed:>8}{skipped:>9}{:>8.1} s\n", time.as_secs_f64())
}
