//! The stages that pytest runs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::outcome::StageOutcome;
use super::{go, ports};
use crate::counts::TestCounts;
use crate::dist;
use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};

/// Tests that do not run on a member of an ensemble: they take longest, and say nothing more of it than of a server alone.
const NOT_ON_A_MEMBER: [&str; 2] = ["test_restart.py", "test_upstream.py"];

/// All tests on a server alone.
pub(super) fn kazoo(layout: &Layout) -> Result<StageOutcome, Error> {
    pytest(layout, "kazoo", &[], Vec::new())
}

/// The stage with the tests on a member of an ensemble.
pub(super) const MEMBERS: &str = "kazoo-members";

/// The tests that are not slow on a member of an ensemble; and the scripts of operators.
pub(super) fn kazoo_on_members(layout: &Layout) -> Result<StageOutcome, Error> {
    let left_out = NOT_ON_A_MEMBER.map(|file| format!("--ignore-glob=*/{file}"));
    let members = vec![("TEST_MEMBERS", "3".into())];
    let member = pytest_in(layout, (MEMBERS, MEMBERS, "kazoo"), &left_out, members)?;
    let programs = vec![
        ("SCRIPTS_ROOT", install::scripts(layout)?.into()),
        ("EXPORTERS_BIN", go::exporters(layout, "exporters")?.into()),
    ];
    let scripts = pytest_of(layout, (MEMBERS, "kazoo-scripts", &["scripts"]), &[], programs)?;
    Ok(member.and(scripts))
}

/// Tests of kazoo that take long, or are about the server's own log.
const NOT_ON_ETCD: [&str; 2] = ["test_restart.py", "test_upstream.py"];

/// A value of 5 MiB is above etcd's `--max-request-bytes`; and a front end has no log whose size `dirs` could tell.
const DIFFERENT_ON_ETCD: [&str; 2] = ["test_five_mebibytes", "test_dirs"];

/// Two front ends on one etcd, then kazoo's tests on a front end but for those that take long.
pub(super) fn etcd(layout: &Layout, stage: &str, program: &Path) -> Result<StageOutcome, Error> {
    let no_zetcd = ["--ignore-glob=*/test_zetcd.py".to_owned()];
    let fronts = pytest_in(layout, (stage, "etcd-fronts", "etcd"), &no_zetcd, on_etcd(program))?;
    let mut options: Vec<String> = NOT_ON_ETCD.map(|file| format!("--ignore-glob=*/{file}")).to_vec();
    options.extend(without(&DIFFERENT_ON_ETCD));
    let clients = pytest_in(layout, (stage, "etcd-kazoo", "kazoo"), &options, on_etcd(program))?;
    Ok(fronts.and(clients))
}

/// Two front ends on one etcd, without its troubles.
pub(super) fn fronts(layout: &Layout, stage: &str, program: &Path) -> Result<StageOutcome, Error> {
    let variables = vec![("ETCD_BIN", program.into())];
    pytest_of(layout, (stage, "etcd-suites-fronts", &["etcd/test_fronts.py"]), &[], variables)
}

/// Kazoo's tests on a front end.
pub(super) fn kazoo_on_etcd(layout: &Layout, stage: &str, program: &Path) -> Result<StageOutcome, Error> {
    pytest_in(layout, (stage, "etcd-kazoo-whole", "kazoo"), &without(&DIFFERENT_ON_ETCD), on_etcd(program))
}

/// Imports from a real zetcd, whose program takes long to build.
pub(super) fn zetcd(layout: &Layout, stage: &str, etcd: &Path) -> Result<StageOutcome, Error> {
    let variables = vec![("ETCD_BIN", etcd.into()), ("ZETCD_BIN", go::zetcd(layout, stage)?.into())];
    pytest_of(layout, (stage, "etcd-zetcd", &["etcd/test_zetcd.py"]), &[], variables)
}

