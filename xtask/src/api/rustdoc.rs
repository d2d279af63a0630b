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

/// Compiles the examples on the pages of all packages, and runs those that are to be run. Packages without examples say so (`doctest = false`), since
/// rustdoc would read all of their sources to find none. With a part of the packages, others would be compiled
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

#[cfg(test)]
mod tests {
    use super::*;

    /// True if a file has an example that rustdoc would run or compile.
    fn has_example(text: &str) -> bool {
        let mut is_inside = false;
        text.lines().map(str::trim_start).any(|line| {
            let doc = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
            let Some(info) = doc.and_then(|doc| doc.trim_start().strip_prefix("```")) else { return false };
            is_inside = !is_inside;
            is_inside && info != "text"
        })
    }

    fn any_has_example(directory: &Path) -> bool {
        fs::read_dir(directory).expect("list sources").any(|entry| {
            let path = entry.expect("read an entry").path();
            if path.is_dir() {
                return any_has_example(&path);
            }
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            is_source && has_example(&fs::read_to_string(&path).expect("read a source"))
        })
    }

    #[test]
    fn an_example_is_told_from_a_text() {
        assert!(has_example("/// Text.\n///\n/// ```no_run\n/// run();\n/// ```\nfn f() {}\n"));
        assert!(has_example("//! ```text\n//! 1 2\n//! ```\n//!\n//! ```\n//! run();\n//! ```\n"));
        assert!(!has_example("//! ```text\n//! 1 2\n//! ```\n"));
    }

    #[test]
    fn examples_are_run_in_every_package_that_has_some_and_looked_for_in_no_other() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
        let crates = fs::read_dir(root.join("crates")).expect("list crates");
        let crates = crates.map(|entry| entry.expect("read an entry").path());
        for package in crates.chain([root.join("tests"), root.join("xtask")]) {
            if !package.join("src/lib.rs").exists() {
                continue;
            }
            let manifest = fs::read_to_string(package.join("Cargo.toml")).expect("read a manifest");
            let is_left_out = manifest.contains("[lib]\ndoctest = false\n");
            let has_example = any_has_example(&package.join("src"));
            assert_ne!(
                has_example,
                is_left_out,
                "{} has an example, or `doctest = false`",
                package.display()
            );
        }
    }
}
