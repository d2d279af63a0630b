//! Members of the ensemble: the content of `/zookeeper/config`, and the change that is under way.
//!
//! The tree says what a change is to lead to, and later that it is in force. In between the leader brings the members
//! there, one step after the other; if it cannot, it settles the change with an error, and everything is as before.

use paddock_proto::{ErrorCode, EventKind, Perms, Reconfig, Stat, WriteReply};

use super::{CONFIG, Circumstances, Tree};
use crate::between_groups::BetweenGroups;
use crate::ensemble::{Ensemble, Written, members_asked_for, parse_members, real_members};
use crate::features::FeatureLevel;
use crate::groups::FoundedGroups;
use crate::hosts::Hosts;
use crate::origins::Origins;
use crate::outcome::Changes;
use crate::store::NodeId;

/// The version of the members that ZooKeeper takes for any.
const ANY_VERSION: i64 = -1;
/// The version that ZooKeeper leaves the znode at, whatever is written.
const ZNODE_VERSION: i32 = -1;

impl Tree {
    /// `None` for a member alone.
    pub fn ensemble(&self) -> Option<&Ensemble> {
        self.ensemble.as_ref()
    }

    /// Id of the ensemble; 0 of a member alone.
    pub fn cluster(&self) -> u64 {
        self.ensemble.as_ref().map_or(0, |ensemble| ensemble.cluster)
    }

    /// The reply to a client that asked for a change of members, when it is in force: the data of `/zookeeper/config`.
    pub fn config(&self) -> (&[u8], Stat) {
        let node = self.config_node();
        (self.store.data(node).unwrap_or_default(), self.store.stat(node))
    }

    fn config_node(&self) -> NodeId {
        self.store.find(CONFIG).expect("the system znodes are always there")
    }

    /// The first leader of an ensemble says who its members are. Said again it changes nothing.
    pub(crate) fn found_ensemble<'a>(
        &mut self,
        at: &Circumstances<'a>,
        cluster: u64,
        members: &str,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let members = parse_members(members).filter(|members| !members.is_empty());
        let members = members.ok_or(ErrorCode::BadArguments)?;
        if !at.is_service() || cluster == 0 {
            return Err(ErrorCode::BadArguments);
        }
        if self.ensemble.is_none() {
            self.ensemble = Some(Ensemble { cluster, members, version: at.zxid.0, target: None });
            self.show_ensemble(at, changes);
        }
        Ok(WriteReply::Done)
    }

    /// A survivor of a lost quorum begins an ensemble of its own, apart from the others, with all the data it has.
    /// `members` are lines that `lines` wrote.
    pub fn refound_ensemble(&mut self, cluster: u64, members: &str) {
        let members = parse_members(members).expect("the lines of members can be read");
        let version = self.zxid.0;
        self.ensemble = Some(Ensemble { cluster, members, version, target: None });
        let (node, stat) = (self.config_node(), self.config().1);
        self.write_config(node, stat.mzxid.0, stat.mtime_ms);
    }

    /// Leaves the ensemble, for a copy of the state that begins one of its own: the members are not its members, and what they had on the way
    /// does not reach it. Znodes, sessions and zxids stay.
    pub fn leave_ensemble(&mut self) {
        self.origins = Origins::default();
        self.forget_groups();
        if self.ensemble.take().is_some() {
            let (node, stat) = (self.config_node(), self.config().1);
            self.write_config(node, stat.mzxid.0, stat.mtime_ms);
        }
    }

    /// The state is that of an ensemble with one group from here on.
    pub(super) fn forget_groups(&mut self) {
        self.groups = FoundedGroups::default();
        (self.between_groups, self.hosts) = (BetweenGroups::default(), Hosts::default());
        (self.is_among_groups, self.are_znodes_spread) = (false, false);
    }

    /// Begins a change of members, if it may be. The answer comes when it has been settled.
    pub(crate) fn reconfig<'a>(
        &mut self,
        at: &Circumstances<'a>,
        asked: &Reconfig<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let ensemble = self.ensemble.as_ref().ok_or(ErrorCode::Unimplemented)?;
        if ensemble.target.is_some() {
            return Err(ErrorCode::ReconfigInProgress);
        }
        if asked.version != ANY_VERSION && asked.version != ensemble.version {
            return Err(ErrorCode::BadVersion);
        }
        let target = members_asked_for(&ensemble.members, asked).ok_or(ErrorCode::BadArguments)?;
        if !at.is_service() {
            self.check_access(self.config_node(), Perms::WRITE, at.ids)?;
        }
        // ZooKeeper takes an id that no member can have here: a client that may not ask for it is told that first.
        // Below that level every build refuses a number that the oldest do not know, in the same way.
        if !self.may_name(&target) {
            return Err(ErrorCode::BadArguments);
        }
        let target = real_members(target).ok_or(ErrorCode::BadArguments)?;
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.target = Some(target);
        }
        self.groups.begin_roster();
        Ok(WriteReply::Done)
    }

    /// True if a member's number in what is asked for is one that the ensemble may not use before its level is raised.
    pub fn lacks_level_for(&self, asked: &Reconfig<'_>) -> bool {
        let target = self.ensemble.as_ref().and_then(|ensemble| members_asked_for(&ensemble.members, asked));
        target.is_some_and(|target| !self.may_name(&target) && real_members(target).is_some())
    }

    /// True unless the level is too low for the number of a member that is not there yet.
    fn may_name(&self, target: &[Written]) -> bool {
        let is_there = |id: i64| {
            self.ensemble
                .iter()
                .flat_map(|ensemble| &ensemble.members)
                .any(|member| i64::from(member.id) == id)
        };
        self.raised.level >= FeatureLevel::WIDE_MEMBER_NUMBERS
            || target.iter().all(|(id, _)| (1..=255).contains(id) || is_there(*id))
    }

    /// The leader has brought the change about, or has given it up.
    pub(crate) fn settle_reconfig<'a>(
        &mut self,
        at: &Circumstances<'a>,
        error: Option<ErrorCode>,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        if !at.is_service() {
            return Err(ErrorCode::BadArguments);
        }
        let Some((ensemble, target)) = self.ensemble.as_mut().and_then(|e| e.target.take().map(|t| (e, t)))
        else {
            return Ok(WriteReply::Done);
        };
        if error.is_none() {
            (ensemble.members, ensemble.version) = (target, at.zxid.0);
            self.show_ensemble(at, changes);
        }
        self.groups.begin_roster();
        Ok(WriteReply::Done)
    }

    fn show_ensemble<'a>(&mut self, at: &Circumstances<'a>, changes: &mut Changes<'a>) {
        let node = self.config_node();
        self.write_config(node, at.zxid.0, at.time_ms);
        changes.push(self.change(EventKind::NodeDataChanged, CONFIG.into(), node));
    }

    fn write_config(&mut self, node: NodeId, zxid: i64, time_ms: i64) {
        let text = self.ensemble.as_ref().map(Ensemble::text).unwrap_or_default();
        self.store.overwrite(node, text.as_bytes(), ZNODE_VERSION, zxid, time_ms);
    }
}
