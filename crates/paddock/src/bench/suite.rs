//! `paddock bench suite`: servers beside each other, over a matrix of workloads.

use std::io;
use std::path::PathBuf;

use paddock_bench::suite::{self, Conclusion, Measure, Narrator, Suite};
use paddock_bench::{BenchError, Silence};

use super::interruption::interruption;
use super::outcome::BenchOutcome;

const EXAMPLES: &str = "\
Examples:
  paddock bench suite compare.toml
  paddock bench suite compare.toml --out results --json > summary.json

The suite's file names servers with the commands that start them, workloads with the loads to try, znodes, sessions and
watches to see what they cost, and how many times all of it is repeated. Servers take turns on every cell. Each result is kept in the output directory as soon as it is
there: after an interruption the same command goes on. At the end summary.json, summary.md and report.html are there.

The exit code is 0 if every step was measured without an error, 1 if not, 2 if the suite could not go on, 130 if it was
interrupted.";

/// Start servers, measure them in turns, and compare them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The suite: servers, workloads, repetitions
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory of the results, and of the servers' data while they run [default: FILE's name with -results for .toml]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<BenchOutcome, BenchError> {
    let suite = Suite::load(&args.file)?;
    let interrupted = interruption(suite::kill_servers)?;
    let mut silence = Silence;
    let mut measure = Measure::new(&suite, interrupted.clone(), &mut silence);
    let mut narrator: Narrator<Box<dyn io::Write>> =
        Narrator(if args.quiet { Box::new(io::sink()) } else { Box::new(io::stderr()) });
    let out = out(args);
    match suite::run(&suite, &out, &mut measure, &interrupted, &mut narrator)? {
        Conclusion::Complete(summary) => {
            if args.json {
                println!("{}", serde_json::to_string_pretty(&summary).expect("a summary is plain data"));
            } else {
                print!("{}", suite::markdown(&summary));
            }
            if !args.quiet {
                eprintln!("results: {}", out.join("report.html").display());
            }
            Ok(if summary.failures.is_empty() { BenchOutcome::Good } else { BenchOutcome::Bad })
        }
        Conclusion::Interrupted => {
            eprintln!("interrupted; the same command goes on where this one stopped");
            Ok(BenchOutcome::Interrupted)
        }
    }
}

fn out(args: &Args) -> PathBuf {
    let name = args.file.file_stem().unwrap_or_default().to_string_lossy();
    args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}-results")))
}
