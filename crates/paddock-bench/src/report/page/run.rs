//! The page of one run: its headline figures and charts.

use super::super::chart::{Chart, ChartLine, Color, LineChart, XAxis};
use super::super::units::{Unit, bytes, count, duration, number};
use super::super::{Ended, Latency, OperationReport, ProcessUse, RunReport, Sample, ServerUse, phrase};
use super::thin::{self, Interval};
use super::{Fact, Page, tables};

/// A run as a page of its own.
pub fn page(report: &RunReport) -> String {
    let json = serde_json::to_string(report).expect("a report has no keys but texts");
    Page {
        title: format!("{} on {}", report.workload, phrase::hosts(report)),
        subtitle: vec![phrase::load(report), phrase::extent(report)],
        warning: (report.ended != Ended::Complete)
            .then(|| format!("Ended early: {}.", phrase::ended(&report.ended))),
        facts: facts(report),
        charts: charts(report),
        tables: tables::of(report),
        json,
        tool: report.tool.clone(),
    }
    .html()
}

fn facts(report: &RunReport) -> Vec<Fact> {
    let latency = &report.latency;
    let mut facts = vec![
        fact("throughput", Unit::PerSecond.text(report.requests_per_second), ""),
        fact("requests", count(report.requests), &format!("in {}", duration(report.elapsed_s * 1e6))),
        fact("errors", count(report.errors), &share(report.errors, report.requests)),
        fact("latency, median", duration(latency.percentile_us(50.0)), ""),
        fact("latency, p99", duration(latency.percentile_us(99.0)), ""),
        fact("latency, max", duration(latency.max_us), ""),
    ];
    if let Some(server) = &report.server {
        facts.extend(server_facts(server, report));
    }
    facts.push(fact("client CPU", duration(report.client_cpu_us_per_request), "per request, this tool"));
    facts
}

fn server_facts(server: &ServerUse, report: &RunReport) -> Vec<Fact> {
    let per_fsync =
        |fsyncs: u64| format!("{} requests for each", number(report.requests as f64 / fsyncs as f64));
    let facts = [
        server.cpu_us_per_request.map(|us| fact("server CPU", duration(us), "per request")),
        server.resident_bytes_peak.map(|peak| fact("server memory", bytes(peak as f64), "resident, peak")),
        server.fsyncs.map(|fsyncs| fact("fsyncs", count(fsyncs), &per_fsync(fsyncs))),
    ];
    facts.into_iter().flatten().collect()
}

fn fact(name: &str, value: String, note: &str) -> Fact {
    Fact { name: name.to_owned(), value, note: note.to_owned() }
}

fn share(errors: u64, requests: u64) -> String {
    if errors == 0 {
        return String::new();
    }
    format!("1 of {} requests", number((errors + requests) as f64 / errors as f64))
}

fn charts(report: &RunReport) -> Vec<Chart> {
    let intervals = thin::intervals(&report.seconds);
    let time = XAxis::Time { length_s: report.elapsed_s };
    let mut charts =
        vec![throughput(&intervals, time), latency_over_time(&intervals, time), percentiles(report)];
    if let Some(server) = &report.server {
        charts.extend(server_charts(&server.processes, time));
    }
    charts.into_iter().map(Chart::Lines).collect()
}

fn throughput(intervals: &[Interval], time: XAxis) -> LineChart {
    let requests = intervals
        .iter()
        .map(|interval| (interval.middle_s(), interval.per_second(interval.requests)))
        .collect();
    let mut lines = vec![line("requests", Color::Series(0), true, requests)];
    if intervals.iter().any(|interval| interval.errors > 0) {
        lines.push(line("errors", Color::Error, false, errors(intervals)));
    }
    let failed = intervals.iter().filter(|interval| interval.errors > 0);
    let mark = |interval: &Interval| {
        let at_s = interval.middle_s();
        (at_s, format!("{}: {} errors", Unit::Seconds.text(at_s), count(interval.errors)))
    };
    LineChart {
        title: "Throughput".to_owned(),
        note: thinned(intervals, "mean of its seconds"),
        x: time,
        label: "requests per second".to_owned(),
        unit: Unit::PerSecond,
        logarithmic: false,
        lines,
        marks: failed.map(mark).collect(),
    }
}

