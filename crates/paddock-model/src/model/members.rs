//! Members of the ensemble.

use std::collections::BTreeMap;

use paddock_proto::{EnsembleMember, ErrorCode, EventKind, MemberRole, SessionId, WriteReply};

use super::{Changes, Model, Reply};
use crate::{Call, Wish};
use ErrorCode::*;

const CONFIG: &str = "/zookeeper/config";
const WRITE: i32 = 2;

/// By the ids that were written, which may be any numbers in what is asked for.
type Members = BTreeMap<i64, EnsembleMember>;

#[derive(Clone, Debug)]
pub(super) struct Ensemble {
    members: Members,
    version: i64,
    target: Option<Members>,
}

impl Model {
    /// Members of the ensemble, if there is one.
    pub fn members(&self) -> Option<Vec<u8>> {
        self.ensemble.as_ref().map(|ensemble| ensemble.members.values().map(|member| member.id).collect())
    }

    /// True if others are to belong to it.
    pub fn changes_members(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.target.is_some())
    }

    pub(super) fn found_ensemble(&mut self, call: &Call, members: &str, changes: &mut Changes) -> Reply {
        let members = parse_all(members).filter(|members| !members.is_empty()).ok_or(BadArguments)?;
        if members.keys().any(|id| !(1..=255).contains(id)) {
            return Err(BadArguments);
        }
        if self.ensemble.is_none() {
            self.ensemble = Some(Ensemble { members, version: self.zxid, target: None });
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
            Some(all) => parse_all(all),
            None => change(ensemble.members.clone(), joining.as_deref(), leaving.as_deref()),
        };
        let target = target.filter(makes_sense).ok_or(BadArguments)?;
        // ZooKeeper takes ids that no member can have here, and looks at the ACL next.
        let is_foreign = target.keys().any(|id| !(1..=255).contains(id));
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
        let Some(Ensemble { members, version, .. }) = &self.ensemble else { return };
        let lines: String = members.values().map(|member| format!("{member}\n")).collect();
        let text = format!("{lines}version={version:x}");
        let zxid = self.zxid();
        let node = self.change(CONFIG);
        node.data = Some(text.into_bytes());
        (node.stat.version, node.stat.mzxid, node.stat.mtime_ms) = (-1, zxid, call.time_ms);
        changes.push(self.event(EventKind::NodeDataChanged, CONFIG));
    }
}

fn parse_all(text: &str) -> Option<Members> {
    let mut members = Members::new();
    for part in parts(text).filter(|part| !part.starts_with("version=")) {
        let (id, member) = parse(part)?;
        if members.insert(id, member).is_some() {
            return None;
        }
    }
    Some(members)
}

fn change(mut members: Members, joining: Option<&str>, leaving: Option<&str>) -> Option<Members> {
    for id in parts(leaving.unwrap_or_default()) {
        members.remove(&parse_id(id)?);
    }
    for part in parts(joining.unwrap_or_default()) {
        let (id, member) = parse(part).filter(|(_, member)| member.client.is_some())?;
        members.insert(id, member);
    }
    Some(members)
}

fn makes_sense(members: &Members) -> bool {
    let mut addresses: Vec<_> = Vec::new();
    for member in members.values() {
        addresses.push((&member.host, member.quorum_port));
        addresses.push((&member.host, member.election_port));
    }
    let count = addresses.len();
    addresses.sort();
    addresses.dedup();
    addresses.len() == count && members.values().any(|member| member.role == MemberRole::Participant)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty())
}

fn parse(part: &str) -> Option<(i64, EnsembleMember)> {
    let (key, value) = part.split_once('=')?;
    let id = parse_id(key.trim().strip_prefix("server.")?)?;
    let member = EnsembleMember::parse(u8::try_from(id).unwrap_or(1), value.trim()).ok()?.0;
    Some((id, member))
}

fn parse_id(text: &str) -> Option<i64> {
    text.parse().ok()
}
