//! The table: what of a request's CPU time each stage takes.

use super::Workload;
use super::record::Costs;
use super::samples::Sample;
use super::stages::ProfiledStage;

/// A workload's part of the table.
pub(super) struct Column {
    title: String,
    costs: Costs,
    /// One for each sample.
    stages: Vec<ProfiledStage>,
}

impl Column {
    pub(super) fn new(workload: &Workload, samples: &[Sample], costs: Costs) -> Column {
        let stages = samples.iter().map(ProfiledStage::of).collect();
        Column { title: workload.describe(), costs, stages }
    }

    fn cell(&self, stage: ProfiledStage) -> String {
        let count = self.stages.iter().filter(|it| **it == stage).count();
        match count {
            0 => "–".to_owned(),
            count => microseconds(self.costs.server_cpu_us * count as f64 / self.stages.len() as f64),
        }
    }
}

pub(super) fn write(columns: &[Column]) -> String {
    let row = |name: &str, cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let mut table = row("microseconds of the server's CPU per request", &|column| column.title.clone());
    table += &format!("|---|{}\n", "---:|".repeat(columns.len()));
    for stage in ProfiledStage::ALL {
        table += &row(stage.name(), &|column| column.cell(stage));
    }
    table += &row("**all**", &|column| format!("**{}**", microseconds(column.costs.server_cpu_us)));
    table += &row("the load's own", &|column| microseconds(column.costs.load_cpu_us));
    table += &row("cores that both kept busy", &|column| format!("{:.2}", column.costs.cores()));
    table + &row("samples", &|column| column.stages.len().to_string())
}

/// As many digits as a thousand or so samples can tell.
fn microseconds(us: f64) -> String {
    match us {
        100.0.. => format!("{us:.0}"),
        10.0..100.0 => format!("{us:.1}"),
        1.0..10.0 => format!("{us:.2}"),
        _ => format!("{us:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_adds_up_to_what_a_request_costs() {
        let stages = [vec![ProfiledStage::Syncing; 3], vec![ProfiledStage::Else]].concat();
        let costs = Costs { requests_per_second: 6000.0, server_cpu_us: 120.0, load_cpu_us: 30.0 };
        let column = Column { title: "create, 1 × 1".to_owned(), costs, stages };
        let table = write(&[column]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "| microseconds of the server's CPU per request | create, 1 × 1 |");
        assert_eq!(lines[1], "|---|---:|");
        assert_eq!(lines.len(), 2 + ProfiledStage::ALL.len() + 4);
        for line in [
            "| writing and syncing the log | 90.0 |",
            "| everything else | 30.0 |",
            "| answering reads | – |",
            "| **all** | **120** |",
            "| the load's own | 30.0 |",
            "| cores that both kept busy | 0.90 |",
            "| samples | 4 |",
        ] {
            assert!(lines.contains(&line), "{line} is not in\n{table}");
        }
    }

    #[test]
    fn small_times_have_more_digits() {
        let written = [143.39, 28.64, 2.649, 0.0526].map(microseconds);
        assert_eq!(written, ["143", "28.6", "2.65", "0.053"]);
    }
}
