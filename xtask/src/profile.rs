//! `cargo xtask profile`: where the time of a request goes.
//!
//! perf looks about a thousand times a second at what the server's threads do while `paddock bench` keeps it busy. `samples`
//! reads what it saw, `stages` and `rules` say which part of the work that was. Everything is written below
//! <target>/profile; the table also into the page.

mod record;
mod rules;
mod samples;
mod stages;
mod table;

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use inferno::flamegraph;

use crate::layout::Layout;
use crate::machine;
use crate::page::Section;
use crate::process::{Error, Program};
use samples::Sample;
use table::Column;

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask profile                about two minutes; writes a table into docs/performance/profile.md
  cargo xtask profile --quick        less than a minute, to see that it works; writes no page
  firefox target/profile/create.svg  one of the flame graphs; there is one for each column: create-alone, create-ten,
                                     create-hundred, create, get, get-of-many, mixed

Needed beforehand: Linux's perf, and root or `sysctl kernel.perf_event_paranoid=1 kernel.kptr_restrict=0`.
Waiting costs no CPU, so it is in none of this: `cargo xtask compare` tells how long requests take.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only see that it works; no page is written
    #[arg(long)]
    quick: bool,
}

/// A workload that is played while the server is sampled.
struct Workload {
    /// The name of its files.
    name: &'static str,
    /// One of the bench's.
    workload: &'static str,
    sessions: &'static str,
    window: &'static str,
    /// From how many znodes it chooses, if not from as many as it always does.
    znodes: Option<&'static str>,
}

impl Workload {
    const fn new(
        name: &'static str,
        workload: &'static str,
        sessions: &'static str,
        window: &'static str,
    ) -> Workload {
        Workload { name, workload, sessions, window, znodes: None }
    }
}

const WORKLOADS: [Workload; 7] = [
    Workload::new("create-alone", "create", "1", "1"),
    Workload::new("create-ten", "create", "10", "1"),
    Workload::new("create-hundred", "create", "100", "1"),
    Workload::new("create", "create", "10", "100"),
    Workload::new("get", "get", "10", "100"),
    Workload { znodes: Some("1000000"), ..Workload::new("get-of-many", "get", "10", "100") },
    Workload::new("mixed", "mixed", "10", "100"),
];

/// Times of what happens, from the beginning of the warm-up on. The samples' time begins some time after the measurement's and ends
/// before it.
struct Times {
    warm_up: Duration,
    /// Length of the measurement, behind the warm-up.
    time: Duration,
    /// Time from the start of the measurement to the first sample.
    from: Duration,
    to: Duration,
}

impl Times {
    const FULL: Times = Times::of_ms(1000, 6000, 2500, 5500);
    const QUICK: Times = Times::of_ms(500, 2500, 1000, 2000);

    const fn of_ms(warm_up: u64, time: u64, from: u64, to: u64) -> Times {
        let [warm_up, time, from, to] = [
            Duration::from_millis(warm_up),
            Duration::from_millis(time),
            Duration::from_millis(from),
            Duration::from_millis(to),
        ];
        Times { warm_up, time, from, to }
    }
}

const PAGE: &str = "performance/profile.md";

/// Records all workloads and writes the page; always true, for what could not be recorded is an error.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    record::check_perf()?;
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    let times = if options.quick { &Times::QUICK } else { &Times::FULL };
    let all = layout.profile("");
    let columns = WORKLOADS.iter().map(|workload| profile(layout, workload, times));
    let table = table::write(&columns.collect::<Result<Vec<_>, _>>()?);
    println!("{table}\nFlame graphs are in {}", all.display());
    if !options.quick {
        let date = Program::new("date").args(["-u", "+%F"]).output()?;
        let facts = machine::facts(layout, &all, false)?;
        let text = format!("`cargo xtask profile`, {date}.\n\n{facts}\n{table}");
        Section::new("profile").write(&layout.document(PAGE), &text)?;
    }
    Ok(true)
}

/// Records a workload, draws its flame graph and says what it comes to.
fn profile(layout: &Layout, workload: &Workload, times: &Times) -> Result<Column, Error> {
    println!("{}", workload.name);
    let directory = layout.profile(workload.name);
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(Error::io("remove", &directory))?;
    }
    fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
    let recording = record::record(layout, workload, times, &directory)?;
    let samples = samples::read(&recording.script);
    if samples.is_empty() {
        return Err(Error::new(format!(
            "perf saw nothing of {}: see {}",
            workload.name,
            directory.display()
        )));
    }
    draw(workload, &samples, &layout.profile(&format!("{}.svg", workload.name)))?;
    Ok(Column::new(workload, &samples, recording.costs))
}

fn draw(workload: &Workload, samples: &[Sample], path: &Path) -> Result<(), Error> {
    let mut options = flamegraph::Options::default();
    options.title = format!("paddock server: {}", workload.describe());
    options.count_name = "samples".to_owned();
    let lines = samples::fold(samples);
    let file = File::create(path).map_err(Error::io("create", path))?;
    let lines = lines.iter().map(String::as_str);
    flamegraph::from_lines(&mut options, lines, file).map_err(Error::io("draw", path))
}

impl Workload {
    fn describe(&self) -> String {
        let of = self.znodes.map_or(String::new(), |znodes| format!(" of {znodes}"));
        format!("{}{of}, {} × {}", self.workload, self.sessions, self.window)
    }
}
