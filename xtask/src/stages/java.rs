//! The stage that JUnit runs: compiled by javac, without a Maven build.

use std::fs;
use std::path::{Path, PathBuf};

use super::outcome::Outcome;
use super::ports;
use crate::counts::Counts;
use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};

const STAGE: &str = "java";

/// All of javac's lints but two: `try` dislikes ZooKeeper's own `close`, `classfile` wants what it was built with.
const LINTS: &str = "-Xlint:all,-try,-classfile";

/// Tests that also run on a member of an ensemble: recipes and the command line are made of the same requests, and take longer.
const ON_A_MEMBER: &str = r"--include-classname=paddock\.(ClientTest|RestartTest)";

/// All tests on a server alone, then some on a member of an ensemble.
pub(super) fn run(layout: &Layout) -> Result<Outcome, Error> {
    let classes = classes(layout, STAGE)?;
    let alone = junit(layout, &classes, &[], "1")?;
    let member = junit(layout, &classes, &[ON_A_MEMBER], "3")?;
    Ok(alone.and(member))
}

fn junit(layout: &Layout, classes: &Path, options: &[&str], members: &str) -> Result<Outcome, Error> {
    let reports = layout.environment("reports").join(STAGE);
    empty(&reports)?;
    let status = Program::new("java")
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
        .env("TEST_MEMBERS", members)
        .env(ports::VARIABLE, ports::of_stage(STAGE))
        .env("PADDOCK_BIN", layout.paddock())
        .env("ZOOKEEPER_CLASSPATH", layout.class_path())
        .log_to(&layout.log(STAGE))
        .status()?;

    let mut counts = Counts::default();
    for report in files_in(&reports)? {
        counts += Counts::from_junit(&fs::read_to_string(&report).map_err(Error::io("read", &report))?);
    }
    Ok(Outcome { counts, success: status.success() })
}

/// The compiled tests, and the jars that they need.
pub(super) fn classes(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    install::jars(layout)?;
    let classes = layout.environment("classes");
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
