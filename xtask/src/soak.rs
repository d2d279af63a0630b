//! `cargo xtask soak`: the simulator for hours, over seeds that no run has tried yet.
//!
//! The simulator takes a range of seeds; here it gets one small range after the other until the time is over.

mod account;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

use crate::layout::Layout;
use crate::process::{Error, Program};
use account::{Account, Chunk, Facts};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask soak --hours 8                a night
  cargo xtask soak --hours 0.05             three minutes, to see that it works
  cargo xtask soak --hours 1 --members 5    ensembles of five only
  cargo xtask soak --hours 1 --groups 4     ensembles of four Raft groups only
  cargo xtask soak --hours 1 --from 1000    seeds from 1000, and not from the clock

Violations are printed with the command that repeats them, and the exit code is 1. The summary is written to soak/ in the target
directory. Ctrl-C ends it early, with a summary of what was done.";

/// One range of seeds takes about this time.
const CHUNK: Duration = Duration::from_secs(10);
const FIRST_CHUNK: u64 = 10;
/// A range that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(20 * 60);
/// Interval of the lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Length of the run, in hours and parts of them
    #[arg(long, value_name = "H", value_parser = parse_hours)]
    hours: Duration,
    /// The first seed [default: from the clock, so that each run has new ones]
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// The size of all ensembles [default: out of each seed]
    #[arg(long, value_name = "N", value_parser = ["1", "3", "5"])]
    members: Option<String>,
    /// The number of Raft groups of all ensembles [default: out of each seed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    groups: Option<u32>,
    /// The number of replicas of each group beside the home group [default: one on each member]
    #[arg(long, value_name = "N", requires = "groups", value_parser = clap::value_parser!(u32).range(1..=5))]
    replicas: Option<u32>,
}

impl Options {
    /// Options of the simulator that all ensembles share.
    fn ensembles(&self) -> Vec<String> {
        let groups = self.groups.map(|groups| groups.to_string());
        let replicas = self.replicas.map(|replicas| replicas.to_string());
        let options = [("--members", self.members.clone()), ("--groups", groups), ("--replicas", replicas)];
        let given = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }
}

fn parse_hours(text: &str) -> Result<Duration, String> {
    let hours: f64 = text.parse().map_err(|_| "write hours as 8 or 0.5".to_owned())?;
    let seconds = Duration::try_from_secs_f64(hours * 3600.0).ok().filter(|time| !time.is_zero());
    seconds.ok_or_else(|| "more than no time, and not for ever".to_owned())
}

/// Runs seeds until the time is over; true if there was no violation.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    layout.cargo().args(["build", "--profile", "sim", "--package", "paddock-sim"]).run()?;
    let first = options.from.map_or_else(seed_of_now, Ok)?;
    let mut account = Account::new(facts(layout, options)?, first);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(format!("can't wait for the simulator: {error}")))?;
    let summary = layout.soak(&format!("{first}.txt"));
    let soaked = runtime.block_on(soak(layout, options, &mut account, &summary));
    // Whatever ended it, what was done counts.
    account.write(&summary)?;
    println!("{account}\nthis is in {}", summary.display());
    soaked?;
    Ok(account.is_good())
}

async fn soak(
    layout: &Layout,
    options: &Options,
    account: &mut Account,
    summary: &Path,
) -> Result<(), Error> {
    let (begun, mut progress) = (Instant::now(), SoakProgress::new());
    let mut seeds = FIRST_CHUNK;
    while begun.elapsed() < options.hours {
        let chunk_begun = Instant::now();
        let simulator = simulator(layout, options, account.next_seed(), seeds);
        let output = tokio::select! {
            output = simulator => output?,
            ended = tokio::signal::ctrl_c() => {
                ended.map_err(|error| Error::new(format!("can't wait for Ctrl-C: {error}")))?;
                progress.end();
                account.interrupt();
                return Ok(());
            }
        };
        let chunk = Chunk::read(&output.text, output.is_good, account.next_seed(), seeds);
        if !chunk.violations.is_empty() {
            progress.end();
            chunk.violations.iter().for_each(|violation| println!("{violation}"));
        }
        account.add(chunk, begun.elapsed());
        // For those who look in between, and for a run that does not live to its end.
        account.write(summary)?;
        let left = options.hours.saturating_sub(begun.elapsed());
        progress.tell(&account.progress(left));
        let per_second = seeds as f64 / chunk_begun.elapsed().as_secs_f64();
        seeds = ((CHUNK.min(left).as_secs_f64() * per_second) as u64).max(1);
    }
    progress.end();
    Ok(())
}

struct Output {
    text: String,
    is_good: bool,
}

/// Runs the simulator on `seeds` seeds.
async fn simulator(layout: &Layout, options: &Options, first: u64, seeds: u64) -> Result<Output, Error> {
    let program = layout.simulator();
    let mut command = Command::new(&program);
    command.arg("--seeds").arg(format!("{first}..{}", first + seeds));
    command.args(options.ensembles());
    // Ctrl-C is for us: a simulator that died of it would look like one that failed.
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).process_group(0);
    let Ok(output) = timeout(HANGS_AFTER, command.output()).await else {
        return Ok(Output { text: String::new(), is_good: false });
    };
    let output = output.map_err(Error::io("run", &program))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Output { text, is_good: output.status.success() })
}

fn facts(layout: &Layout, options: &Options) -> Result<Facts, Error> {
    let git = Program::new("git").current_dir(layout.root()).args(["describe", "--always", "--dirty"]);
    Ok(Facts {
        // A copy of the source without its history is good enough to soak.
        commit: git.output().unwrap_or_else(|_| "unknown".to_owned()),
        date: Program::new("date").args(["-u", "+%F %H:%M:%S UTC"]).output()?,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        ensembles: options.ensembles().join(" "),
    })
}

/// No two runs have the same seeds unless one does more than a thousand in a second.
fn seed_of_now() -> Result<u64, Error> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now =
        now.map_err(|_| Error::new("the clock stands before 1970: set it, or name a seed with --from"))?;
    Ok(u64::try_from(now.as_millis()).expect("that many milliseconds are 500 million years"))
}

/// One line that is written anew on a terminal; otherwise a line a minute.
struct SoakProgress {
    is_watched: bool,
    told: Option<Instant>,
}

impl SoakProgress {
    fn new() -> SoakProgress {
        SoakProgress { is_watched: io::stdout().is_terminal(), told: None }
    }

    fn tell(&mut self, line: &str) {
        if self.is_watched {
            // To the line's begin, and what was there goes.
            print!("\r\x1b[K{line}");
            // The reader sees it later then.
            let _ = io::stdout().flush();
        } else if self.told.is_none_or(|told| told.elapsed() >= LINE_EVERY) {
            println!("{line}");
        } else {
            return;
        }
        self.told = Some(Instant::now());
    }

    /// Ends the line of progress, so that the next output has one of its own.
    fn end(&mut self) {
        if self.is_watched && self.told.take().is_some() {
            println!();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_hours;

    #[test]
    fn hours_have_parts() {
        assert_eq!(parse_hours("0.05").map(|time| time.as_secs()), Ok(180));
        for text in ["", "soon", "0", "-1", "NaN", "inf", "1e300"] {
            assert!(parse_hours(text).is_err(), "{text:?} hours");
        }
    }
}
