//! Rooms of a crate: below each folder, a room is a folder with the file of its name, or a file alone.
//!
//! Files in a room may know each other more closely than rooms do: between rooms arrows go one way only. The file of a folder's name is
//! part of the folder, and of none of the rooms in it.

use std::collections::{BTreeMap, BTreeSet};

use super::circles;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Circles between rooms that stand next to each other, at least one of them a folder.
pub(super) fn circles(files: &Graph) -> Vec<Vec<String>> {
    let folders = folders(files);
    let mut found = Vec::new();
    for parent in folders.iter().map(String::as_str).chain([""]) {
        let circles = circles::find(&between(files, parent));
        found.extend(circles.into_iter().filter(|circle| circle.iter().any(|room| folders.contains(room))));
    }
    found.sort();
    found
}

/// Folders of a crate, as paths: `engine`, `reports/spans`.
fn folders(files: &Graph) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for file in files.keys() {
        folders.extend(file.match_indices('/').map(|(end, _)| file[..end].to_owned()));
    }
    folders
}

/// For each room below `parent` the rooms beside it that its files depend on.
fn between(files: &Graph, parent: &str) -> Graph {
    let mut rooms = Graph::new();
    for (file, targets) in files {
        let Some(room) = room(file, parent) else { continue };
        let others = targets.iter().filter_map(|target| self::room(target, parent));
        rooms.entry(room.clone()).or_default().extend(others.filter(|other| *other != room));
    }
    rooms
}

/// The room of a file below `parent`; `None` if the file stands elsewhere, or is the crate's root.
fn room(file: &str, parent: &str) -> Option<String> {
    let below = if parent.is_empty() { file } else { file.strip_prefix(parent)?.strip_prefix('/')? };
    let name = below.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    let is_root = matches!(name, "lib" | "main" | "mod");
    (!is_root).then(|| if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arrows: &[(&str, &str)], expected: &[&[&str]]) {
        let mut files = Graph::new();
        for (from, to) in arrows {
            files.entry((*from).into()).or_default().insert((*to).into());
            files.entry((*to).into()).or_default();
        }
        assert_eq!(circles(&files), expected);
    }

    #[test]
    fn rooms_know_each_other_through_any_of_their_files() {
        check(&[("a/x.rs", "b.rs"), ("b/y.rs", "a.rs")], &[&["a", "b"]]);
        check(&[("a/x.rs", "b/y.rs"), ("b/y.rs", "c.rs"), ("c.rs", "a/z.rs")], &[&["a", "b", "c"]]);
        check(&[("a/x.rs", "b/y.rs"), ("b/z.rs", "c.rs"), ("lib.rs", "a.rs"), ("a/x.rs", "lib.rs")], &[]);
    }

    #[test]
    fn a_folder_has_rooms_of_its_own() {
        check(&[("a/b/x.rs", "a/c.rs"), ("a/c.rs", "a/b.rs")], &[&["a/b", "a/c"]]);
        check(&[("a.rs", "a/b/x.rs"), ("a/b/x.rs", "a.rs")], &[]);
    }

    #[test]
    fn files_alone_are_no_folders() {
        check(&[("a.rs", "b.rs"), ("b.rs", "a.rs")], &[]);
    }
}
