//! The stages of `cargo xtask test`: what they are, running them, and the account at the end.
//!
//! Stages that measure time run one after another; those that mostly wait run side by side, and what keeps the processors busy takes the
//! time that they leave, from the first compilation on. What stages need is installed in the background meanwhile.
//!
//! A stage that could not run, or ended badly without naming a failed test, counts as one failed test; so does a
//! stage that ran no test. The last line is therefore never better than what happened.

mod api;
mod checked;
mod etcd;
mod fixtures;
mod go;
mod groups;
mod java;
mod network;
mod outcome;
mod ports;
mod programs;
mod python;
mod rust;
mod space;

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::counts::TestCounts;
use crate::install::Part;
use crate::layout::Layout;
use crate::process::{self, Error};

use outcome::StageOutcome;

pub(crate) use go::bare_etcd;
pub(crate) use rust::fault_variables;

struct TestStage {
    name: &'static str,
    about: &'static str,
    /// Starts the server under test, so the stage `build` comes first.
    needs_server: bool,
    /// Run only if it is named, or with `--all`.
    is_long: bool,
    company: Company,
    /// Installed in the background before it is the stage's turn; the stage waits for it, and tells what went wrong.
    installs: &'static [Part],
    run: fn(&Layout) -> Result<StageOutcome, Error>,
}

/// Other stages that may run at the same time as one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    /// None, because it measures time.
    Alone,
    /// Its neighbours wait for it, but for those that compute.
    First,
    /// Its neighbours in the list that are not alone. Mostly it waits: for sessions, restarts and programs of others.
    Neighbours,
    /// A stage that computes: it takes the time that the others leave, and no lane of theirs.
    Spare,
}

