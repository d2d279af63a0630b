//! Large things in the tree: lists of children that clients cannot read, and data that a coordination service is not for.

use super::common::bytes;
use crate::doctor::facts::{DoctorFacts, TreeFacts};
use crate::doctor::finding::{Finding, Level};

/// Bytes of a reply that ZooKeeper's clients take unless `jute.maxbuffer` says otherwise: 1 MiB less one.
const REPLY_BYTES_MAX: u64 = 0xf_ffff;
/// Children from which each listing is heavy.
const CHILDREN_MANY: u64 = 100_000;
/// Data from which a write is heavy for all members.
const VALUE_BYTES_LARGE: u64 = 512 << 10;

fn walked(facts: &DoctorFacts) -> Option<&TreeFacts> {
    facts.tree.as_ref()?.as_ref().ok()
}

/// Znodes with many children.
pub(super) fn directories(facts: &DoctorFacts) -> Vec<Finding> {
    let Some(tree) = walked(facts) else { return Vec::new() };
    let mut found = Vec::new();
    for directory in &tree.directories {
        let text = format!(
            "{} children, {} to list them",
            directory.children,
            bytes(directory.listing_bytes as f64)
        );
        let path = &directory.path;
        if directory.listing_bytes >= REPLY_BYTES_MAX {
            let advice = "spread them over more directories, or clean up: ZooKeeper's clients refuse a list above jute.maxbuffer (1 MiB)";
            found.push(Finding::new(Level::Error, "directories", path, text, advice));
        } else if directory.children >= CHILDREN_MANY || directory.listing_bytes >= REPLY_BYTES_MAX / 2 {
            let advice =
                "spread them over more directories, or clean up, before the list is too long for clients";
            found.push(Finding::new(Level::Warning, "directories", path, text, advice));
        } else {
            let advice = "see that something cleans up there: every listing reads all names";
            found.push(Finding::new(Level::Note, "directories", path, text, advice));
        }
    }
    if found.is_empty() {
        found.push(Finding::ok("directories", "", "no znode has 10000 children"));
    }
    found
}

/// Znodes with large data.
pub(super) fn values(facts: &DoctorFacts) -> Vec<Finding> {
    let Some(tree) = walked(facts) else { return Vec::new() };
    let mut found: Vec<Finding> = tree
        .values
        .iter()
        .map(|(path, size)| {
            let level = if *size >= VALUE_BYTES_LARGE { Level::Warning } else { Level::Note };
            let advice = "keep large data elsewhere and its address here: each write goes to every member, and above 1 MiB (jute.maxbuffer) clients cannot read it";
            Finding::new(level, "values", path, format!("{} of data", bytes(*size as f64)), advice)
        })
        .collect();
    if found.is_empty() {
        found.push(Finding::ok("values", "", "no znode has 100 KiB of data"));
    }
    found
}

/// Parts of the tree that were not seen.
pub(super) fn whole(facts: &DoctorFacts) -> Vec<Finding> {
    let told = |text: String, advice: &str| vec![Finding::new(Level::Note, "tree", "", text, advice)];
    match &facts.tree {
        None => Vec::new(),
        Some(Err(reason)) => {
            told(format!("not walked: {reason}"), "let doctor open a session: see --tls-ca, --sasl, --auth")
        }
        Some(Ok(tree)) if tree.is_partial => {
            let text = format!("{} znodes were looked at, and there are more", tree.znodes);
            told(text, "give it more time with --tree-within")
        }
        Some(Ok(tree)) if tree.unreadable > 0 => {
            let text = format!("{} znodes may not be read, with all below them", tree.unreadable);
            told(text, "show an identity with --auth that may read them")
        }
        Some(Ok(tree)) => vec![Finding::ok("tree", "", format!("{} znodes, all looked at", tree.znodes))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::common::testing::lines;
    use crate::doctor::facts::DirectoryFacts;

    #[test]
    fn what_is_large_is_told_by_its_path() {
        let directory = |path: &str, children, listing_bytes| DirectoryFacts {
            path: path.to_owned(),
            children,
            listing_bytes,
        };
        let tree = TreeFacts {
            znodes: 200_000,
            directories: vec![
                directory("/queue", 100_000, 1_400_000),
                directory("/locks", 100_000, 500_000),
                directory("/jobs", 20_000, 280_000),
            ],
            values: vec![("/big".to_owned(), 900_000), ("/medium".to_owned(), 200_000)],
            ..TreeFacts::default()
        };
        let facts = DoctorFacts { tree: Some(Ok(tree)), ..DoctorFacts::default() };
        assert_eq!(
            lines(&directories(&facts)),
            [
                "error /queue: 100000 children, 1.3 MiB to list them",
                "warning /locks: 100000 children, 488.3 KiB to list them",
                "note /jobs: 20000 children, 273.4 KiB to list them",
            ]
        );
        assert_eq!(
            lines(&values(&facts)),
            ["warning /big: 878.9 KiB of data", "note /medium: 195.3 KiB of data"]
        );
        assert_eq!(lines(&whole(&facts)), ["ok: 200000 znodes, all looked at"]);
    }

    #[test]
    fn what_was_not_seen_is_told() {
        let with = |tree| DoctorFacts { tree: Some(tree), ..DoctorFacts::default() };
        let partial = TreeFacts { znodes: 5, is_partial: true, ..TreeFacts::default() };
        assert_eq!(lines(&whole(&with(Ok(partial)))), ["note: 5 znodes were looked at, and there are more"]);
        let closed = TreeFacts { znodes: 5, unreadable: 2, ..TreeFacts::default() };
        assert_eq!(lines(&whole(&with(Ok(closed)))), ["note: 2 znodes may not be read, with all below them"]);
        assert_eq!(lines(&whole(&with(Err("no session".to_owned())))), ["note: not walked: no session"]);
        assert!(directories(&with(Err(String::new()))).is_empty());
    }
}
