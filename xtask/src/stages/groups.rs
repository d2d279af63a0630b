//! Clients and applications of others on ensembles with several Raft groups, whose znodes are spread over all of them.

use std::ffi::OsString;

use super::outcome::StageOutcome;
use super::{java, python};
use crate::install;
use crate::layout::Layout;
use crate::process::Error;

/// The stage with all of them.
pub(super) const AT_LENGTH: &str = "groups-at-length";

/// Tests of kazoo, each on a split point of its own: what znodes, watches and sessions are to a client.
const BRIEF: [&str; 3] = ["kazoo/test_znodes.py", "kazoo/test_watches.py", "kazoo/test_sessions.py"];
/// Tests about the server, not about znodes, or on servers that they configure themselves.
const NOT_ON_GROUPS: [&str; 3] = ["test_restart.py", "test_sasl.py", "test_tls.py"];
/// Tests of numbers that are those of the home group.
const COUNT_ZNODES: [&str; 2] = ["test_srvr_counts_znodes_and_writes", "test_mntr_follows_what_happens"];
/// Tests that delete their root. That of a split point is refused while its slots lie in other groups.
const DELETE_THE_ROOT: [&str; 2] = ["incompatible_acls", "bad_deserialization"];

/// kazoo's tests on a member of an ensemble, and some with znodes in several groups.
pub(super) fn kazoo_on_members(layout: &Layout) -> Result<StageOutcome, Error> {
    let members = python::kazoo_on_members(layout)?;
    let groups = (python::MEMBERS, "kazoo-groups", &BRIEF[..]);
    Ok(members.and(python::pytest_of(layout, groups, &[], spread("each"))?))
}

/// kazoo's whole suite twice, Java's clients, ClickHouse and Kafka.
pub(super) fn at_length(layout: &Layout) -> Result<StageOutcome, Error> {
    let files = NOT_ON_GROUPS.map(|file| format!("--ignore-glob=*/{file}"));
    let on_groups = |left_out: &[&str]| [&files[..], &python::without(left_out)[..]].concat();
    let of_roots = on_groups(&[COUNT_ZNODES, DELETE_THE_ROOT].concat());
    let below = on_groups(&COUNT_ZNODES);
    let each = (AT_LENGTH, "kazoo-groups-each", &["kazoo"][..]);
    let each = python::pytest_of(layout, each, &of_roots, spread("each"))?;
    let whole = (AT_LENGTH, "kazoo-groups-whole", &["kazoo"][..]);
    let whole = python::pytest_of(layout, whole, &below, spread("whole"))?;
    let java = java::on_groups(layout, AT_LENGTH, &spread("each"))?;
    let clickhouse = (AT_LENGTH, "clickhouse-groups", &["clickhouse/test_groups.py"][..]);
    let clickhouse = python::pytest_of(layout, clickhouse, &[], install::clickhouse(layout)?)?;
    let variables = vec![("KAFKA_CLASSPATH", install::kafka(layout)?.into())];
    let kafka = (AT_LENGTH, "kafka-groups", &["kafka/test_groups.py"][..]);
    let kafka = python::pytest_of(layout, kafka, &[], variables)?;
    Ok(each.and(whole).and(java).and(clickhouse).and(kafka))
}

/// Variables for ensembles of three members and eight groups; the root of a test is a split point (`each`), or below one (`whole`).
fn spread(how: &str) -> Vec<(&'static str, OsString)> {
    vec![("TEST_MEMBERS", "3".into()), ("TEST_GROUPS", "8".into()), ("TEST_SPREAD", how.into())]
}
