//! rustdoc: the items of crates as JSON, and the pages without warnings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::layout::Layout;
use crate::process::{Error, Program};

/// Name of the log of what Cargo and rustdoc say.
const LOG: &str = "rustdoc";

/// Lets rustdoc of a stable toolchain write JSON, which is not stable. Cargo, the compiler and build scripts are not told: those look at the variable, and would build
/// everything once more.
const WRAPPER: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// Has rustdoc write the items of these packages; returns the files, in their order.
pub(super) fn json(layout: &Layout, packages: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let wrapper = wrapper(layout)?;
    let cargo = doc(layout, packages).env("RUSTDOC", wrapper);
    let flags = "-Z unstable-options --output-format json";
    cargo.env("RUSTDOCFLAGS", flags).log_to(&layout.log(LOG)).run()?;
    let file = |package: &&str| layout.pages_of_crates().join(format!("{}.json", package.replace('-', "_")));
    Ok(packages.iter().map(file).collect())
}

/// Has rustdoc make the pages of these packages. False if it has warnings: items without a text, links that lead nowhere.
pub(super) fn has_no_warnings(layout: &Layout, packages: &[&str], log: &Path) -> Result<bool, Error> {
    let cargo = doc(layout, packages).env("RUSTDOCFLAGS", "-D warnings -D missing_docs");
    Ok(cargo.log_to(log).status()?.success())
}

/// Compiles the examples on the pages of all packages, and runs those that are to be run. With a part of the packages, others would be compiled
/// once more, with other features than for the stage `unit`.
pub(super) fn run_examples(layout: &Layout, log: &Path) -> Result<bool, Error> {
    let cargo = layout.cargo().args(["test", "--quiet", "--workspace", "--doc"]);
    Ok(cargo.log_to(log).status()?.success())
}

fn doc(layout: &Layout, packages: &[&str]) -> Program {
    let cargo = layout.cargo().args(["doc", "--quiet", "--no-deps", "--lib"]);
    packages.iter().fold(cargo, |cargo, package| cargo.args(["--package", package]))
}

fn wrapper(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = layout.environment("rustdoc");
    fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
    let wrapper = directory.join("rustdoc");
    fs::write(&wrapper, WRAPPER).map_err(Error::io("write", &wrapper))?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&wrapper, executable).map_err(Error::io("make executable", &wrapper))?;
    Ok(wrapper)
}
