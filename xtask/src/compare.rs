//! `cargo xtask compare`: a suite of Paddock and Apache ZooKeeper, and the page that tells of it.
//!
//! The suites are files in tests/compare, and `paddock bench suite` plays them; here is only what they need and what is
//! said about the machine. Everything is written below <target>/compare, and into the one page.

mod machine;

use std::fs;
use std::path::Path;

use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask compare             about 20 minutes; writes docs/performance.md
  cargo xtask compare --quick     about a minute, to see that it works; writes no page
  cargo xtask compare --long      also with 6.4 million requests

A comparison that was interrupted goes on with the same command. Its results are in compare/ in the target directory.
Needed beforehand: a JDK with Maven.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Members of each server
    #[arg(long, value_name = "1|3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    nodes: u8,
    /// Only see that it works; no page is written
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Also the runs that take long
    #[arg(long)]
    long: bool,
}

const PAGE: &str = "performance.md";
const BEGIN: &str = "<!-- compare: begin -->";
const END: &str = "<!-- compare: end -->";

/// Whether all was measured without an error.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    if options.nodes != 1 {
        let message =
            "Paddock has no ensembles yet, so only single members can be compared: leave --nodes out";
        return Err(Error::new(message));
    }
    let name = match options {
        Options { quick: true, .. } => "quick",
        Options { long: true, .. } => "long",
        _ => "default",
    };
    install::jars(layout)?;
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    let results = layout.comparison(name);
    forget_finished(&results, options.quick)?;
    if !play(layout, name, &results)? {
        return Ok(false);
    }
    if !options.quick {
        let text = describe(layout, options, &results)?;
        write_page(&layout.document(PAGE), &text)?;
    }
    Ok(true)
}

/// A comparison that is complete is not continued but made anew.
fn forget_finished(results: &Path, always: bool) -> Result<(), Error> {
    if results.exists() && (always || results.join("summary.json").exists()) {
        fs::remove_dir_all(results).map_err(Error::io("remove", results))?;
    }
    Ok(())
}

fn play(layout: &Layout, name: &str, results: &Path) -> Result<bool, Error> {
    let suite = layout.tests("compare").join(format!("{name}.toml"));
    let bench = Program::new(layout.paddock()).args(["bench", "suite"]).arg(suite).arg("--out").arg(results);
    let bench = bench.env("PADDOCK_BIN", layout.paddock()).env("ZOOKEEPER_CLASSPATH", layout.class_path());
    bench.status().map(|status| status.success())
}

/// The part of the page that a comparison writes.
fn describe(layout: &Layout, options: &Options, results: &Path) -> Result<String, Error> {
    let table = results.join("summary.md");
    let table = fs::read_to_string(&table).map_err(Error::io("read", &table))?;
    let command = if options.long { "cargo xtask compare --long" } else { "cargo xtask compare" };
    let facts = machine::facts(layout, results)?;
    let date = Program::new("date").args(["-u", "+%F"]).output()?;
    Ok(format!("`{command}`, {date}.\n\n{facts}\n{table}"))
}

fn write_page(page: &Path, text: &str) -> Result<(), Error> {
    let old = fs::read_to_string(page).map_err(Error::io("read", page))?;
    let new = replace(&old, text).ok_or_else(|| {
        Error::new(format!("{} has no lines {BEGIN} and {END} to write between", page.display()))
    })?;
    fs::write(page, new).map_err(Error::io("write", page))
}

/// The page with `text` between its marks.
fn replace(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- compare: begin -->\nold\n<!-- compare: end -->\nb\n";
        let new = "a\n<!-- compare: begin -->\nnew\n<!-- compare: end -->\nb\n";
        assert_eq!(replace(page, "new\n").as_deref(), Some(new));
        assert_eq!(replace(new, "new").as_deref(), Some(new));
        assert_eq!(replace("no marks", "new"), None);
        assert_eq!(replace("<!-- compare: end --><!-- compare: begin -->", "new"), None);
    }
}
