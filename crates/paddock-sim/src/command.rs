//! The command line.

use std::fmt;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use clap::{Parser, ValueEnum};

use crate::etcd;
use crate::mirror;
use crate::plan::{Choices, RunPlan};
use crate::progress::SeedProgress;
use crate::run::{self, SeedVerdict};
use crate::shrink;
use crate::theme::Theme;
use crate::trace::Telling;
use crate::world::{Account, World};

#[derive(Debug, Parser)]
#[command(name = "paddock-sim", about = "Whole ensembles in one thread, from a seed, with faults")]
struct Arguments {
    /// One seed
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Seeds from A to B, without B
    #[arg(long, value_name = "A..B", value_parser = parse_seeds, default_value = "0..200")]
    seeds: (u64, u64),
    /// Front ends on a model of etcd, and no ensemble
    #[arg(long, conflicts_with_all = ["members", "minutes", "about", "shrink", "faults"])]
    etcd: bool,
    /// A mirror that forwards to a model of its source, and no ensemble
    #[arg(long, conflicts_with_all = ["etcd", "members", "minutes", "about", "shrink", "faults"])]
    mirror: bool,
    /// The size of the ensemble; out of the seed if it is not given
    #[arg(long, value_parser = ["1", "3", "5"])]
    members: Option<String>,
    /// Minutes for which things go wrong in each run; less than one if it is not given
    #[arg(long)]
    minutes: Option<u64>,
    /// The number of Raft groups; out of the seed if it is not given
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=16))]
    groups: Option<u32>,
    /// The number of replicas of each group beside the home group; one on each member if it is not given
    #[arg(long, value_name = "COUNT", requires = "groups", value_parser = clap::value_parser!(u32).range(1..=5))]
    replicas: Option<u32>,
    /// Theme of the runs; out of the seed if it is not given, and mostly everything
    #[arg(long, value_name = "THEME")]
    about: Option<Theme>,
    /// Print the story of the run
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Leave out the faults that a failing run does not need
    #[arg(long, requires = "seed", conflicts_with_all = ["trace", "faults"])]
    shrink: bool,
    /// Only these faults of the plan, by their numbers: 3,17,20, or none
    #[arg(long, requires = "seed", value_name = "NUMBERS", value_parser = parse_numbers)]
    faults: Option<Numbers>,
    /// Run each seed once: twice as fast, without the comparison of two runs
    #[arg(long, conflicts_with_all = ["trace", "shrink"])]
    once: bool,
    /// Stop at the first seed that fails
    #[arg(long)]
    until_failure: bool,
    /// Seeds that run at a time
    #[arg(long)]
    jobs: Option<usize>,
}

#[derive(Clone, Debug)]
struct Numbers(Vec<usize>);

fn parse_numbers(text: &str) -> Result<Numbers, String> {
    let parse = |number: &str| number.trim().parse().map_err(|error| format!("{number:?}: {error}"));
    match text {
        "none" => Ok(Numbers(Vec::new())),
        _ => text.split(',').map(parse).collect::<Result<_, _>>().map(Numbers),
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Numbers(numbers) = self;
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        f.write_str(if numbers.is_empty() { "none" } else { "" })?;
        f.write_str(&numbers.join(","))
    }
}

fn parse_seeds(text: &str) -> Result<(u64, u64), String> {
    let parse = |number: &str| number.parse::<u64>().map_err(|error| format!("{number:?}: {error}"));
    let (first, end) = text.split_once("..").ok_or("write it as 0..200")?;
    let (first, end) = (parse(first)?, parse(end)?);
    if first < end { Ok((first, end)) } else { Err("there is no seed in that range".to_owned()) }
}

impl Arguments {
    fn wanted(&self) -> Choices {
        let members = self.members.as_deref().map(|members| members.parse().expect("clap has checked it"));
        let faults = self.faults.clone().map(|Numbers(numbers)| numbers);
        let (groups, replicas) = (self.groups, self.replicas);
        Choices { members, groups, replicas, minutes: self.minutes, theme: self.about, faults }
    }

    /// World of a seed.
    fn scene(&self, seed: u64) -> Scene {
        if self.etcd {
            Scene::Etcd(seed)
        } else if self.mirror {
            Scene::Mirror(seed)
        } else {
            Scene::Ensemble(Box::new(RunPlan::new(seed, &self.wanted())))
        }
    }

    /// The command that runs this seed again.
    fn again(&self, seed: u64) -> String {
        let etcd = self.etcd.then(|| " --etcd".to_owned());
        let mirror = self.mirror.then(|| " --mirror".to_owned());
        let members = self.members.as_ref().map(|members| format!(" --members {members}"));
        let groups = self.groups.map(|groups| format!(" --groups {groups}"));
        let replicas = self.replicas.map(|replicas| format!(" --replicas {replicas}"));
        let minutes = self.minutes.map(|minutes| format!(" --minutes {minutes}"));
        let theme = self.about.as_ref().and_then(Theme::to_possible_value);
        let about = theme.map(|theme| format!(" --about {}", theme.get_name()));
        let faults = self.faults.as_ref().map(|numbers| format!(" --faults {numbers}"));
        let options = [etcd, mirror, members, groups, replicas, minutes, about, faults];
        let options: String = options.into_iter().flatten().collect();
        format!("cargo run --profile sim -p paddock-sim -- --seed {seed}{options}")
    }
}

