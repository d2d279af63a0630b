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
  cargo xtask compare --nodes 3   ensembles of three members; about 7 minutes
  cargo xtask compare --compression
                                  Paddock with and without ClickHouse's compression; about 4 minutes

A comparison that was interrupted goes on with the same command. Its results are in compare/ in the target directory.
Needed beforehand: a JDK with Maven, but for --compression.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Members of each server
    #[arg(long, value_name = "1|3", default_value = "1", value_parser = ["1", "3"])]
    nodes: String,
    /// Only see that it works; no page is written
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Also the runs that take long
    #[arg(long)]
    long: bool,
    /// ClickHouse's workload with and without its compression, on Paddock alone
    #[arg(long, conflicts_with_all = ["nodes", "quick", "long"])]
    compression: bool,
}

impl Options {
    /// Which suite of tests/compare is played.
    fn suite(&self) -> Result<&'static str, Error> {
        if self.compression {
            return Ok("compression");
        }
        match (self.nodes.as_str(), self.quick, self.long) {
            ("1", true, _) => Ok("quick"),
            ("1", _, true) => Ok("long"),
            ("1", ..) => Ok("default"),
            (_, true, _) => Ok("three-quick"),
            (_, _, true) => Err(Error::new("there is no long comparison of three members: leave --long out")),
            _ => Ok("three"),
        }
    }

    fn command(&self) -> &'static str {
        if self.compression {
            return "cargo xtask compare --compression";
        }
        match (self.nodes.as_str(), self.long) {
            ("3", _) => "cargo xtask compare --nodes 3",
            (_, true) => "cargo xtask compare --long",
            _ => "cargo xtask compare",
        }
    }

    /// The lines of the page between which the table stands.
    fn marks(&self) -> (&'static str, &'static str) {
        if self.compression {
            return ("<!-- compare compression: begin -->", "<!-- compare compression: end -->");
        }
        match self.nodes.as_str() {
            "3" => ("<!-- compare three: begin -->", "<!-- compare three: end -->"),
            _ => ("<!-- compare: begin -->", "<!-- compare: end -->"),
        }
    }
}

const PAGE: &str = "performance.md";

/// Whether all was measured without an error.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    let name = options.suite()?;
    if !options.compression {
        install::jars(layout)?;
    }
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    let results = layout.comparison(name);
    forget_finished(&results, options.quick)?;
    if !play(layout, name, &results)? {
        return Ok(false);
    }
    if !options.quick {
        let text = describe(layout, options, &results)?;
        write_page(&layout.document(PAGE), options.marks(), &text)?;
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
    let command = options.command();
    let facts = machine::facts(layout, results, !options.compression)?;
    let date = Program::new("date").args(["-u", "+%F"]).output()?;
    Ok(format!("`{command}`, {date}.\n\n{facts}\n{table}"))
}

fn write_page(page: &Path, marks: (&str, &str), text: &str) -> Result<(), Error> {
    let old = fs::read_to_string(page).map_err(Error::io("read", page))?;
    let new = replace(&old, marks, text).ok_or_else(|| {
        let (begin, end) = marks;
        Error::new(format!("{} has no lines {begin} and {end} to write between", page.display()))
    })?;
    fs::write(page, new).map_err(Error::io("write", page))
}

/// The page with `text` between its marks.
fn replace(page: &str, (begin, end): (&str, &str), text: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<begin>\nold\n<end>\nb\n";
        let new = "a\n<begin>\nnew\n<end>\nb\n";
        let replace = |page, text| replace(page, ("<begin>", "<end>"), text);
        assert_eq!(replace(page, "new\n").as_deref(), Some(new));
        assert_eq!(replace(new, "new").as_deref(), Some(new));
        assert_eq!(replace("no marks", "new"), None);
        assert_eq!(replace("<end><begin>", "new"), None);
    }
}
