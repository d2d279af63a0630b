//! The table of ZooKeeper's metrics in `docs/monitoring/zookeeper-metrics.md`, for the tests that hold it against servers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A metric of ZooKeeper's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricRow {
    /// Name without `zk_`, without the part of a summary that a line is about, and without a key.
    pub name: String,
    /// `counter`, `gauge`, `summary` or `summary with quantiles`.
    pub kind: String,
    /// True if Paddock has it.
    pub is_here: bool,
}

/// Every row of both tables.
pub fn rows() -> Vec<MetricRow> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/monitoring/zookeeper-metrics.md");
    let text = fs::read_to_string(&path).expect("read the table of metrics");
    let (here, elsewhere) = text.split_once("## Those that are not").expect("there are two tables");
    let of_table = |table: &str, is_here: bool| -> Vec<MetricRow> {
        let lines = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let row = |(name, rest): (&str, &str)| {
            let kind = rest.split(" |").next().expect("a row has a type").to_owned();
            MetricRow { name: name.to_owned(), kind, is_here }
        };
        lines.map(row).collect()
    };
    [of_table(here, true), of_table(elsewhere, false)].concat()
}

/// The row of a line of `mntr`, by its name without `zk_`. A summary's lines have the part in front of the name, and a key behind the
/// part.
pub fn row<'r>(rows: &'r [MetricRow], line: &str) -> Option<&'r MetricRow> {
    let part_and_name = line.split_once('_').filter(|(part, _)| PARTS.contains(part));
    let is_of = |row: &&MetricRow| {
        let is_summary = row.kind.starts_with("summary");
        let name = match part_and_name {
            Some((_, name)) if is_summary => name,
            _ => line,
        };
        name == row.name
            || name.strip_suffix(&row.name).is_some_and(|key| key.ends_with('_') && is_keyed(row))
    };
    rows.iter().find(is_of)
}

/// Parts of a summary in `mntr`.
const PARTS: [&str; 9] = ["avg", "min", "max", "cnt", "sum", "p50", "p95", "p99", "p999"];

/// True for a metric of several values, told apart by a key.
fn is_keyed(row: &MetricRow) -> bool {
    row.name.ends_with("_per_namespace") || row.name.starts_with("learner_handler_")
}

/// Names of an answer to `mntr`, without `zk_`.
pub fn names(mntr: &str) -> BTreeSet<String> {
    let named = mntr.lines().filter_map(|line| line.strip_prefix("zk_")?.split_once('\t'));
    named.map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_belongs_to_its_row_whatever_stands_in_front_of_the_name() {
        let rows = rows();
        for (line, name) in [
            ("avg_latency", "avg_latency"),
            ("max_file_descriptor_count", "max_file_descriptor_count"),
            ("p999_readlatency", "readlatency"),
            ("sum_zookeeper_write_per_namespace", "write_per_namespace"),
            ("cnt_1_learner_handler_qp_size", "learner_handler_qp_size"),
            ("commit_count", "commit_count"),
        ] {
            assert_eq!(row(&rows, line).map(|row| row.name.as_str()), Some(name), "{line}");
        }
        assert_eq!(row(&rows, "no_such_count"), None);
    }
}
