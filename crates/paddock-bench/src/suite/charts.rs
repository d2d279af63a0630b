//! A summary as charts, of the kind that comparisons of coordination services are told with: throughput, latency,
//! memory, run time and CPU, all as bars side by side.

use super::figure_names::{
    LATENCY_P99, MEMORY_PER_ZNODE, PEAK_MEMORY, RUNTIME, SERVER_CPU, SERVER_CPU_TOTAL, THROUGHPUT,
};
use super::{End, Figure, Group, Measurement, Summary};
use crate::report::chart::{BarChart, Chart};

struct Shown {
    title: &'static str,
    figure: &'static str,
    /// Label of the vertical axis.
    label: &'static str,
    /// For runs with a number of requests only: elsewhere a quicker server has more to hold.
    same_work: bool,
}

const SHOWN: [Shown; 7] = [
    Shown { title: "Throughput", figure: THROUGHPUT, label: "requests per second", same_work: false },
    Shown { title: "Latency, 99th percentile", figure: LATENCY_P99, label: "latency", same_work: false },
    Shown {
        title: "Peak memory by requests",
        figure: PEAK_MEMORY,
        label: "resident memory",
        same_work: true,
    },
    Shown { title: "Run time by requests", figure: RUNTIME, label: "time", same_work: true },
    Shown { title: "CPU time by requests", figure: SERVER_CPU_TOTAL, label: "CPU time", same_work: true },
    Shown { title: "CPU time of each request", figure: SERVER_CPU, label: "CPU time", same_work: false },
    Shown {
        title: "Memory of each znode",
        figure: MEMORY_PER_ZNODE,
        label: "resident memory",
        same_work: false,
    },
];

/// The charts for which there are figures; bars are medians.
pub(super) fn charts(summary: &Summary) -> Vec<Chart> {
    SHOWN.iter().filter_map(|shown| chart(summary, shown)).map(Chart::Bars).collect()
}

fn chart(summary: &Summary, shown: &Shown) -> Option<BarChart> {
    let figure = |group: &Group| group.figure(shown.figure).cloned();
    let is_shown = |group: &&Group| !shown.same_work || requests(group).is_some();
    let with_figure = |group: &'_ Group| Some((label(group), figure(group)?));
    let (groups, figures): (Vec<String>, Vec<Figure>) =
        summary.groups.iter().filter(is_shown).filter_map(with_figure).unzip();
    let bars = |server: usize| figures.iter().map(|of| Some(of.servers[server]?.median)).collect();
    Some(BarChart {
        title: shown.title.to_owned(),
        note: String::new(),
        label: shown.label.to_owned(),
        unit: figures.first()?.unit,
        groups_label: String::new(),
        groups,
        series: summary.servers.iter().enumerate().map(|(n, name)| (name.clone(), bars(n))).collect(),
    })
}

fn requests(group: &Group) -> Option<u64> {
    match &group.measurement {
        Measurement::Run(cell) => match cell.until {
            End::Requests(requests) => Some(requests),
            End::Seconds(_) => None,
        },
        _ => None,
    }
}

fn label(group: &Group) -> String {
    match &group.measurement {
        Measurement::Run(cell) => {
            let requests = requests(group).map(|requests| format!(", {}", short(requests)));
            let network = cell.network.as_ref().map(|network| format!(", {}", network.name));
            let [requests, network] = [requests, network].map(Option::unwrap_or_default);
            format!("{} {}{requests}{network}", cell.workload, cell.load_label())
        }
        Measurement::Memory(znodes) => {
            format!("{} of {} bytes", short(znodes.znodes as u64), znodes.value_bytes)
        }
        other => other.to_string(),
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
