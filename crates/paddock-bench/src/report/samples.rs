//! Made-up reports for the tests of what shows them, and for the pages that `examples/page.rs` writes.

use std::collections::BTreeMap;

use super::*;

/// All of them by name.
pub(super) fn all() -> [(&'static str, RunReport); 6] {
    [
        ("run", mixed()),
        ("phases", phased()),
        ("hostile", hostile()),
        ("empty", empty()),
        ("long", long()),
        ("huge", huge()),
    ]
}

/// Three seconds of a run in which nothing went wrong.
pub(super) fn mixed() -> RunReport {
    RunReport {
        tool: "paddock bench 0.9.0".to_owned(),
        started_unix_s: 1_795_248_000,
        workload: "mixed".to_owned(),
        hosts: vec!["127.0.0.1:2181".to_owned()],
        sessions: 10,
        load: Pace::Closed { window: 64 },
        ended: Ended::Complete,
        elapsed_s: 3.0,
        requests: 300_000,
        errors: 0,
        requests_per_second: 100_000.0,
        bytes_sent_per_second: 1.2 * 1_048_576.0,
        bytes_received_per_second: 4.8 * 1_048_576.0,
        latency: latency(500.0),
        operations: vec![operation("create", 12_000, 1000.0), operation("get", 288_000, 400.0)],
        phases: vec![PhaseReport { name: "mixed".to_owned(), requests: 300_000, elapsed_s: 3.0 }],
        seconds: seconds(3),
        server: Some(ServerUse {
            cpu_us_per_request: Some(5.2),
            resident_bytes_peak: Some(192 << 20),
            resident_bytes_after: Some(192 << 20),
            fsyncs: Some(1200),
            processes: vec![process("pid 4711", 4)],
        }),
        client_cpu_us_per_request: 0.62,
    }
}

pub(super) fn phased() -> RunReport {
    let phase = |name: &str, requests, elapsed_s| PhaseReport { name: name.to_owned(), requests, elapsed_s };
    let phases = vec![phase("created %n permanent znodes", 1000, 0.077), phase("watched %n znodes", 0, 0.0)];
    RunReport { workload: "smoketest".to_owned(), phases, ..mixed() }
}

/// A run whose names come from a hostile server.
pub(super) fn hostile() -> RunReport {
    let mut report = mixed();
    report.workload = "</title><script>alert(1)</script>\u{1b}[2J".to_owned();
    report.hosts = vec!["<b>host</b>&amp;:2181".to_owned(); 9];
    report.errors = 7;
    report.operations[0].name = "<script>alert(1)</script>".to_owned();
    let error = "\"><img src=http://elsewhere.invalid/>".to_owned();
    report.operations[0].errors = BTreeMap::from([(error, 4)]);
    report.seconds[1].errors = 7;
    // More than there are colours.
    let name = |number| format!("operation {number} \"><b>");
    report
        .operations
        .extend((0..9_u32).map(|number| operation(&name(number), 500, 400.0 * f64::from(number % 2))));
    report.ended = Ended::ServerLost("\u{1b}[2J<b>gone</b>".to_owned());
    report
}

/// A run that ended before it began.
pub(super) fn empty() -> RunReport {
    RunReport {
        ended: Ended::Interrupted,
        elapsed_s: 0.0,
        requests: 0,
        requests_per_second: 0.0,
        latency: Latency::default(),
        operations: Vec::new(),
        phases: Vec::new(),
        seconds: Vec::new(),
        server: None,
        client_cpu_us_per_request: f64::NAN,
        ..mixed()
    }
}

/// Three hours, with latencies of zero.
pub(super) fn long() -> RunReport {
    let mut report = mixed();
    report.elapsed_s = 10_800.5;
    report.seconds = seconds(10_800);
    report.operations.push(operation("zero", 5, 0.0));
    for second in &mut report.seconds[..5000] {
        second.p50_us = 0.0;
    }
    report
}

/// Figures near the end of what they can be.
pub(super) fn huge() -> RunReport {
    let mut report = mixed();
    report.started_unix_s = u64::MAX;
    report.sessions = 1_000_000;
    report.requests = 1_234_567_890;
    report.requests_per_second = f64::INFINITY;
    report.latency = latency(5e7);
    report
}

fn operation(name: &str, requests: u64, p50_us: f64) -> OperationReport {
    let requests_per_second = requests as f64 / 3.0;
    let errors = BTreeMap::new();
    OperationReport { name: name.to_owned(), requests, requests_per_second, errors, latency: latency(p50_us) }
}

fn latency(p50_us: f64) -> Latency {
    let shape = [0.5, 0.75, 1.0, 1.3, 1.6, 1.8, 2.5, 4.0, 8.0, 16.0, 25.0];
    let points = PERCENTS.into_iter().zip(shape);
    Latency {
        mean_us: 1.1 * p50_us,
        min_us: 0.2 * p50_us,
        max_us: 25.0 * p50_us,
        percentiles: points.map(|(percent, factor)| Percentile { percent, us: factor * p50_us }).collect(),
    }
}

fn seconds(count: u64) -> Vec<Second> {
    let second = |number| Second {
        at_s: (number + 1) as f64,
        requests: 90_000 + 1000 * (number % 20),
        errors: 0,
        p50_us: 500.0,
        p99_us: 1250.0,
        max_us: 12_500.0,
    };
    (0..count).map(second).collect()
}

fn process(source: &str, samples: u64) -> ProcessUse {
    let sample = |number| Sample {
        at_s: number as f64,
        cpu_s: Some(0.5 * number as f64),
        resident_bytes: Some((100 + number) << 20),
        fsyncs: Some(400 * number),
    };
    ProcessUse { source: source.to_owned(), samples: (0..samples).map(sample).collect() }
}
