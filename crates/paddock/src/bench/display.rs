//! The progress of a run: one line that is written over on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use paddock_bench::report::units;
use paddock_bench::{RunProgress, Tick};

/// Interval of the lines where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Display {
    is_terminal: bool,
    is_quiet: bool,
    last_plain: Duration,
}

impl Display {
    pub(crate) fn new(is_quiet: bool) -> Display {
        Display { is_terminal: io::stderr().is_terminal(), is_quiet, last_plain: Duration::ZERO }
    }

    /// Leaves the terminal's line clean for what is printed next.
    pub(crate) fn finish(&mut self) {
        if self.is_terminal && !self.is_quiet {
            eprint!("\r\x1b[2K");
        }
    }

    fn show(&mut self, line: &str) {
        let mut out = io::stderr().lock();
        // A run goes on whether or not anyone watches it.
        let _ = if self.is_terminal { write!(out, "\r\x1b[2K{line}") } else { writeln!(out, "{line}") };
        let _ = out.flush();
    }
}

impl RunProgress for Display {
    fn stage(&mut self, what: &str) {
        if !self.is_quiet {
            self.show(what);
        }
    }

    fn tick(&mut self, tick: &Tick) {
        let is_due = self.is_terminal || tick.at >= self.last_plain + PLAIN_INTERVAL;
        if self.is_quiet || !is_due {
            return;
        }
        self.last_plain = tick.at;
        let left = tick.left.map_or(String::new(), |left| format!("   {:.0} s left", left.as_secs_f64()));
        self.show(&format!(
            "{:>4} s   {} requests/s   p50 {}   p99 {}   errors {}{left}",
            tick.at.as_secs(),
            units::number(tick.requests_per_second),
            units::duration(tick.p50_us),
            units::duration(tick.p99_us),
            tick.errors,
        ));
    }
}
