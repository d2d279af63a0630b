//! A file of ClickHouse's configuration as settings: paths of keys with their values, in the order of the file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use paddock_yaml::{Entry, Node, Value};

use super::super::environment::Environment;
use super::super::remark::{ConfigError, Location};
use super::super::source::Line;
use super::super::text_file;
use super::merge;
use super::xml::{self, TEXT};

/// The attribute hides a value in a file that is not written here.
const HIDE: &str = "@hide_in_preprocessed";
/// Lines of one file at most. A line number says of which file it is, too: lines of the second file begin here.
const LINES_MAX: usize = 1 << 32;

/// True if a file is in one of ClickHouse's formats, by its name.
pub(crate) fn is_keeper_file(file: &Path) -> bool {
    file.extension().and_then(OsStr::to_str).is_some_and(|extension| merge::FORMATS[1..].contains(&extension))
}

/// Entries of a section; none if it is a value.
pub(super) fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        Value::Mapping(entries) => entries,
        _ => &[],
    }
}

/// A file with those that are merged into it.
#[derive(Debug)]
pub(super) struct File<'a> {
    /// The file itself first.
    paths: Vec<PathBuf>,
    environment: &'a Environment,
}

impl<'a> File<'a> {
    /// Reads the file, and merges others into it.
    pub(super) fn read(
        path: &'a Path,
        environment: &'a Environment,
    ) -> Result<(File<'a>, Node), ConfigError> {
        let mut file = File { paths: Vec::new(), environment };
        let mut root = file.read_other(path)?;
        for other in merge::files(path) {
            let with = file.read_other(&other)?;
            root = merge::merge(root, with).map_err(|(line, what)| file.place(line).fault(what))?;
        }
        Ok((file, root))
    }

    /// Reads one more file.
    pub(super) fn read_other(&mut self, path: &Path) -> Result<Node, ConfigError> {
        let text = text_file::read(path)?;
        let is_yaml =
            path.extension().is_some_and(|extension| ["yaml", "yml"].iter().any(|yaml| extension == *yaml));
        let root = if is_yaml {
            paddock_yaml::parse(&text).map_err(|error| (error.line, error.to_string()))
        } else {
            xml::parse(&text)
        };
        let mut root = root.map_err(|(line, what)| Location::at(path, line).fault(what))?;
        mark(&mut root, self.paths.len() * LINES_MAX);
        self.paths.push(path.to_owned());
        Ok(merge::without_sequences(root))
    }

    /// The files that were read after the first.
    pub(super) fn others(&self) -> &[PathBuf] {
        &self.paths[1..]
    }

    /// The file itself.
    pub(super) fn path(&self) -> &Path {
        &self.paths[0]
    }

    pub(super) fn place(&self, line: usize) -> Location {
        Location::at(&self.paths[line / LINES_MAX], line % LINES_MAX)
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.variable(name)
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

    fn refuse_attribute(&self, path: &str, entry: &Entry) -> ConfigError {
        let name = entry.key.trim_start_matches('@');
        let what = format!(
            "{path}: the attribute {name} is not offered; write the value itself, or take incl or from_env"
        );
        self.place(entry.line).fault(what)
    }
}

/// Makes the lines of a tree those of a file among several.
fn mark(node: &mut Node, offset: usize) {
    node.line += offset;
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::Sequence(items) => items.iter_mut().for_each(|item| mark(item, offset)),
        Value::Mapping(entries) => {
            for entry in entries {
                entry.line += offset;
                mark(&mut entry.value, offset);
            }
        }
    }
}
