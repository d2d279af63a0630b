//! Public items, as lines of Rust: those of a crate, and those of the types of lower crates that it shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::Value;

use super::rustdoc;
use crate::layout::Layout;
use crate::process::Error;

/// Formats of rustdoc's JSON that `public-api` reads alike.
const FORMATS: RangeInclusive<u64> = 57..=59;

/// Crates of this repository begin with this.
const OURS: &str = "paddock_";

/// Items of each of the crates; or the reason for which this toolchain cannot tell them.
pub(super) fn of_crates(layout: &Layout, crates: &[&str]) -> Result<Result<Vec<Vec<String>>, String>, Error> {
    let files = rustdoc::json(layout, crates)?;
    let mut shown = Vec::new();
    for file in &files {
        let text = fs::read(file).map_err(Error::io("read", file))?;
        let json: Value = serde_json::from_slice(&text)
            .map_err(|error| Error::new(format!("{} is no JSON: {error}", file.display())))?;
        if let Some(reason) = unknown_format(&json) {
            return Ok(Err(reason));
        }
        let mut lower = shown_from_lower_crates(&json);
        // A crate of the three has a list of its own.
        lower.retain(|(lower, _)| !crates.contains(&lower.replace('_', "-").as_str()));
        shown.push(lower);
    }
    // Types of a lower crate are looked for where they are defined.
    let lower: BTreeSet<&str> = shown.iter().flatten().map(|(lower, _)| lower.as_str()).collect();
    let lower: Vec<String> = lower.into_iter().map(|lower| lower.replace('_', "-")).collect();
    let mut items_of_lower = BTreeMap::new();
    // Documented together with the crates, they are made with the same features, and nothing is compiled once more.
    let packages: Vec<&str> = crates.iter().copied().chain(lower.iter().map(String::as_str)).collect();
    for (package, file) in packages.iter().zip(rustdoc::json(layout, &packages)?).skip(crates.len()) {
        items_of_lower.insert(package.replace('-', "_"), of_file(&file)?);
    }
    let lists = files.iter().zip(shown).map(|(file, shown)| {
        let mut items = of_file(file)?;
        for (lower, name) in &shown {
            items.extend(items_of_lower[lower].iter().filter(|line| is_of(line, lower, name)).cloned());
        }
        Ok(items)
    });
    Ok(Ok(lists.collect::<Result<_, Error>>()?))
}

fn of_file(file: &Path) -> Result<Vec<String>, Error> {
    let builder = public_api::Builder::from_rustdoc_json(file).omit_blanket_impls(true);
    let builder = builder.omit_auto_trait_impls(true).omit_auto_derived_impls(true);
    let items = builder.build().map_err(|error| Error::new(format!("{}: {error}", file.display())))?;
    Ok(items.items().map(ToString::to_string).collect())
}

fn unknown_format(json: &Value) -> Option<String> {
    let format = json["format_version"].as_u64().unwrap_or_default();
    let (first, last) = (FORMATS.start(), FORMATS.end());
    let reason =
        || format!("rustdoc of this toolchain writes format {format}, and {first} to {last} can be read");
    (!FORMATS.contains(&format)).then(reason)
}

/// Crate and name of each item of another crate of ours that is shown by `pub use`.
fn shown_from_lower_crates(json: &Value) -> BTreeSet<(String, String)> {
    let of_use = |item: &Value| {
        let source = item.pointer("/inner/use/id")?;
        let id =
            source.as_u64().map_or_else(|| source.as_str().map(str::to_owned), |id| Some(id.to_string()));
        let path = json["paths"][id?]["path"].as_array()?;
        let part = |part: &Value| part.as_str().map(str::to_owned);
        Some((part(path.first()?)?, part(path.last()?)?))
    };
    let own = json["index"].as_object().and_then(|index| {
        let root = index.get(&json["root"].as_u64()?.to_string())?;
        Some(root["name"].as_str()?.to_owned())
    });
    let index = json["index"].as_object().into_iter().flat_map(|index| index.values());
    let uses = index.filter_map(of_use);
    uses.filter(|(lower, _)| lower.starts_with(OURS) && Some(lower) != own.as_ref()).collect()
}

/// True for a line about this item of a lower crate, or about a part of it: in the first path of the line that leads into the crate, its name is that of the type, or
/// the last one if there is no type.
fn is_of(line: &str, lower: &str, name: &str) -> bool {
    let Some(start) = line.find(&format!("{lower}::")) else { return false };
    let is_in_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let rest = &line[start..];
    let path = &rest[..rest.find(|letter| !is_in_path(letter)).unwrap_or(rest.len())];
    let parts = path.split("::").filter(|part| !part.is_empty());
    let of_type = parts.clone().find(|part| part.starts_with(char::is_uppercase));
    of_type.or_else(|| parts.last()) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_the_first_path() {
        let check = |line: &str, expected: bool| {
            assert_eq!(is_of(line, "paddock_tls", "Store"), expected, "{line}");
        };
        check("pub struct paddock_tls::Store", true);
        check("pub paddock_tls::Store::path: std::path::PathBuf", true);
        check("pub fn paddock_tls::store::Store::load(&self) -> paddock_tls::Loaded", true);
        check("impl core::fmt::Debug for paddock_tls::Store", true);
        check("pub paddock_tls::Other::store: paddock_tls::Store", false);
        check("pub struct paddock_tls::StoreError", false);
        check("pub paddock_tls::TlsError::Store", false);
        check("pub fn paddock_tls::load_store(&paddock_tls::Store)", false);
        check("pub struct paddock_tree::Store", false);
        assert!(is_of("pub fn paddock_os::files::open()", "paddock_os", "open"));
    }

    #[test]
    fn what_is_shown_is_named_where_it_is_defined() {
        let json = serde_json::json!({
            "root": 0,
            "index": {
                "0": {"name": "paddock_server", "inner": {"module": {}}},
                "1": {"inner": {"use": {"source": "paddock_proto::MemberRole", "name": "Role", "id": 7}}},
                "2": {"inner": {"use": {"source": "config::Config", "name": "Config", "id": 8}}},
                "3": {"inner": {"use": {"source": "std::io", "name": "io", "id": 9}}},
            },
            "paths": {
                "7": {"path": ["paddock_proto", "member", "MemberRole"]},
                "8": {"path": ["paddock_server", "config", "Config"]},
                "9": {"path": ["std", "io"]},
            },
        });
        let expected = ("paddock_proto".to_owned(), "MemberRole".to_owned());
        assert_eq!(shown_from_lower_crates(&json), BTreeSet::from([expected]));
    }

    #[test]
    fn another_format_is_a_reason_not_to_read() {
        let format = |version: u64| unknown_format(&serde_json::json!({"format_version": version}));
        assert_eq!(format(57), None);
        assert!(format(60).is_some_and(|reason| reason.contains("60")));
        assert!(unknown_format(&serde_json::json!({})).is_some());
    }
}
