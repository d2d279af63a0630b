//! The build of another commit and this one, measured in turns: what all steps since then have brought, or cost.

use super::{forget_finished, play};
use crate::layout::Layout;
use crate::previous::Commit;
use crate::process::Error;

/// Builds both, measures them, and prints a table of the medians and their ratios; true if all was measured without an error.
pub(super) fn run(layout: &Layout, revision: &str, nodes: &str, is_quick: bool) -> Result<bool, Error> {
    let unknown = || Error::new(format!("there is no revision {revision} here: fetch the whole history"));
    let commit = Commit::find(layout, revision).ok_or_else(unknown)?;
    let before = commit.build(layout, "compare-before")?;
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    let suite = suite(nodes, is_quick);
    // Another commit is another comparison.
    let results = layout.comparison(&format!("{suite}-{}", commit.short()));
    forget_finished(&results, is_quick)?;
    play(layout, &suite, &results, vec![("BEFORE_BIN", before.into())])
}

fn suite(nodes: &str, is_quick: bool) -> String {
    let members = if nodes == "3" { "-three" } else { "" };
    let length = if is_quick { "-quick" } else { "" };
    format!("before{members}{length}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_comparison_has_a_suite() {
        let layout = Layout::find();
        for (nodes, is_quick) in [("1", false), ("1", true), ("3", false), ("3", true)] {
            let file = layout.tests("compare").join(format!("{}.toml", suite(nodes, is_quick)));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
