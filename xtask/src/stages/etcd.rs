//! The stages with a real etcd: front ends of Paddock's on it, and the suites of other stages on such front ends.
//!
//! The usual run takes the shorter part of each suite; `suites` takes all of them, on both versions of etcd where that is cheap.

use std::ffi::OsString;
use std::path::Path;

use super::outcome::StageOutcome;
use super::{go, java, ports, programs, python, rust};
use crate::install;
use crate::layout::Layout;
use crate::process::Error;

/// Test programs whose servers are front ends on an etcd.
pub(super) const WITH_SERVERS: [&str; 2] = ["etcd_histories", "etcd_oracle"];

/// Test classes of Java that run on a front end in the usual run: recipes and the command line are made of the same requests.
const JAVA: &str = "ClientTest|RestartTest";
/// All of them.
const ALL_JAVA: &str = ".*";

/// Tests with ClickHouse servers in the usual run.
const CLICKHOUSE: [&str; 1] = ["test_replicated_table.py"];

/// Front ends and kazoo, the shorter part of the other suites, and what Porcupine judges under faults; then two mirrors of
/// an etcd, whose stories without it are part of the stage `unit`.
pub(super) fn usual(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "etcd";
    let program = install::etcd(layout)?;
    let fronts = python::etcd(layout, stage, &program)?;
    let java = java::on_etcd(layout, stage, &program, JAVA)?;
    let clickhouse = python::clickhouse_on_etcd(layout, stage, &program, &CLICKHOUSE)?;
    let rust = in_rust(layout, stage, &program, &[])?;
    Ok(fronts.and(java).and(clickhouse).and(rust))
}

/// All suites, whole.
pub(super) fn suites(layout: &Layout) -> Result<StageOutcome, Error> {
    let stage = "etcd-suites";
    let (program, newer) = (install::etcd(layout)?, go::newer_etcd(layout, stage)?);
    let fronts = python::fronts(layout, stage, &newer)?;
    let kazoo = python::kazoo_on_etcd(layout, stage, &newer)?;
    let java = java::on_etcd(layout, stage, &program, ALL_JAVA)?;
    let java_on_newer = java::on_etcd(layout, stage, &newer, ALL_JAVA)?;
    let clickhouse = python::clickhouse_on_etcd(layout, stage, &program, &[])?;
    let zetcd = python::zetcd(layout, stage, &program)?;
    let kafka = python::kafka_on_etcd(layout, stage, &program)?;
    let longer = [("ORACLE_SEQUENCES", "1500"), ("ORACLE_FRESH_SERVERS", "4"), ("HISTORY_FAULTS", "60")];
    let rust = in_rust(layout, stage, &newer, &longer)?;
    Ok(fronts.and(kazoo).and(java).and(java_on_newer).and(clickhouse).and(zetcd).and(kafka).and(rust))
}

fn in_rust(
    layout: &Layout,
    stage: &str,
    etcd: &Path,
    longer: &[(&'static str, &str)],
) -> Result<StageOutcome, Error> {
    let names = WITH_SERVERS.iter().chain(&["live", "mirrors", "shell_servers"]);
    let options: Vec<&str> = names.flat_map(|name| ["--test", name]).collect();
    let programs = programs::compile(layout, stage, &options)?;
    let mut variables: Vec<(&'static str, OsString)> = vec![
        ("ETCD_BIN", etcd.into()),
        ("PADDOCK_BIN", layout.paddock().into()),
        ("ZOOKEEPER_CLASSPATH", layout.class_path().into()),
        ("PORCUPINE_BIN", go::checker(layout, stage)?.into()),
        ("HISTORIES", rust::histories(layout)?.into()),
        (ports::VARIABLE, ports::of_stage(stage).into()),
    ];
    variables.extend(longer.iter().map(|(name, value)| (*name, OsString::from(value))));
    let success = programs::run(layout, stage, &programs, &["--nocapture", rust::ON_ETCD], &variables)?;
    Ok(StageOutcome { counts: rust::count(layout, stage)?, success })
}
