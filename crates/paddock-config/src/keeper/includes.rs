//! Elements whose content is somewhere else: `incl` in the file that `include_from` names, `from_env` in the environment.

use std::path::PathBuf;

use paddock_yaml::{Entry, Node, Value};

use super::super::remark::{ConfigError, Remarks};
use super::merge::{REMOVE, REPLACE, SUBSTITUTIONS, attribute, into_entries, is_attribute};
use super::settings::File;
use super::xml::TEXT;

const INCLUDE: &str = "include";
const INCLUDE_FROM: &str = "include_from";
const OPTIONAL: &str = "@optional";
const FROM_ENV: &str = "@from_env";
const INCL: &str = "@incl";
/// File that is included from where none is named, if it is there.
const DEFAULT: &str = "/etc/metrika.xml";
/// Inclusions within each other at most: included content may include more, and never itself without end.
const DEPTH_MAX: usize = 32;
const ELEMENTS_MAX: usize = 10_000;

/// Puts the content in, below those elements of the root that `counts` says are the keeper's.
pub(super) fn resolve(
    file: &mut File<'_>,
    root: Node,
    counts: fn(&str) -> bool,
    remarks: &mut Remarks,
) -> Result<Node, ConfigError> {
    let (line, mut entries) = (root.line, into_entries(root));
    // The name of the file may be in the environment.
    let mut includes = Includes { file, remarks, source: Source::Unknown, count: 0 };
    for entry in entries.iter_mut().filter(|entry| entry.key == INCLUDE_FROM) {
        let resolved = includes.all(vec![entry.clone()], &Path::default())?;
        if let Some(resolved) = resolved.into_iter().next() {
            *entry = resolved;
        }
    }
    includes.source = Source::Named(named(&entries));
    let mut resolved = Vec::with_capacity(entries.len());
    for entry in entries {
        if counts(&entry.key) || entry.key == INCLUDE {
            resolved.extend(includes.one(entry, &Path::default())?);
        } else {
            resolved.push(entry);
        }
    }
    Ok(Node { line, value: Value::Mapping(resolved) })
}

fn named(entries: &[Entry]) -> Option<PathBuf> {
    match entries.iter().rev().find(|entry| entry.key == INCLUDE_FROM) {
        Some(entry) => Some(text(&entry.value)).filter(|text| !text.is_empty()).map(PathBuf::from),
        None => Some(PathBuf::from(DEFAULT)).filter(|file| file.is_file()),
    }
}

/// Own content of an element, without the attributes that lead elsewhere.
fn own_content(node: Node) -> Vec<Entry> {
    let mut entries = into_entries(node);
    entries.retain(|own| !SUBSTITUTIONS.contains(&own.key.as_str()));
    entries
}

/// The text of an element.
fn text(node: &Node) -> String {
    match &node.value {
        Value::Scalar(text) => text.clone(),
        Value::Mapping(entries) => {
            entries.iter().find(|entry| entry.key == TEXT).map(|entry| text(&entry.value)).unwrap_or_default()
        }
        Value::Sequence(_) => String::new(),
    }
}

/// Keys from the root to an element.
#[derive(Clone, Default)]
struct Path {
    keys: String,
    depth: usize,
}

impl Path {
    fn with(&self, key: &str) -> Path {
        let keys = if self.keys.is_empty() { key.to_owned() } else { format!("{}.{key}", self.keys) };
        Path { keys, depth: self.depth + 1 }
    }

    /// This place, for what was included there.
    fn included(&self) -> Path {
        Path { depth: self.depth + 1, ..self.clone() }
    }
}

struct Includes<'f, 'a> {
    file: &'f mut File<'a>,
    remarks: &'f mut Remarks,
    source: Source,
    /// Elements that were included so far.
    count: usize,
}

/// Content that an element has elsewhere.
enum Content {
    Found(Vec<Entry>),
    /// There is none, and the element goes.
    Optional,
    /// There is none, for this reason. As in ClickHouse, the element counts as it is written.
    Missing(String),
}

/// The file that is included from. It is read when something is.
enum Source {
    Unknown,
    Named(Option<PathBuf>),
    Read(Node),
}

impl Includes<'_, '_> {
    fn all(&mut self, entries: Vec<Entry>, at: &Path) -> Result<Vec<Entry>, ConfigError> {
        let mut resolved = Vec::with_capacity(entries.len());
        for entry in entries {
            if is_attribute(&entry) || entry.key == TEXT {
                resolved.push(entry);
            } else {
                resolved.extend(self.one(entry, at)?);
            }
        }
        Ok(resolved)
    }

