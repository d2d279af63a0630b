//! A summary as a page with charts.

use super::charts::charts;
use super::summary::failures;
use super::table::ratio_text;
use super::{Figure, Group, Summary};
use crate::report::page::{Column, Page, PageTable};
use crate::report::units::NOTHING;

/// A page that needs nothing but itself.
pub fn page(summary: &Summary) -> String {
    let failures: Vec<String> = failures(summary).collect();
    Page {
        title: summary.suite.clone(),
        subtitle: vec![
            summary.servers.join(" and "),
            format!("medians of {} repetitions, in which the servers took turns", summary.repetitions),
        ],
        warning: (!failures.is_empty()).then(|| failures.join("; ")),
        facts: Vec::new(),
        charts: charts(summary),
        tables: summary.groups.iter().map(|group| table(summary, group)).collect(),
        json: serde_json::to_string(summary).expect("summaries have text for keys"),
        tool: format!("paddock bench {}", env!("CARGO_PKG_VERSION")),
    }
    .html()
}

fn table(summary: &Summary, group: &Group) -> PageTable {
    let base = &summary.servers[summary.baseline];
    let mut columns = vec![Column::text("")];
    columns.extend(summary.servers.iter().map(|server| Column::figure(server)));
    let others = summary.others().map(|server| format!("{} / {base}", summary.servers[server]));
    columns.extend(others.map(|name| Column::figure(&name)));
    PageTable {
        title: group.measurement.to_string(),
        note: String::new(),
        columns,
        rows: group.figures.iter().map(|figure| row(summary, figure)).collect(),
    }
}

fn row(summary: &Summary, figure: &Figure) -> Vec<String> {
    let nothing = || NOTHING.to_owned();
    let mut row = vec![figure.name.clone()];
    row.extend(figure.servers.iter().map(|of| of.map_or_else(nothing, |of| figure.unit.text(of.median))));
    row.extend(summary.others().map(|server| figure.ratios[server].map_or_else(nothing, ratio_text)));
    row
}
