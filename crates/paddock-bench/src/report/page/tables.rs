//! The tables on the page of one run.

use super::super::units::{NOTHING, bytes, count, duration, number};
use super::super::{Latency, RunReport, Sample, phrase};
use super::{Column, PageTable};

/// Percentiles that fit into a line; the chart and the JSON have them all.
const PERCENTS_SHOWN: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];

pub(super) fn of(report: &RunReport) -> Vec<PageTable> {
    let parts = [phases(report), errors(report), processes(report)];
    // The operations stand there even if nothing was done.
    [operations(report)].into_iter().chain(parts.into_iter().filter(|table| !table.rows.is_empty())).collect()
}

fn operations(report: &RunReport) -> PageTable {
    let mut columns =
        vec![Column::text("operation"), Column::figure("requests"), Column::figure("requests/s")];
    columns.extend([Column::figure("min"), Column::figure("mean")]);
    let percents = || PERCENTS_SHOWN.iter();
    columns.extend(percents().map(|percent| Column::figure(&format!("p{percent}"))));
    columns.push(Column::figure("max"));
    let row = |name: &str, requests, per_second, latency: &Latency| {
        let mut row = vec![name.to_owned(), count(requests), number(per_second)];
        row.extend([duration(latency.min_us), duration(latency.mean_us)]);
        row.extend(percents().map(|percent| duration(latency.percentile_us(*percent))));
        row.push(duration(latency.max_us));
        row
    };
    let each = report.operations.iter();
    let each = each.map(|it| row(&it.name, it.requests, it.requests_per_second, &it.latency));
    let all = row("all", report.requests, report.requests_per_second, &report.latency);
    PageTable {
        title: "Operations".to_owned(),
        note: String::new(),
        columns,
        rows: each.chain([all]).collect(),
    }
}

fn phases(report: &RunReport) -> PageTable {
    let names = ["requests", "time", "time for each", "requests/s"];
    let mut rows = Vec::new();
    if report.phases.len() > 1 {
        for phase in &report.phases {
            let requests = phase.requests as f64;
            rows.push(vec![
                phrase::phase(&phase.name, &count(phase.requests)),
                count(phase.requests),
                duration(phase.elapsed_s * 1e6),
                duration(phase.elapsed_s * 1e6 / requests),
                number(requests / phase.elapsed_s),
            ]);
        }
    }
    let columns = [Column::text("phase")].into_iter().chain(names.map(Column::figure)).collect();
    PageTable { title: "Phases".to_owned(), columns, rows, ..PageTable::default() }
}

fn errors(report: &RunReport) -> PageTable {
    let rows = phrase::errors(report).into_iter();
    let rows = rows.map(|(operation, error, times)| vec![operation, error, count(times)]).collect();
    let columns = vec![Column::text("operation"), Column::text("error"), Column::figure("times")];
    PageTable { title: "Errors".to_owned(), columns, rows, ..PageTable::default() }
}

fn processes(report: &RunReport) -> PageTable {
    let columns = ["CPU time", "resident memory, peak", "fsyncs"];
    let columns = [Column::text("process")].into_iter().chain(columns.map(Column::figure)).collect();
    let processes = report.server.iter().flat_map(|server| &server.processes);
    let rows = processes.map(|process| {
        let during = |amount: fn(&Sample) -> Option<f64>| {
            let mut known = process.samples.iter().filter_map(amount);
            let first = known.next()?;
            Some(known.next_back()? - first)
        };
        let peak = process.samples.iter().filter_map(|sample| sample.resident_bytes).max();
        let shown = |value: Option<String>| value.unwrap_or_else(|| NOTHING.to_owned());
        vec![
            process.source.clone(),
            shown(during(|sample| sample.cpu_s).map(|seconds| duration(seconds * 1e6))),
            shown(peak.map(|peak| bytes(peak as f64))),
            shown(during(|sample| sample.fsyncs.map(|fsyncs| fsyncs as f64)).map(number)),
        ]
    });
    PageTable { title: "Server processes".to_owned(), columns, rows: rows.collect(), ..PageTable::default() }
}
