//! Floors of the crates: each depends only on crates of lower floors.

use crate::layout::Layout;
use crate::process::Error;

/// Crates of the product with their floors. `docs/architecture.md` tells the same to readers.
const FLOORS: &[(&str, u32)] = &[
    ("paddock-chance", 0),
    ("paddock-gssapi", 0),
    ("paddock-os", 0),
    ("paddock-proto", 0),
    ("paddock-relay", 0),
    ("paddock-sasl", 0),
    ("paddock-settings", 0),
    ("paddock-yaml", 0),
    ("paddock-spans", 1),
    ("paddock-tree", 1),
    ("paddock-storage", 1),
    ("paddock-tls", 1),
    ("paddock-files", 2),
    ("paddock-http", 2),
    ("paddock-links", 2),
    ("paddock-state", 2),
    ("paddock-forward", 3),
    ("paddock-front", 3),
    ("paddock-groups", 3),
    ("paddock-replica", 3),
    ("paddock-client", 3),
    ("paddock-member", 4),
    ("paddock-bench", 4),
    ("paddock-shell", 4),
    ("paddock-etcd", 4),
    ("paddock-statistics", 4),
    ("paddock-cross-check", 5),
    ("paddock-server", 6),
    ("paddock-config", 7),
    ("paddock-testing", 7),
    ("paddock", 8),
];
const DOCUMENT: &str = "architecture.md";

/// Complaints about dependencies that point up, and about floors that readers are told otherwise.
pub(super) fn check(layout: &Layout) -> Result<Vec<String>, Error> {
    let mut complaints = Vec::new();
    for &(name, floor) in FLOORS {
        let manifest = super::read(&layout.source(format!("crates/{name}/Cargo.toml")))?;
        complaints.extend(arrows_up(name, floor, &manifest));
    }
    complaints.extend(compare(&super::read(&layout.document(DOCUMENT))?));
    Ok(complaints)
}

fn floor_of(name: &str) -> Option<u32> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// Dependencies of a manifest that are not below this floor. Those for tests alone may be anything.
fn arrows_up(name: &str, floor: u32, manifest: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut is_product = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_product = line == "[dependencies]";
        }
        let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if !is_product || !dependency.starts_with("paddock") {
            continue;
        }
        match floor_of(dependency) {
            Some(below) if below < floor => {}
            Some(_) => complaints.push(format!("{name} depends on {dependency}, which is not below it")),
            None => complaints.push(format!("{name} depends on {dependency}, which has no floor")),
        }
    }
    complaints
}

/// Rows of the document, such as "| 3 | `paddock-front` | … |", that differ from the table here.
fn compare(document: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for &(name, floor) in FLOORS {
        let row = format!("| {floor} | `{name}` |");
        if !document.lines().any(|line| line.starts_with(&row)) {
            complaints.push(format!("docs/{DOCUMENT} has no row that begins with {row}"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_down() {
        let manifest = "[dependencies]\npaddock-proto.workspace = true\npaddock-server = { path = \"x\" }\n\
                        bytes.workspace = true\n[dev-dependencies]\npaddock-bench.workspace = true\n";
        assert_eq!(
            arrows_up("paddock-tree", 1, manifest),
            ["paddock-tree depends on paddock-server, which is not below it"]
        );
    }

    #[test]
    fn readers_are_told_the_same_floors() {
        let rows = FLOORS.iter().map(|(name, floor)| format!("| {floor} | `{name}` | it owns |\n"));
        let document: String = rows.collect();
        assert!(compare(&document).is_empty());
        assert_eq!(compare(&document.replace("| 5 |", "| 4 |")).len(), 1);
    }
}
