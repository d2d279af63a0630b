//! Figures that nobody measured, in the shape of those that somebody could have.

use std::collections::BTreeMap;

use fastrand::Rng;
use paddock_bench::report::chart::{BarChart, Chart};
use paddock_bench::report::page::{Column, Fact, Page, Table};
use paddock_bench::report::units::{Unit, bytes, count, duration};
use paddock_bench::report::*;

pub(crate) fn runs() -> Vec<(&'static str, RunReport)> {
    vec![
        ("run", run(60, Ended::Complete)),
        ("long", run(10_800, Ended::Complete)),
        ("second", run(1, Ended::Interrupted)),
        ("empty", empty()),
        ("hostile", hostile()),
        ("phases", phases()),
    ]
}

fn run(length_s: u32, ended: Ended) -> RunReport {
    let mut rng = Rng::with_seed(7);
    let seconds: Vec<Second> = (0..length_s).map(|number| second(number, length_s, &mut rng)).collect();
    let requests = seconds.iter().map(|second| second.requests).sum();
    let errors = seconds.iter().map(|second| second.errors).sum();
    let elapsed_s = f64::from(length_s);
    let mut operations: Vec<OperationReport> = [
        ("create", 1.0, 1900.0),
        ("set", 8.0, 1750.0),
        ("get", 45.0, 310.0),
        ("list", 45.0, 420.0),
        ("delete", 1.0, 1820.0),
    ]
    .map(|(name, weight, p50_us)| operation(name, requests as f64 * weight / 100.0, elapsed_s, p50_us))
    .into();
    if errors > 0 {
        operations[1].errors = BTreeMap::from([("ConnectionLoss".to_owned(), errors)]);
    }
    RunReport {
        tool: "paddock bench 0.1.0".to_owned(),
        started_unix_s: 1_795_248_000,
        workload: "mixed".to_owned(),
        hosts: ["127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183"].map(str::to_owned).into(),
        sessions: 10,
        load: Pace::Closed { window: 64 },
        ended,
        elapsed_s,
        requests,
        errors,
        requests_per_second: requests as f64 / elapsed_s,
        bytes_sent_per_second: requests as f64 / elapsed_s * 64.0,
        bytes_received_per_second: requests as f64 / elapsed_s * 480.0,
        latency: latency(380.0),
        operations,
        phases: vec![PhaseReport { name: "mixed".to_owned(), requests, elapsed_s }],
        seconds,
        server: Some(servers(length_s, requests, &mut rng)),
        client_cpu_us_per_request: 0.62,
    }
}

/// A run that warms up and stalls once, two thirds of the way.
fn second(number: u32, length_s: u32, rng: &mut Rng) -> Second {
    let warm = 1.0 - 0.35 * (-f64::from(number) / 4.0).exp();
    let stalled = length_s > 10 && number == length_s * 2 / 3;
    let noise = 0.94 + 0.12 * rng.f64();
    let slow = if stalled { 40.0 } else { 1.0 / (warm * noise) };
    Second {
        at_s: f64::from(number + 1),
        requests: (102_000.0 / slow) as u64,
        errors: if stalled { 37 } else { 0 },
        p50_us: 380.0 * slow,
        p99_us: 1900.0 * slow * (0.9 + 0.2 * rng.f64()),
        max_us: 6000.0 * slow * (1.0 + 2.0 * rng.f64().powi(6)),
    }
}

fn operation(name: &str, requests: f64, elapsed_s: f64, p50_us: f64) -> OperationReport {
    OperationReport {
        name: name.to_owned(),
        requests: requests as u64,
        requests_per_second: requests / elapsed_s,
        errors: BTreeMap::new(),
        latency: latency(p50_us),
    }
}

fn latency(p50_us: f64) -> Latency {
    let shape = [0.55, 0.75, 1.0, 1.3, 1.7, 2.1, 3.4, 6.0, 11.0, 38.0, 45.0];
    let points = PERCENTS.into_iter().zip(shape);
    Latency {
        mean_us: 1.12 * p50_us,
        min_us: 0.2 * p50_us,
        max_us: 45.0 * p50_us,
        percentiles: points.map(|(percent, factor)| Percentile { percent, us: factor * p50_us }).collect(),
    }
}

fn servers(length_s: u32, requests: u64, rng: &mut Rng) -> ServerUse {
    let processes = [("pid 4711", 1.55, 212.0), ("pid 4712", 1.1, 187.0), ("pid 4713", 1.05, 190.0)];
    let processes = processes.map(|(source, load, memory)| process(source, length_s, load, memory, rng));
    ServerUse {
        cpu_us_per_request: Some(3.7e6 * f64::from(length_s) / requests as f64),
        resident_bytes_peak: Some(634 << 20),
        resident_bytes_after: Some(634 << 20),
        fsyncs: Some(u64::from(length_s) * 1260),
        processes: processes.into(),
    }
}

fn process(source: &str, length_s: u32, load: f64, memory: f64, rng: &mut Rng) -> ProcessUse {
    let mut cpu_s = 12.5;
    let sample = |number: u32| {
        let at_s = f64::from(number);
        let grown = 1.0 - 0.5 * (-at_s / f64::from(length_s) * 3.0).exp();
        let sample = Sample {
            at_s,
            cpu_s: Some(cpu_s),
            resident_bytes: Some((memory * grown * 1_048_576.0) as u64),
            fsyncs: Some(u64::from(number) * 420 + rng.u64(0..40)),
        };
        cpu_s += load * (0.92 + 0.16 * rng.f64());
        sample
    };
    ProcessUse { source: source.to_owned(), samples: (0..=length_s).map(sample).collect() }
}