/// Kafka's brokers on two front ends of one etcd.
pub(super) fn kafka_on_etcd(layout: &Layout, stage: &str, etcd: &Path) -> Result<StageOutcome, Error> {
    let variables = vec![("KAFKA_CLASSPATH", install::kafka(layout)?.into()), ("ETCD_BIN", etcd.into())];
    pytest_of(layout, (stage, "etcd-kafka", &["kafka/test_on_etcd.py"]), &[], variables)
}

/// Tests with ClickHouse servers on a front end: those of some files, or all but those of an ensemble.
pub(super) fn clickhouse_on_etcd(
    layout: &Layout,
    stage: &str,
    program: &Path,
    files: &[&str],
) -> Result<StageOutcome, Error> {
    let mut variables = install::clickhouse(layout)?;
    variables.extend(on_etcd(program));
    let files: Vec<String> = files.iter().map(|file| format!("clickhouse/{file}")).collect();
    let places: Vec<&str> =
        if files.is_empty() { vec!["clickhouse"] } else { files.iter().map(String::as_str).collect() };
    let options = ["--ignore-glob=*/test_ensemble.py".to_owned(), NO_GROUPS.to_owned()];
    pytest_of(layout, (stage, "etcd-clickhouse", &places), &options, variables)
}

/// Variables by which each server is a front end on an etcd of its own.
fn on_etcd(program: &Path) -> Vec<(&'static str, OsString)> {
    vec![("ETCD_BIN", program.into()), ("TEST_ENGINE", "etcd".into())]
}

/// Tests of kazoo that run on a server which checks its answers against a ZooKeeper.
const CHECKED: [&str; 5] = [
    "kazoo/test_znodes.py",
    "kazoo/test_values.py",
    "kazoo/test_watches.py",
    "kazoo/test_order.py",
    "kazoo/test_recipes.py",
];
/// ZooKeeper takes no frame of more than 1 MB, and ends the session of a client that dies at a moment of its own.
const DIFFERENT_IN_ZOOKEEPER: [&str; 2] = ["test_five_mebibytes", "dies"];

/// Tests of kazoo on servers that check their answers, as part of another stage; with an etcd, the servers are front ends.
pub(super) fn kazoo_checked(
    layout: &Layout,
    stage: &str,
    list: &Path,
    etcd: Option<&Path>,
) -> Result<StageOutcome, Error> {
    let mut variables = etcd.map(on_etcd).unwrap_or_default();
    variables.push(("TEST_CROSS_CHECK", list.into()));
    let name = if etcd.is_some() { "checked-kazoo-on-etcd" } else { "checked-kazoo" };
    pytest_of(layout, (stage, name, &CHECKED), &without(&DIFFERENT_IN_ZOOKEEPER), variables)
}

/// Tests with ClickHouse servers of the release that speaks ZooKeeper's own protocol.
const CLICKHOUSE_CHECKED: [&str; 3] =
    ["clickhouse/test_replicated_table.py", "clickhouse/test_cluster_ddl.py", "clickhouse/test_faults.py"];
/// The reference ends the sessions of clients that are killed or frozen at a moment of its own, and goes on when the server is killed.
const ENDS_SESSIONS: [&str; 2] = ["killed", "frozen"];

/// Tests with ClickHouse servers on a server that checks its answers, as part of another stage.
pub(super) fn clickhouse_checked(layout: &Layout, stage: &str, list: &Path) -> Result<StageOutcome, Error> {
    let mut variables = install::clickhouse(layout)?;
    variables.push(("TEST_CROSS_CHECK", list.into()));
    let options = without(&ENDS_SESSIONS);
    pytest_of(layout, (stage, "checked-clickhouse", &CLICKHOUSE_CHECKED), &options, variables)
}

/// Options that leave tests out.
pub(super) fn without(tests: &[&str]) -> [String; 2] {
    let tests: Vec<String> = tests.iter().map(|test| format!("not {test}")).collect();
    ["-k".to_owned(), tests.join(" and ")]
}

/// Tests on several Raft groups take minutes, and have a stage of their own.
const NO_GROUPS: &str = "--ignore-glob=*/test_groups.py";

