//! A TOML file while it is read: its tables in order, its values with what they look like, and where each stands.

use std::borrow::Cow;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::remark::{ConfigError, Location};
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

/// Turns what is wrong with `key` into a fault.
pub(super) fn named(place: &Location, key: &str) -> impl FnOnce(String) -> ConfigError {
    let (place, key) = (place.clone(), key.to_owned());
    move |what| place.fault(format!("{key}: {what}"))
}

pub(super) fn unknown(place: Location, key: &str) -> ConfigError {
    place.fault(format!("{key} is not a setting that Paddock knows"))
}
