//! Facts about one setting, and differences between settings.

use std::ops::RangeInclusive;

/// All there is to say of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// Name in Paddock's own file.
    pub key: &'static str,
    /// Values that it may have.
    pub form: SettingForm,
    /// The default, as the documentation tells it.
    pub default: String,
    /// True if a new value counts while the process runs.
    pub is_taken_while_running: bool,
    /// The text about it, in Markdown; links are those of `docs/configuration.md`.
    pub about: &'static str,
}

/// The values that a setting may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingForm {
    /// A whole number from `min` to `max` that is a multiple of `multiple_of`.
    Number {
        /// The things that are counted or measured.
        unit: &'static str,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// 1 where every number of the range will do.
        multiple_of: i64,
    },
    /// True or false.
    Flag,
    /// A form of its own, as the documentation tells it.
    Other(&'static str),
}

impl SettingForm {
    /// A number of a unit.
    pub fn number(unit: &'static str, range: RangeInclusive<i64>, multiple_of: i64) -> SettingForm {
        let (min, max) = range.into_inner();
        SettingForm::Number { unit, min, max, multiple_of }
    }
}

/// The outcome of reading the configuration again, by the names that settings have in Paddock's own file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigChanges {
    /// Settings that count from now on.
    pub taken: Vec<&'static str>,
    /// Settings that differ from those the member runs with, and count when it is started again.
    pub need_restart: Vec<&'static str>,
}
