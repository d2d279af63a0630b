//! The stages that Cargo runs.

use std::fs;

use super::{Outcome, java};
use crate::counts::Counts;
use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};

pub(super) fn unit(layout: &Layout) -> Result<Outcome, Error> {
    let cargo = layout.cargo().args(["test", "--no-fail-fast", "--workspace", "--exclude", "paddock-tests"]);
    test(layout, "unit", cargo)
}

pub(super) fn build(layout: &Layout) -> Result<Outcome, Error> {
    let cargo = layout.cargo().args(["build", "--release", "--package", "paddock"]);
    let status = cargo.log_to(&layout.log("build")).status()?;
    Ok(Outcome { counts: Counts::default(), success: status.success() })
}

pub(super) fn process(layout: &Layout) -> Result<Outcome, Error> {
    install::jars(layout)?;
    let cargo = layout.cargo().args(["test", "--no-fail-fast", "--release", "--package", "paddock-tests"]);
    let cargo = cargo.env("PADDOCK_BIN", layout.paddock()).env("ZOOKEEPER_CLASSPATH", layout.class_path());
    test(layout, "process", cargo)
}

/// The test programs of the stage `faults`.
const FAULTS: [&str; 2] = ["failover", "rolling_restart"];

/// Its tests are behind a feature of their package, so that the stage `process` leaves them out.
pub(super) fn faults(layout: &Layout) -> Result<Outcome, Error> {
    let stage = "faults";
    let python = install::python(layout)?;
    let classes = java::classes(layout, stage)?;
    let cargo = layout.cargo().args(["test", "--no-fail-fast", "--release", "--package", "paddock-tests"]);
    let cargo = cargo
        .args(["--features", "faults"])
        .args(FAULTS.iter().flat_map(|program| ["--test", program]))
        // Figures are in the log, and no test disturbs another's.
        .args(["--", "--nocapture", "--test-threads=1"])
        .env("PADDOCK_BIN", layout.paddock())
        .env("ZOOKEEPER_CLASSPATH", layout.class_path())
        .env("PYTHON_BIN", python)
        .env("JAVA_CLASSES", classes);
    test(layout, stage, cargo)
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
    let log = layout.log(stage);
    let status = cargo.log_to(&log).status()?;
    let output = fs::read(&log).map_err(Error::io("read", &log))?;
    let counts = Counts::from_cargo(&String::from_utf8_lossy(&output));
    Ok(Outcome { counts, success: status.success() })
}