/// In the order in which they begin: first what others need; then those for which nothing more is compiled, while that is done for others;
/// of each kind those that take longest.
const STAGES: &[TestStage] = &[
    TestStage {
        name: BUILD,
        about: "the paddock binary, as released",
        needs_server: false,
        is_long: false,
        company: Company::First,
        installs: &[],
        run: rust::build,
    },
    TestStage {
        name: "simulator",
        about: "whole ensembles in one thread, from 200 seeds, with faults",
        needs_server: false,
        is_long: false,
        company: Company::Spare,
        installs: &[],
        run: rust::simulator,
    },
    TestStage {
        name: "instructions",
        about: "how many instructions requests, changes of the tree and the log take, against what is stored",
        needs_server: false,
        is_long: false,
        company: Company::Spare,
        installs: &[Part::Gungraun],
        run: rust::instructions,
    },
    TestStage {
        name: "kazoo",
        about: "Python's client and its recipes; scripts, plugins and exporters that ask a ZooKeeper how it is",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Python, Part::Jars],
        run: python::kazoo,
    },
    TestStage {
        name: "unit",
        about: "tests beside the code of every crate",
        needs_server: false,
        is_long: false,
        company: Company::Neighbours,
        installs: &[],
        run: rust::unit,
    },
    TestStage {
        name: api::STAGE,
        about: "the public items of the library beside those that are stored, its pages without warnings, the examples on them",
        needs_server: false,
        is_long: false,
        company: Company::Neighbours,
        installs: &[],
        run: api::run,
    },
    TestStage {
        name: python::MEMBERS,
        about: "the same on a member of an ensemble, some with znodes in eight Raft groups; scripts and plugins that ask a ZooKeeper how it is",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Python, Part::Jars, Part::Scripts, Part::Go],
        run: groups::kazoo_on_members,
    },
    TestStage {
        name: "java",
        about: "Apache ZooKeeper's client and command line, with Kerberos too; Curator",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Jars, Part::Kerberos],
        run: java::run,
    },
    TestStage {
        name: "clickhouse",
        about: "ClickHouse servers with replicated tables",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Python, Part::Jars, Part::Clickhouse],
        run: python::clickhouse,
    },
    TestStage {
        name: "kafka",
        about: "brokers of Kafka, whose ZooKeeper becomes a Paddock under them",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Python, Part::Jars, Part::Kafka],
        run: python::kafka,
    },
    TestStage {
        name: "s3",
        about: "backups in a store of S3's protocol, and its errors",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Python, Part::Moto, Part::Jars],
        run: python::s3,
    },
    TestStage {
        name: "process",
        about: "server processes: crashes, damaged files, ensembles, the bench",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Jars, Part::OlderZookeepers],
        run: rust::process,
    },
    TestStage {
        name: "moving",
        about: "moving in and out: files, ensembles that are followed, copies of servers",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Jars, Part::OlderZookeepers],
        run: rust::moving,
    },
    TestStage {
        name: "etcd",
        about: "front ends that share a real etcd",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Python, Part::Jars, Part::Etcd, Part::Go, Part::Clickhouse],
        run: etcd::usual,
    },
    TestStage {
        name: "oracle",
        about: "the same requests, words and commands to Apache ZooKeeper, answers compared",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Jars, Part::OlderZookeepers],
        run: rust::oracle,
    },
    TestStage {
        name: "browser",
        about: "the page of a member and those of bench reports, in Chromium",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Chromium],
        run: rust::browser,
    },
    TestStage {
        name: "terminal",
        about: "the shell at a terminal, by tmux: keys, completion, history, Ctrl-C, a server that goes away",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Tmux],
        run: rust::terminal,
    },
    TestStage {
        name: "fixtures",
        about: "what starts servers in the tests of others, with the examples of their clients",
        needs_server: true,
        is_long: false,
        company: Company::Neighbours,
        installs: &[],
        run: fixtures::run,
    },
    TestStage {
        name: fixtures::AT_LENGTH,
        about: "the Java package with Curator's examples and its tests of recipes, and the Rust example in a new package; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Neighbours,
        installs: &[],
        run: fixtures::at_length,
    },
    TestStage {
        name: groups::AT_LENGTH,
        about: "kazoo, Curator, ClickHouse and Kafka on eight Raft groups, over which their znodes are spread; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Python, Part::Jars, Part::Kerberos, Part::Clickhouse, Part::Kafka],
        run: groups::at_length,
    },
    TestStage {
        name: rust::GROUPS_MODEL,
        about: "models of several Raft groups, every state of the large ones; only with --all, or named",
        needs_server: false,
        is_long: true,
        company: Company::Spare,
        installs: &[],
        run: rust::groups_model,
    },
    TestStage {
        name: "docs",
        about: "every command on every page, each page in a network and directories of its own; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Neighbours,
        installs: &[Part::Python, Part::Jars],
        run: python::docs,
    },
    TestStage {
        name: "porcupine",
        about: "the checker of histories: that it notices stale reads, lost writes and halves of multis",
        needs_server: false,
        is_long: false,
        company: Company::Neighbours,
        installs: &[Part::Go],
        run: go::test,
    },
    TestStage {
        name: "monitoring",
        about: "the dashboard and the alert rules, in a Prometheus that scrapes an ensemble; a member of which everything runs out",
        needs_server: true,
        is_long: false,
        company: Company::Alone,
        installs: &[Part::Prometheus, Part::FaultTools],
        run: rust::monitoring,
    },
    TestStage {
        name: "faults",
        about: "ensembles that lose members and are cut apart under load, beside Apache ZooKeeper's; one that has nothing to do",
        needs_server: true,
        is_long: false,
        company: Company::Alone,
        installs: &[Part::Python, Part::Jars, Part::Go],
        run: rust::faults,
    },
    TestStage {
        name: rust::TORTURE_GROUPS,
        about: "fifty rounds of the torture in the stage faults with several Raft groups; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Python, Part::Jars, Part::Go],
        run: rust::torture_groups,
    },
    TestStage {
        name: "attacks",
        about: "clients that take what they can, beside one that behaves",
        needs_server: true,
        is_long: false,
        company: Company::Alone,
        installs: &[Part::Jars],
        run: rust::attacks,
    },
    TestStage {
        name: "at-length",
        about: "the oracle with more sequences, more releases of ZooKeeper followed; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Jars, Part::OlderZookeepers],
        run: rust::at_length,
    },
    TestStage {
        name: "memcheck",
        about: "a member under Valgrind's memcheck; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Valgrind],
        run: rust::memcheck,
    },
    TestStage {
        name: "namespaces",
        about: "ensembles with names that are late and addresses that change, from every kind of file, on IPv4 and IPv6; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[],
        run: rust::namespaces,
    },
    TestStage {
        name: "upgrades",
        about: "members of the build before, which is built first, upgraded one by one under load and downgraded again; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Python, Part::Jars, Part::Go],
        run: rust::upgrades,
    },
    TestStage {
        name: "growth",
        about: "an ensemble that grows and shrinks as a StatefulSet does, under load; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[],
        run: rust::growth,
    },
    TestStage {
        name: "chart",
        about: "the Helm chart, by helm, kubeconform and the schemas of its objects; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Neighbours,
        installs: &[Part::Go, Part::Kubernetes],
        run: rust::chart,
    },
    TestStage {
        name: "image",
        about: "the container image, made by buildah and run by podman; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[],
        run: rust::image,
    },
    TestStage {
        name: "packages",
        about: "what is shipped: packages on a bare Debian and under systemd, the file alone, lintian; only with --all, or named",
        needs_server: false,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Python, Part::DebianRoots],
        run: python::packages,
    },
    TestStage {
        name: "packages-aarch64",
        about: "what is shipped for aarch64, one member of it in an emulator; only with --all, or named",
        needs_server: false,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Python],
        run: python::packages_for_aarch64,
    },
    TestStage {
        name: "etcd-suites",
        about: "whole suites of other stages on front ends of real etcds; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Python, Part::Jars, Part::Etcd, Part::Go, Part::Clickhouse, Part::Kafka],
        run: etcd::suites,
    },
    TestStage {
        name: checked::STAGE,
        about: "suites of clients on servers that check their answers against Apache ZooKeeper; only with --all, or named",
        needs_server: true,
        is_long: true,
        company: Company::Alone,
        installs: &[Part::Python, Part::Jars, Part::Etcd, Part::Clickhouse],
        run: checked::run,
    },
];

