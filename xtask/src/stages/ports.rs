//! Ports on which the servers of a stage listen. A server that is down for a moment wants to find its port free again, while
//! other stages start theirs; so stages that run side by side share none.

use std::ops::Range;

use super::python;

/// All ports of tests: below Linux's ephemeral range, from which clients get theirs.
const PORTS: Range<usize> = 20_000..32_000;

/// Stages that run side by side and start servers.
const STAGES: [&str; 12] = [
    "process",
    "moving",
    "oracle",
    "etcd",
    "browser",
    "kazoo",
    python::MEMBERS,
    "java",
    "clickhouse",
    "kafka",
    "terminal",
    "s3",
];

/// The variable that tells tests the first port and the one behind the last; without it they take any of `PORTS`.
pub(super) const VARIABLE: &str = "TEST_PORTS";

/// The value of the variable: all ports for a stage that runs alone.
pub(super) fn of_stage(name: &str) -> String {
    let Some(number) = STAGES.iter().position(|stage| *stage == name) else {
        return format!("{}..{}", PORTS.start, PORTS.end);
    };
    let each = PORTS.len() / STAGES.len();
    let first = PORTS.start + number * each;
    format!("{first}..{}", first + each)
}

#[cfg(test)]
mod tests {
    use super::of_stage;

    #[test]
    fn stages_share_no_port() {
        assert_eq!(of_stage("process"), "20000..21000");
        assert_eq!(of_stage("terminal"), "30000..31000");
        assert_eq!(of_stage("attacks"), "20000..32000");
    }
}
