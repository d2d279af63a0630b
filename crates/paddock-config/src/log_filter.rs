//! Filters of the log, as `--log` and files of settings give them.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// A filter, or what is wrong with the text.
pub fn parse_log_filter(text: &str) -> Result<Targets, String> {
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
            assert!(parse_log_filter(good).is_ok(), "{good}");
        }
        for bad in ["", "verbose", "info,loud", "paddock_server=loud"] {
            let line = parse_log_filter(bad).expect_err(bad);
            assert!(line.ends_with(&format!("found {bad:?}")), "{line}");
        }
    }
}
