//! Files that count on top of a file: ClickHouse merges those of two directories beside it, in the order of their paths.
//!
//! An element meets the first one of the file that has its name and its attributes, and is merged into that: its text and attributes
//! take the place of those that are there, its elements are merged in turn. `replace` takes all of the element away first, `remove`
//! takes it away for good. An element that meets none is added.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use paddock_yaml::{Entry, Node, Value};

use super::xml::TEXT;

/// Ends of the names of files in ClickHouse's formats; the first is for files that are merged into others.
pub(super) const FORMATS: [&str; 4] = ["conf", "xml", "yaml", "yml"];
pub(super) const REPLACE: &str = "@replace";
pub(super) const REMOVE: &str = "@remove";
/// Attributes of an element whose content is somewhere else.
pub(super) const SUBSTITUTIONS: [&str; 3] = ["@incl", "@from_zk", "@from_env"];

/// An element that cannot be merged: its line, and the reason.
pub(super) type Refused = (usize, String);

/// The files that ClickHouse merges into a file.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    let directories = [path.with_extension("d"), path.with_file_name("conf.d")];
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|file| is_merged(file)).collect();
    files.sort();
    files.dedup();
    files
}

fn is_merged(file: &Path) -> bool {
    let extension = file.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let is_hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    FORMATS.contains(&extension.as_str()) && !is_hidden && file.is_file()
}

/// The tree without sequences: each item is an element of its own, as in XML.
pub(super) fn without_sequences(node: Node) -> Node {
    let Value::Mapping(entries) = node.value else { return node };
    let mut elements = Vec::new();
    for Entry { key, line, value } in entries {
        match value.value {
            Value::Sequence(items) => spread(&key, items, &mut elements),
            _ => elements.push(Entry { key, line, value: without_sequences(value) }),
        }
    }
    Node { line: node.line, value: Value::Mapping(elements) }
}

fn spread(key: &str, items: Vec<Node>, elements: &mut Vec<Entry>) {
    for item in items {
        let line = item.line;
        match item.value {
            Value::Sequence(items) => spread(key, items, elements),
            _ => elements.push(Entry { key: key.to_owned(), line, value: without_sequences(item) }),
        }
    }
}

/// Attributes, text and elements of a node.
pub(super) fn into_entries(node: Node) -> Vec<Entry> {
    match node.value {
        Value::Mapping(entries) => entries,
        Value::Scalar(text) if text.is_empty() => Vec::new(),
        Value::Scalar(_) | Value::Sequence(_) => {
            vec![Entry { key: TEXT.to_owned(), line: node.line, value: node }]
        }
    }
}

pub(super) fn is_attribute(entry: &Entry) -> bool {
    entry.key.starts_with('@')
}

/// Merges `with` into `base`.
pub(super) fn merge(base: Node, with: Node) -> Result<Node, Refused> {
    let line = base.line;
    let mut entries = into_entries(base);
    entries.retain(|entry| entry.key != TEXT);
    // An element is met once.
    let mut slots: Vec<(Option<Entry>, bool)> =
        entries.into_iter().map(|entry| (Some(entry), true)).collect();
    for entry in into_entries(with) {
        if is_attribute(&entry) {
            slots.retain(|(earlier, _)| earlier.as_ref().is_none_or(|earlier| earlier.key != entry.key));
            slots.push((Some(entry), false));
            continue;
        }
        let (removes, replaces) = (attribute(&entry, REMOVE).is_some(), attribute(&entry, REPLACE).is_some());
        if removes && replaces {
            return Err((entry.line, format!("{}: it has both replace and remove; keep one", entry.key)));
        }
        let meets = |slot: &&mut (Option<Entry>, bool)| {
            slot.1 && slot.0.as_ref().is_some_and(|earlier| is_same(earlier, &entry))
        };
        match slots.iter_mut().find(meets) {
            Some((earlier, can_be_met)) => {
                *can_be_met = false;
                *earlier = match earlier.take() {
                    _ if removes => None,
                    Some(earlier) if !replaces => Some(merge_entries(earlier, entry)?),
                    _ => Some(entry),
                };
            }
            None if removes => {}
            None => slots.push((Some(entry), false)),
        }
    }
    let entries = slots.into_iter().filter_map(|(entry, _)| entry).collect();
    Ok(Node { line, value: Value::Mapping(entries) })
}

fn merge_entries(base: Entry, with: Entry) -> Result<Entry, Refused> {
    let Entry { key, line, value } = with;
    let mut base = base.value;
    let has_content = into_entries(value.clone()).iter().any(|entry| !is_attribute(entry));
    if let Value::Mapping(entries) = &mut base.value
        && has_content
    {
        entries.retain(|entry| !SUBSTITUTIONS.contains(&entry.key.as_str()));
    }
    Ok(Entry { key, line, value: merge(base, value)? })
}

/// An attribute of an element.
pub(super) fn attribute<'a>(entry: &'a Entry, name: &str) -> Option<&'a str> {
    let Value::Mapping(entries) = &entry.value.value else { return None };
    let found = entries.iter().find(|attribute| attribute.key == name)?;
    match &found.value.value {
        Value::Scalar(text) => Some(text),
        _ => Some(""),
    }
}

/// True for elements with the same name and the same attributes, but for those that say how to merge or where the content is.
fn is_same(a: &Entry, b: &Entry) -> bool {
    a.key == b.key && identity(a) == identity(b)
}

fn identity(entry: &Entry) -> Vec<(&str, &str)> {
    let Value::Mapping(entries) = &entry.value.value else { return Vec::new() };
    let counts = |key: &str| {
        key.starts_with('@') && ![REPLACE, REMOVE].contains(&key) && !SUBSTITUTIONS.contains(&key)
    };
    let mut attributes: Vec<(&str, &str)> = entries
        .iter()
        .filter(|attribute| counts(&attribute.key))
        .map(|attribute| {
            (attribute.key.as_str(), super::merge::attribute(entry, &attribute.key).unwrap_or_default())
        })
        .collect();
    attributes.sort_unstable();
    attributes
}
