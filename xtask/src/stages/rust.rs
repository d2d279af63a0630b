//! The stages that Cargo runs.

use std::ffi::OsString;
use std::fs;

use super::outcome::Outcome;
use super::{go, java};
use crate::breaks;
use crate::counts::Counts;
use crate::install;
use crate::instructions;
use crate::layout::Layout;
use crate::process::{Error, Program};

pub(super) fn unit(layout: &Layout) -> Result<Outcome, Error> {
    let cargo = layout.cargo().args(["test", "--no-fail-fast", "--workspace", "--exclude", "paddock-tests"]);
    test(layout, "unit", cargo)
}

/// Seeds of the simulated ensembles.
const SEEDS: &str = "0..200";

pub(super) fn simulator(layout: &Layout) -> Result<Outcome, Error> {
    let log = layout.log("simulator");
    let cargo = layout.cargo().args(["run", "--profile", "sim", "--package", "paddock-sim", "--"]);
    let status = cargo.args(["--seeds", SEEDS]).log_to(&log).status()?;
    let output = fs::read(&log).map_err(Error::io("read", &log))?;
    let mut counts = Counts::from_simulator(&String::from_utf8_lossy(&output));
    // Mistakes that do not fit the sources any more prove nothing.
    counts.passed += breaks::check(layout)? as u64;
    Ok(Outcome { counts, success: status.success() })
}

/// A benchmark is a test: it fails if it takes more than is stored.
pub(super) fn instructions(layout: &Layout) -> Result<Outcome, Error> {
    let report = instructions::measure(layout)?;
    let (directory, log) = (layout.environment("logs"), layout.log("instructions"));
    fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
    fs::write(&log, report.to_string()).map_err(Error::io("write", &log))?;
    Ok(Outcome { counts: report.counts(), success: true })
}

pub(super) fn build(layout: &Layout) -> Result<Outcome, Error> {
    let cargo = layout.cargo().args(["build", "--release", "--package", "paddock"]);
    let status = cargo.log_to(&layout.log("build")).status()?;
    Ok(Outcome { counts: Counts::default(), success: status.success() })
}

pub(super) fn process(layout: &Layout) -> Result<Outcome, Error> {
    install::jars(layout)?;
    let cargo = layout.cargo().args(["test", "--no-fail-fast", "--release", "--package", "paddock-tests"]);
    let mut cargo =
        cargo.env("PADDOCK_BIN", layout.paddock()).env("ZOOKEEPER_CLASSPATH", layout.class_path());
    for (name, value) in install::older_zookeepers(layout)? {
        cargo = cargo.env(name, value);
    }
    test(layout, "process", cargo)
}

/// Front ends that share an etcd; without it the same stories are part of the stage `unit`.
pub(super) fn etcd(layout: &Layout) -> Result<Outcome, Error> {
    let program = install::etcd(layout)?;
    let cargo = layout.cargo().args(["test", "--package", "paddock-etcd", "--features", "on-etcd"]);
    test(layout, "etcd", cargo.args(["--test", "mirrors", "on_etcd"]).env("ETCD_BIN", program))
}

/// The test programs of the stage `faults`, and how many of their tests run at a time: where times are measured, one.
const FAULTS: [(&[&str], u32); 2] =
    [(&["failover", "rolling_restart"], 1), (&["histories", "partitions", "timeliness", "torture"], 2)];

/// Its tests are behind a feature of their package, so that the stage `process` leaves them out.
pub(super) fn faults(layout: &Layout) -> Result<Outcome, Error> {
    let stage = "faults";
    let variables = fault_variables(layout, stage)?;
    let mut success = true;
    for (programs, threads) in FAULTS {
        let cargo =
            layout.cargo().args(["test", "--no-fail-fast", "--release", "--package", "paddock-tests"]);
        let mut cargo = cargo
            .args(["--features", "faults"])
            .args(programs.iter().flat_map(|program| ["--test", program]))
            // Figures are in the log.
            .args(["--", "--nocapture", &format!("--test-threads={threads}")]);
        for (name, value) in &variables {
            cargo = cargo.env(name, value);
        }
        success &= cargo.log_to(&layout.log(stage)).status()?.success();
    }
    Ok(Outcome { counts: count(layout, stage)?, success })
}

/// Installs and builds what the tests with faults need besides the server; how they find it. What is built logs for `stage`.
pub(crate) fn fault_variables(layout: &Layout, stage: &str) -> Result<Vec<(&'static str, OsString)>, Error> {
    let python = install::python(layout)?;
    let classes = java::classes(layout, stage)?;
    let checker = go::checker(layout, stage)?;
    let go_clients = go::clients(layout, stage)?;
    let histories = layout.environment("histories");
    fs::create_dir_all(&histories).map_err(Error::io("create", &histories))?;
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

/// Its tests are behind a feature, too.
pub(super) fn browser(layout: &Layout) -> Result<Outcome, Error> {
    let variables = install::chromium(layout)?;
    let pages = layout.environment("report-pages");
    // Pages of an earlier run are not what is tested.
    let _ = fs::remove_dir_all(&pages);
    let example = layout.cargo().args(["run", "--package", "paddock-bench", "--example", "page", "--"]);
    example.arg(&pages).log_to(&layout.log("browser")).run()?;

    let mut cargo = layout
        .cargo()
        .args(["test", "--no-fail-fast", "--package", "paddock-tests", "--features", "browser"])
        .args(["--test", "report_page", "--", "--nocapture"])
        .env("PADDOCK_BIN", layout.paddock())
        .env("REPORT_PAGES", &pages)
        .env("SCREENSHOTS", layout.environment("logs"));
    for (name, value) in variables {
        cargo = cargo.env(name, value);
    }
    test(layout, "browser", cargo)
}

fn test(layout: &Layout, stage: &str, cargo: Program) -> Result<Outcome, Error> {
    let status = cargo.log_to(&layout.log(stage)).status()?;
    Ok(Outcome { counts: count(layout, stage)?, success: status.success() })
}

fn count(layout: &Layout, stage: &str) -> Result<Counts, Error> {
    let log = layout.log(stage);
    let output = fs::read(&log).map_err(Error::io("read", &log))?;
    let output = String::from_utf8_lossy(&output);
    Ok(Counts::from_cargo(&output).with_skipped(&output))
}
