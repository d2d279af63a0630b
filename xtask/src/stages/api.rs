//! The stage of the library: its public items, a test for each crate; the pages that rustdoc makes, one; and the examples on them.

use super::outcome::StageOutcome;
use super::rust;
use crate::api;
use crate::layout::Layout;
use crate::process::{Error, note};

pub(super) const STAGE: &str = "api";

pub(super) fn run(layout: &Layout) -> Result<StageOutcome, Error> {
    let log = layout.log(STAGE);
    // Their numbers are in the log, which has no others yet.
    let success = api::run_examples_of_pages(layout, &log)?;
    let mut counts = rust::count(layout, STAGE)?;
    let report = api::compare(layout)?;
    note(&log, report.to_string().trim_end())?;
    counts += report.counts();
    if api::has_pages_without_warnings(layout, &log)? {
        counts.passed += 1;
    } else {
        note(&log, "rustdoc has warnings")?;
        counts.failed += 1;
    }
    Ok(StageOutcome { counts, success })
}