const BUILD: &str = "build";

/// Number of stages that run side by side: one more than the cores of a small machine, since they wait a lot.
const LANES: usize = 3;

pub(crate) fn list() {
    for stage in STAGES {
        println!("{:<14}{}", stage.name, stage.about);
    }
}

/// Time after which a program of the usual stages counts as hung: twice what the longest of them takes on two busy cores, a compiler that others are served before.
const PATIENCE: Duration = Duration::from_secs(40 * 60);

/// Runs the named stages, or if none is named all but the long ones, or all; whether everything passed.
pub(crate) fn run(layout: &Layout, names: &[String], with_long: bool) -> Result<bool, Error> {
    let selected = select(names, with_long)?;
    network::check()?;
    if names.is_empty() && !with_long {
        process::give_up_after(PATIENCE);
    }
    if let Some(warning) = names.is_empty().then(|| space::warning(layout)).flatten() {
        println!("{warning}");
    }
    let start = Instant::now();
    let account = thread::scope(|scope| {
        scope.spawn(|| install_ahead(layout, &selected));
        run_all(layout, &selected)
    });

    let mut sum = TestCounts::default();
    println!("\n{:<14}{:>8}{:>8}{:>9}{:>10}", "stage", "passed", "failed", "skipped", "time");
    for Row { stage, counts, time } in account {
        sum += counts;
        print!("{}", row(stage, counts, time));
    }
    print!("{}", row("all", sum, start.elapsed()));
    println!("{sum}");
    Ok(sum.failed == 0)
}

fn select(names: &[String], with_long: bool) -> Result<Vec<&'static TestStage>, Error> {
    for name in names {
        if !STAGES.iter().any(|stage| stage.name == name) {
            let known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
            let known = known.join(", ");
            return Err(Error::new(format!("there is no stage {name:?}; there are: {known}")));
        }
    }
    let named = |stage: &TestStage| match names {
        [] => with_long || !stage.is_long,
        _ => names.iter().any(|name| name == stage.name),
    };
    let paddock_runs = env::var("TEST_SERVER").map_or(true, |server| server == "paddock");
    let build = paddock_runs && STAGES.iter().any(|stage| stage.needs_server && named(stage));
    Ok(STAGES.iter().filter(|stage| named(stage) || (build && stage.name == BUILD)).collect())
}

fn install_ahead(layout: &Layout, stages: &[&TestStage]) {
    for part in stages.iter().flat_map(|stage| stage.installs) {
        // The stage tries again what failed, and tells it.
        let _ = part.install(layout);
    }
}

/// The account of one stage.
struct Row {
    stage: &'static str,
    counts: TestCounts,
    time: Duration,
}

