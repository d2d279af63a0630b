//! `cargo xtask api`: the public items of the crates that programs of others are made with, beside the lists that are stored.
//!
//! rustdoc tells the items as JSON, and `public-api` reads it. A type of a lower crate that one of them shows counts with its own items.

mod items;
mod lists;
mod rustdoc;

use std::fmt;
use std::fs;
use std::path::Path;

use crate::counts::TestCounts;
use crate::layout::Layout;
use crate::process::Error;
use lists::Differences;

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask api            compare the public items with docs/api, and say what was added and removed
  cargo xtask api --write    store them there

What may change, and what that asks for, is in docs/embedding.md.";

#[derive(Debug, clap::Args)]
pub(crate) struct ApiOptions {
    /// Store the items of now
    #[arg(long)]
    write: bool,
}

/// The crates that programs of others are made with.
const CRATES: [&str; 3] = ["paddock-server", "paddock-client", "paddock-testing"];

/// Compares, or stores; true if there is no difference left.
pub(crate) fn run(layout: &Layout, options: &ApiOptions) -> Result<bool, Error> {
    if options.write {
        return write(layout);
    }
    let report = compare(layout)?;
    print!("{report}");
    Ok(report.counts().failed == 0)
}

fn write(layout: &Layout) -> Result<bool, Error> {
    let lists = match items::of_crates(layout, &CRATES)? {
        Ok(lists) => lists,
        Err(reason) => return Err(Error::new(reason)),
    };
    for (name, items) in CRATES.iter().zip(lists) {
        let file = lists::file(layout, name);
        let before = fs::read_to_string(&file).unwrap_or_default();
        print!("{}", Compared { name, differences: Differences::between(&before, &items) });
        lists::write(&file, name, &items)?;
    }
    Ok(true)
}

/// Items of now beside the stored ones, or the reason for which they cannot be compared.
pub(crate) struct ApiReport(Result<Vec<Compared>, String>);

struct Compared {
    name: &'static str,
    differences: Differences,
}

/// Reads the items of now, and the stored ones.
pub(crate) fn compare(layout: &Layout) -> Result<ApiReport, Error> {
    let lists = match items::of_crates(layout, &CRATES)? {
        Ok(lists) => lists,
        Err(reason) => return Ok(ApiReport(Err(reason))),
    };
    let compared = CRATES.iter().zip(lists).map(|(&name, items)| {
        let file = lists::file(layout, name);
        let stored = fs::read_to_string(&file).map_err(Error::io("read", &file))?;
        Ok(Compared { name, differences: Differences::between(&stored, &items) })
    });
    Ok(ApiReport(Ok(compared.collect::<Result<_, Error>>()?)))
}

/// True if the pages that rustdoc makes of the crates have no warnings. Those go to a log.
pub(crate) fn has_pages_without_warnings(layout: &Layout, log: &Path) -> Result<bool, Error> {
    rustdoc::has_no_warnings(layout, &CRATES, log)
}

/// Runs the examples on the pages of all crates. Their results go to a log. False if one fails.
pub(crate) fn run_examples_of_pages(layout: &Layout, log: &Path) -> Result<bool, Error> {
    rustdoc::run_examples(layout, log)
}

impl ApiReport {
    /// Each crate is a test.
    pub(crate) fn counts(&self) -> TestCounts {
        let crates = CRATES.len() as u64;
        match &self.0 {
            Err(_) => TestCounts { skipped: crates, ..TestCounts::default() },
            Ok(compared) => {
                let failed = compared.iter().filter(|one| !one.differences.is_empty()).count() as u64;
                TestCounts { passed: crates - failed, failed, skipped: 0 }
            }
        }
    }
}

impl fmt::Display for ApiReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compared = match &self.0 {
            Err(reason) => {
                return CRATES.iter().try_for_each(|name| writeln!(formatter, "{name}: skipped: {reason}"));
            }
            Ok(compared) => compared,
        };
        compared.iter().try_for_each(|one| write!(formatter, "{one}"))?;
        if compared.iter().all(|one| one.differences.is_empty()) {
            return Ok(());
        }
        writeln!(
            formatter,
            "\nIf this is meant: a line in CHANGELOG.md, which names what breaks, and cargo xtask api --write. If an item is not for others: \
             make it private, or #[doc(hidden)]."
        )
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Compared { name, differences } = self;
        write!(formatter, "{name}: {} public items", differences.count)?;
        if differences.is_empty() {
            return writeln!(formatter, ", as stored");
        }
        writeln!(formatter, ", {} added, {} removed", differences.added.len(), differences.removed.len())?;
        differences.removed.iter().try_for_each(|line| writeln!(formatter, "  - {line}"))?;
        differences.added.iter().try_for_each(|line| writeln!(formatter, "  + {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(name: &'static str, stored: &str, items: &[&str]) -> Compared {
        let items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
        Compared { name, differences: Differences::between(stored, &items) }
    }

    #[test]
    fn a_difference_is_a_failed_test_and_says_what_to_do() {
        let same = || compared("one", "pub fn a()\n", &["pub fn a()"]);
        let report = ApiReport(Ok(vec![same(), same(), same()]));
        assert_eq!(report.counts(), TestCounts { passed: 3, failed: 0, skipped: 0 });
        assert_eq!(report.to_string(), "one: 1 public items, as stored\n".repeat(3));

        let changed = compared("two", "pub fn a()\npub fn b()\n", &["pub fn a()", "pub fn c()"]);
        let report = ApiReport(Ok(vec![same(), changed, same()]));
        assert_eq!(report.counts(), TestCounts { passed: 2, failed: 1, skipped: 0 });
        let told = report.to_string();
        assert!(told.contains("two: 2 public items, 1 added, 1 removed\n  - pub fn b()\n  + pub fn c()\n"));
        assert!(told.contains("CHANGELOG.md") && told.contains("--write"), "{told}");
    }

    #[test]
    fn items_that_cannot_be_read_are_skipped_and_not_passed() {
        let report = ApiReport(Err("rustdoc writes another format".to_owned()));
        let expected = TestCounts { passed: 0, failed: 0, skipped: 3 };
        assert_eq!(report.counts(), expected);
        assert_eq!(report.to_string().lines().filter(|line| line.contains(": skipped: ")).count(), 3);
    }
}