/// Errors where there were some, and the points beside them; a line along the axis would look like errors all the time.
fn errors(intervals: &[Interval]) -> Vec<(f64, f64)> {
    let near = |number: usize| {
        let beside = number.saturating_sub(1)..(number + 2).min(intervals.len());
        intervals[beside].iter().any(|interval| interval.errors > 0)
    };
    let value = |(number, interval): (usize, &Interval)| {
        if near(number) { interval.per_second(interval.errors) } else { f64::NAN }
    };
    intervals.iter().enumerate().map(|each| (each.1.middle_s(), value(each))).collect()
}

fn latency_over_time(intervals: &[Interval], time: XAxis) -> LineChart {
    let line = |name, color, figure: fn(&Interval) -> f64| {
        // Where nothing was answered the line has a gap.
        let value = |interval: &Interval| if interval.requests > 0 { figure(interval) } else { f64::NAN };
        line(
            name,
            Color::Series(color),
            false,
            intervals.iter().map(|interval| (interval.middle_s(), value(interval))).collect(),
        )
    };
    LineChart {
        title: "Latency over time".to_owned(),
        note: thinned(intervals, "mean p50, highest p99 and maximum of its seconds"),
        x: time,
        label: "latency".to_owned(),
        unit: Unit::Microseconds,
        logarithmic: true,
        lines: vec![
            line("p50", 0, |interval| interval.p50_us),
            line("p99", 1, |interval| interval.p99_us),
            line("max", 2, |interval| interval.max_us),
        ],
        marks: Vec::new(),
    }
}

/// Says what a point is when it stands for more than a second.
fn thinned(intervals: &[Interval], how: &str) -> String {
    match intervals.first() {
        Some(interval) if interval.to_s > 1.9 => format!("each point is {} s: {how}", interval.to_s.round()),
        _ => String::new(),
    }
}

fn percentiles(report: &RunReport) -> LineChart {
    let answered = report.operations.iter().filter(|operation| operation.requests > 0);
    let curve = |(number, operation): (usize, &OperationReport)| {
        line(&operation.name, Color::Series(number), false, percentile_points(&operation.latency))
    };
    LineChart {
        title: "Latency by percentile".to_owned(),
        note: String::new(),
        x: XAxis::Percentiles,
        label: "latency".to_owned(),
        unit: Unit::Microseconds,
        logarithmic: true,
        lines: answered.enumerate().map(curve).collect(),
        marks: Vec::new(),
    }
}

fn percentile_points(latency: &Latency) -> Vec<(f64, f64)> {
    latency.percentiles.iter().map(|percentile| (percentile.percent, percentile.us)).collect()
}

fn server_charts(processes: &[ProcessUse], time: XAxis) -> Vec<LineChart> {
    let percent = |sample: &Sample| sample.cpu_s.map(|seconds| 100.0 * seconds);
    let resident = |sample: &Sample| sample.resident_bytes.map(|bytes| bytes as f64);
    let fsyncs = |sample: &Sample| sample.fsyncs.map(|fsyncs| fsyncs as f64);
    let cpu = ("Server CPU", "share of one core", Unit::Percent);
    let memory = ("Server memory", "resident memory", Unit::Bytes);
    let syncs = ("Fsyncs", "fsyncs per second", Unit::PerSecond);
    let charts = [
        server_chart(cpu, time, processes, |samples| thin::growth(samples, percent)),
        server_chart(memory, time, processes, |samples| thin::peaks(samples, resident)),
        server_chart(syncs, time, processes, |samples| thin::growth(samples, fsyncs)),
    ];
    // What was not sampled gets no chart.
    charts.into_iter().filter(|chart| chart.lines.iter().any(|line| !line.points.is_empty())).collect()
}

/// A line for each process.
fn server_chart<F>(head: (&str, &str, Unit), time: XAxis, processes: &[ProcessUse], points: F) -> LineChart
where
    F: Fn(&[Sample]) -> Vec<(f64, f64)>,
{
    let lines = processes.iter().enumerate().map(|(number, process)| {
        line(&process.source, Color::Series(number), processes.len() == 1, points(&process.samples))
    });
    let (title, label, unit) = head;
    LineChart {
        title: title.to_owned(),
        note: String::new(),
        x: time,
        label: label.to_owned(),
        unit,
        logarithmic: false,
        lines: lines.collect(),
        marks: Vec::new(),
    }
}

fn line(name: &str, color: Color, filled: bool, points: Vec<(f64, f64)>) -> ChartLine {
    ChartLine { name: name.to_owned(), color, filled, points }
}
