//! The stages that Cargo compiles.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use super::outcome::StageOutcome;
use super::programs::{self, Compiled};
use super::{etcd, fixtures, go, java, ports};
use crate::apt;
use crate::breaks;
use crate::counts::TestCounts;
use crate::dist;
use crate::install;
use crate::instructions;
use crate::layout::Layout;
use crate::previous;
use crate::process::{Error, Program};

/// Part of the names of tests that want a real etcd, in whichever package.
pub(super) const ON_ETCD: &str = "on_etcd";

/// Compiles the programs of all stages, and runs those that need nothing else.
pub(super) fn unit(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "unit";
    let mut programs = programs::compile(layout, stage, &[])?;
    programs.retain(|program| {
        let is_elsewhere = is_with_servers(layout, program) || is_timed(layout, program);
        !program.is_example() && !is_elsewhere && !fixtures::is_rust(layout, program)
    });
    programs.sort_by_key(|program| !LONG.contains(&program.name.as_str()));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let success = programs::run_side_by_side(layout, stage, &programs, &["--skip", ON_ETCD], cores)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

/// Programs of the stage `unit` that take longest.
const LONG: [&str; 6] = ["paddock_server", "tree", "paddock_links", "cli", "paddock_member", "spans"];

/// Programs beside the code that measure what clients notice: they run in the stage `attacks`, where nothing else does.
const TIMED: [&str; 2] = ["crowding", "strangers"];

fn is_timed(layout: &Layout, program: &Compiled) -> bool {
    let directory = layout.source("crates/paddock-server");
    program.is_integration_test() && program.directory == directory && TIMED.contains(&program.name.as_str())
}

/// True for a test of the package whose tests start servers.
fn is_with_servers(layout: &Layout, program: &Compiled) -> bool {
    program.is_integration_test() && program.directory == layout.tests("")
}

/// Seeds of the simulated ensembles.
const SEEDS: &str = "0..200";
/// Seeds of simulated ensembles whose groups have fewer replicas than there are members.
const HOST_SEEDS: &str = "0..40";
/// Seeds of simulated front ends on etcd.
const ETCD_SEEDS: &str = "0..300";
/// Seeds of a simulated mirror.
const MIRROR_SEEDS: &str = "0..300";
/// Niceness of the simulator and its compilers: they take the time that the stages beside them leave.
const NICENESS: u32 = 19;

/// Compiles the benchmarks of the stage `instructions`, too: both are made of the same crates. All runs write to the log that is shown if one of them fails.
pub(super) fn simulator(layout: &Layout) -> Result<StageOutcome, Error> {
    let log = layout.log("simulator");
    let build = layout.nice_cargo(NICENESS).args(["build", "--profile", "sim"]);
    let build = build.args(instructions::packages());
    build.args(["--bin", "paddock-sim", "--bench", "instructions"]).log_to(&log).run()?;
    let ensembles = simulate(layout, &log, &["--seeds", SEEDS])?;
    let hosts = ["--members", "5", "--groups", "4", "--replicas", "3", "--seeds", HOST_SEEDS];
    let hosts = simulate(layout, &log, &hosts)?;
    let etcd = simulate(layout, &log, &["--etcd", "--seeds", ETCD_SEEDS])?;
    let mut mirror = simulate(layout, &log, &["--mirror", "--seeds", MIRROR_SEEDS])?;
    // Mistakes that do not fit the sources any more prove nothing.
    mirror.counts.passed += breaks::check(layout)? as u64;
    Ok(ensembles.and(hosts).and(etcd).and(mirror))
}

fn simulate(layout: &Layout, log: &Path, arguments: &[&str]) -> Result<StageOutcome, Error> {
    let simulator = Program::nice(NICENESS, layout.simulator()).current_dir(layout.root());
    let status = simulator.args(arguments).log_to(log).status()?;
    let output = fs::read(log).map_err(Error::io("read", log))?;
    let counts = TestCounts::from_simulator(&String::from_utf8_lossy(&output));
    Ok(StageOutcome { counts, success: status.success() })
}

/// The stage that runs the models of several groups.
pub(super) const GROUPS_MODEL: &str = "groups-model";

/// All worlds, small ones too: they take next to no time beside the others.
pub(super) fn groups_model(layout: &Layout) -> Result<StageOutcome, Error> {
    let log = layout.log(GROUPS_MODEL);
    let build = layout.nice_cargo(NICENESS).args(["build", "--profile", "sim"]);
    build.args(["--package", "paddock-groups-model"]).log_to(&log).run()?;
    let models = Program::nice(NICENESS, layout.groups_model()).current_dir(layout.root());
    let status = models.arg("all").log_to(&log).status()?;
    let output = fs::read(&log).map_err(Error::io("read", &log))?;
    let counts = TestCounts::from_models(&String::from_utf8_lossy(&output));
    Ok(StageOutcome { counts, success: status.success() })
}

/// A benchmark is a test: it fails if it takes more than is stored.
pub(super) fn instructions(layout: &Layout) -> Result<StageOutcome, Error> {
    let report = instructions::measure(layout)?;
    let (directory, log) = (layout.environment("logs"), layout.log("instructions"));
    fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
    fs::write(&log, report.to_string()).map_err(Error::io("write", &log))?;
    Ok(StageOutcome { counts: report.counts(), success: true })
}

pub(super) fn build(layout: &Layout) -> Result<StageOutcome, Error> {
    let cargo = layout.cargo().args(["build", "--release", "--package", "paddock"]);
    let status = cargo.log_to(&layout.log("build")).status()?;
    Ok(StageOutcome { counts: TestCounts::default(), success: status.success() })
}

/// The test programs of the stage `faults`, and how many of their tests run at a time: where times are measured, one.
const FAULTS: [(&[&str], u32); 2] = [
    (&["failover", "rolling_restart", "following_forwarded", "idle", "slow_links"], 1),
    (&["histories", "partitions", "timeliness", "torture"], 2),
];

/// The test programs of the stage `browser`.
const BROWSER: [&str; 2] = ["report_page", "member_page"];

/// The test programs of the stage `monitoring`.
const MONITORING: [&str; 2] = ["monitoring", "exhaustion"];

/// The stage with many rounds of torture on several Raft groups.
pub(super) const TORTURE_GROUPS: &str = "torture-groups";

/// The test program of the stage `attacks`.
const ATTACKS: &str = "attacks";

/// The test program of the stage `memcheck`.
const MEMCHECK: &str = "memcheck";

/// The test program of the stage `terminal`.
const TERMINAL: &str = "terminal";

/// The test program of the stage `namespaces`.
const NAMESPACES: &str = "namespaces";

/// The test program of the stage `upgrades`.
const UPGRADES: &str = "upgrades";

/// The test program of the stage `chart`.
const CHART: &str = "chart";

/// The test program of the stage `image`.
const IMAGE: &str = "image";

/// The test program of the stage `growth`.
const GROWTH: &str = "growth";

/// The test programs of the stage `oracle`: each asks a real ZooKeeper the same.
const ORACLE: [&str; 3] = ["operating", "oracle", "zookeeper_metrics"];

/// The test programs of the stage `moving`.
const MOVING: [&str; 5] = ["following", "following_rollback", "following_secured", "live", "moving"];

/// All programs with servers that are not of another stage.
pub(super) fn process(layout: &Layout) -> Result<StageOutcome, Error> {
    let is_of_another = |name: &str| {
        BROWSER.contains(&name)
            || ORACLE.contains(&name)
            || MOVING.contains(&name)
            || MONITORING.contains(&name)
            || [ATTACKS, MEMCHECK, NAMESPACES, UPGRADES, GROWTH, CHART, IMAGE, TERMINAL].contains(&name)
            || etcd::WITH_SERVERS.contains(&name)
            || FAULTS.iter().any(|(names, _)| names.contains(&name))
    };
    beside_zookeeper(layout, "process", &|name| !is_of_another(name), &[])
}

pub(super) fn moving(layout: &Layout) -> Result<StageOutcome, Error> {
    beside_zookeeper(layout, "moving", &|name| MOVING.contains(&name), &[])
}

pub(super) fn oracle(layout: &Layout) -> Result<StageOutcome, Error> {
    beside_zookeeper(layout, "oracle", &|name| ORACLE.contains(&name), &[])
}

/// Tests of other stages with more sequences, and with more releases of ZooKeeper.
pub(super) fn at_length(layout: &Layout) -> Result<StageOutcome, Error> {
    let longer = [
        ("ORACLE_SEQUENCES", "3000".into()),
        ("ORACLE_FRESH_SERVERS", "8".into()),
        ("PADDOCK_ALL_RELEASES", "1".into()),
    ];
    beside_zookeeper(layout, "at-length", &|name| ["oracle", "following"].contains(&name), &longer)
}

/// Runs programs that start Paddock and Apache ZooKeeper, of this and older versions.
fn beside_zookeeper(
    layout: &Layout,
    stage: &str,
    is_chosen: &dyn Fn(&str) -> bool,
    more: &[(&'static str, OsString)],
) -> Result<StageOutcome, Error> {
    install::jars(layout)?;
    let mut programs = programs::compile(layout, stage, &["--tests"])?;
    programs.retain(|program| is_with_servers(layout, program) && is_chosen(&program.name));
    let mut variables = install::older_zookeepers(layout)?;
    variables.extend([
        ("PADDOCK_BIN", layout.paddock().into()),
        ("ZOOKEEPER_CLASSPATH", layout.class_path().into()),
        (ports::VARIABLE, ports::of_stage(stage).into()),
    ]);
    variables.extend_from_slice(more);
    let success = programs::run(layout, stage, &programs, &["--skip", ON_ETCD], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

pub(super) fn faults(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "faults";
    let variables = fault_variables(layout, stage)?;
    let mut success = true;
    for (names, threads) in FAULTS {
        let programs = with_servers(layout, stage, names)?;
        let threads = format!("--test-threads={threads}");
        // Figures are in the log.
        success &= programs::run(layout, stage, &programs, &["--nocapture", &threads], &variables)?;
    }
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

/// The test of the torture with several Raft groups, more often.
pub(super) fn torture_groups(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = TORTURE_GROUPS;
    let mut variables = fault_variables(layout, stage)?;
    variables.push(("TORTURE_ROUNDS", "50".into()));
    let programs = with_servers(layout, stage, &["torture"])?;
    // The account of each round is in the log.
    let success = programs::run(layout, stage, &programs, &["--nocapture", "several_groups"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

/// Its tests run one by one: each measures what a client notices.
pub(super) fn attacks(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "attacks";
    let options: Vec<&str> = TIMED.iter().chain(&[ATTACKS]).flat_map(|name| ["--test", name]).collect();
    let mut programs = programs::compile(layout, stage, &options)?;
    programs.retain(|program| is_timed(layout, program) || is_with_servers(layout, program));
    install::jars(layout)?;
    let variables: [(&str, OsString); 2] =
        [("PADDOCK_BIN", layout.paddock().into()), ("ZOOKEEPER_CLASSPATH", layout.class_path().into())];
    // Figures are in the log.
    let success = programs::run(layout, stage, &programs, &["--nocapture", "--test-threads=1"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

/// Installs and builds what the tests with faults need besides the server; how they find it. What is built logs for `stage`.
pub(crate) fn fault_variables(layout: &Layout, stage: &str) -> Result<Vec<(&'static str, OsString)>, Error> {
    let python = install::python(layout)?;
    let classes = java::classes(layout, stage)?;
    let checker = go::checker(layout, stage)?;
    let go_clients = go::clients(layout, stage)?;
    let histories = histories(layout)?;
    Ok(vec![
        ("PADDOCK_BIN", layout.paddock().into()),
        ("ZOOKEEPER_CLASSPATH", layout.class_path().into()),
        ("PYTHON_BIN", python.into()),
        ("JAVA_CLASSES", classes.into()),
        ("PORCUPINE_BIN", checker.into()),
        ("GO_CLIENTS", go_clients.into()),
        ("HISTORIES", histories.into()),
    ])
}

/// Directory for what clients saw.
pub(super) fn histories(layout: &Layout) -> Result<PathBuf, Error> {
    let histories = layout.environment("histories");
    fs::create_dir_all(&histories).map_err(Error::io("create", &histories))?;
    Ok(histories)
}

pub(super) fn browser(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "browser";
    let mut variables = install::chromium(layout)?;
    let pages = layout.environment("report-pages");
    // Pages of an earlier run are not what is tested.
    let _ = fs::remove_dir_all(&pages);
    let compiled = programs::compile(layout, stage, &[])?;
    let example = compiled.iter().find(|compiled| compiled.is_example() && compiled.name == "page");
    let example = example.ok_or_else(|| Error::new("the example page was not compiled".to_owned()))?;
    example.program().arg(&pages).log_to(&layout.log(stage)).run()?;
    variables.extend([
        ("PADDOCK_BIN", layout.paddock().into()),
        ("REPORT_PAGES", pages.into()),
        ("SCREENSHOTS", layout.environment("logs").into()),
        (ports::VARIABLE, ports::of_stage(stage).into()),
    ]);
    let programs = with_servers(layout, stage, &BROWSER)?;
    let success = programs::run(layout, stage, &programs, &["--nocapture"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

pub(super) fn monitoring(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "monitoring";
    let mut variables = install::fault_tools(layout)?;
    variables.extend([
        ("PADDOCK_BIN", layout.paddock().into()),
        ("PROMETHEUS_BIN", install::prometheus(layout)?.into()),
        (ports::VARIABLE, ports::of_stage(stage).into()),
    ]);
    let programs = with_servers(layout, stage, &MONITORING)?;
    // All at once: they wait for Prometheus.
    let success = programs::run(layout, stage, &programs, &["--nocapture", "--test-threads=4"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

pub(super) fn terminal(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "terminal";
    let mut variables = install::tmux(layout)?;
    let screens = layout.environment("screens");
    // Screens of an earlier run are not what is tested.
    let _ = fs::remove_dir_all(&screens);
    variables.extend([
        ("PADDOCK_BIN", layout.paddock().into()),
        ("SCREENS", screens.into()),
        (ports::VARIABLE, ports::of_stage(stage).into()),
    ]);
    let programs = with_servers(layout, stage, &[TERMINAL])?;
    let success = programs::run(layout, stage, &programs, &[], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

pub(super) fn memcheck(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "memcheck";
    let mut variables = install::valgrind(layout)?;
    variables
        .extend([("PADDOCK_BIN", layout.paddock().into()), (ports::VARIABLE, ports::of_stage(stage).into())]);
    let programs = with_servers(layout, stage, &[MEMCHECK])?;
    // What Valgrind has to say is in the log.
    let success = programs::run(layout, stage, &programs, &["--nocapture"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

/// Each test has networks of its own, so several run at a time: they wait for restarts.
pub(super) fn namespaces(layout: &Layout) -> Result<StageOutcome, Error> {
    in_namespaces(layout, "namespaces", NAMESPACES)
}

pub(super) fn growth(layout: &Layout) -> Result<StageOutcome, Error> {
    in_namespaces(layout, "growth", GROWTH)
}

pub(super) fn chart(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "chart";
    let mut variables = install::kubernetes(layout)?;
    let programs = with_servers(layout, stage, &[CHART])?;
    variables.push(("PADDOCK_BIN", layout.paddock().into()));
    let success = programs::run(layout, stage, &programs, &[], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

pub(super) fn image(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "image";
    // One of these runtimes knows the machine's cgroups.
    for (program, packages) in [("podman", &["podman", "crun"][..]), ("runc", &["runc"])] {
        apt::install_program(program, packages, &layout.log("install-podman"))?;
    }
    let programs = with_servers(layout, stage, &[IMAGE])?;
    let variables =
        [("PADDOCK_BIN", layout.paddock().into()), dist::image_for_tests(layout, layout.paddock())?];
    // The stage says what was left out, and why.
    let success = programs::run(layout, stage, &programs, &["--nocapture", "--test-threads=1"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

fn in_namespaces(layout: &Layout, stage: &str, program: &str) -> Result<StageOutcome, Error> {
    let programs = with_servers(layout, stage, &[program])?;
    let variables = [("PADDOCK_BIN", layout.paddock().into())];
    // The stage says what was left out, and why.
    let success = programs::run(layout, stage, &programs, &["--nocapture", "--test-threads=4"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

/// Members of this build and of the build before in one ensemble.
pub(super) fn upgrades(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "upgrades";
    let before = previous::build(layout, stage)?;
    let programs = with_servers(layout, stage, &[UPGRADES])?;
    let mut variables = fault_variables(layout, stage)?;
    variables.push(("PADDOCK_BEFORE_BIN", before.into()));
    let success = programs::run(layout, stage, &programs, &["--nocapture", "--test-threads=1"], &variables)?;
    Ok(StageOutcome { counts: count(layout, stage)?, success })
}

/// Compiles these tests of the package whose tests start servers.
fn with_servers(layout: &Layout, stage: &str, names: &[&str]) -> Result<Vec<Compiled>, Error> {
    let options: Vec<&str> = names.iter().flat_map(|name| ["--test", name]).collect();
    let mut programs = programs::compile(layout, stage, &options)?;
    programs.retain(|program| is_with_servers(layout, program));
    Ok(programs)
}

pub(super) fn count(layout: &Layout, stage: &str) -> Result<TestCounts, Error> {
    let log = layout.log(stage);
    let output = fs::read(&log).map_err(Error::io("read", &log))?;
    let output = String::from_utf8_lossy(&output);
    Ok(TestCounts::from_cargo(&output).with_skipped(&output))
}
