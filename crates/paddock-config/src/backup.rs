//! `backup`: the backups that a server makes by itself.

use std::num::NonZeroUsize;
use std::time::Duration;

use paddock_settings::MILLISECONDS_MAX;

use super::value::{self, Value};

/// Name of the table, and of the keys' beginning where there are no tables.
pub(super) const BACKUP: &str = "backup";
pub(super) const KEYS: &[&str] = &["to", "full_interval_ms", "log_interval_ms", "keep"];

const FULL_INTERVAL_MS: u64 = 24 * 60 * 60 * 1000;
const LOG_INTERVAL_MS: u64 = 5 * 60 * 1000;
const KEEP: NonZeroUsize = NonZeroUsize::new(7).unwrap();
/// A shorter interval would be a load of its own.
const INTERVAL_MS_LEAST: i64 = 1000;

/// Backups that a running server makes while it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSettings {
    /// Place of the backups: a directory, or `s3://BUCKET/PREFIX`.
    pub to: String,
    /// Age of the newest backup from which on a new one is made.
    pub full_interval: Duration,
    /// Time between two looks at the place, each of which adds the log since to the newest backup.
    pub log_interval: Duration,
    /// Number of backups that are left; the oldest are removed.
    pub keep: NonZeroUsize,
}

/// Settings for backups while they are collected.
#[derive(Clone, Debug, Default)]
pub(super) struct BackupDraft {
    to: Option<String>,
    full_interval_ms: Option<u64>,
    log_interval_ms: Option<u64>,
    keep: Option<NonZeroUsize>,
}

impl BackupDraft {
    /// Takes the value of a key; false if there is no such key.
    pub(super) fn set(&mut self, key: &str, value: &impl Value) -> Result<bool, String> {
        match key {
            "to" => self.to = Some(place(value)?),
            "full_interval_ms" => self.full_interval_ms = Some(interval(value)?),
            "log_interval_ms" => self.log_interval_ms = Some(interval(value)?),
            "keep" => {
                let count: usize = value::amount(value, 1..=i32::MAX.into(), "backups")?;
                self.keep = NonZeroUsize::new(count);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The settings, if there are any.
    pub(super) fn settle(self, has_log: bool) -> Result<Option<BackupSettings>, String> {
        let BackupDraft { to, full_interval_ms, log_interval_ms, keep } = self;
        let Some(to) = to else {
            let is_empty = full_interval_ms.is_none() && log_interval_ms.is_none() && keep.is_none();
            let missing = format!(
                "{BACKUP}: to is missing, the place of the backups: a directory, or s3://BUCKET/PREFIX"
            );
            return is_empty.then_some(None).ok_or(missing);
        };
        if !has_log {
            return Err(format!(
                "{BACKUP}: the engine etcd keeps nothing here that could be backed up: back etcd up, or leave {BACKUP} out"
            ));
        }
        let milliseconds = |said: Option<u64>, default| Duration::from_millis(said.unwrap_or(default));
        Ok(Some(BackupSettings {
            to,
            full_interval: milliseconds(full_interval_ms, FULL_INTERVAL_MS),
            log_interval: milliseconds(log_interval_ms, LOG_INTERVAL_MS),
            keep: keep.unwrap_or(KEEP),
        }))
    }
}

fn interval(value: &impl Value) -> Result<u64, String> {
    value::amount(value, INTERVAL_MS_LEAST..=MILLISECONDS_MAX, "milliseconds")
}

fn place(value: &impl Value) -> Result<String, String> {
    const EXPECTED: &str = "a directory, or s3://BUCKET/PREFIX";
    let text = value.text().filter(|text| !text.is_empty()).ok_or_else(|| value::wrong(EXPECTED, value))?;
    match text.split_once("://") {
        Some(("s3", rest)) if !rest.starts_with('/') && !rest.is_empty() => Ok(text.to_owned()),
        Some(_) => Err(value::wrong(EXPECTED, value)),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
