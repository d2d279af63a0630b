//! The stage whose servers check their answers against an Apache ZooKeeper, while suites of other stages run: only the differences
//! of a list may be found.

use super::outcome::StageOutcome;
use super::{java, python};
use crate::install;
use crate::layout::Layout;
use crate::process::Error;

pub(super) const STAGE: &str = "cross-checked";

pub(super) fn run(layout: &Layout) -> Result<StageOutcome, Error> {
    let list = layout.tests("cross-check").join("differences.txt");
    let etcd = install::etcd(layout)?;
    let java = java::checked(layout, STAGE, &list)?;
    let kazoo = python::kazoo_checked(layout, STAGE, &list, None)?;
    let kazoo_on_etcd = python::kazoo_checked(layout, STAGE, &list, Some(&etcd))?;
    let clickhouse = python::clickhouse_checked(layout, STAGE, &list)?;
    Ok(java.and(kazoo).and(kazoo_on_etcd).and(clickhouse))
}
