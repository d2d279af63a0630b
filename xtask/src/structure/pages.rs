//! Pages of documentation: their links lead somewhere, and the sources that they name are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::read;
use crate::layout::Layout;
use crate::process::Error;

/// Directories with pages and sources, beside the files at the top.
const DIRECTORIES: [&str; 6] = ["crates", "docs", "fixtures", "fuzz", "tests", "xtask"];
/// The history of changes names files that may be gone.
const HISTORY: &str = "CHANGELOG.md";

/// Complaints about links and names of sources that lead nowhere.
pub(super) fn check(layout: &Layout) -> Result<Vec<String>, Error> {
    let root = layout.source("");
    let mut files = vec![root.join("README.md"), root.join(HISTORY), root.join("LICENSE")];
    for directory in DIRECTORIES {
        collect(&root.join(directory), &mut files)?;
    }
    let names = |path: &PathBuf| Some(path.strip_prefix(&root).ok()?.to_string_lossy().into_owned());
    let paths: BTreeSet<String> = files.iter().filter_map(names).collect();
    let sources: BTreeSet<String> = paths.iter().map(|path| short(path)).collect();
    let mut complaints = Vec::new();
    for page in paths.iter().filter(|path| path.ends_with(".md")) {
        let text = read(&root.join(page))?;
        for (number, line) in prose(&text) {
            for link in links(line) {
                if !leads(&root, page, link) {
                    complaints.push(format!("{page}:{number}: nothing at {link}"));
                }
            }
            for name in sources_of(line).filter(|_| page != HISTORY) {
                if !sources.iter().any(|source| is_end(source, &short(name))) {
                    complaints.push(format!("{page}:{number}: no source {name}"));
                }
            }
        }
    }
    Ok(complaints)
}

/// All pages and Rust sources below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let path = entry.map_err(Error::io("list", directory))?.path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                collect(&path, files)?;
            }
        } else if name.ends_with(".md") || name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Lines of a page outside of its blocks of code, with their numbers.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// Targets of the links of a line, but for those to elsewhere.
pub(crate) fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://") && (target.contains('.') || target.contains('#')))
}

/// Names of Rust sources in backticks.
fn sources_of(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '/' | '_' | '-' | '.');
    line.split('`').skip(1).step_by(2).filter(move |name| name.ends_with(".rs") && name.chars().all(is_name))
}

/// A path as pages write it: `server/clients/serve.rs` for `crates/paddock-server/src/clients/serve.rs`.
fn short(path: &str) -> String {
    path.replace("crates/", "").replace("paddock-", "").replace("src/", "")
}

fn is_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// True if a page's link leads to a file, and to a heading of it.
fn leads(root: &Path, page: &str, link: &str) -> bool {
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    let page = root.join(page);
    let target = if path.is_empty() { page } else { page.parent().expect("a file").join(path) };
    match heading.filter(|_| target.extension().is_some_and(|extension| extension == "md")) {
        Some(heading) => fs::read_to_string(&target).is_ok_and(|text| has_heading(&text, heading)),
        None => target.exists(),
    }
}

fn has_heading(text: &str, anchor: &str) -> bool {
    prose(text).any(|(_, line)| line.starts_with('#') && slug(line) == anchor)
}

/// Anchor of a heading: lower case, without punctuation, with dashes for blanks.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_line_are_found() {
        let line =
            "See [a](b.md#c), [d](https://e/f.md), [`g`](../h.rs) and [i](#j); `--to [HOST](app)` is none.";
        assert_eq!(links(line).collect::<Vec<_>>(), ["b.md#c", "../h.rs", "#j"]);
    }

    #[test]
    fn blocks_of_code_are_no_prose() {
        let text = "one\n```sh\n[a](b.md)\n```\ntwo";
        assert_eq!(prose(text).collect::<Vec<_>>(), [(1, "one"), (5, "two")]);
    }

    #[test]
    fn headings_have_the_anchors_that_forges_give_them() {
        assert_eq!(slug("## ZooKeeper's `mntr`, in full"), "zookeepers-mntr-in-full");
        assert!(has_heading("# A b\n```\n# C\n```\n", "a-b"));
        assert!(!has_heading("# A b\n```\n# C\n```\n", "c"));
    }

    #[test]
    fn sources_may_be_named_by_the_end_of_their_path() {
        let line = "`server/clients/serve.rs` and `serve.rs`, not `Serve.rs` nor `cargo run serve.rs`";
        let names: Vec<&str> = sources_of(line).collect();
        assert_eq!(names, ["server/clients/serve.rs", "serve.rs", "Serve.rs"]);
        let source = short("crates/paddock-server/src/clients/serve.rs");
        let found: Vec<bool> = names.iter().map(|name| is_end(&source, &short(name))).collect();
        assert_eq!(found, [true, true, false]);
        assert!(!is_end(&source, "rve.rs"));
        assert_eq!(short("paddock-server/src/clients/serve.rs"), source);
    }
}
