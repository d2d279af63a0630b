//! A file of ClickHouse's configuration as settings: paths of keys with their values, in the order of the file.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use paddock_yaml::{Entry, Node, Value};

use super::super::environment::Environment;
use super::super::remark::{ConfigError, Location, cannot_read};
use super::super::source::Line;
use super::xml::{self, TEXT};

/// Attribute of an element whose value is in the environment.
const FROM_ENV: &str = "@from_env";
/// It hides a value in a file that is not written here.
const HIDE: &str = "@hide_in_preprocessed";
/// Files with these names would be read on top of the file.
const MERGED: [&str; 4] = ["conf", "xml", "yaml", "yml"];

/// True if a file is in one of ClickHouse's formats, by its name.
pub(crate) fn is_keeper_file(file: &Path) -> bool {
    file.extension().and_then(OsStr::to_str).is_some_and(|extension| MERGED[1..].contains(&extension))
}

/// Entries of a section; none if it is a value.
pub(super) fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        Value::Mapping(entries) => entries,
        _ => &[],
    }
}

#[derive(Debug)]
pub(super) struct File<'a> {
    path: &'a Path,
    environment: &'a Environment,
}

impl<'a> File<'a> {
    pub(super) fn read(
        path: &'a Path,
        environment: &'a Environment,
    ) -> Result<(File<'a>, Node), ConfigError> {
        let text = fs::read_to_string(path).map_err(|error| cannot_read(path, &error))?;
        let root = if path.extension().is_some_and(|extension| extension == "xml") {
            xml::parse(&text)
        } else {
            paddock_yaml::parse(&text).map_err(|error| (error.line, error.to_string()))
        };
        refuse_merges(path)?;
        let file = File { path, environment };
        Ok((file, root.map_err(|(line, what)| Location::at(path, line).fault(what))?))
    }

    pub(super) fn place(&self, line: usize) -> Location {
        Location::at(self.path, line)
    }

    /// All settings at and below `entry`, whose key stands in for its path.
    pub(super) fn settings(&self, path: &str, entry: &Entry) -> Result<Vec<Line>, ConfigError> {
        let mut settings = Vec::new();
        self.collect(path, entry.line, &entry.value, &mut settings)?;
        Ok(settings)
    }

    fn collect(
        &self,
        path: &str,
        line: usize,
        node: &Node,
        settings: &mut Vec<Line>,
    ) -> Result<(), ConfigError> {
        let place = self.place(line);
        let line_of =
            |value: String| Line { place: place.clone(), key: path.to_owned(), value, earlier: None };
        match &node.value {
            Value::Scalar(text) => settings.push(line_of(text.clone())),
            Value::Sequence(items) => {
                for item in items {
                    self.collect(path, item.line, item, settings)?;
                }
            }
            Value::Mapping(entries) => {
                for entry in entries {
                    match entry.key.as_str() {
                        FROM_ENV => settings.push(line_of(self.variable(path, entry)?)),
                        HIDE => {}
                        TEXT => self.collect(path, line, &entry.value, settings)?,
                        key if key.starts_with('@') => return Err(self.refuse_attribute(path, entry)),
                        key => self.collect(&format!("{path}.{key}"), entry.line, &entry.value, settings)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn variable(&self, path: &str, entry: &Entry) -> Result<String, ConfigError> {
        let name = match &entry.value.value {
            Value::Scalar(name) => name.as_str(),
            _ => "",
        };
        self.environment.variable(name).map(str::to_owned).ok_or_else(|| {
            let what = format!("{path}: the environment variable {name:?} is not set");
            self.place(entry.line).fault(what)
        })
    }

    fn refuse_attribute(&self, path: &str, entry: &Entry) -> ConfigError {
        let name = entry.key.trim_start_matches('@');
        let what =
            format!("{path}: the attribute {name} is not offered; write the value itself, or take from_env");
        self.place(entry.line).fault(what)
    }
}

/// ClickHouse reads files in two directories on top of a file. Nothing of what they say may be passed over.
fn refuse_merges(path: &Path) -> Result<(), ConfigError> {
    for directory in [path.with_extension("d"), path.with_file_name("conf.d")] {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let mut files = entries.flatten().map(|entry| entry.path());
        let is_merged = |file: &std::path::PathBuf| {
            file.extension().is_some_and(|e| MERGED.iter().any(|known| e == *known))
        };
        if let Some(file) = files.find(is_merged) {
            let what = format!("{} would count too, and is not read; put all into one file", file.display());
            return Err(Location::new(path).fault(what));
        }
    }
    Ok(())
}
