//! Rows of settings: numbers and flags are read by what their row says, whatever file they stand in.

use paddock_server::Config;
use paddock_settings::{PlainValue, SettingForm, SettingRow, SettingRows};

use super::value::{self, Value};

/// Settings at the top of Paddock's own file that are no fields of `Config`.
fn beside_config() -> [SettingRow; 2] {
    let engine = SettingRow {
        key: "engine",
        form: SettingForm::Other("`\"log\"` or `\"etcd\"`"),
        default: "`\"log\"`".to_owned(),
        is_taken_while_running: false,
        about: "Engine that orders writes and keeps the data: a log of this member's own, or [an etcd cluster](#etcd).",
    };
    let log = SettingRow {
        key: "log",
        form: SettingForm::Other("level, or `TARGET=LEVEL,…`"),
        default: "`PADDOCK_LOG`, or `info`".to_owned(),
        is_taken_while_running: true,
        about: "Filter of the [log](#logs); `--log` counts before it.",
    };
    [engine, log]
}

/// Tables of Paddock's own file.
const TABLES: [&str; 7] = ["ensemble", "admin", "backup", "etcd", "sasl", "tls", "tracing"];

/// All settings at the top of Paddock's own file.
pub(super) fn all() -> Vec<SettingRow> {
    let [engine, log] = beside_config();
    let mut rows = vec![engine];
    Config::add_rows(&mut rows);
    rows.push(log);
    rows
}

/// Keys at the top of Paddock's own file, to name the nearest one where another was written.
pub(super) fn keys() -> Vec<&'static str> {
    all().iter().map(|row| row.key).chain(TABLES).collect()
}

/// The number of a row, as `value` gives it.
pub(super) fn number(row: &SettingRow, value: &impl Value) -> Result<i64, String> {
    let SettingForm::Number { unit, min, max, multiple_of } = row.form else {
        panic!("{} is no number", row.key);
    };
    if multiple_of == 1 {
        return value::amount(value, min..=max, unit);
    }
    let expected = format!("a multiple of {multiple_of} from {min} to {max}");
    let number: i64 = value::number(value, min..=max, &expected)?;
    if number % multiple_of == 0 { Ok(number) } else { Err(value::wrong(&expected, value)) }
}

/// Sets the number or flag of this key, if it is one. `flag` reads a flag of the file.
pub(super) fn set<V: Value>(
    config: &mut Config,
    key: &str,
    value: &V,
    flag: fn(&V) -> Result<bool, String>,
) -> Result<bool, String> {
    let Some(row) = Config::rows().into_iter().find(|row| row.key == key) else { return Ok(false) };
    let plain = match row.form {
        SettingForm::Number { .. } => PlainValue::Number(number(&row, value)?),
        SettingForm::Flag => PlainValue::Flag(flag(value)?),
        SettingForm::Other(_) => return Ok(false),
    };
    assert!(config.set_plain(key, plain), "the range of {key} is more than its type holds");
    Ok(true)
}

/// Sets the number or flag that another server's file has under the name `key`, by a list of such names and their settings.
pub(super) fn set_named<V: Value>(
    config: &mut Config,
    names: &[(&str, &str)],
    key: &str,
    value: &V,
    flag: fn(&V) -> Result<bool, String>,
) -> Result<bool, String> {
    match names.iter().find(|(name, _)| *name == key) {
        Some((_, setting)) => set(config, setting, value, flag),
        None => Ok(false),
    }
}

/// Reads the number of a setting that waits for others.
pub(super) fn waiting_number(key: &str, value: &impl Value) -> Result<u32, String> {
    let row = Config::rows().into_iter().find(|row| row.key == key).expect("a row of this key");
    number(&row, value).map(|number| u32::try_from(number).expect("the range is that of a time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_fits_the_type_of_its_field() {
        for row in Config::rows() {
            let SettingForm::Number { min, max, .. } = row.form else { continue };
            let mut config = Config::default();
            for bound in [min, max] {
                assert!(config.set_plain(row.key, PlainValue::Number(bound)), "{}: {bound}", row.key);
                assert_eq!(config.plain(row.key), Some(PlainValue::Number(bound)), "{}", row.key);
            }
        }
    }

    #[test]
    fn no_key_has_two_rows() {
        let mut keys = keys();
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
