//! Metrics of a member: one list, which `mntr` and the port for metrics print.

mod paddock;
mod quotas;
mod zookeeper;

use std::fmt::Write;

use paddock_statistics::metric::{Metric, MetricKind, MetricValue};
use paddock_statistics::summary::QUANTILES;

use super::clickhouse_metrics;
use crate::shared::Shared;
use paddock::of_paddock;
pub(crate) use zookeeper::of_zookeeper;

/// The two formats that Prometheus reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    Text,
    OpenMetrics,
}

impl MetricsFormat {
    /// The format that an `Accept` header asks for.
    pub(crate) fn accepted(accept: Option<&str>) -> MetricsFormat {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => MetricsFormat::OpenMetrics,
            _ => MetricsFormat::Text,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::Text => "text/plain; version=0.0.4; charset=utf-8",
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Metrics under ZooKeeper's names and Paddock's own.
pub(crate) fn page(shared: &Shared, format: MetricsFormat) -> String {
    let mut page = String::new();
    shared.statistics.times.print(&mut page);
    if let Some(etcd) = &shared.statistics.etcd {
        etcd.print(&mut page);
    }
    page + &print(of_zookeeper(shared).into_iter().chain(of_paddock(shared)), format)
}

/// Metrics under ClickHouse Keeper's names.
pub(crate) fn clickhouse_page(shared: &Shared, format: MetricsFormat) -> String {
    print(clickhouse_metrics::of_clickhouse(shared).into_iter(), format)
}

fn print(metrics: impl Iterator<Item = Metric>, format: MetricsFormat) -> String {
    let mut page = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(page, "{line}").expect("a string takes all");
    for Metric { name, kind, help, values } in metrics {
        let quantiles: &[usize] = if kind == MetricKind::AdvancedSummary { &[0, 1, 3] } else { &[0] };
        let has_total = name.strip_suffix("_total").filter(|_| format == MetricsFormat::OpenMetrics);
        let kind = match (kind, format) {
            (MetricKind::Counter, _) if has_total.is_some() => "counter",
            // OpenMetrics would have `_total` behind every counter's name. A Prometheus asks for that format by default, and
            // dashboards made for ZooKeeper have to find its names.
            (MetricKind::Counter, MetricsFormat::OpenMetrics) => "unknown",
            (MetricKind::Counter, MetricsFormat::Text) => "counter",
            (MetricKind::Gauge, _) => "gauge",
            (MetricKind::BasicSummary | MetricKind::AdvancedSummary, _) => "summary",
        };
        let family = has_total.unwrap_or(name);
        line(format_args!("# HELP {family} {help}"));
        line(format_args!("# TYPE {family} {kind}"));
        for (label, value) in values {
            let label = label.map(|(label, text)| format!("{label}=\"{}\"", escaped(&text)));
            let labelled = label.as_ref().map_or(String::new(), |label| format!("{{{label}}}"));
            match value {
                MetricValue::Number(number) => line(format_args!("{name}{labelled} {number}")),
                MetricValue::Summary(summary) => {
                    let front = label.map_or(String::new(), |label| label + ",");
                    for place in quantiles {
                        let (share, value) = (QUANTILES[*place], summary.quantiles[*place]);
                        line(format_args!("{name}{{{front}quantile=\"{share}\"}} {value}"));
                    }
                    line(format_args!("{name}_sum{labelled} {}", summary.sum));
                    line(format_args!("{name}_count{labelled} {}", summary.count));
                }
            }
        }
    }
    if format == MetricsFormat::OpenMetrics {
        page += "# EOF\n";
    }
    page
}

/// The value of a label, with what would end it escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use paddock_statistics::metric::{advanced_summary, basic_summary, counter};
    use paddock_statistics::summary::Summary;

    use super::*;

    #[test]
    fn a_counter_has_the_same_name_in_both_formats() {
        let page = print([counter("syncs", "Syncs", 7)].into_iter(), MetricsFormat::OpenMetrics);
        assert_eq!(page, "# HELP syncs Syncs\n# TYPE syncs unknown\nsyncs 7\n# EOF\n");
        let page = print([counter("cpu_total", "CPU", 7)].into_iter(), MetricsFormat::OpenMetrics);
        assert_eq!(page, "# HELP cpu CPU\n# TYPE cpu counter\ncpu_total 7\n# EOF\n");
        let page = print([counter("cpu_total", "CPU", 7)].into_iter(), MetricsFormat::Text);
        assert_eq!(page, "# HELP cpu_total CPU\n# TYPE cpu_total counter\ncpu_total 7\n");
    }

    #[test]
    fn metrics_are_printed_as_prometheus_reads_them() {
        let labels = vec![
            (Some(("member", "2".to_owned())), MetricValue::of(0)),
            (Some(("member", "a\"b\\c\nd".to_owned())), MetricValue::of(17)),
        ];
        let kind = MetricKind::Gauge;
        let metrics =
            [counter("syncs", "Syncs", 7), Metric { name: "lag", kind, help: "Lag", values: labels }];
        assert_eq!(
            print(metrics.into_iter(), MetricsFormat::Text),
            "# HELP syncs Syncs\n# TYPE syncs counter\nsyncs 7\n# HELP lag Lag\n# TYPE lag gauge\n\
             lag{member=\"2\"} 0\nlag{member=\"a\\\"b\\\\c\\nd\"} 17\n"
        );
    }

    #[test]
    fn a_summary_is_printed_as_prometheus_reads_it() {
        let summary = Summary { count: 2, sum: 9, min: 1, max: 8, quantiles: [1, 2, 3, 4, 5] };
        let page = |metric| print([metric].into_iter(), MetricsFormat::Text);
        let head = "# HELP a A\n# TYPE a summary\na{quantile=\"0.5\"} 1\n";
        let end = "a_sum 9\na_count 2\n";
        assert_eq!(page(basic_summary("a", "A", summary.clone())), format!("{head}{end}"));
        let high = "a{quantile=\"0.9\"} 2\na{quantile=\"0.99\"} 4\n";
        assert_eq!(page(advanced_summary("a", "A", summary)), format!("{head}{high}{end}"));
    }
}
