//! The stage of what starts servers in the tests of others: each of the packages below fixtures is installed as its users do, and the examples of a client
//! run on it.

mod go;
mod java;
mod page;
mod rust;
mod shared;

use std::fs;
use std::path::{Path, PathBuf};

use shared::{STAGE, output_so_far, renewed};

use super::outcome::StageOutcome;
use super::programs::{self, Compiled};
use crate::counts::TestCounts;
use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};
use crate::wheel;

pub(super) use shared::AT_LENGTH;

pub(super) fn run(layout: &Layout) -> Result<StageOutcome, Error> {
    Ok(python(layout)?.and(rust(layout)?).and(go::run(layout)?))
}

pub(super) fn at_length(layout: &Layout) -> Result<StageOutcome, Error> {
    Ok(java::run(layout)?.and(rust::new_package(layout)?))
}

/// The wheel in a new environment, with kazoo.
fn python(layout: &Layout) -> Result<StageOutcome, Error> {
    let log = layout.log(STAGE);
    let interpreter = install::virtual_environment(&layout.environment("fixtures-venv"), &log)?;
    let wheel = wheel_of_tests(layout, &interpreter, &log)?;
    let tests = layout.fixtures("python").join("tests");
    let pip = Program::new(&interpreter).args(["-m", "pip", "install", "--requirement"]);
    pip.arg(tests.join("requirements.txt")).arg(&wheel).log_to(&log).run()?;
    let mypy = Program::new(&interpreter).args(["-m", "mypy", "--strict", "--cache-dir=/dev/null"]);
    mypy.arg(layout.fixtures("python").join("src")).log_to(&log).run()?;

    let report = layout.environment("reports").join("fixtures-python.xml");
    let pytest = Program::new(&interpreter).args(["-m", "pytest", "-p", "no:cacheprovider", "-rP"]);
    let status = pytest
        .arg(format!("--junit-xml={}", report.display()))
        .current_dir(&tests)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PADDOCK_WHEEL", &wheel)
        .log_to(&log)
        .status()?;
    let report = fs::read_to_string(&report).map_err(Error::io("read", &report))?;
    Ok(StageOutcome { counts: TestCounts::from_junit(&report), success: status.success() })
}

/// Test programs of the crate that starts servers in the test's own process.
const RUST: [&str; 2] = ["servers", "zookeeper_client"];

/// True for a test program of the stage that Cargo compiles.
pub(super) fn is_rust(layout: &Layout, program: &Compiled) -> bool {
    program.is_integration_test() && program.directory == layout.source("crates/paddock-testing")
}

/// The crate, with zookeeper-client.
fn rust(layout: &Layout) -> Result<StageOutcome, Error> {
    let options = RUST.map(|name| ["--test", name]);
    let mut programs = programs::compile(layout, STAGE, options.as_flattened())?;
    programs.retain(|program| is_rust(layout, program));
    let success = programs::run(layout, STAGE, &programs, &[], &[])?;
    Ok(StageOutcome { counts: TestCounts::from_cargo(&output_so_far(layout)?), success })
}

/// A wheel with the program under test, without its symbols.
fn wheel_of_tests(layout: &Layout, interpreter: &Path, log: &Path) -> Result<PathBuf, Error> {
    let directory = renewed(layout, "wheel")?;
    let program = directory.join("paddock");
    Program::new("strip").arg("-o").args([&program, &layout.paddock()]).log_to(log).run()?;
    wheel::build(layout, interpreter, &program, &directory).log_to(log).run()?;
    let entries = fs::read_dir(&directory).map_err(Error::io("list", &directory))?;
    let files = entries.flatten().map(|entry| entry.path());
    let wheel = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "whl"));
    wheel.ok_or_else(|| Error::new("pip made no wheel"))
}
