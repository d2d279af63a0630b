//! A run as plain text for a terminal of 100 columns.

use super::phrase;
use super::units::{count, duration, elide, number, one_line};
use super::{Ended, Latency, PhaseReport, RunReport};

/// The longest name of an operation that leaves room for the figures.
const NAME_WIDTH: usize = 20;
const WORKLOAD_WIDTH: usize = 24;
const LINE_WIDTH: usize = 100;

pub fn table(report: &RunReport) -> String {
    let mut lines = vec![head(report), phrase::extent(report), String::new()];
    if report.phases.len() > 1 {
        lines.extend(report.phases.iter().map(phase));
        lines.push(String::new());
    }
    lines.push(columns());
    for operation in &report.operations {
        lines.push(row(
            &operation.name,
            operation.requests,
            operation.requests_per_second,
            &operation.latency,
        ));
    }
    lines.push(row("all", report.requests, report.requests_per_second, &report.latency));
    lines.push(String::new());
    lines.extend(footer(report));
    lines.join("\n") + "\n"
}

fn head(report: &RunReport) -> String {
    let workload = elide(&one_line(&report.workload), WORKLOAD_WIDTH);
    let load = phrase::load(report);
    let taken = workload.chars().count() + load.chars().count() + " on , ".len();
    format!("{workload} on {}, {load}", elide(&phrase::hosts(report), LINE_WIDTH.saturating_sub(taken)))
}

fn columns() -> String {
    let mut line = format!("{:<NAME_WIDTH$}{:>13}{:>10}", "operation", "requests", "/s");
    for (name, _) in LATENCIES {
        line += &format!("{name:>8}");
    }
    line
}

type Figure = fn(&Latency) -> f64;

const LATENCIES: [(&str, Figure); 7] = [
    ("mean", |latency| latency.mean_us),
    ("p50", |latency| latency.percentile_us(50.0)),
    ("p90", |latency| latency.percentile_us(90.0)),
    ("p95", |latency| latency.percentile_us(95.0)),
    ("p99", |latency| latency.percentile_us(99.0)),
    ("p99.9", |latency| latency.percentile_us(99.9)),
    ("max", |latency| latency.max_us),
];

fn row(name: &str, requests: u64, per_second: f64, latency: &Latency) -> String {
    let name = elide(&one_line(name), NAME_WIDTH);
    let mut line = format!("{name:<NAME_WIDTH$}{:>13}{:>10}", count(requests), number(per_second));
    for (_, figure) in LATENCIES {
        line += &format!("{:>8}", duration(figure(latency)));
    }
    line
}

/// As zk-latencies.py prints it, so that lines of both can be compared.
fn phase(phase: &PhaseReport) -> String {
    let ms = phase.elapsed_s * 1e3;
    let ms_per_operation = if phase.requests == 0 { 0.0 } else { ms / phase.requests as f64 };
    let per_second = if phase.elapsed_s > 0.0 { phase.requests as f64 / phase.elapsed_s } else { 0.0 };
    let words = phrase::phase(&phase.name, &format!("{:>6}", phase.requests));
    format!("{words} in {ms:>5.0} ms ({ms_per_operation:.6} ms/op {per_second:.6}/sec)")
}

fn footer(report: &RunReport) -> Vec<String> {
    let mut lines = Vec::new();
    if report.ended != Ended::Complete {
        lines.push(format!("{:<NAME_WIDTH$}{}", "ended early", phrase::ended(&report.ended)));
    }
    lines.push(format!("{:<NAME_WIDTH$}{}", "errors", count(report.errors)));
    for (operation, error, times) in phrase::errors(report) {
        lines.push(format!("{:<NAME_WIDTH$}{} × {operation}: {error}", "", count(times)));
    }
    if let Some(server) = phrase::server(report) {
        lines.push(format!("{:<NAME_WIDTH$}{server}", "server"));
    }
    let client = duration(report.client_cpu_us_per_request);
    lines.push(format!("{:<NAME_WIDTH$}CPU {client} per request", "this client"));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn check(report: &RunReport, expected: &str) {
        assert_eq!(table(report).trim_end(), expected.trim());
    }

    #[test]
    fn a_run_is_a_table() {
        check(
            &samples::mixed(),
            "
mixed on 127.0.0.1:2181, 10 sessions × 64 requests in flight
3.00 s from 2026-11-21T08:00:00Z, 1.20 MiB/s sent, 4.80 MiB/s received

operation                requests        /s    mean     p50     p90     p95     p99   p99.9     max
create                     12,000     4,000 1.10 ms 1.00 ms 1.60 ms 1.80 ms 2.50 ms 4.00 ms 25.0 ms
get                       288,000    96,000  440 us  400 us  640 us  720 us 1.00 ms 1.60 ms 10.0 ms
all                       300,000   100,000  550 us  500 us  800 us  900 us 1.25 ms 2.00 ms 12.5 ms

errors              0
server              CPU 5.20 us per request, peak memory 192 MiB, 1,200 fsyncs
this client         CPU 0.62 us per request
",
        );
    }

    #[test]
    fn phases_are_lines_like_those_of_zk_latencies() {
        let lines = table(&samples::phased());
        let expected = "created   1000 permanent znodes in    77 ms (0.077000 ms/op 12987.012987/sec)\n\
                        watched      0 znodes in     0 ms (0.000000 ms/op 0.000000/sec)\n";
        assert!(lines.contains(expected), "{lines}");
    }

    #[test]
    fn what_went_wrong_is_told() {
        let report = samples::hostile();
        let text = table(&report);
        for line in [
            "ended early         no server answers any more: \u{fffd}[2J<b>gone</b>",
            "errors              7",
            "                    4 × <script>alert(1)</script>: \"><img src=http://elsewhere.invalid/>",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn figures_stay_within_the_terminal() {
        for (_, report) in samples::all() {
            for line in table(&report).lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }
}