/// The world of a run.
enum Scene {
    Ensemble(Box<RunPlan>),
    Etcd(u64),
    Mirror(u64),
}

impl Scene {
    fn live(&self, telling: Telling) -> (Account, Vec<String>) {
        match self {
            Scene::Ensemble(plan) => World::new((**plan).clone(), telling).live(),
            Scene::Etcd(seed) => etcd::live(*seed, telling),
            Scene::Mirror(seed) => mirror::live(*seed, telling),
        }
    }
}

/// Runs the simulator as the command line says. Fails if there was a violation.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run::catch_panics();
    let is_good = match arguments.seed {
        Some(seed) if arguments.trace => tell(&arguments, seed),
        Some(seed) if arguments.shrink => shrink(&arguments, seed),
        Some(seed) => run_all(&arguments, (seed, seed + 1)),
        None => run_all(&arguments, arguments.seeds),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell(arguments: &Arguments, seed: u64) -> bool {
    let scene = arguments.scene(seed);
    if let Scene::Ensemble(plan) = &scene {
        println!("{plan:#?}");
    }
    let (account, _) = run::guard(|| scene.live(Telling::Print));
    println!("{account:?}");
    account.violation.is_none()
}

/// Prints the faults that are needed, and how to see what they do. Fails if there was a violation.
fn shrink(arguments: &Arguments, seed: u64) -> bool {
    let plan = RunPlan::new(seed, &arguments.wanted());
    let whole = plan.faults.len();
    let Some(shrunk) = shrink::shrink(&plan, |left| eprintln!("{left} of {whole} faults")) else {
        println!("seed {seed} does not fail");
        return true;
    };
    println!("seed {seed} fails with {} of {whole} faults: {}", shrunk.faults.len(), shrunk.violation);
    for (number, planned) in &shrunk.faults {
        println!("  {number}: {planned}");
    }
    let numbers = Numbers(shrunk.faults.iter().map(|(number, _)| *number).collect());
    println!("  again: {} --faults {numbers} --trace", arguments.again(seed));
    false
}

/// Sum of all runs.
#[derive(Debug, Default)]
struct Sum {
    passed: u64,
    failed: u64,
    entries: u64,
    writes: u64,
    faults: u64,
    steps: u64,
    /// Hash of all stories, whatever their order.
    trace: u64,
}

fn run_all(arguments: &Arguments, (first, end): (u64, u64)) -> bool {
    let jobs = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let (next, sum, begun) = (AtomicU64::new(first), Mutex::new(Sum::default()), Instant::now());
    let progress = SeedProgress::new(end - first);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    let has_failed = || sum.lock().is_ok_and(|sum| sum.failed > 0);
                    if seed >= end || arguments.until_failure && has_failed() {
                        return;
                    }
                    run_one(arguments, seed, &sum);
                    let sum = sum.lock().expect("a thread that runs seeds does not panic");
                    progress.tell(sum.passed, sum.failed);
                }
            });
        }
    });
    let Sum { passed, failed, entries, writes, faults, steps, trace } =
        sum.into_inner().expect("a thread that runs seeds does not panic");
    println!(
        "{passed} seeds passed, {failed} failed in {:.1} s: {writes} writes acknowledged, {entries} entries, {faults} faults, \
         {steps} steps, trace {trace:016x}",
        begun.elapsed().as_secs_f64()
    );
    failed == 0
}

fn run_one(arguments: &Arguments, seed: u64, sum: &Mutex<Sum>) {
    let scene = arguments.scene(seed);
    let verdict = run::judge(|telling| scene.live(telling), arguments.once);
    let mut sum = sum.lock().expect("a thread that runs seeds does not panic");
    match verdict {
        SeedVerdict::Good(Account { entries, writes, faults, steps, trace, .. }) => {
            sum.passed += 1;
            sum.entries += entries;
            sum.writes += writes;
            sum.faults += faults;
            sum.steps += steps;
            sum.trace = sum.trace.wrapping_add(trace);
        }
        SeedVerdict::Violated(account) => {
            sum.failed += 1;
            let violation = account.violation.expect("that is why it failed");
            println!("seed {seed}, step {}, commit {}: {violation}", account.steps, commit());
            println!("  again: {}", arguments.again(seed));
        }
        SeedVerdict::Unsteady => {
            sum.failed += 1;
            println!(
                "seed {seed}, commit {}: two runs differ: {:?}",
                commit(),
                run::difference(|telling| scene.live(telling))
            );
            println!("  again: {}", arguments.again(seed));
        }
    }
}

/// The commit of the source that this was built from, as far as it can be told.
fn commit() -> String {
    let git = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"])
        .output();
    git.ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
