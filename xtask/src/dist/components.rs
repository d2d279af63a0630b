//! The crates of which the program is made: their licences for its users, and a bill of materials in CycloneDX's form.

mod bill;
mod notices;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::source::DistSource;
use super::target::Target;
use crate::layout::Layout;
use crate::process::Error;

/// A crate that is compiled into the program.
#[derive(Debug)]
struct Component {
    name: String,
    version: String,
    license: String,
    repository: Option<String>,
    directory: PathBuf,
    /// SHA-256 of its package at the registry; `None` for a crate of this repository.
    checksum: Option<String>,
    /// Names and versions of the crates that it uses itself.
    uses: Vec<(String, String)>,
}

impl Component {
    fn is_of_others(&self) -> bool {
        self.checksum.is_some()
    }
}

/// The files that tell of components.
#[derive(Debug)]
pub(super) struct Listings {
    pub(super) notices: PathBuf,
    pub(super) bill: PathBuf,
}

/// Writes the listings of a target into a directory.
pub(super) fn write(
    layout: &Layout,
    source: &DistSource,
    target: Target,
    root: &Path,
    directory: &Path,
) -> Result<Listings, Error> {
    let components = all(layout, target, root)?;
    let own = root.join("LICENSE");
    let own = fs::read_to_string(&own).map_err(Error::io("read", &own))?;
    let put = |name: &str, text: String| {
        let file = directory.join(name);
        fs::write(&file, text).map_err(Error::io("write", &file)).map(|()| file)
    };
    Ok(Listings {
        notices: put("THIRD-PARTY.txt", notices::text(&components, &own)?)?,
        bill: put("bill.json", bill::text(source, target, &components)?)?,
    })
}

/// All components in the order of their names. Procedural macros run in the compiler and are not among them.
fn all(layout: &Layout, target: Target, root: &Path) -> Result<Vec<Component>, Error> {
    let cargo = |arguments: &[&str]| layout.cargo().current_dir(root).args(arguments).arg("--locked");
    let triple = target.triple();
    let tree = ["tree", "--package", "paddock", "--edges", "normal,no-proc-macro", "--prefix", "none"];
    let tree = cargo(&tree).args(["--no-dedupe", "--format", "{p}", "--target", &triple]).output()?;
    let metadata = cargo(&["metadata", "--format-version", "1", "--filter-platform", &triple]).output()?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| Error::new(format!("cargo metadata: {error}")))?;
    let lock = root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(Error::io("read", &lock))?;
    let is_linked = linked(&tree);
    let mut components = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let key = (text(&package["name"]), text(&package["version"]));
        if is_linked.contains(&key) {
            let directory = PathBuf::from(text(&package["manifest_path"]));
            components.insert(
                text(&package["id"]),
                Component {
                    license: text(&package["license"]).replace('/', " OR "),
                    repository: package["repository"].as_str().map(str::to_owned),
                    directory: directory.parent().unwrap_or(root).to_owned(),
                    checksum: checksum(&lock, &key),
                    uses: Vec::new(),
                    name: key.0,
                    version: key.1,
                },
            );
        }
    }
    for node in list(&metadata["resolve"]["nodes"]) {
        let used = list(&node["deps"]).iter().filter(|used| is_normal(used));
        let used = used.filter_map(|used| components.get(&text(&used["pkg"])));
        let uses = used.map(|used| (used.name.clone(), used.version.clone())).collect();
        if let Some(component) = components.get_mut(&text(&node["id"])) {
            component.uses = uses;
        }
    }
    let mut components: Vec<Component> = components.into_values().collect();
    components.sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
    Ok(components)
}

/// Names and versions out of lines of `cargo tree`, such as `rustls v0.23.1` and `paddock v0.1.0 (/src/paddock)`.
fn linked(tree: &str) -> BTreeSet<(String, String)> {
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        Some((name, words.next()?.strip_prefix('v')?.to_owned()))
    };
    tree.lines().filter_map(parse).collect()
}

/// True for an edge of `cargo metadata` that is neither of tests nor of build scripts alone.
fn is_normal(used: &Value) -> bool {
    list(&used["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
}

/// The check sum of a package in Cargo.lock.
fn checksum(lock: &str, (name, version): &(String, String)) -> Option<String> {
    let start = format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
    let (_, rest) = lock.split_once(&start)?;
    let own = rest.split("[[package]]").next()?;
    let (_, sum) = own.split_once("checksum = \"")?;
    sum.split('"').next().map(str::to_owned)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_a_tree_are_known_by_name_and_version() {
        let tree =
            "paddock v0.1.0 (/src/crates/paddock)\nrustls v0.23.1\nrustls v0.23.1\nsha2 v0.11.0 (*)\n\n";
        let linked: Vec<String> =
            linked(tree).into_iter().map(|(name, version)| name + " " + &version).collect();
        assert_eq!(linked, ["paddock 0.1.0", "rustls 0.23.1", "sha2 0.11.0"]);
    }

    #[test]
    fn only_crates_of_a_registry_have_a_checksum() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [\n \"b\",\n]\n\n\
                    [[package]]\nname = \"b\"\nversion = \"2.0.0\"\nsource = \"registry\"\nchecksum = \"12ab\"\n";
        let sum = |name: &str, version: &str| checksum(lock, &(name.to_owned(), version.to_owned()));
        assert_eq!(sum("a", "1.0.0"), None);
        assert_eq!(sum("b", "2.0.0").as_deref(), Some("12ab"));
        assert_eq!(sum("b", "2.0.1"), None);
    }
}
