//! Values that ClickHouse reads in a way of its own.

use paddock_server::{MemberSettings, WordList};

use super::super::value::{self, Text};
use super::super::zoo_values::list;

/// ClickHouse takes a smaller limit of requests for an error.
const REQUEST_BYTES_MIN: i64 = 1024;
/// Step of the size of a file of the log, in bytes.
const SEGMENT_STEP: u64 = 4096;

pub(super) fn boolean(value: &Text<'_>) -> Result<bool, String> {
    match value.0.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(value::wrong("true or false", value)),
    }
}

pub(super) fn words(text: &str) -> WordList {
    let words: Vec<String> = list(text).map(str::to_owned).collect();
    if words.iter().any(|word| word == "*") { WordList::All } else { WordList::Only(words) }
}

/// A level of ClickHouse's logs, as the level that says the same here.
pub(super) fn log_level(value: &Text<'_>) -> Result<&'static str, String> {
    match value.0.to_ascii_lowercase().as_str() {
        "none" => Ok("off"),
        "fatal" | "critical" | "error" => Ok("error"),
        "warning" => Ok("warn"),
        "notice" | "information" => Ok("info"),
        "debug" | "trace" | "test" => Ok("debug"),
        _ => Err(value::wrong("a level of ClickHouse's logs, such as information", value)),
    }
}

/// 0 is no limit.
pub(super) fn request_bytes(value: &Text<'_>) -> Result<i32, String> {
    if value.0 == "0" {
        return Ok(i32::MAX);
    }
    value::number(
        value,
        REQUEST_BYTES_MIN..=i32::MAX.into(),
        "0 or a number of bytes from 1024 to 2147483647",
    )
}

/// A share of memory, as a fraction: percent.
pub(super) fn share(value: &Text<'_>) -> Result<u8, String> {
    let share = value.0.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    let share = share.ok_or_else(|| value::wrong("a fraction above 0 and up to 1, such as 0.9", value))?;
    Ok(((share * 100.0).round() as u8).max(1))
}

/// The nearest size that a file of the log can have; 0 leaves it to the member.
pub(super) fn segment_bytes(value: &Text<'_>) -> Result<Option<u64>, String> {
    let bytes: i64 = value::amount(value, 0..=i64::MAX, "bytes")?;
    let (min, max) = MemberSettings::SEGMENT_BYTES.into_inner();
    let bytes = Some(bytes).filter(|bytes| *bytes > 0);
    Ok(bytes.map(|bytes| bytes.clamp(min, max).unsigned_abs() / SEGMENT_STEP * SEGMENT_STEP))
}