pub(super) fn clickhouse(layout: &Layout) -> Result<StageOutcome, Error> {
    let variables = install::clickhouse(layout)?;
    pytest(layout, "clickhouse", &[NO_GROUPS.to_owned()], variables)
}

pub(super) fn kafka(layout: &Layout) -> Result<StageOutcome, Error> {
    let variables = vec![("KAFKA_CLASSPATH", install::kafka(layout)?.into())];
    pytest(layout, "kafka", &["--ignore-glob=*/test_on_etcd.py".to_owned(), NO_GROUPS.to_owned()], variables)
}

/// Backups in a store of S3's protocol.
pub(super) fn s3(layout: &Layout) -> Result<StageOutcome, Error> {
    let variables = vec![("MOTO_BIN", install::moto(layout)?.into())];
    pytest(layout, "s3", &[], variables)
}

/// Packages and archives as they are shipped, on Debians of their own.
pub(super) fn packages(layout: &Layout) -> Result<StageOutcome, Error> {
    let mut variables = dist::for_tests(layout)?;
    variables.extend(install::debian_roots(layout)?);
    pytest(layout, "packages", &[], variables)
}

/// Packages and the archive for aarch64, whose program runs in an emulator.
pub(super) fn packages_for_aarch64(layout: &Layout) -> Result<StageOutcome, Error> {
    let variables = dist::for_emulated_tests(layout)?;
    pytest_in(layout, ("packages-aarch64", "packages-aarch64", "packages_aarch64"), &[], variables)
}

/// The commands of all pages, in sandboxes; prints how many ran, and why others did not.
pub(super) fn docs(layout: &Layout) -> Result<StageOutcome, Error> {
    let account = layout.environment("reports").join("commands-of-pages.txt");
    let _ = fs::remove_file(&account);
    let outcome = pytest(layout, "docs", &[], vec![("PAGES_ACCOUNT", account.clone().into())])?;
    print!("{}", fs::read_to_string(&account).unwrap_or_default());
    Ok(outcome)
}

/// Runs the directory of tests that is named like the stage.
fn pytest(
    layout: &Layout,
    stage: &str,
    options: &[String],
    variables: Vec<(&str, OsString)>,
) -> Result<StageOutcome, Error> {
    pytest_in(layout, (stage, stage, stage), options, variables)
}

/// Runs a directory of tests as part of a stage, with its ports. The report and the log have a name of their own.
fn pytest_in(
    layout: &Layout,
    (stage, name, directory): (&str, &str, &str),
    options: &[String],
    variables: Vec<(&str, OsString)>,
) -> Result<StageOutcome, Error> {
    pytest_of(layout, (stage, name, &[directory]), options, variables)
}

/// Runs pytest on some directories or files, with a report of this name.
pub(super) fn pytest_of(
    layout: &Layout,
    (stage, name, places): (&str, &str, &[&str]),
    options: &[String],
    variables: Vec<(&str, OsString)>,
) -> Result<StageOutcome, Error> {
    let python = install::python(layout)?;
    install::jars(layout)?;
    let report = layout.environment("reports").join(format!("{name}.xml"));
    let _ = fs::remove_file(&report);

    let mut pytest = Program::new(python)
        .args(["-m", "pytest", "-p", "no:cacheprovider"])
        // The directories of servers take gigabytes; only those of tests that failed are of use.
        .args(["-o", "tmp_path_retention_policy=failed"])
        .arg("--junit-xml")
        .arg(&report)
        .args(options)
        .args(places.iter().map(|place| layout.tests(place)))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(ports::VARIABLE, ports::of_stage(stage))
        .env("PADDOCK_BIN", layout.paddock())
        .env("ZOOKEEPER_CLASSPATH", layout.class_path());
    for (variable, value) in variables {
        pytest = pytest.env(variable, value);
    }
    let status = pytest.log_to(&layout.log(stage)).status()?;
    // Without a report nothing was counted; the exit code tells then that it failed.
    let report = fs::read_to_string(&report).unwrap_or_default();
    Ok(StageOutcome { counts: TestCounts::from_junit(&report), success: status.success() })
}
