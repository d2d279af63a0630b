//! Logs go to standard error: readable lines, or JSON for a collector.

mod one_line;

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use one_line::OneLine;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// Says what is logged when the command line does not.
const VARIABLE: &str = "PADDOCK_LOG";
const DEFAULT: &str = "info";

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
        let filter = of_file.map_or_else(|| chosen_filter(None), parse_filter);
        if let Err(why) = filter.map(|filter| self.handle.reload(filter)) {
            tracing::warn!(target: "paddock", why, "the log level stays as it is");
        }
    }
}

/// Starts logging. `filter` is what the command line asked for; the error is one line.
pub(crate) fn start(format: Format, filter: Option<&str>) -> Result<LogFilter, String> {
    let has_colours = format == Format::Text && colours_wanted();
    let lines = lines(format, has_colours, move || OneLine::new(io::stderr(), format, has_colours));
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
        _ => eprintln!("{line}"),
    }
}

fn colours_wanted() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn chosen_filter(asked: Option<&str>) -> Result<Targets, String> {
    if let Some(asked) = asked {
        return parse_filter(asked).map_err(|why| format!("--log: {why}"));
    }
    match std::env::var_os(VARIABLE) {
        Some(value) if !value.is_empty() => {
            parse_filter(&value.to_string_lossy()).map_err(|why| format!("{VARIABLE}: {why}"))
        }
        _ => parse_filter(DEFAULT),
    }
}

/// A filter, or what is wrong with the text.
pub(crate) fn parse_filter(text: &str) -> Result<Targets, String> {
    let wrong = || {
        format!("expected a level (error, warn, info, debug, trace, off) or TARGET=LEVEL,…, found {text:?}")
    };
    // A bare word is a level. The library would take `verbose` for a target and log nothing else.
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    if !text.split(',').map(str::trim).all(|part| part.contains('=') || is_level(part)) {
        return Err(wrong());
    }
    text.parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_targets_with_levels() {
        for good in ["info", "WARN", "off", "info,paddock_server=trace", "paddock_storage=debug"] {
            assert!(parse_filter(good).is_ok(), "{good}");
        }
        for bad in ["", "verbose", "info,loud", "paddock_server=loud"] {
            let line = parse_filter(bad).expect_err(bad);
            assert!(line.ends_with(&format!("found {bad:?}")), "{line}");
        }
    }
}
