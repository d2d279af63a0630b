//! Members of the ensemble.

use std::collections::BTreeMap;

use paddock_proto::{
    EnsembleMember, ErrorCode, EventKind, MEMBER_NUMBER_MAX, MemberNumber, MemberRole, SessionId, WriteReply,
};

use super::{Changes, Model, Reply};
use crate::{Call, Wish};
use ErrorCode::*;

const CONFIG: &str = "/zookeeper/config";
const WRITE: i32 = 2;

/// By the ids that were written, which may be any numbers in what is asked for.
type Members = BTreeMap<i64, EnsembleMember>;

#[derive(Clone, Debug)]
pub(super) struct ModelEnsemble {
    members: Members,
    version: i64,
    target: Option<Members>,
}

impl Model {
    /// Members of the ensemble, if there is one.
    pub fn members(&self) -> Option<Vec<MemberNumber>> {
        self.ensemble.as_ref().map(|ensemble| ensemble.members.values().map(|member| member.id).collect())
    }

    /// Voters and observers of the ensemble, and those to be while they change.
    pub fn memberships(&self) -> Vec<[Vec<MemberNumber>; 2]> {
        let Some(ensemble) = &self.ensemble else { return Vec::new() };
        let lists = [Some(&ensemble.members), ensemble.target.as_ref()].into_iter().flatten();
        let with = |members: &Members, role: MemberRole| {
            members.values().filter(|member| member.role == role).map(|member| member.id).collect()
        };
        let both = |members| [with(members, MemberRole::Participant), with(members, MemberRole::Observer)];
        lists.map(both).collect()
    }

    /// True if others are to belong to it.
    pub fn changes_members(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.target.is_some())
    }

    pub(super) fn found_ensemble(&mut self, call: &Call, members: &str, changes: &mut Changes) -> Reply {
        let members =
            parse_all(members, &Members::new()).filter(|members| !members.is_empty()).ok_or(BadArguments)?;
        if members.keys().any(|id| !(0..=i64::from(MEMBER_NUMBER_MAX)).contains(id)) {
            return Err(BadArguments);
        }
        if self.ensemble.is_none() {
            self.ensemble = Some(ModelEnsemble { members, version: self.zxid, target: None });
            self.show_ensemble(call, changes);
        }
        Ok(WriteReply::Done)
    }

    pub(super) fn reconfig(&mut self, call: &Call) -> Reply {
        let Wish::Reconfig { joining, leaving, new_members, version } = &call.wish else {
            panic!("{:?} changes no members", call.wish)
        };
        let ensemble = self.ensemble.as_ref().ok_or(Unimplemented)?;
        if ensemble.target.is_some() {
            return Err(ReconfigInProgress);
        }
        if ![-1, ensemble.version].contains(version) {
            return Err(BadVersion);
        }
        let target = match new_members {
            Some(all) => parse_all(all, &ensemble.members),
            None => change(&ensemble.members, joining.as_deref(), leaving.as_deref()),
        };
        let named = [joining, new_members].into_iter().flatten();
        let has_keepers = ensemble.members.values().any(|member| member.quorum_port == member.election_port)
            || named.flat_map(|all| parts(all)).any(is_of_keeper);
        let target = target.filter(|target| makes_sense(target, has_keepers)).ok_or(BadArguments)?;
        // ZooKeeper takes ids that no member can have here, and looks at the ACL next.
        // Numbers that the oldest builds do not know are for newcomers once the level is raised.
        let is_too_wide = |id: &i64| {
            self.feature_level == 0 && !(1..=255).contains(id) && !ensemble.members.contains_key(id)
        };
        let is_foreign =
            target.keys().any(|id| !(0..=i64::from(MEMBER_NUMBER_MAX)).contains(id) || is_too_wide(id));
        if call.session != SessionId::NONE {
            self.may(self.get(CONFIG)?, WRITE, &call.ids)?;
        }
        if is_foreign {
            return Err(BadArguments);
        }
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.target = Some(target);
        }
        Ok(WriteReply::Done)
    }

    pub(super) fn settle_reconfig(
        &mut self,
        call: &Call,
        error: Option<ErrorCode>,
        changes: &mut Changes,
    ) -> Reply {
        let zxid = self.zxid;
        let Some(ensemble) = &mut self.ensemble else { return Ok(WriteReply::Done) };
        if let (Some(target), None) = (ensemble.target.take(), error) {
            (ensemble.members, ensemble.version) = (target, zxid);
            self.show_ensemble(call, changes);
        }
        Ok(WriteReply::Done)
    }

    fn show_ensemble(&mut self, call: &Call, changes: &mut Changes) {
        let Some(ModelEnsemble { members, version, .. }) = &self.ensemble else { return };
        let lines: String = members.values().map(|member| format!("{member}\n")).collect();
        let text = format!("{lines}version={version:x}");
        let zxid = self.zxid();
        let node = self.change(CONFIG);
        node.data = Some(text.into_bytes());
        (node.stat.version, node.stat.mzxid, node.stat.mtime_ms) = (-1, zxid, call.time_ms);
        changes.push(self.event(EventKind::NodeDataChanged, CONFIG));
    }
}

fn parse_all(text: &str, present: &Members) -> Option<Members> {
    let mut members = Members::new();
    for part in parts(text).filter(|part| !part.starts_with("version=")) {
        let (id, member) = parse(part, present)?;
        if members.insert(id, member).is_some() {
            return None;
        }
    }
    Some(members)
}

fn change(present: &Members, joining: Option<&str>, leaving: Option<&str>) -> Option<Members> {
    let mut members = present.clone();
    for id in parts(leaving.unwrap_or_default()) {
        members.remove(&parse_id(id)?);
    }
    let is_client_said = present.values().all(|member| member.client.is_some());
    for part in parts(joining.unwrap_or_default()) {
        let (id, member) = parse(part, present)?;
        if member.client.is_none() && is_client_said && !is_of_keeper(part) {
            return None;
        }
        members.insert(id, member);
    }
    Some(members)
}

fn makes_sense(members: &Members, has_keepers: bool) -> bool {
    let mut addresses: Vec<_> = Vec::new();
    for member in members.values() {
        addresses.push((&member.host, member.quorum_port));
        if member.election_port != member.quorum_port || !has_keepers {
            addresses.push((&member.host, member.election_port));
        }
    }
    let count = addresses.len();
    addresses.sort();
    addresses.dedup();
    addresses.len() == count && members.values().any(|member| member.role == MemberRole::Participant)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty())
}

fn parse(part: &str, present: &Members) -> Option<(i64, EnsembleMember)> {
    let (key, value) = part.split_once('=')?;
    let id = parse_id(key.trim().strip_prefix("server.")?)?;
    let number = MemberNumber::try_from(id).unwrap_or(1);
    if let Ok((member, _)) = EnsembleMember::parse(number, value.trim()) {
        return Some((id, member));
    }
    let member = EnsembleMember::parse_of_keeper(number, value.trim())?;
    // All that this form says is as before, but perhaps the role.
    match present.get(&id) {
        Some(old) if (&old.host, old.quorum_port) == (&member.host, member.quorum_port) => {
            Some((id, EnsembleMember { role: member.role, ..old.clone() }))
        }
        _ => Some((id, member)),
    }
}

fn is_of_keeper(part: &str) -> bool {
    part.split_once('=').is_some_and(|(_, value)| EnsembleMember::parse_of_keeper(1, value.trim()).is_some())
}

fn parse_id(text: &str) -> Option<i64> {
    text.parse().ok()
}
