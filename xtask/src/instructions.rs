//! `cargo xtask instructions`: what the benchmarks count, beside what is stored.
//!
//! The benchmarks are `benches/instructions.rs` of their crates. They run under Callgrind, which counts the instructions of the
//! process: those are as many on a busy machine as on one at rest.

mod figures;

use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::counts::TestCounts;
use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};
use figures::{Figures, Row};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask instructions              count, and compare with tests/instructions.txt
  cargo xtask instructions --update     count, and store what is counted there

tests/README.md says what the figures depend on, and how to see where instructions go.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Store what is counted
    #[arg(long)]
    update: bool,
}

/// The crates that have benchmarks, and the simulator: selected together, they share what they are made of.
const PACKAGES: [&str; 6] =
    ["paddock-proto", "paddock-tree", "paddock-storage", "paddock-replica", "paddock-front", "paddock-sim"];

/// Options by which Cargo selects these crates.
pub(crate) fn packages() -> impl Iterator<Item = &'static str> {
    PACKAGES.into_iter().flat_map(|package| ["--package", package])
}

/// Counts and prints; true if no benchmark takes more than it may.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    let report = measure(layout)?;
    if options.update {
        let (file, figures) = (file(layout), report.counted.clone().but_for_noise(&report.stored));
        fs::write(&file, figures.to_string()).map_err(Error::io("write", &file))?;
        print!("{}", Report { stored: figures, ..report });
        return Ok(true);
    }
    print!("{report}");
    Ok(report.counts().failed == 0)
}

/// Counted instructions beside the stored ones.
#[derive(Debug)]
pub(crate) struct Report {
    counted: Figures,
    stored: Figures,
}

/// Runs the benchmarks.
pub(crate) fn measure(layout: &Layout) -> Result<Report, Error> {
    let file = file(layout);
    let stored = fs::read_to_string(&file).map_err(Error::io("read", &file))?;
    let stored = Figures::parse(&stored).map_err(|why| Error::new(format!("{}: {why}", file.display())))?;

    // What is released, as the stage of the simulator has built it already; a benchmark has to unwind. The hooks for the
    // simulator that are compiled in take no part.
    let mut cargo = layout.cargo().args(["bench", "--quiet", "--profile", "sim", "--bench", "instructions"]);
    for (name, value) in install::gungraun(layout)? {
        cargo = cargo.env(name, value);
    }
    let cargo = cargo.args(packages());
    let output = cargo.args(["--", "--callgrind-args=--cache-sim=no", "--output-format=json"]).output()?;
    let lines = output.lines().filter(|line| line.starts_with('{'));
    let benchmarks = lines.map(benchmark).collect::<Result<_, Error>>()?;
    let compiler = Program::new("rustc").arg("--version").output()?;
    Ok(Report { counted: Figures { compiler, benchmarks }, stored })
}

fn file(layout: &Layout) -> PathBuf {
    layout.tests("instructions.txt")
}

/// Name and instructions, out of what Gungraun says of a benchmark.
fn benchmark(json: &str) -> Result<(String, u64), Error> {
    let unknown = || Error::new(format!("this tells no instructions of a benchmark: {json}"));
    let told: Value = serde_json::from_str(json).map_err(|_| unknown())?;
    let (module, id) = (told["module_path"].as_str(), told["id"].as_str());
    let instructions = told.pointer("/profiles/0/data/total/metrics/Ir/values/new").and_then(Value::as_u64);
    let (Some(module), Some(id), Some(instructions)) = (module, id, instructions) else {
        return Err(unknown());
    };
    // The first part is the program's name, which is the same for all crates.
    let name = module.split_once("::").map_or(module, |(_, name)| name);
    Ok((format!("{name}::{id}"), instructions))
}

impl Report {
    /// A benchmark is a test, if the figures can be compared at all: another compiler makes other instructions.
    pub(crate) fn counts(&self) -> TestCounts {
        let rows = self.rows();
        if !self.is_of_one_compiler() {
            return TestCounts { skipped: rows.len() as u64, ..TestCounts::default() };
        }
        let failed = rows.iter().filter(|row| row.complaint().is_some()).count() as u64;
        TestCounts { passed: rows.len() as u64 - failed, failed, skipped: 0 }
    }

    fn is_of_one_compiler(&self) -> bool {
        self.counted.compiler == self.stored.compiler
    }

    fn rows(&self) -> Vec<Row<'_>> {
        figures::compare(&self.counted, &self.stored)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        writeln!(formatter, "{:<36}{:>14}{:>14}{:>8}", "benchmark", "instructions", "stored", "ratio")?;
        rows.iter().try_for_each(|row| writeln!(formatter, "{row}"))?;
        if !self.is_of_one_compiler() {
            let (here, there) = (&self.counted.compiler, &self.stored.compiler);
            return writeln!(
                formatter,
                "\nthis is {here}, and the stored figures are of {there}: nothing was compared"
            );
        }
        let complaints: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
        if complaints.is_empty() {
            return Ok(());
        }
        writeln!(formatter)?;
        complaints.iter().try_for_each(|complaint| writeln!(formatter, "{complaint}"))?;
        writeln!(formatter, "if this is meant: cargo xtask instructions --update; else see tests/README.md")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_is_named_by_its_group_function_and_case() {
        let told = |figure: &str| {
            let profiles =
                format!(r#"[{{"data":{{"total":{{"metrics":{{"Ir":{{"values":{figure}}}}}}}}}}}]"#);
            format!(r#"{{"module_path":"instructions::tree::apply","id":"create","profiles":{profiles}}}"#)
        };
        let counted = benchmark(&told(r#"{"new":7,"old":8}"#)).expect("all is there");
        assert_eq!(counted, ("tree::apply::create".to_owned(), 7));
        for bad in ["{", "{}", &told(r#"{"old":8}"#)] {
            assert!(benchmark(bad).is_err(), "{bad}");
        }
    }
}
