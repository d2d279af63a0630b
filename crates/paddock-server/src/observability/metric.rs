//! One metric: its name, its help text and its value.

/// A number that changes, as Prometheus tells its kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// It only grows, until the member is started again.
    Counter,
    Gauge,
}

/// A metric and its value now.
#[derive(Debug)]
pub(crate) struct Metric {
    /// ZooKeeper's name, which `mntr` has with `zk_` in front; or one of Paddock's own, with `paddock_`.
    pub(crate) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) help: &'static str,
    /// Values by their label; one without a label in most cases.
    pub(super) values: Vec<(Option<Label>, String)>,
}

/// A label's name and value.
pub(super) type Label = (&'static str, String);

impl Metric {
    pub(super) fn new(
        name: &'static str,
        kind: MetricKind,
        help: &'static str,
        value: impl ToString,
    ) -> Metric {
        Metric { name, kind, help, values: vec![(None, value.to_string())] }
    }

    /// Its lines as `mntr` has them: what stands behind `zk_`, and the value.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (String, &str)> {
        self.values.iter().map(|(label, value)| match label {
            None => (self.name.to_owned(), value.as_str()),
            Some((_, label)) => (format!("{label}_{}", self.name), value.as_str()),
        })
    }
}

pub(super) fn gauge(name: &'static str, help: &'static str, value: impl ToString) -> Metric {
    Metric::new(name, MetricKind::Gauge, help, value)
}

pub(super) fn counter(name: &'static str, help: &'static str, value: impl ToString) -> Metric {
    Metric::new(name, MetricKind::Counter, help, value)
}

/// As Java prints a rounded double: at least one digit behind the point, at most four.
pub(crate) fn rounded(ms: f64) -> String {
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
}
