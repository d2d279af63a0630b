//! Paddock's own configuration file. Its keys are the fields of `paddock_server::Config`.

use std::fs;
use std::path::Path;

use paddock_server::WordList;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::draft::Draft;
use super::value::{self, Value};
use super::{Fault, Place, Remark, cannot_read};

/// Numbers of things in memory.
const COUNT_MAX: i64 = i32::MAX as i64;

pub(super) fn load(file: &Path, remarks: &mut Vec<Remark>) -> Result<Draft, Fault> {
    let text = fs::read_to_string(file).map_err(|error| cannot_read(file, &error))?;
    let place = |offset: usize| Place::at(file, 1 + text[..offset].matches('\n').count());
    let table = DeTable::parse(&text).map_err(|error| {
        place(error.span().map_or(0, |span| span.start)).fault(error.message().replace('\n', ", "))
    })?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut draft = Draft::default();
    for (key, value) in entries {
        let place = place(key.span().start);
        let key = key.get_ref();
        let known = set(&mut draft, key, &Item { value, text: &text })
            .map_err(|what| place.clone().fault(format!("{key}: {what}")))?;
        if !known {
            let what = format!("{key} is not a setting that Paddock knows; it is ignored");
            remarks.push(place.warning(what));
        }
    }
    Ok(draft)
}

/// Takes a setting, unless its key is not known.
fn set(draft: &mut Draft, key: &str, value: &Item<'_>) -> Result<bool, String> {
    let config = &mut draft.config;
    match key {
        "listen" => draft.listen = Some(value::address(value)?),
        "data_dir" => draft.data_dir = Some(value::path(value)?),
        "log_dir" => config.log_dir = Some(value::path(value)?),
        "member" => config.member = value::number(value, 1..=255, "a number from 1 to 255")?,
        "tick_ms" => config.tick_ms = value::milliseconds(value)?,
        "session_timeout_ms_min" => draft.session_timeout_ms_min = Some(value::milliseconds(value)?),
        "session_timeout_ms_max" => draft.session_timeout_ms_max = Some(value::milliseconds(value)?),
        "connections_per_address_max" => {
            config.connections_per_address_max = value::amount(value, 0..=COUNT_MAX, "connections")?;
        }
        "connections_max" => config.connections_max = value::amount(value, 0..=COUNT_MAX, "connections")?,
        "frame_bytes_max" => config.frame_bytes_max = value::amount(value, 1..=i32::MAX.into(), "bytes")?,
        "words" => config.words = words(value)?,
        "super_digest" => config.super_digest = Some(value::super_digest(value)?),
        "garbage_interval_ms" => config.garbage_interval_ms = value::milliseconds(value)?,
        "garbage_max" => config.garbage_max = value::amount(value, 1..=COUNT_MAX, "znodes")?,
        "snapshot_writes" => config.snapshot_writes = value::amount(value, 1..=i64::MAX, "writes")?,
        "snapshot_log_bytes" => config.snapshot_log_bytes = value::amount(value, 1..=i64::MAX, "bytes")?,
        "snapshots_kept" => config.snapshots_kept = value::amount(value, 1..=COUNT_MAX, "snapshots")?,
        "segment_bytes" => config.segment_bytes = segment_bytes(value)?,
        "workers" => config.workers = value::amount(value, 0..=1024, "threads")?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn segment_bytes(value: &Item<'_>) -> Result<u64, String> {
    let (min, max) = value::SEGMENT_BYTES.into_inner();
    let expected = format!("a multiple of 4096 from {min} to {max}");
    let bytes: u64 = value::number(value, min..=max, &expected)?;
    if bytes.is_multiple_of(4096) { Ok(bytes) } else { Err(value::wrong(&expected, value)) }
}

/// A list of words; `["*"]` stands for all.
fn words(value: &Item<'_>) -> Result<WordList, String> {
    let wrong = || value::wrong("a list of words, such as [\"srvr\", \"ruok\"] or [\"*\"]", value);
    let list = value.value.get_ref().as_array().ok_or_else(wrong)?;
    let words: Option<Vec<String>> =
        list.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect();
    let words = words.ok_or_else(wrong)?;
    if words.iter().any(|word| word == "*") { Ok(WordList::All) } else { Ok(WordList::Only(words)) }
}

/// A value and the file that it stands in.
struct Item<'a> {
    value: &'a Spanned<DeValue<'a>>,
    text: &'a str,
}

impl Value for Item<'_> {
    fn integer(&self) -> Option<i64> {
        let integer = self.value.get_ref().as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    fn text(&self) -> Option<&str> {
        self.value.get_ref().as_str()
    }

    fn shown(&self) -> String {
        self.text[self.value.span()].split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests;
