//! Ensembles with which stories begin, and configurations for the members that start from then on.

use paddock_replica::Founding;

use super::super::stage::{Stage, founding, server_line};
use super::{number, option};

/// Stage of a line such as `members 3 seed=5`, with
/// - `reads=linearizable`, if every read asks a quorum,
/// - `lease=MS`, if leaders have leases, with this bound on the clocks in ms,
/// - `entries=N`, if a member takes a snapshot when it has more than N entries,
/// - `hosts=NAME`, if the members have other addresses than those of other stories,
/// - `founders=all`, if a voter that was never heard is waited for,
/// - `reconfig=off`, if files change the members and clients do not.
pub(super) fn stage(line: &str, seed: u64) -> Stage {
    let count = number(line.split_whitespace().nth(1).expect("so many members"));
    let mut configuration = founding(1..=count);
    if let Some(hosts) = option(line, "hosts") {
        configuration.members = configuration.members.replace("=host", &format!("={hosts}"));
    }
    configuration.by_majority = option(line, "founders") != Some("all");
    configuration.files_change_members = option(line, "reconfig") == Some("off");
    let mut stage = Stage::founded_with(configuration, seed);
    stage.linearizable_reads = option(line, "reads") == Some("linearizable");
    stage.lease_clock_bound_ms = option(line, "lease").map(number);
    if stage.linearizable_reads || stage.lease_clock_bound_ms.is_some() {
        stage.numbers().into_iter().for_each(|member| stage.start_empty(member));
    }
    if let Some(entries) = option(line, "entries") {
        stage.entries_max = number(entries) as usize;
    }
    stage
}

/// `configure 1 2 3 4:observer`, `configure 1 2 3 founders=all` or `configure alone`: what members that start from now on are told of the ensemble.
pub(super) fn configure(stage: &mut Stage, words: &[&str]) {
    if words == ["alone"] {
        stage.founding.members.clear();
        return;
    }
    let (options, members): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.contains('='));
    let by_majority = stage.founding.by_majority && options != ["founders=all"];
    let voters = members.iter().filter(|word| !word.ends_with(":observer"));
    let voters = founding(voters.map(|word| number(word)));
    stage.founding =
        Founding { by_majority, files_change_members: stage.founding.files_change_members, ..voters };
    for observer in words.iter().filter_map(|word| word.strip_suffix(":observer")) {
        stage.founding.membership.learners.push(number(observer));
        stage.founding.members += &(server_line(number(observer), "observer") + "\n");
    }
}