fn run_all(layout: &Layout, stages: &[&'static TestStage]) -> Vec<Row> {
    let mut account: Vec<Row> = Vec::new();
    let are_neighbours = |left: &&TestStage, right: &&TestStage| {
        left.company != Company::Alone && right.company != Company::Alone
    };
    for group in stages.chunk_by(are_neighbours) {
        let no_server = has_no_server(&account);
        match group {
            [stage] => {
                print!("{:<14}", stage.name);
                let _ = io::stdout().flush();
                let (row, report) = run_one(layout, stage, no_server);
                println!("{report}");
                account.push(row);
            }
            _ => account.extend(run_side_by_side(layout, group, no_server)),
        }
    }
    account
}

/// Runs neighbours, and prints a line for each when it has ended.
fn run_side_by_side(layout: &Layout, stages: &[&'static TestStage], no_server: bool) -> Vec<Row> {
    let of = |company: Company| {
        let stages: Vec<&TestStage> =
            stages.iter().copied().filter(|stage| stage.company == company).collect();
        Mutex::new(stages.into_iter())
    };
    let (first, spare, waiting) = (of(Company::First), of(Company::Spare), of(Company::Neighbours));
    let account = Mutex::new(Vec::new());
    let lane = |stages: &Mutex<std::vec::IntoIter<&'static TestStage>>, no_server: bool| {
        // The lock is let go before the stage runs.
        let next = || stages.lock().expect("no lane panics while it holds the lock").next();
        while let Some(stage) = next() {
            let (row, report) = run_one(layout, stage, no_server);
            println!("{:<14}{report}", stage.name);
            account.lock().expect("no lane panics while it holds the lock").push(row);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| lane(&spare, no_server));
        lane(&first, no_server);
        let no_server =
            no_server || has_no_server(&account.lock().expect("no lane panics while it holds the lock"));
        let lane = &lane;
        let waiting = &waiting;
        (0..LANES).for_each(|_| drop(scope.spawn(move || lane(waiting, no_server))));
    });
    account.into_inner().expect("no lane panics while it holds the lock")
}

/// True if the program that is tested could not be compiled.
fn has_no_server(account: &[Row]) -> bool {
    account.iter().any(|row| row.stage == BUILD && row.counts.failed > 0)
}

/// Runs a stage; its account, and what is printed of it behind its name.
fn run_one(layout: &Layout, stage: &'static TestStage, no_server: bool) -> (Row, String) {
    let start = Instant::now();
    let (counts, report) = if no_server && stage.needs_server {
        let counts = TestCounts { failed: 1, ..TestCounts::default() };
        (counts, "not run, there is no server to test".to_owned())
    } else {
        let log = layout.log(stage.name);
        // Only this run's output belongs in the report of this run.
        let _ = fs::remove_file(&log);
        report(layout, stage, (stage.run)(layout), start)
    };
    (Row { stage: stage.name, counts, time: start.elapsed() }, report)
}

fn report(
    layout: &Layout,
    stage: &TestStage,
    outcome: Result<StageOutcome, Error>,
    start: Instant,
) -> (TestCounts, String) {
    let seconds = start.elapsed().as_secs_f64();
    let (mut counts, trouble) = match outcome {
        Ok(StageOutcome { counts, success }) => (counts, judge(stage, counts, success)),
        // The stage says itself what there was to see.
        Err(error) => {
            let counts = TestCounts { failed: 1, ..TestCounts::default() };
            return (counts, format!("FAILED in {seconds:.1} s: {error}"));
        }
    };
    let Some(trouble) = trouble else {
        let done = if stage.name == BUILD { "done".to_owned() } else { counts.to_string() };
        return (counts, format!("{done} in {seconds:.1} s"));
    };
    let log = layout.log(stage.name);
    let output = fs::read(&log).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    counts.failed = counts.failed.max(1);
    (counts, format!("FAILED in {seconds:.1} s: {trouble}\n{output}\n--- end of {}", log.display()))
}

/// The fault of a stage that ran to its end, if there is one.
fn judge(stage: &TestStage, counts: TestCounts, success: bool) -> Option<String> {
    if counts.failed > 0 {
        return Some(counts.to_string());
    }
    if !success {
        return Some("the test program failed".to_owned());
    }
    let ran_nothing = counts.passed == 0 && stage.name != BUILD;
    ran_nothing.then(|| "no test ran".to_owned())
}

fn row(name: &str, counts: TestCounts, time: Duration) -> String {
    let TestCounts { passed, failed, skipped } = counts;
    format!("{name:<14}{passed:>8}{failed:>8}{skipped:>9}{:>8.1} s\n", time.as_secs_f64())
}
