//! Modules of a crate and the arrows between their files, by a short reading of `use` lines and paths.
//!
//! A file that declares modules and re-exports what they have (`pub use`) does not depend on them for that, and who imports a
//! re-exported name depends on the module that has it. Code for tests is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file of a crate, as far as its imports tell.
#[derive(Debug)]
pub(super) struct Module {
    file: String,
    /// Place in the crate: `[]` for `lib.rs` and `main.rs`, `["engine", "owner"]` for `engine/owner.rs`.
    place: Vec<String>,
    /// Paths that the code names.
    paths: Vec<CratePath>,
    /// Names that it re-exports or imports, with the paths that they stand for.
    names: BTreeMap<String, CratePath>,
}

/// Segments from the crate's root on.
type CratePath = Vec<String>;

impl Module {
    /// Reads a file below a crate's `src`; `None` for a file of tests.
    pub(super) fn parse(file: &Path, text: &str) -> Option<Module> {
        let name = file.to_string_lossy().into_owned();
        let mut place: Vec<String> = name.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
        if matches!(place.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            place.pop();
        }
        if place.iter().any(|segment| matches!(segment.as_str(), "tests" | "testing" | "bin")) {
            return None;
        }
        let mut module = Module { file: name, place, paths: Vec::new(), names: BTreeMap::new() };
        module.read(&without_tests(text));
        Some(module)
    }

    fn read(&mut self, code: &str) {
        let mut rest = code;
        while let Some(at) = rest.find("use ") {
            let line = rest[..at].rsplit('\n').next().unwrap_or_default();
            let is_use = ["", "pub ", "pub(crate) ", "pub(super) "].contains(&line.trim_start());
            let (statement, after) = rest[at + 4..].split_once(';').unwrap_or((&rest[at + 4..], ""));
            if is_use {
                for path in expand(&condense(statement)) {
                    let path = self.absolute(path);
                    let name = path.last().cloned().unwrap_or_default();
                    self.names.insert(name, path.clone());
                    if line.trim_start().is_empty() {
                        self.paths.push(path);
                    }
                }
                rest = after;
            } else {
                rest = &rest[at + 4..];
            }
        }
        self.read_inline(code);
    }

    /// Paths within code: `crate::clock::wall_ms()`, `super::read(…)`, and those of modules that the file declares.
    fn read_inline(&mut self, code: &str) {
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for word in line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
                let segments: Vec<String> =
                    word.split("::").filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
                let is_path = word.contains("::") && !word.starts_with("::");
                if is_path && !line.trim_start().contains("use ") {
                    let path = self.absolute(segments);
                    self.paths.push(path);
                }
            }
        }
    }

    /// A path from the crate's root on. One that begins with neither `crate`, `super` nor `self` may name a child module.
    fn absolute(&self, path: Vec<String>) -> CratePath {
        let mut place = self.place.clone();
        let mut rest = path.as_slice();
        match rest.first().map(String::as_str) {
            Some("crate") => (place, rest) = (Vec::new(), &rest[1..]),
            Some("self") => rest = &rest[1..],
            _ => {
                while let Some(("super", after)) =
                    rest.split_first().map(|(first, after)| (first.as_str(), after))
                {
                    place.pop();
                    rest = after;
                }
            }
        }
        place.extend_from_slice(rest);
        place
    }
}

/// The code without `mod tests { … }`, which stands at the end of a file.
fn without_tests(text: &str) -> String {
    let starts = ["", "pub(crate) ", "pub(super) "].map(|vis| format!("#[cfg(test)]\n{vis}mod tests {{"));
    let end = starts.iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len());
    text[..end].to_owned()
}

/// The text of a `use` without white space and without new names: `a::{b as c, d}` is `a::{b,d}`.
fn condense(statement: &str) -> String {
    let mut condensed = String::new();
    let mut is_renamed = false;
    for word in statement.split_whitespace() {
        if std::mem::take(&mut is_renamed) {
            condensed.extend(word.chars().filter(|c| matches!(c, ',' | '}')));
        } else if word == "as" {
            is_renamed = true;
        } else {
            condensed.push_str(word);
        }
    }
    condensed
}

