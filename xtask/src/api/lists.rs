//! The stored lists: a line for each public item.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::layout::Layout;
use crate::process::Error;

/// File with the stored items of a crate.
pub(super) fn file(layout: &Layout, name: &str) -> PathBuf {
    layout.document("api").join(format!("{name}.txt"))
}

/// Stores the items of a crate.
pub(super) fn write(file: &Path, name: &str, items: &[String]) -> Result<(), Error> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    }
    let mut text = format!(
        "# Public items of {name}, and of the types of lower crates that it shows: cargo xtask api --write\n"
    );
    for item in items {
        text.push_str(item);
        text.push('\n');
    }
    fs::write(file, text).map_err(Error::io("write", file))
}

/// Lines that are in one of two lists only. Their order does not matter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Differences {
    /// Number of items of now.
    pub(super) count: usize,
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
}

impl Differences {
    /// The differences of a stored text and the items of now.
    pub(super) fn between(stored: &str, items: &[String]) -> Differences {
        let stored: BTreeSet<&str> =
            stored.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).collect();
        let now: BTreeSet<&str> = items.iter().map(String::as_str).collect();
        let only = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| {
            one.difference(other).map(|&line| line.to_owned()).collect()
        };
        Differences { count: now.len(), added: only(&now, &stored), removed: only(&stored, &now) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_compared() {
        let file = std::env::temp_dir().join(format!("paddock-api-{}.txt", std::process::id()));
        let items =
            ["pub mod one", "#[non_exhaustive] pub enum one::E", "pub fn one::f()"].map(str::to_owned);
        write(&file, "one", &items).expect("the directory is there");
        let stored = fs::read_to_string(&file).expect("it was written");
        fs::remove_file(&file).expect("it was written");
        assert!(Differences::between(&stored, &items).is_empty(), "{stored}");
        let fewer = Differences::between(&stored, &items[..2]);
        assert_eq!((fewer.count, fewer.added.len()), (2, 0));
        assert_eq!(fewer.removed, ["pub fn one::f()"]);
    }
}
