//! `cargo xtask wheel`: the Python package with a program that is built already.
//!
//! The package is in fixtures/python. Its build hook takes the program and what it is for from variables, so any program will do: one of
//! `cargo xtask dist`, or the one under test.

use std::path::{Path, PathBuf};

use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask wheel --program target/release/paddock
      for machines like this one
  cargo xtask wheel --program paddock-aarch64 --platform manylinux_2_17_aarch64 --program-version 0.9.0 --notices THIRD-PARTY.txt
      for another kind of machine; this one cannot ask that program its version

The wheel is written into target/wheels. pip fetches hatchling from PyPI to build it. Needed beforehand: Python 3 with venv.";

#[derive(Debug, clap::Args)]
pub(crate) struct WheelOptions {
    /// Program that the wheel ships, stripped
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Machines that it is for, as in names of wheels [default: those whose C library is no older than this one's]
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<String>,
    /// Version of the program [default: what it says itself]
    #[arg(long, value_name = "VERSION")]
    program_version: Option<String>,
    /// Licences of what the program is made of, to go into the wheel
    #[arg(long, value_name = "FILE")]
    notices: Option<PathBuf>,
}

pub(crate) fn run(layout: &Layout, options: &WheelOptions) -> Result<bool, Error> {
    let python = install::virtual_environment(&layout.environment("wheel-venv"), &layout.log("wheel"))?;
    let program = std::path::absolute(&options.program).map_err(Error::io("find", &options.program))?;
    let mut build = build(layout, &python, &program, &layout.wheels());
    let notices = options.notices.as_deref().map(std::path::absolute).transpose();
    let notices = notices.map_err(|error| Error::new(format!("find the notices: {error}")))?;
    if let Some(notices) = notices {
        build = build.env("PADDOCK_NOTICES", notices);
    }
    if let Some(platform) = &options.platform {
        build = build.env("PADDOCK_WHEEL_PLATFORM", platform);
    }
    if let Some(version) = &options.program_version {
        build = build.env("PADDOCK_VERSION", version);
    }
    build.run()?;
    Ok(true)
}

/// Builds a wheel with a program into a directory.
pub(crate) fn build(layout: &Layout, python: &Path, program: &Path, into: &Path) -> Program {
    let build = Program::new(python).args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]);
    build.arg(into).arg(layout.fixtures("python")).env("PADDOCK_BIN", program)
}
