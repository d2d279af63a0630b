//! The stage that JUnit runs: compiled by javac, without a Maven build.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::outcome::StageOutcome;
use super::ports;
use crate::counts::TestCounts;
use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};

const STAGE: &str = "java";

/// All of javac's lints but two: `try` dislikes ZooKeeper's own `close`, `classfile` wants what it was built with.
const LINTS: &str = "-Xlint:all,-try,-classfile";

/// Tests that also run on a member of an ensemble: recipes and the command line are made of the same requests, and take longer.
const ON_A_MEMBER: &str = r"--include-classname=paddock\.(ClientTest|RestartTest)";

/// All tests on a server alone, then some on a member of an ensemble.
pub(super) fn run(layout: &Layout) -> Result<StageOutcome, Error> {
    let classes = classes(layout, STAGE)?;
    let alone = junit(layout, (STAGE, STAGE), &classes, &[], &[("TEST_MEMBERS", "1".into())])?;
    let member = junit(layout, (STAGE, STAGE), &classes, &[ON_A_MEMBER], &[("TEST_MEMBERS", "3".into())])?;
    Ok(alone.and(member))
}

/// Tests on front ends, each on an etcd of its own, as part of another stage. `classes` is a pattern of names of test classes.
pub(super) fn on_etcd(
    layout: &Layout,
    stage: &str,
    program: &Path,
    classes: &str,
) -> Result<StageOutcome, Error> {
    let compiled = self::classes(layout, stage)?;
    let variables = [("TEST_ENGINE", OsString::from("etcd")), ("ETCD_BIN", program.into())];
    let chosen = format!("--include-classname=paddock\\.({classes})");
    junit(layout, (stage, "etcd-java"), &compiled, &[&chosen], &variables)
}

/// Tests whose znodes may lie in several Raft groups.
const ON_GROUPS: &str = r"--include-classname=paddock\.(ClientTest|CuratorTest)";

/// Tests on ensembles with several Raft groups, as part of another stage.
pub(super) fn on_groups(
    layout: &Layout,
    stage: &str,
    variables: &[(&str, OsString)],
) -> Result<StageOutcome, Error> {
    let classes = classes(layout, stage)?;
    junit(layout, (stage, "java-groups"), &classes, &[ON_GROUPS], variables)
}

/// Tests on servers that are started with settings of their own, or of several members, are not for a cross-check.
const NOT_CHECKED: &str = r"--exclude-classname=paddock\.(KerberosTest|PersistentNodeTest|SaslTest|TlsTest)";
/// The reference goes on when a test kills the server, whose sessions it has to give up then.
const NOT_KILLED: &str = "--exclude-tag=killed";

/// Tests on servers that check their answers against a ZooKeeper, as part of another stage.
pub(super) fn checked(layout: &Layout, stage: &str, list: &Path) -> Result<StageOutcome, Error> {
    let compiled = self::classes(layout, stage)?;
    let variables = [("TEST_CROSS_CHECK", list.into())];
    junit(layout, (stage, "checked-java"), &compiled, &[NOT_CHECKED, NOT_KILLED], &variables)
}

/// Runs tests as part of a stage, with its ports. The reports have a name of their own; the log is that of the stage.
fn junit(
    layout: &Layout,
    (stage, name): (&str, &str),
    classes: &Path,
    options: &[&str],
    variables: &[(&str, OsString)],
) -> Result<StageOutcome, Error> {
    let reports = layout.environment("reports").join(name);
    empty(&reports)?;
    let mut java = Program::new("java")
        .arg("-cp")
        .arg(format!("{}:{}", classes.display(), layout.class_path()))
        .arg("-DLOG_LEVEL=WARN")
        .args(["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--details=tree"])
        .arg("--disable-ansi-colors")
        // A test that hangs fails, even when it can't be interrupted.
        .arg("--config=junit.jupiter.execution.timeout.default=60 s")
        .arg("--config=junit.jupiter.execution.timeout.thread.mode.default=SEPARATE_THREAD")
        .args(options)
        .arg("--scan-classpath")
        .arg(classes)
        .arg("--reports-dir")
        .arg(&reports)
        .env(ports::VARIABLE, ports::of_stage(stage))
        .env("PADDOCK_BIN", layout.paddock())
        .env("ZOOKEEPER_CLASSPATH", layout.class_path());
    let kerberos = install::kerberos(layout)?;
    for (variable, value) in variables.iter().chain(&kerberos) {
        java = java.env(variable, value);
    }
    let status = java.log_to(&layout.log(stage)).status()?;

    let mut counts = TestCounts::default();
    for report in files_in(&reports)? {
        counts += TestCounts::from_junit(&fs::read_to_string(&report).map_err(Error::io("read", &report))?);
    }
    Ok(StageOutcome { counts, success: status.success() })
}

/// The compiled tests of a stage, and the jars that they need. Stages that run side by side do not share them.
pub(super) fn classes(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    install::jars(layout)?;
    let classes = layout.environment("classes").join(stage);
    // A class whose source is gone must not be tested any more.
    empty(&classes)?;
    Program::new("javac")
        .args([LINTS, "-Werror", "-proc:none", "-encoding", "UTF-8", "-cp"])
        .arg(layout.class_path())
        .arg("-d")
        .arg(&classes)
        .args(files_in(&layout.tests("java").join("src").join("paddock"))?)
        .log_to(&layout.log(stage))
        .run()?;
    Ok(classes)
}

fn empty(directory: &Path) -> Result<(), Error> {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(Error::io("remove", directory))?;
    }
    fs::create_dir_all(directory).map_err(Error::io("create", directory))
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(directory).map_err(Error::io("list", directory))?;
    entries.map(|entry| Ok(entry.map_err(Error::io("list", directory))?.path())).collect()
}
