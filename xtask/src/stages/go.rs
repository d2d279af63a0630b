//! Programs in Go: the checker of histories with its own tests, the clients of go-zookeeper for the stage `faults`, an etcd beside
//! the servers of a comparison, a newer etcd, a zetcd, and exporters of metrics.

use std::fs;
use std::path::PathBuf;

use super::outcome::StageOutcome;
use crate::counts::TestCounts;
use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};

const STAGE: &str = "porcupine";

pub(super) fn test(layout: &Layout) -> Result<StageOutcome, Error> {
    let log = layout.log(STAGE);
    let status = go(layout, STAGE)?.args(["test", "-count=1", "-v", "./..."]).log_to(&log).status()?;
    let output = fs::read(&log).map_err(Error::io("read", &log))?;
    let counts = TestCounts::from_go(&String::from_utf8_lossy(&output));
    Ok(StageOutcome { counts, success: status.success() })
}

/// Builds the checker.
pub(super) fn checker(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    build(layout, STAGE, layout.environment(STAGE), stage)
}

/// Builds the clients of go-zookeeper.
pub(super) fn clients(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    build(layout, "go", layout.environment("go-clients"), stage)
}

/// Builds the exporters that ask a server how it is. They take Go 1.25.
pub(super) fn exporters(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    build(layout, "exporters", layout.environment("exporters"), stage)
}

/// Builds an etcd that is newer than Debian's. It takes Go 1.24.
pub(super) fn newer_etcd(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    build(layout, "etcd-server", layout.environment("newer-etcd"), stage)
}

/// Builds a zetcd, with the client of etcd that it had.
pub(super) fn zetcd(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    build(layout, "zetcd", layout.environment("zetcd"), stage)
}

/// Builds what puts an etcd beside the servers of a comparison.
pub(crate) fn bare_etcd(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    build(layout, "bare-etcd", layout.environment("bare-etcd"), stage)
}

/// Builds the module in a directory below `tests`.
fn build(layout: &Layout, module: &str, program: PathBuf, stage: &str) -> Result<PathBuf, Error> {
    let build = go(layout, module)?.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    build.log_to(&layout.log(stage)).run()?;
    Ok(program)
}

fn go(layout: &Layout, module: &str) -> Result<Program, Error> {
    let mut go = Program::new("go").current_dir(&layout.tests(module));
    for (name, value) in install::go(layout)? {
        go = go.env(name, value);
    }
    Ok(go)
}
