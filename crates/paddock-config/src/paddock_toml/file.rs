//! A TOML file while it is read: its tables in order, its values with what they look like, and where each stands.

use std::borrow::Cow;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::remark::{ConfigError, Location, Remarks};
use super::super::value::{self, Value};

#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl<'a> File<'a> {
    pub(super) fn place(&self, offset: usize) -> Location {
        Location::at(self.path, 1 + self.text[..offset].matches('\n').count())
    }

    pub(super) fn item(&self, value: &'a Spanned<DeValue<'a>>) -> Item<'a> {
        Item { value, text: self.text }
    }
}

/// A value and the file that it stands in.
pub(super) struct Item<'a> {
    pub(super) value: &'a Spanned<DeValue<'a>>,
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

/// A key of a table, with its value.
pub(super) struct Setting<'a> {
    pub(super) key: &'a str,
    /// The key with its table before it: `admin.hosts`.
    pub(super) name: String,
    pub(super) place: Location,
    pub(super) value: &'a Spanned<DeValue<'a>>,
    pub(super) item: Item<'a>,
}

impl Setting<'_> {
    pub(super) fn fault(&self, what: impl AsRef<str>) -> ConfigError {
        self.place.clone().fault(format!("{}: {}", self.name, what.as_ref()))
    }
}

/// A value that has to be the table of this name.
pub(super) fn table<'a>(
    value: &'a Spanned<DeValue<'a>>,
    place: &Location,
    name: &str,
) -> Result<&'a DeTable<'a>, ConfigError> {
    let expected = || place.clone().fault(format!("{name}: expected a table [{name}]"));
    value.get_ref().as_table().ok_or_else(expected)
}

/// Reads the keys of a table, all of them: an error in one does not hide those in others. `set` says whether the key is one of `known`;
/// an unknown one is an error, since its operator believes that it counts.
pub(super) fn each_key<'a>(
    file: &File<'a>,
    table: &'a DeTable<'a>,
    (name, known): (&str, &[&str]),
    remarks: &mut Remarks,
    mut set: impl FnMut(&Setting<'a>, &mut Remarks) -> Result<bool, ConfigError>,
) -> Result<(), ConfigError> {
    let mut outcome = Ok(());
    for (key, value) in in_order(table) {
        let place = file.place(key.span().start);
        let key = key.get_ref().as_ref();
        let name = if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
        let setting = Setting { key, name, place, value, item: file.item(value) };
        let taken = match set(&setting, remarks) {
            Ok(true) => {
                remarks.origins.note(&setting.name, &setting.place);
                continue;
            }
            Ok(false) => Err(unknown(&setting, known)),
            Err(fault) => Err(fault),
        };
        // The last error is the outcome; those before it are kept.
        remarks.note(std::mem::replace(&mut outcome, taken));
    }
    outcome
}

/// An error about an unknown key, with the one that may have been meant.
fn unknown(setting: &Setting<'_>, known: &[&str]) -> ConfigError {
    let distance = |name: &str| strsim::damerau_levenshtein(setting.key, name);
    let nearest = known.iter().min_by_key(|name| distance(name));
    let nearest = nearest.filter(|name| distance(name) <= 1 + name.len() / 5);
    let meant = nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    setting.place.clone().fault(format!("{} is not a setting that Paddock knows{meant}", setting.name))
}

pub(super) type Entry<'a> = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

/// As they stand in the file.
pub(super) fn in_order<'a>(table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

pub(super) fn boolean(value: &Item<'_>) -> Result<bool, String> {
    value.value.get_ref().as_bool().ok_or_else(|| value::wrong("true or false", value))
}

/// A list of texts.
pub(super) fn texts(value: &Item<'_>, expected: &str) -> Result<Vec<String>, String> {
    let wrong = || value::wrong(expected, value);
    let list = value.value.get_ref().as_array().ok_or_else(wrong)?;
    let texts = list.iter().map(|text| text.get_ref().as_str().map(str::to_owned)).collect();
    Option::ok_or_else(texts, wrong)
}