    /// The elements that take the place of one.
    fn one(&mut self, entry: Entry, at: &Path) -> Result<Vec<Entry>, ConfigError> {
        self.count += 1;
        let name_of = at.with(&entry.key);
        if at.depth > DEPTH_MAX || self.count > ELEMENTS_MAX {
            return Err(self.fault(&entry, &name_of, "too much is included: does something include itself?"));
        }
        let given: Vec<&str> =
            SUBSTITUTIONS.into_iter().filter(|name| attribute(&entry, name).is_some()).collect();
        let is_include = entry.key == INCLUDE;
        let name = match given[..] {
            [] if is_include => return Err(self.fault(&entry, &name_of, "it has neither incl nor from_env")),
            [] => return Ok(vec![self.inner(entry, at)?]),
            [name] => name,
            [..] => {
                return Err(self.fault(&entry, &name_of, "of incl, from_env and from_zk it can have one"));
            }
        };
        let content = match self.content(&entry, &name_of, name)? {
            Content::Found(content) => content,
            Content::Optional => return Ok(Vec::new()),
            Content::Missing(what) => {
                let warning = format!("{}: {what}; nothing is included", name_of.keys);
                let place = self.file.place(entry.line);
                if is_include {
                    self.remarks.push(place.warning(warning));
                    return Ok(Vec::new());
                }
                let own = own_content(entry.value.clone());
                if own.iter().all(is_attribute) {
                    // An empty value would take the place of one that was meant.
                    return Err(self.fault(&entry, &name_of, &what));
                }
                self.remarks.push(place.warning(warning));
                let value = Node { line: entry.value.line, value: Value::Mapping(own) };
                return Ok(vec![self.inner(Entry { value, ..entry }, at)?]);
            }
        };
        if is_include {
            let content = content.into_iter().filter(|entry| !is_attribute(entry)).collect();
            return self.all(content, &at.included());
        }
        let replaces = attribute(&entry, REPLACE).is_some();
        let Entry { key, line, value } = entry;
        let line_of_value = value.line;
        let mut entries = into_entries(value);
        entries.retain(|own| {
            let is_spent = SUBSTITUTIONS.contains(&own.key.as_str()) || own.key == OPTIONAL;
            !is_spent && (!replaces || is_attribute(own))
        });
        entries.extend(content);
        let value = Node { line: line_of_value, value: Value::Mapping(entries) };
        // What was included may say that it is somewhere else again.
        self.one(Entry { key, line, value }, &at.included())
    }

    /// An element with all that is in it, and without the attributes that have been spent.
    fn inner(&mut self, entry: Entry, at: &Path) -> Result<Entry, ConfigError> {
        if !matches!(entry.value.value, Value::Mapping(_)) {
            return Ok(entry);
        }
        let line = entry.value.line;
        let mut entries = into_entries(entry.value);
        entries.retain(|own| own.key != REPLACE && own.key != REMOVE);
        let value = Node { line, value: Value::Mapping(self.all(entries, &at.with(&entry.key))?) };
        Ok(Entry { value, ..entry })
    }

    /// Attributes, text and elements from elsewhere.
    fn content(&mut self, entry: &Entry, at: &Path, by: &str) -> Result<Content, ConfigError> {
        let name = attribute(entry, by).unwrap_or_default();
        let found = match by {
            FROM_ENV => self.file.variable(name).map(|value| {
                let value = Node { line: entry.line, value: Value::Scalar(value.to_owned()) };
                into_entries(value)
            }),
            INCL => self.included(name)?,
            _ => {
                return Err(self.fault(
                    entry,
                    at,
                    "the attribute from_zk is not offered; write the value itself",
                ));
            }
        };
        Ok(match found {
            Some(content) => Content::Found(content),
            None if attribute(entry, OPTIONAL).is_some() => Content::Optional,
            None if by == FROM_ENV => {
                Content::Missing(format!("the environment variable {name:?} is not set"))
            }
            None => Content::Missing(format!("there is no {name:?} in the file that {INCLUDE_FROM} names")),
        })
    }

    /// The element of the included file at a path such as `keeper/limits`.
    fn included(&mut self, path: &str) -> Result<Option<Vec<Entry>>, ConfigError> {
        if let Source::Named(Some(named)) = &self.source {
            let named = beside(self.file.path(), named);
            self.source = Source::Read(self.file.read_other(&named)?);
        }
        let Source::Read(root) = &self.source else { return Ok(None) };
        let mut node = root;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Value::Mapping(entries) = &node.value else { return Ok(None) };
            let Some(entry) = entries.iter().find(|entry| entry.key == name) else { return Ok(None) };
            node = &entry.value;
        }
        Ok(Some(into_entries(node.clone())))
    }

    fn fault(&self, entry: &Entry, at: &Path, what: &str) -> ConfigError {
        self.file.place(entry.line).fault(format!("{}: {what}", at.keys))
    }
}

/// A path that leads nowhere from here is taken from the directory of the file.
fn beside(file: &std::path::Path, named: &std::path::Path) -> PathBuf {
    let from_file = file.with_file_name(named);
    if named.exists() || !from_file.exists() { named.to_owned() } else { from_file }
}
