//! Logs go to standard error: readable lines, or JSON for a collector. A thread that logs does not wait for its reader.

mod json_lists;
mod one_line;
mod queue;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use one_line::OneLine;
use paddock_config::parse_log_filter;
use queue::LineQueue;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// Says what is logged when the command line does not.
const VARIABLE: &str = "PADDOCK_LOG";
const DEFAULT: &str = "info";
/// Time that a process which ends gives what it has logged to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The way to standard error, once logging has started.
static QUEUE: OnceLock<LineQueue> = OnceLock::new();

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Decides what is logged, and can be changed while the process runs.
#[derive(Debug)]
pub(crate) struct LogFilter {
    handle: reload::Handle<Targets, Registry>,
    /// The command line has said it, so that no file counts.
    is_fixed: bool,
}

impl LogFilter {
    /// Follows the filter of a configuration file, which was checked; without one, the environment and the default count.
    pub(crate) fn follow(&self, of_file: Option<&str>) {
        if self.is_fixed {
            return;
        }
        let filter = of_file.map_or_else(|| chosen_filter(None), parse_log_filter);
        if let Err(why) = filter.map(|filter| self.handle.reload(filter)) {
            tracing::warn!(target: "paddock", why, "the log level stays as it is");
        }
    }
}

/// Starts logging. `filter` is what the command line asked for; the error is one line.
pub(crate) fn start(format: Format, filter: Option<&str>) -> Result<LogFilter, String> {
    let has_colours = format == Format::Text && colours_wanted();
    let tell = |lines| tracing::warn!(target: "paddock", lines, "lines of the log were dropped: nobody read standard error");
    let queue = LineQueue::start(io::stderr(), paddock_server::count_lost_log_lines, tell);
    let queue = QUEUE.get_or_init({
        let queue = queue.map_err(|error| format!("start a thread for the log: {error}"))?;
        || queue
    });
    let lines = lines(format, has_colours, move || OneLine::new(Queued(queue), format, has_colours));
    let (chosen, handle) = reload::Layer::new(chosen_filter(filter)?);
    tracing_subscriber::registry().with(lines.with_filter(chosen)).init();
    Ok(LogFilter { handle, is_fixed: filter.is_some() })
}

/// Makes lines of events.
fn lines<W: for<'w> MakeWriter<'w> + Send + Sync + 'static>(
    format: Format,
    has_colours: bool,
    writer: W,
) -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        Format::Text => lines.compact().with_ansi(has_colours).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    }
}

/// Tells why the process ends. The last line of a JSON log is JSON too.
pub(crate) fn report(format: Format, line: &str) {
    let logging = tracing::dispatcher::has_been_set();
    match format {
        Format::Json if logging => tracing::error!(target: "paddock", "{line}"),
        _ => say(format_args!("{line}")),
    }
}

/// Writes a line to standard error as it is, without waiting for its reader once logging has started.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    write(&format!("{line}\n"));
}

/// Writes text to standard error in the same way.
pub(crate) fn write(text: &str) {
    match QUEUE.get() {
        Some(queue) => queue.put(text.as_bytes()),
        None => {
            // There is no way to tell that standard error is closed.
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }
}

/// Waits a moment for what has been logged to be written: the process is about to end.
pub(crate) fn end() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(LAST_LINES);
    }
}

/// Tells of a panic, behind what was logged before. False if it has to be told otherwise.
pub(crate) fn report_panic(broken: &PanicHookInfo<'_>) -> bool {
    let Some(queue) = QUEUE.get().filter(|_| !LineQueue::is_own_thread()) else { return false };
    let thread = thread::current();
    let mut told = format!("\nthread '{}' {broken}\n", thread.name().unwrap_or("<unnamed>"));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        told += &format!("stack backtrace:\n{trace}");
    }
    queue.put_last(told.as_bytes());
    queue.flush(LAST_LINES);
    true
}

/// Puts whole lines into the queue.
struct Queued(&'static LineQueue);

impl Write for Queued {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn colours_wanted() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn chosen_filter(asked: Option<&str>) -> Result<Targets, String> {
    if let Some(asked) = asked {
        return parse_log_filter(asked).map_err(|why| format!("--log: {why}"));
    }
    match std::env::var_os(VARIABLE) {
        Some(value) if !value.is_empty() => {
            parse_log_filter(&value.to_string_lossy()).map_err(|why| format!("{VARIABLE}: {why}"))
        }
        _ => parse_log_filter(DEFAULT),
    }
}