/// A run that ended before it began.
fn empty() -> RunReport {
    RunReport {
        ended: Ended::Failed("connect to 127.0.0.1:2181: connection refused".to_owned()),
        elapsed_s: 0.0,
        requests_per_second: 0.0,
        bytes_sent_per_second: 0.0,
        bytes_received_per_second: 0.0,
        latency: Latency::default(),
        operations: Vec::new(),
        phases: Vec::new(),
        seconds: Vec::new(),
        server: None,
        ..run(0, Ended::Complete)
    }
}

/// Names that mean harm, more operations than colours, and latencies of zero.
fn hostile() -> RunReport {
    let mut report = run(20, Ended::ServerLost("</p><script>console.error('ran')</script>".to_owned()));
    report.workload = "</title><script>console.error('ran')</script>".to_owned();
    report.hosts = vec!["<img src=http://elsewhere.invalid/a.png>".to_owned(); 5];
    let name =
        |number| format!("operation {number} \"><style>@import 'http://elsewhere.invalid/a.css';</style>");
    let many = (0..11_u32).map(|number| operation(&name(number), 500.0, 20.0, 100.0 * f64::from(number)));
    report.operations = many.collect();
    let error = "</script><script>console.error('ran')</script>".to_owned();
    report.operations[0].errors = BTreeMap::from([(error, 37)]);
    report.seconds[3].p50_us = 0.0;
    report
}

fn phases() -> RunReport {
    let phase = |name: &str, requests, elapsed_s| PhaseReport { name: name.to_owned(), requests, elapsed_s };
    let phases = vec![
        phase("created %n permanent znodes", 1000, 0.077),
        phase("set     %n           znodes", 1000, 0.069),
        phase("get     %n           znodes", 1000, 0.024),
        phase("deleted %n permanent znodes", 1000, 0.071),
    ];
    RunReport { workload: "smoketest".to_owned(), phases, ..run(2, Ended::Complete) }
}

const SERVERS: [&str; 3] = ["server A", "server B", "server C"];
const GROUPS: [&str; 6] = ["10 k", "40 k", "160 k", "640 k", "2.56 M", "10.24 M"];

pub(crate) fn comparison() -> Page {
    let charts = vec![
        bars("Peak memory", "resident memory", Unit::Bytes, [60e6, 95e6, 400e6], 1.75),
        bars("Run time", "time", Unit::Seconds, [0.21, 0.24, 0.47], 3.6),
        bars("CPU", "CPU time per request", Unit::Microseconds, [4.1, 6.3, 21.0], 0.97),
        bars("Throughput", "requests per second", Unit::PerSecond, [91_000.0, 83_000.0, 42_000.0], 1.06),
        bars("Latency, p99", "latency", Unit::Microseconds, [1900.0, 2300.0, 5100.0], 1.05),
        by_workload(),
    ];
    let facts =
        [("throughput, B/A", "0.91 ×"), ("CPU per request, B/A", "1.54 ×"), ("peak memory, B/A", "1.58 ×")];
    Page {
        title: "Comparison of three servers".to_owned(),
        subtitle: vec![
            "workload suite".to_owned(),
            "5 repetitions, interleaved".to_owned(),
            "made-up figures".to_owned(),
        ],
        warning: None,
        facts: facts
            .map(|(name, value)| Fact { name: name.to_owned(), value: value.to_owned(), note: String::new() })
            .into(),
        charts,
        tables: vec![comparison_table()],
        json: "{\"made_up\":true}".to_owned(),
        tool: "paddock bench 0.1.0".to_owned(),
    }
}

fn bars(title: &str, label: &str, unit: Unit, first: [f64; 3], factor: f64) -> Chart {
    let values = |number: usize| {
        let value = move |group: usize| first[number] * factor.powi(group as i32);
        // One of them ran out of memory.
        (0..GROUPS.len()).map(|group| (number < 2 || group < 5).then(|| value(group))).collect()
    };
    let series = SERVERS.iter().enumerate().map(|(number, name)| ((*name).to_owned(), values(number)));
    Chart::Bars(BarChart {
        title: title.to_owned(),
        note: "median of 5 repetitions".to_owned(),
        label: label.to_owned(),
        unit,
        groups_label: "requests".to_owned(),
        groups: GROUPS.map(str::to_owned).into(),
        series: series.collect(),
    })
}

/// Long names, and bars of which one server has all.
fn by_workload() -> Chart {
    let names = [
        "create",
        "mixed",
        "clickhouse",
        "suite, 1.28 M requests",
        "watches, 1 writer, 500 watchers",
        "sessions",
    ];
    let values = [61_000.0, 97_000.0, 22_000.0, 80_000.0, 410_000.0, 0.0];
    Chart::Bars(BarChart {
        title: "Throughput by workload".to_owned(),
        note: String::new(),
        label: "requests per second".to_owned(),
        unit: Unit::PerSecond,
        groups_label: "workload".to_owned(),
        groups: names.map(str::to_owned).into(),
        series: vec![(SERVERS[1].to_owned(), values.map(Some).into())],
    })
}

fn comparison_table() -> Table {
    let columns = ["mean", "p95", "p99", "CPU per request", "peak memory", "fsyncs"].map(Column::figure);
    let row = |(number, name): (usize, &&str)| {
        let slow = 1.0 + number as f64;
        let mut row = vec![(*name).to_owned()];
        row.extend([420.0, 990.0, 1900.0, 4.1].map(|us| duration(us * slow)));
        row.extend([bytes(60e6 * slow), count(75_600)]);
        row
    };
    Table {
        title: "mixed, 10 sessions".to_owned(),
        note: "each figure is the median of 5 repetitions".to_owned(),
        columns: [Column::text("server")].into_iter().chain(columns).collect(),
        rows: SERVERS.iter().enumerate().map(row).collect(),
    }
}
