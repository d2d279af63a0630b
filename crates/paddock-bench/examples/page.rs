//! Writes pages from made-up figures into a directory, to look at them:
//! `cargo run --package paddock-bench --example page -- DIRECTORY`.

// The reports that the unit tests show, too.
#[path = "../src/report/samples.rs"]
mod samples;

use std::path::Path;
use std::{env, fs, io};

use paddock_bench::report::units::Unit;
use paddock_bench::report::*;
use paddock_bench::suite::{self, Cell, End, Figure, Group, Measurement, Statistics, Summary};

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else {
        return Err(io::Error::other("name the directory for the pages"));
    };
    let directory = Path::new(&directory);
    fs::create_dir_all(directory)?;
    for (name, report) in samples::all() {
        fs::write(directory.join(format!("{name}.html")), page(&report))?;
        println!("{}", table(&report));
    }
    fs::write(directory.join("comparison.html"), suite::page(&comparison()))
}

/// Three servers with more and more requests; the last one has no room for the most.
fn comparison() -> Summary {
    let requests = [10_000, 40_000, 160_000, 640_000, 2_560_000, 10_240_000];
    Summary {
        suite: "Comparison of three servers".to_owned(),
        repetitions: 1,
        servers: ["server A", "server B", "server C"].map(str::to_owned).into(),
        baseline: 0,
        groups: requests
            .into_iter()
            .enumerate()
            .map(|(step, requests)| group(step as i32, requests))
            .collect(),
        failures: Vec::new(),
    }
}

fn group(step: i32, requests: u64) -> Group {
    let figure = |name: &str, unit, first: [f64; 3], factor: f64| {
        let of = |server: usize| {
            let value = first[server] * factor.powi(step);
            Statistics::of(&[value]).filter(|_| server < 2 || step < 5)
        };
        let servers: Vec<_> = (0..3).map(of).collect();
        let ratios = servers.iter().map(|of| Some(of.as_ref()?.median / servers[0]?.median)).collect();
        Figure { name: name.to_owned(), unit, servers, ratios }
    };
    Group {
        measurement: Measurement::Run(Cell {
            workload: "suite".to_owned(),
            sessions: 10,
            load: Pace::Closed { window: 1 },
            until: End::Requests(requests),
            warm_up_s: 0.0,
            fresh: true,
            tree: None,
            network: None,
        }),
        figures: vec![
            figure("throughput", Unit::PerSecond, [91_000.0, 83_000.0, 42_000.0], 1.06),
            figure("runtime", Unit::Seconds, [0.21, 0.24, 0.47], 3.6),
            figure("latency p99", Unit::Microseconds, [1900.0, 2300.0, 5100.0], 1.05),
            figure("server CPU per request", Unit::Microseconds, [4.1, 6.3, 21.0], 0.97),
            figure("peak memory", Unit::Bytes, [60e6, 95e6, 400e6], 1.75),
        ],
    }
}
