//! Tells how a suite goes on, in plain lines.

use std::io::{self, Write};
use std::time::Duration;

use super::figure_names::FigureValue;
use super::{StepOutcome, Suite, SuiteStep, SuiteWatcher};

/// Writes lines to anything; that they cannot be written is no reason to stop measuring.
#[derive(Debug)]
pub struct Narrator<W>(pub W);

impl<W: Write> SuiteWatcher for Narrator<W> {
    fn plan(&mut self, suite: &Suite, steps: usize, done: usize, left: Duration) {
        let again = if done > 0 { format!(", {done} of them done before") } else { String::new() };
        let name = &suite.name;
        let left = if done < steps { format!("; about {} to go", minutes(left)) } else { String::new() };
        let _ = writeln!(self.0, "suite {name}: {steps} measurements{again}{left}");
    }

    fn begin(&mut self, step: &SuiteStep<'_>) {
        let SuiteStep { number, steps, server, repetition, repetitions, measurement } = step;
        let _ = writeln!(
            self.0,
            "{number}/{steps} {server}, repetition {repetition} of {repetitions}: {measurement}"
        );
    }

    fn loaded(&mut self, _step: &SuiteStep<'_>, znodes: usize) {
        if znodes > 0 && znodes.is_multiple_of(200_000) {
            let _ = writeln!(self.0, "    {znodes} znodes");
        }
    }

    fn end(&mut self, _step: &SuiteStep<'_>, outcome: &StepOutcome) {
        let _ = match (outcome.fault(), outcome) {
            (Some(fault), _) => writeln!(self.0, "    failed: {fault}"),
            (None, StepOutcome::Run(report)) => {
                let p99 = report.latency.percentile_us(99.0);
                writeln!(self.0, "    {:.0} requests/s, p99 {p99:.0} us", report.requests_per_second)
            }
            (None, StepOutcome::Figures(figures)) => tell(&mut self.0, figures),
            (None, StepOutcome::Failed(_)) => Ok(()),
        };
    }
}

fn tell(out: &mut impl Write, figures: &[FigureValue]) -> io::Result<()> {
    figures.iter().try_for_each(|(name, unit, value)| writeln!(out, "    {name}: {}", unit.text(*value)))
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        90.. => format!("{} minutes", (time.as_secs() + 30) / 60),
        seconds => format!("{seconds} seconds"),
    }
}
