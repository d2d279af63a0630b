//! A place in the configuration, and what is said about it: an error that ends the start, or a remark for the operator.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use paddock_server::EnsembleMember;

use super::origins::Origins;

/// Name of the part that logs, for remarks.
const TARGET: &str = "paddock::config";

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
        ConfigError { place: self, what: what.into(), others: Vec::new(), members: None }
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
        write!(f, "{}", printable(&self.file.to_string_lossy()))?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// Errors for which a configuration cannot be used. As text it is one line, about the first of them.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    place: Location,
    what: String,
    /// The rest, of the same configuration.
    others: Vec<ConfigError>,
    /// The members, if the error is that this member is not one of them.
    members: Option<Vec<EnsembleMember>>,
}

impl ConfigError {
    /// A line for each error.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        std::iter::once(self).chain(&self.others).map(ConfigError::line)
    }

    /// This error as that of a configuration that names these members and not this one.
    pub(crate) fn with_members(self, members: Vec<EnsembleMember>) -> ConfigError {
        ConfigError { members: Some(members), ..self }
    }

    /// The members, if the only error is that this member is not one of them. A member that runs is to leave then.
    pub fn members_without_this(&self) -> Option<&[EnsembleMember]> {
        self.members.as_deref().filter(|_| self.others.is_empty())
    }

    fn line(&self) -> String {
        format!("{}: {}", self.place, printable(&self.what))
    }

    /// The key that is wrong, if one is.
    fn key(&self) -> Option<&str> {
        self.what.split_once(": ").map(|(key, _)| key)
    }

    /// True if the error may be there only because of the other: a key that is wrong is missing later on, and a member that could not
    /// be read is not among the members.
    fn may_follow_from(&self, other: &ConfigError) -> bool {
        let Some(key) = other.key() else { return true };
        let is_of_member = ["server", "ensemble", "raft_configuration"].iter().any(|of| key.starts_with(of));
        is_of_member || self.what.contains(key)
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        match self.others.len() {
            0 => Ok(()),
            others => write!(f, " (and {others} more: --check shows all)"),
        }
    }
}

/// Text in which control characters are escaped, so that it can be shown on a terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// All that is noted while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    pub(super) list: Vec<Remark>,
    pub(super) origins: Origins,
    /// Errors after which the rest was still read.
    faults: Vec<ConfigError>,
}

impl Remarks {
    pub(super) fn push(&mut self, remark: Remark) {
        self.list.push(remark);
    }

    pub(super) fn extend(&mut self, remarks: impl IntoIterator<Item = Remark>) {
        self.list.extend(remarks);
    }

    /// Keeps an error, so that others are found too. The configuration is refused at its end.
    pub(super) fn note<T>(&mut self, outcome: Result<T, ConfigError>) -> Option<T> {
        outcome.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// The outcome of reading, unless there were errors on the way.
    pub(super) fn settle<T>(&mut self, outcome: Result<T, ConfigError>) -> Result<T, ConfigError> {
        let mut faults = std::mem::take(&mut self.faults);
        faults.sort_by(|a, b| (&a.place.file, a.place.line).cmp(&(&b.place.file, b.place.line)));
        let mut faults = faults.into_iter();
        let Some(mut first) = faults.next() else { return outcome };
        first.others = faults.collect();
        if let Err(last) = outcome {
            let follows =
                last.may_follow_from(&first) || first.others.iter().any(|other| last.may_follow_from(other));
            if !follows {
                first.others.push(last);
            }
        }
        Err(first)
    }
}

/// A fact that the operator should know about a configuration that can be used.
#[derive(Debug, PartialEq, Eq)]
pub struct Remark {
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
    pub fn log(&self) {
        match self.weight {
            Weight::Warning => tracing::warn!(target: TARGET, "{self}"),
            Weight::Detail => tracing::debug!(target: TARGET, "{self}"),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, printable(&self.what))
    }
}

pub(super) fn cannot_read(file: &Path, error: &io::Error) -> ConfigError {
    Location::new(file).fault(format!("cannot be read: {error}"))
}
