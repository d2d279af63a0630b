//! `group.N` and `weight.N`. A quorum is more than half of the voters, so they may say nothing else.

use std::collections::BTreeMap;

use paddock_proto::MemberNumber;
use paddock_server::Role;

use super::ensemble::Named;
use super::remark::{ConfigError, Location, Remark, Remarks};
use super::source::Line;
use super::value::{self, Text};

#[derive(Debug)]
pub(super) struct QuorumKey {
    pub(super) place: Location,
    pub(super) name: String,
    value: String,
}

impl QuorumKey {
    pub(super) fn new(line: &Line) -> QuorumKey {
        QuorumKey { place: line.place.clone(), name: line.key.clone(), value: line.value.clone() }
    }

    fn fault(&self, what: impl AsRef<str>) -> ConfigError {
        self.place.clone().fault(format!("{}: {}", self.name, what.as_ref()))
    }

    fn detail(&self) -> Remark {
        let what = format!("{} changes nothing: a quorum is more than half of the participants", self.name);
        self.place.clone().detail(what)
    }
}

/// Refuses groups and weights that would make another quorum than more than half of the voters.
pub(super) fn check(keys: &[QuorumKey], named: &[Named], remarks: &mut Remarks) -> Result<(), ConfigError> {
    let voters: Vec<MemberNumber> = named
        .iter()
        .map(|named| &named.member)
        .filter(|m| m.role == Role::Participant)
        .map(|m| m.id)
        .collect();
    let (groups, weights): (Vec<_>, Vec<_>) = keys.iter().partition(|key| key.name.starts_with("group."));
    check_groups(&groups, &voters)?;
    check_weights(&weights, &voters)?;
    remarks.extend(keys.iter().map(QuorumKey::detail));
    Ok(())
}

/// One group is no hierarchy, if every voter is in it.
fn check_groups(groups: &[&QuorumKey], voters: &[MemberNumber]) -> Result<(), ConfigError> {
    if let [_, second, ..] = groups {
        return Err(second.fault("hierarchical quorums are not offered; remove group.N and weight.N"));
    }
    let Some(group) = groups.first() else { return Ok(()) };
    let members = group
        .value
        .split(':')
        .map(|number| value::number(&Text(number), value::MEMBER, value::A_MEMBER))
        .collect::<Result<Vec<MemberNumber>, _>>()
        .map_err(|what| group.fault(what))?;
    match voters.iter().find(|voter| !members.contains(voter)) {
        Some(voter) => {
            Err(group.fault(format!("member {voter} is in no group; remove group.N and weight.N")))
        }
        None => Ok(()),
    }
}

/// Equal weights are as good as none. Who is not weighed weighs 1.
fn check_weights(keys: &[&QuorumKey], voters: &[MemberNumber]) -> Result<(), ConfigError> {
    let mut weights: BTreeMap<MemberNumber, u32> = voters.iter().map(|voter| (*voter, 1)).collect();
    for key in keys {
        let number = Text(key.name.trim_start_matches("weight."));
        let member: MemberNumber = value::number(&number, value::MEMBER, value::A_MEMBER)
            .map_err(|what| key.fault(format!("{what} after weight.")))?;
        let weight = value::number(&Text(&key.value), 0..=i32::MAX.into(), "a weight")
            .map_err(|what| key.fault(what))?;
        weights.entry(member).and_modify(|known| *known = weight);
    }
    let mut all = weights.values();
    let first = all.next().copied().unwrap_or(1);
    match keys.last() {
        Some(key) if first == 0 || all.any(|weight| *weight != first) => {
            Err(key.fault("every participant has one vote; remove group.N and weight.N"))
        }
        _ => Ok(()),
    }
}
