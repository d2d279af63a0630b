//! One metric: its name, its help text and its values.

use super::summary::Summary;

/// Kinds of metrics, as Prometheus and ZooKeeper tell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A counter only grows, until the member is started again.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// A summary with its median, which `mntr` leaves out.
    BasicSummary,
    /// A summary with high quantiles, too.
    AdvancedSummary,
}

/// A metric and its values now.
#[derive(Debug)]
pub struct Metric {
    /// ZooKeeper's name, which `mntr` has with `zk_` in front; or one of Paddock's own, with `paddock_`.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// Sentence about it, for people.
    pub help: &'static str,
    /// Values by their label; one without a label in most cases.
    pub values: Vec<(Option<Label>, MetricValue)>,
}

/// A label's name and value.
pub type Label = (&'static str, String);

/// A value of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricValue {
    /// A number, as it is printed.
    Number(String),
    /// A summary.
    Summary(Box<Summary>),
}

impl MetricValue {
    /// A number.
    pub fn of(number: impl ToString) -> MetricValue {
        MetricValue::Number(number.to_string())
    }
}

impl Metric {
    /// Its lines as `mntr` has them: what stands behind `zk_`, and the value.
    pub fn lines(&self) -> Vec<(String, String)> {
        let lines = self.values.iter().flat_map(|(label, value)| {
            let name = match label {
                None => self.name.to_owned(),
                Some((_, label)) => format!("{label}_{}", self.name),
            };
            match value {
                MetricValue::Number(number) => vec![(name, number.clone())],
                MetricValue::Summary(summary) => summary_lines(&name, summary, self.kind),
            }
        });
        lines.collect()
    }
}

/// The lines of a summary: its parts stand in front of the name, as in ZooKeeper.
fn summary_lines(name: &str, summary: &Summary, kind: MetricKind) -> Vec<(String, String)> {
    let line = |part: &str, value: String| (format!("{part}_{name}"), value);
    let mut lines = vec![
        line("avg", rounded(summary.average())),
        line("min", summary.min.to_string()),
        line("max", summary.max.to_string()),
        line("cnt", summary.count.to_string()),
        line("sum", summary.sum.to_string()),
    ];
    if kind == MetricKind::AdvancedSummary {
        let [median, _, p95, p99, p999] = summary.quantiles;
        let parts = [("p50", median), ("p95", p95), ("p99", p99), ("p999", p999)];
        lines.extend(parts.map(|(part, value)| line(part, value.to_string())));
    }
    lines
}

fn single(name: &'static str, kind: MetricKind, help: &'static str, value: MetricValue) -> Metric {
    Metric { name, kind, help, values: vec![(None, value)] }
}

/// A gauge without labels.
pub fn gauge(name: &'static str, help: &'static str, value: impl ToString) -> Metric {
    single(name, MetricKind::Gauge, help, MetricValue::of(value))
}

/// A counter without labels.
pub fn counter(name: &'static str, help: &'static str, value: impl ToString) -> Metric {
    single(name, MetricKind::Counter, help, MetricValue::of(value))
}

/// A summary with its median.
pub fn basic_summary(name: &'static str, help: &'static str, summary: Summary) -> Metric {
    single(name, MetricKind::BasicSummary, help, MetricValue::Summary(summary.into()))
}

/// A summary with high quantiles.
pub fn advanced_summary(name: &'static str, help: &'static str, summary: Summary) -> Metric {
    single(name, MetricKind::AdvancedSummary, help, MetricValue::Summary(summary.into()))
}

/// As Java prints a rounded double: at least one digit behind the point, at most four.
pub fn rounded(ms: f64) -> String {
    let text = format!("{ms:.4}");
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_is_printed_as_java_prints_it() {
        for (ms, text) in [(0.0, "0.0"), (1.5, "1.5"), (0.12344, "0.1234"), (20.0, "20.0")] {
            assert_eq!(rounded(ms), text);
        }
    }

    #[test]
    fn a_summary_has_the_lines_of_zookeeper() {
        let summary = Summary { count: 2, sum: 9, min: 1, max: 8, quantiles: [1, 8, 8, 8, 8] };
        let text = |metric: Metric| {
            metric.lines().into_iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>()
        };
        let basic = ["avg_a 4.5", "min_a 1", "max_a 8", "cnt_a 2", "sum_a 9"];
        assert_eq!(text(basic_summary("a", "", summary.clone())), basic);
        let more = ["p50_a 1", "p95_a 8", "p99_a 8", "p999_a 8"];
        assert_eq!(text(advanced_summary("a", "", summary)), [&basic[..], &more].concat());
    }
}
