//! Checks of an ensemble with several Raft groups.

use super::common::of_servers;
use crate::doctor::facts::DoctorFacts;
use crate::doctor::finding::{Finding, Level};

/// Groups without a leader, those in which a member has no say, and those for which a change of members waits.
pub(super) fn groups(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "groups", "every Raft group has a leader", |server| {
        let groups = server.metric("groups").filter(|groups| *groups > 1.0)?;
        let count = |name: &str| server.metric(name).filter(|count| *count > 0.0);
        let told = |level, text, advice| Some(Finding::new(level, "groups", &server.address, text, advice));
        if let Some(count) = count("groups_without_leader") {
            let text = format!("knows no leader of {count:.0} of {groups:.0} Raft groups");
            let advice = "start the members that are down: a group needs most of its voters";
            return told(Level::Error, text, advice);
        }
        if let Some(count) = count("groups_changing") {
            let text = format!("a change of members waits for {count:.0} of {groups:.0} Raft groups");
            let advice = "wait; if it goes on, bring back the members that are down, those that leave included: the log of this server names the groups";
            return told(Level::Warning, text, advice);
        }
        if let Some(count) = count("groups_joining") {
            let text = format!("has no say yet in {count:.0} of {groups:.0} Raft groups");
            let advice = "wait before another member is stopped; if it goes on, its log says what it lacks";
            return told(Level::Warning, text, advice);
        }
        Some(Finding::ok("groups", &server.address, format!("{groups:.0} Raft groups have a leader")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::common::testing::{facts, lines, server};

    #[track_caller]
    fn check(metrics: &[(&str, f64)], expected: &[&str]) {
        assert_eq!(lines(&groups(&facts(vec![server("leader", metrics)]))), expected);
    }

    #[test]
    fn groups_are_told_where_there_are_several() {
        check(&[], &[]);
        check(&[("groups", 1.0)], &[]);
        check(&[("groups", 4.0), ("groups_joining", 0.0)], &["ok: 4 Raft groups have a leader"]);
        check(
            &[("groups", 4.0), ("groups_joining", 2.0)],
            &["warning a:2181: has no say yet in 2 of 4 Raft groups"],
        );
        check(
            &[("groups", 4.0), ("groups_joining", 2.0), ("groups_changing", 1.0)],
            &["warning a:2181: a change of members waits for 1 of 4 Raft groups"],
        );
        check(
            &[("groups", 4.0), ("groups_changing", 1.0), ("groups_without_leader", 3.0)],
            &["error a:2181: knows no leader of 3 of 4 Raft groups"],
        );
    }
}
