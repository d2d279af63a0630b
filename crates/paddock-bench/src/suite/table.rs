//! A summary as a table: all of it for terminals, the medians as Markdown for documents.

use std::fmt::Write;

use super::summary::{
    LATENCY_P50, LATENCY_P99, MEMORY_PER_ZNODE, PEAK_MEMORY, RUNTIME, SERVER_CPU, SERVER_CPU_TOTAL,
    THROUGHPUT,
};
use super::{Figure, Group, Statistics, Summary};

/// Every figure with median, mean and percentiles over the repetitions, a line for each server.
pub fn text(summary: &Summary) -> String {
    let mut text = String::new();
    let names = || summary.servers.iter().map(String::len);
    let width = names().max().unwrap_or(0).max(6);
    for group in &summary.groups {
        let ratio = format!("to {}", summary.servers[summary.baseline]);
        let columns = ["server", "median", "mean", "p95", "p99"];
        let [server, median, mean, p95, p99] = columns;
        let _ = writeln!(text, "{}", group.measurement);
        let _ = writeln!(
            text,
            "  {:<28}{server:<width$}{median:>12}{mean:>12}{p95:>12}{p99:>12}  {ratio}",
            "over the repetitions"
        );
        for figure in &group.figures {
            lines(&mut text, summary, figure, width);
        }
        text.push('\n');
    }
    text + &failures(summary)
}

fn lines(text: &mut String, summary: &Summary, figure: &Figure, width: usize) {
    for (number, server) in summary.servers.iter().enumerate() {
        let name = if number == 0 { format!("{}, {}", figure.name, figure.unit) } else { String::new() };
        let _ = write!(text, "  {name:<28}{server:<width$}");
        match figure.servers[number] {
            Some(Statistics { median, mean, p95, p99, .. }) => {
                for value in [median, mean, p95, p99] {
                    let _ = write!(text, "{:>12}", number_text(value));
                }
            }
            None => {
                let _ = write!(text, "{:>12}", "-");
            }
        }
        if let Some(ratio) = figure.ratios[number].filter(|_| number != summary.baseline) {
            let _ = write!(text, "  {ratio:.2}");
        }
        text.push('\n');
    }
}

/// What the steps without a result say; empty if there are none.
fn failures(summary: &Summary) -> String {
    let mut text = String::new();
    for failure in &summary.failures {
        let super::Failure { server, repetition, what, reason } = failure;
        let _ = writeln!(text, "failed: {server}, repetition {repetition}, {what}: {reason}");
    }
    text
}

/// The figures that Markdown shows, and whether only where servers had the same to do: what a server has stored after
/// so many seconds depends on how quick it is, and so does its memory.
const SHOWN: [(&str, bool); 8] = [
    (MEMORY_PER_ZNODE, false),
    (THROUGHPUT, false),
    (LATENCY_P50, false),
    (LATENCY_P99, false),
    (SERVER_CPU, false),
    (PEAK_MEMORY, true),
    (RUNTIME, true),
    (SERVER_CPU_TOTAL, true),
];

/// The medians of the main figures, and what each server's are of the baseline's.
pub fn markdown(summary: &Summary) -> String {
    let compared: Vec<usize> = (0..summary.servers.len()).filter(|n| *n != summary.baseline).collect();
    let mut text = match summary.repetitions {
        1 => "One run of each; servers took turns.\n\n| | |".to_owned(),
        runs => format!("Medians of {runs} runs; servers took turns.\n\n| | |"),
    };
    let mut rule = String::from("|---|---|");
    for server in &summary.servers {
        let _ = write!(text, " {server} |");
        rule.push_str("---:|");
    }
    for &number in &compared {
        let _ = write!(text, " {} / {} |", summary.servers[number], summary.servers[summary.baseline]);
        rule.push_str("---:|");
    }
    let _ = writeln!(text, "\n{rule}");
    for group in &summary.groups {
        rows(&mut text, group, &compared);
    }
    let failures = failures(summary);
    if failures.is_empty() { text } else { text + "\n```\n" + &failures + "```\n" }
}

fn rows(text: &mut String, group: &Group, compared: &[usize]) {
    let mut what = group.measurement.to_string();
    let is_same_work = group.figure(RUNTIME).is_some();
    for (name, _) in SHOWN.iter().filter(|(_, same_work)| is_same_work || !same_work) {
        let Some(figure) = group.figure(name) else { continue };
        let _ = write!(text, "| {} | {}, {} |", std::mem::take(&mut what), figure.name, figure.unit);
        for server in &figure.servers {
            let _ = write!(text, " {} |", server.map_or("-".to_owned(), |of| number_text(of.median)));
        }
        for &number in compared {
            let ratio = figure.ratios[number].map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            let _ = write!(text, " {ratio} |");
        }
        text.push('\n');
    }
}

/// Three digits or all before the point.
fn number_text(number: f64) -> String {
    match number.abs() {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}
