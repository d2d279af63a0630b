//! A summary as a Markdown table of the medians, for terminals and documents; `summary.json` has all of it.

use std::fmt::Write;

use super::figure_names::{
    BYTES_RECEIVED, BYTES_SENT, LATENCY_P50, LATENCY_P99, MEMORY_AFTER, MEMORY_PER_ZNODE, PEAK_MEMORY,
    RUNTIME, SERVER_CPU, SERVER_CPU_TOTAL, THROUGHPUT,
};
use super::summary::failures;
use super::{Figure, Group, Measurement, Summary};
use crate::report::units::{NOTHING, number};

/// Condition under which Markdown shows a figure.
#[derive(Clone, Copy)]
enum Shown {
    Always,
    /// Only where servers had the same to do: what a server has stored after the same time depends on how quick it is,
    /// and so does its memory.
    ForTheSameWork,
    /// Only where servers differ by more than what their answers happen to hold: otherwise they are spoken to alike.
    WhereItDiffers,
}

const SHOWN: [(&str, Shown); 11] = [
    (MEMORY_PER_ZNODE, Shown::Always),
    (THROUGHPUT, Shown::Always),
    (LATENCY_P50, Shown::Always),
    (LATENCY_P99, Shown::Always),
    (SERVER_CPU, Shown::Always),
    (BYTES_SENT, Shown::WhereItDiffers),
    (BYTES_RECEIVED, Shown::WhereItDiffers),
    (PEAK_MEMORY, Shown::ForTheSameWork),
    (MEMORY_AFTER, Shown::ForTheSameWork),
    (RUNTIME, Shown::ForTheSameWork),
    (SERVER_CPU_TOTAL, Shown::ForTheSameWork),
];
/// Ratios that say nothing.
const ALIKE: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// The medians of the main figures, and what each server's are of the baseline's.
pub fn markdown(summary: &Summary) -> String {
    let compared: Vec<usize> = summary.others().collect();
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
    for failure in failures(summary) {
        let _ = write!(text, "\nFailed: {failure}\n");
    }
    text
}

fn rows(text: &mut String, group: &Group, compared: &[usize]) {
    let mut what = group.measurement.to_string();
    for figure in shown(group) {
        let _ = write!(text, "| {} | {} |", std::mem::take(&mut what), figure.name);
        for server in &figure.servers {
            let _ =
                write!(text, " {} |", server.map_or(NOTHING.to_owned(), |of| figure.unit.text(of.median)));
        }
        for &number in compared {
            let ratio = figure.ratios[number].map_or(NOTHING.to_owned(), ratio_text);
            let _ = write!(text, " {ratio} |");
        }
        text.push('\n');
    }
}

/// The main figures of loads; what is measured otherwise has only such.
fn shown(group: &Group) -> Vec<&Figure> {
    if !matches!(group.measurement, Measurement::Run(_) | Measurement::Memory(_)) {
        return group.figures.iter().collect();
    }
    let is_same_work = group.figure(RUNTIME).is_some();
    let differs = |figure: &Figure| figure.ratios.iter().flatten().any(|ratio| !ALIKE.contains(ratio));
    let is_shown = |shown: Shown, figure: &Figure| match shown {
        Shown::Always => true,
        Shown::ForTheSameWork => is_same_work,
        Shown::WhereItDiffers => differs(figure),
    };
    let figures = SHOWN.into_iter().filter_map(|(name, shown)| Some((shown, group.figure(name)?)));
    figures.filter(|(shown, figure)| is_shown(*shown, figure)).map(|(_, figure)| figure).collect()
}

/// `1.43×`
pub(super) fn ratio_text(ratio: f64) -> String {
    format!("{}×", number(ratio))
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, End, Measurement, Statistics};
    use super::*;
    use crate::report::Pace;
    use crate::report::units::Unit;

    #[test]
    fn bytes_are_shown_where_servers_are_spoken_to_differently() {
        let cell = Cell {
            workload: "x".to_owned(),
            sessions: 1,
            load: Pace::Closed { window: 1 },
            until: End::Seconds(1.0),
            warm_up_s: 0.0,
            fresh: true,
            tree: None,
            network: None,
        };
        let figure = |name: &str, ratio| Figure {
            name: name.to_owned(),
            unit: Unit::Bytes,
            servers: vec![Statistics::of(&[100.0]), Statistics::of(&[100.0 * ratio])],
            ratios: vec![Some(1.0), Some(ratio)],
        };
        let figures = vec![figure(BYTES_SENT, 0.5), figure(BYTES_RECEIVED, 1.05)];
        let mut text = String::new();
        rows(&mut text, &Group { measurement: Measurement::Run(cell), figures }, &[1]);
        assert!(text.contains(BYTES_SENT) && !text.contains(BYTES_RECEIVED), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
