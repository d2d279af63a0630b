//! A place in the configuration, and what is said about it: an error that ends the start, or a remark for the operator.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file, and a line of it if one is meant; or the name of what stands in for a file, such as a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    file: PathBuf,
    line: Option<usize>,
}

impl Location {
    pub(super) fn new(file: &Path) -> Location {
        Location { file: file.to_owned(), line: None }
    }

    pub(super) fn at(file: &Path, line: usize) -> Location {
        Location { file: file.to_owned(), line: Some(line) }
    }

    /// Without the line.
    pub(super) fn whole(&self) -> Location {
        Location::new(&self.file)
    }

    /// The file, or what stands in its place.
    pub(super) fn source(&self) -> std::path::Display<'_> {
        self.file.display()
    }

    pub(super) fn fault(self, what: impl Into<String>) -> ConfigError {
        ConfigError { place: self, what: what.into() }
    }

    pub(super) fn warning(self, what: impl Into<String>) -> Remark {
        Remark { weight: Weight::Warning, place: self, what: what.into() }
    }

    pub(super) fn detail(self, what: impl Into<String>) -> Remark {
        Remark { weight: Weight::Detail, place: self, what: what.into() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// Errors for which a configuration cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub(crate) struct ConfigError {
    place: Location,
    what: String,
}

/// A fact that the operator should know about a configuration that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(super) weight: Weight,
    place: Location,
    what: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Warning,
    Detail,
}

impl Remark {
    pub(crate) fn log(&self) {
        match self.weight {
            Weight::Warning => tracing::warn!("{self}"),
            Weight::Detail => tracing::debug!("{self}"),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

pub(super) fn cannot_read(file: &Path, error: &io::Error) -> ConfigError {
    Location::new(file).fault(format!("cannot be read: {error}"))
}
