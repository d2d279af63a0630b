//! `cargo xtask check`: the structure that no compiler looks after.
//!
//! Crates depend only on floors below theirs (`floors.rs`), no more than three files of a crate import each other in a circle
//! (`modules.rs`, `circles.rs`), no folders do (`rooms.rs`), and no doc comment begins with a riddle (`comments.rs`). Exceptions of today
//! stand in `xtask/structure-known.txt`, a line each. A line that is not needed any more is an error too, so that the list only shrinks.
//!
//! Words that leave a reader guessing (`language.rs`) and names of several types (`names.rs`) are counted, in the whole workspace, and may
//! not become more than that list allows (`limits.rs`). Links of pages, and sources that they name, have to be there (`pages.rs`).

mod circles;
mod comments;
mod floors;
mod language;
mod limits;
mod modules;
mod names;
mod pages;
mod rooms;

pub(crate) use pages::{links, prose};

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::layout::Layout;
use crate::process::Error;
use limits::LanguageCounts;
use modules::Module;

/// Files that may import each other: two that were one, and the file that tells of both.
const CIRCLE_MAX: usize = 3;
const KNOWN: &str = "xtask/structure-known.txt";

/// Checks the structure of the workspace. Returns true if there is nothing to complain of; complaints are printed.
pub(crate) fn check(layout: &Layout) -> Result<bool, Error> {
    let mut complaints = floors::check(layout)?;
    complaints.extend(pages::check(layout)?);
    let mut found = BTreeSet::new();
    let mut counts = LanguageCounts::default();
    for (name, directory) in packages(layout)? {
        let sources = rust_files(&directory)?;
        let src = directory.join("src");
        let modules: Vec<Module> = sources
            .iter()
            .filter_map(|(path, text)| Module::parse(path.strip_prefix(&src).ok()?, text))
            .collect();
        let arrows = modules::arrows(&modules);
        for circle in circles::find(&arrows) {
            if circle.len() > CIRCLE_MAX {
                found.insert(format!("circle {name}: {}", circle.join(" ")));
            }
        }
        for circle in rooms::circles(&arrows) {
            found.insert(format!("rooms {name}: {}", circle.join(" ")));
        }
        let riddles: usize = sources.iter().map(|(_, text)| comments::riddles(text).len()).sum();
        if riddles > 0 {
            found.insert(format!("comments {name}: {riddles}"));
        }
        for (path, text) in &sources {
            counts.add(&path.strip_prefix(layout.source("")).unwrap_or(path).to_string_lossy(), text);
        }
    }
    let known = read(&layout.source(KNOWN))?;
    complaints.extend(compare(&found, &known));
    complaints.extend(counts.excesses(&known));
    counts.savings(&known).iter().for_each(|saving| println!("structure: {KNOWN} may say {saving}"));
    complaints.iter().for_each(|complaint| eprintln!("structure: {complaint}"));
    Ok(complaints.is_empty())
}

/// Differences between the exceptions that were found and those that are known.
fn compare(found: &BTreeSet<String>, known: &str) -> Vec<String> {
    let known: BTreeSet<String> =
        limits::lines(known).filter(|line| limits::parse(line).is_none()).map(str::to_owned).collect();
    let new = found.difference(&known).map(|line| format!("new: {line}"));
    let gone =
        known.difference(found).map(|line| format!("take this line out of {KNOWN}, or lower it: {line}"));
    new.chain(gone).collect()
}

/// Packages of the workspace with their directories, by name.
fn packages(layout: &Layout) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut packages = BTreeMap::new();
    for name in ["xtask", "tests"] {
        packages.insert(name.to_owned(), layout.source(name));
    }
    let crates = layout.source("crates");
    for entry in fs::read_dir(&crates).map_err(Error::io("list", &crates))? {
        let path = entry.map_err(Error::io("list", &crates))?.path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        packages.insert(name, path);
    }
    Ok(packages)
}

/// The Rust files below a directory, with their texts, by path.
fn rust_files(directory: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(Error::io("list", &directory))? {
            let path = entry.map_err(Error::io("list", &directory))?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = read(&path)?;
                files.push((path, text));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_exceptions_only_shrinks() {
        let found: BTreeSet<String> = ["comments a: 2".to_owned(), "circle b: x y z u".to_owned()].into();
        let known = "# why\n\ncomments a: 3\ncircle b: x y z u\n";
        let complaints = compare(&found, known);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].starts_with("new: comments a: 2"));
        assert!(complaints[1].ends_with("comments a: 3"));
    }
}
