//! `paddock bench run`: one workload against one server or ensemble.

use std::fs;
use std::path::{Path, PathBuf};

use paddock_bench::BenchError;
use paddock_bench::report::{Ended, RunReport};

use super::choice;
use super::display::Display;
use super::outcome::BenchOutcome;
use super::run_args::Args;

pub(crate) fn run(args: &Args) -> Result<BenchOutcome, BenchError> {
    let (plan, json_file) = choice::plan(args)?;
    for path in args.report.iter().chain(&json_file) {
        check_writable(path)?;
    }
    let mut display = Display::new(args.quiet);
    let result = paddock_bench::run(&plan, &mut display);
    display.finish();
    let report = result?;
    show(args, json_file, &report)?;
    Ok(match report.ended {
        Ended::Interrupted => BenchOutcome::Interrupted,
        Ended::Complete if report.errors == 0 => BenchOutcome::Good,
        _ => BenchOutcome::Bad,
    })
}

/// A file that cannot be written is better known before the run than after it.
fn check_writable(path: &Path) -> Result<(), BenchError> {
    fs::write(path, "").map_err(BenchError::file("write", path))
}

fn show(args: &Args, json_file: Option<PathBuf>, report: &RunReport) -> Result<(), BenchError> {
    let json = serde_json::to_string_pretty(report).expect("a report is plain data");
    if args.json {
        println!("{json}");
    } else {
        print!("{}", paddock_bench::report::table(report));
    }
    if let Some(path) = json_file {
        fs::write(&path, json).map_err(BenchError::file("write", path))?;
    }
    if let Some(path) = &args.report {
        fs::write(path, paddock_bench::report::page(report)).map_err(BenchError::file("write", path))?;
    }
    Ok(())
}
