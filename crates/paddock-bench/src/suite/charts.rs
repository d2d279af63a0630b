//! A summary as charts, of the kind that comparisons of coordination services are told with: throughput, latency,
//! memory, run time and CPU, all as bars side by side.

use super::summary::{
    LATENCY_P99, MEMORY_PER_ZNODE, PEAK_MEMORY, RUNTIME, SERVER_CPU, SERVER_CPU_TOTAL, THROUGHPUT,
};
use super::{End, Group, Measurement, Summary};

/// Bars in groups: one for each server in each group. A bar that is None was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub title: String,
    pub unit: String,
    pub groups: Vec<String>,
    /// Name and bars of each server.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

/// Title, figure, and whether it is shown for runs with a number of requests only.
const CHARTS: [(&str, &str, bool); 7] = [
    ("Throughput", THROUGHPUT, false),
    ("Latency, 99th percentile", LATENCY_P99, false),
    ("Peak memory by number of requests", PEAK_MEMORY, true),
    ("Run time by number of requests", RUNTIME, true),
    ("CPU time by number of requests", SERVER_CPU_TOTAL, true),
    ("CPU time of each request", SERVER_CPU, false),
    ("Memory of each znode", MEMORY_PER_ZNODE, false),
];

/// The charts for which there are figures; bars are medians.
pub fn charts(summary: &Summary) -> Vec<Chart> {
    CHARTS.iter().filter_map(|(title, figure, counted)| chart(summary, title, figure, *counted)).collect()
}

fn chart(summary: &Summary, title: &str, figure: &str, counted: bool) -> Option<Chart> {
    let shown = |group: &&Group| group.figure(figure).is_some() && (!counted || requests(group).is_some());
    let groups: Vec<&Group> = summary.groups.iter().filter(shown).collect();
    let unit = groups.first()?.figure(figure)?.unit.clone();
    let bars = |server: usize| {
        let bar = |group: &&Group| Some(group.figure(figure)?.servers[server]?.median);
        groups.iter().map(bar).collect()
    };
    Some(Chart {
        title: title.to_owned(),
        unit,
        groups: groups.iter().map(|group| label(group)).collect(),
        series: summary.servers.iter().enumerate().map(|(n, name)| (name.clone(), bars(n))).collect(),
    })
}

fn requests(group: &Group) -> Option<u64> {
    match &group.measurement {
        Measurement::Run(cell) => match cell.until {
            End::Requests(requests) => Some(requests),
            End::Seconds(_) => None,
        },
        Measurement::Memory(_) => None,
    }
}

fn label(group: &Group) -> String {
    match &group.measurement {
        Measurement::Run(cell) => {
            let requests = requests(group).map(|requests| format!(", {}", short(requests)));
            format!("{} {}{}", cell.workload, cell.load_label(), requests.unwrap_or_default())
        }
        Measurement::Memory(znodes) => {
            format!("{} of {} bytes", short(znodes.znodes as u64), znodes.value_bytes)
        }
    }
}

/// 1.28M for 1280000.
fn short(number: u64) -> String {
    match number {
        1_000_000.. => format!("{}M", number as f64 / 1e6),
        1_000.. => format!("{}k", number as f64 / 1e3),
        _ => number.to_string(),
    }
}
