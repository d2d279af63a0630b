//! Text in the syntax of `zoo.cfg`, and where each of its lines was said.

use std::path::{Path, PathBuf};

use super::properties::{self, Property};
use super::remark::{ConfigError, Location, Remark};
use super::text_file;

#[derive(Debug)]
pub(super) struct Source {
    text: String,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    File(PathBuf),
    /// The environment variable behind each line of the text.
    Variables(Vec<String>),
}

/// A key and its value, both trimmed.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) place: Location,
    pub(super) key: String,
    pub(super) value: String,
    /// The line on which the same key was given before.
    pub(super) earlier: Option<Location>,
}

impl Source {
    pub(super) fn open(file: &Path) -> Result<Source, ConfigError> {
        Ok(Source { text: text_file::read(file)?, origin: Origin::File(file.to_owned()) })
    }

    /// A text without lines, to which environment variables are added.
    pub(super) fn of_environment() -> Source {
        Source { text: String::new(), origin: Origin::Variables(Vec::new()) }
    }

    /// Adds what `variable` says. As in a shell script that writes the file, it may be more than one line.
    pub(super) fn add(&mut self, variable: &str, text: &str) {
        let Origin::Variables(variables) = &mut self.origin else {
            panic!("lines are added to the text of an environment only")
        };
        for line in text.split('\n') {
            self.text += line;
            self.text.push('\n');
            variables.push(variable.to_owned());
        }
    }

    /// The source as a whole.
    pub(super) fn whole(&self) -> Location {
        match &self.origin {
            Origin::File(file) => Location::new(file),
            Origin::Variables(_) => Location::new(Path::new("environment")),
        }
    }

    pub(super) fn lines(&self) -> Result<Vec<Line>, ConfigError> {
        let properties = properties::parse(&self.text)
            .map_err(|malformed| self.place(malformed.line).fault(malformed.what))?;
        Ok(properties.into_iter().map(|property| self.line(property)).collect())
    }

    fn line(&self, property: Property) -> Line {
        let key = property.key.trim();
        // Both are ways to one system property of ZooKeeper.
        let key = key.strip_prefix("zookeeper.").unwrap_or(key).to_owned();
        let earlier = property.earlier.map(|line| self.place(line));
        Line { place: self.place(property.line), key, value: property.value.trim().to_owned(), earlier }
    }

    fn place(&self, line: usize) -> Location {
        match &self.origin {
            Origin::File(file) => Location::at(file, line),
            Origin::Variables(variables) => Location::new(Path::new(&variables[line - 1])),
        }
    }
}

impl Line {
    pub(super) fn fault(&self, what: impl AsRef<str>) -> ConfigError {
        self.place.clone().fault(format!("{}: {}", self.key, what.as_ref()))
    }

    /// A remark that a key sets nothing, with the reason.
    pub(super) fn changes_nothing(&self, reason: &str) -> Remark {
        self.place.clone().detail(format!("{} changes nothing: {reason}", self.key))
    }

    pub(super) fn warning(&self, what: impl AsRef<str>) -> Remark {
        self.place.clone().warning(format!("{}: {}", self.key, what.as_ref()))
    }
}