/// The paths of a condensed `use`: `a::{b,c::d}` has two.
fn expand(condensed: &str) -> Vec<CratePath> {
    let Some((head, list)) = condensed.split_once('{') else {
        let segments = condensed.split("::").filter(|segment| !segment.is_empty());
        return vec![segments.map(str::to_owned).collect()];
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    let mut paths = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let item = &list[start..at];
                start = at + 1;
                match item {
                    "" => {}
                    "self" => paths.extend(expand(head)),
                    item => paths.extend(expand(&format!("{head}{item}"))),
                }
            }
            _ => {}
        }
    }
    paths
}

/// For each file the files that it depends on.
pub(super) fn arrows(modules: &[Module]) -> BTreeMap<String, BTreeSet<String>> {
    let by_place: BTreeMap<&[String], &Module> =
        modules.iter().map(|module| (module.place.as_slice(), module)).collect();
    let mut arrows = BTreeMap::new();
    for module in modules {
        let targets = module.paths.iter().filter_map(|path| owner(path, &by_place, 0));
        let others = targets.filter(|target| target.file != module.file).map(|target| target.file.clone());
        arrows.insert(module.file.clone(), others.collect());
    }
    arrows
}

/// The module that has what a path names: the deepest one on it, or the one from which that has it by a `use`.
fn owner<'a>(path: &[String], modules: &BTreeMap<&[String], &'a Module>, depth: usize) -> Option<&'a Module> {
    let longest =
        (0..=path.len()).rev().find_map(|len| modules.get(&path[..len]).map(|module| (len, *module)));
    let (len, module) = longest?;
    let named = path.get(len).and_then(|name| module.names.get(name));
    match named {
        // A `use` that leads out of the crate, or back to itself, names nothing here.
        Some(target) if depth < 8 && target.as_slice() != path => {
            let found = owner(target, modules, depth + 1)?;
            let leads_out = found.place.is_empty() && !target.is_empty() && target.len() > 1;
            if leads_out { None } else { Some(found) }
        }
        // The crate's root is taken for what other crates have, unless it is named with `crate`.
        _ if module.place.is_empty() && path.len() > 1 => None,
        _ => Some(module),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let modules: Vec<Module> =
            files.iter().filter_map(|(file, text)| Module::parse(Path::new(file), text)).collect();
        arrows(&modules).into_iter().map(|(file, to)| (file, to.into_iter().collect())).collect()
    }

    fn check(files: &[(&str, &str)], expected: &[(&str, &[&str])]) {
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(file, to)| (file.to_string(), to.iter().map(|to| to.to_string()).collect()))
            .collect();
        assert_eq!(graph(files), expected);
    }

    #[test]
    fn an_import_is_an_arrow_and_a_re_export_is_none() {
        check(
            &[
                ("lib.rs", "mod a;\nmod b;\npub use a::Thing;\n"),
                ("a.rs", "use std::fmt;\nuse crate::b::{self, Other};\npub struct Thing;\n"),
                ("b.rs", "use crate::Thing;\n"),
            ],
            &[("a.rs", &["b.rs"]), ("b.rs", &["a.rs"]), ("lib.rs", &[])],
        );
    }

    #[test]
    fn children_and_parents_are_found() {
        check(
            &[
                ("lib.rs", "mod a;\n"),
                ("a.rs", "mod x;\nmod y;\nuse x::X;\nstruct A;\nfn f() { y::g(); }\n"),
                ("a/x.rs", "use super::{A, y::Y};\n"),
                ("a/y.rs", "use super::super::a;\n"),
            ],
            &[
                ("a.rs", &["a/x.rs", "a/y.rs"]),
                ("a/x.rs", &["a.rs", "a/y.rs"]),
                ("a/y.rs", &["a.rs"]),
                ("lib.rs", &[]),
            ],
        );
    }

    #[test]
    fn tests_and_other_crates_are_left_out() {
        check(
            &[
                ("lib.rs", "mod a;\nmod b;\n"),
                (
                    "a.rs",
                    "use other::b::C;\n// crate::b is told of here\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n",
                ),
                ("b.rs", "fn f() { crate::a::g(); }\n"),
                ("a/tests.rs", "use crate::b::X;\n"),
            ],
            &[("a.rs", &[]), ("b.rs", &["a.rs"]), ("lib.rs", &[])],
        );
    }
}
