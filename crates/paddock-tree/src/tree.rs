//! The tree as a whole: what it holds, and which part of the code carries out which write.

mod between;
mod hosts;
mod membership;
mod moving;
mod placing;
mod relays;
mod sessions;
mod whole;

use std::collections::BTreeMap;

use paddock_proto::{
    Acl, ErrorCode, GroupsCommand, IdList, MemberNumber, OpCode, Perms, SessionId, SessionSecret, Stat,
    Write, WriteReply, Zxid,
};

use crate::access::{allows, world_readable};
use crate::between_groups::BetweenGroups;
use crate::ensemble::Ensemble;
use crate::features::{FeatureLevel, RaisedLevel};
use crate::groups::{FoundedGroups, GroupFounders};
use crate::hosts::Hosts;
use crate::keyed_passwords::secret_digest;
use crate::origins::{Origin, Origins};
use crate::quota_overruns::QuotaOverruns;
use crate::recent_children::RecentChildren;
use crate::session::Session;
use crate::store::{AclId, NodeId, Record, Store, ZnodeKind};
use crate::{Changes, Command, Outcome};
pub use between::AppliedItem;
pub use moving::GivenPortion;
pub use placing::{ChildrenAsOf, MISPLACED};
pub use relays::{RelayedAnswer, can_be_relayed, relay_command};
pub use whole::WholeTree;

pub(crate) const QUOTA: &str = "/zookeeper/quota";
pub(crate) const CONFIG: &str = "/zookeeper/config";

/// Always there: no client can delete them.
pub(crate) const SYSTEM_PATHS: [&str; 4] = ["/", "/zookeeper", QUOTA, CONFIG];

/// The replicated state. Invariants: the system znodes exist; the owner of every ephemeral has a session.
#[derive(Debug)]
pub struct Tree {
    /// Zxid of the last command applied.
    pub(crate) zxid: Zxid,
    /// The smallest zxid that a command of the current entry of the log may take: the entry says so.
    pub(crate) floor: Zxid,
    pub(crate) store: Store,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) origins: Origins,
    pub(crate) ensemble: Option<Ensemble>,
    /// Secret that passwords of sessions are made of. A leader gives one to a state that has none.
    pub(crate) secret: Option<SessionSecret>,
    /// Features that the ensemble may use.
    pub(crate) raised: RaisedLevel,
    /// Groups that the ensemble has beside this one, if this is the home group's state.
    pub(crate) groups: FoundedGroups,
    /// Split points and streams, and the place that another group has reached in its stream.
    pub(crate) between_groups: BetweenGroups,
    pub(crate) hosts: Hosts,
    /// Only this member's: number of decisions about hosts that were carried out on this state.
    pub(crate) host_decisions: u64,
    /// There are split points, or stubs of them. It follows from `between_groups`.
    pub(crate) is_among_groups: bool,
    /// A command may be about a znode of another group. It follows from `between_groups`.
    pub(crate) are_znodes_spread: bool,
    /// Only this member's: children of split points that came and went of late.
    pub(crate) recent_children: RecentChildren,
    /// Only this member's: items that were applied since they were taken.
    pub(crate) applied_items: Vec<AppliedItem>,
    /// Only this member's: what relayed writes came to, until it is taken, if anyone is to take it.
    pub(crate) relayed_answers: Option<Vec<RelayedAnswer>>,
    /// Limits of quotas, by their paths, that the command which is carried out may have changed: the home group tells the others of them.
    pub(crate) changed_limits: Vec<String>,
    /// `/zookeeper/quota`, which every change of data must ask for.
    pub(crate) quota: NodeId,
    /// Only this member's: what its operators are told.
    pub(crate) overruns: QuotaOverruns,
}

/// The circumstances of a write that its operations share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) session: SessionId,
    pub(crate) ids: IdList<'a>,
    pub(crate) zxid: Zxid,
    pub(crate) time_ms: i64,
    /// Limits of quotas count for this write.
    pub(crate) enforces_quotas: bool,
}

impl Circumstances<'_> {
    /// True if the service itself asks, and no client.
    pub(crate) fn is_service(&self) -> bool {
        self.session == SessionId::NONE
    }

    /// The command of a request that was asked for in these circumstances, for another group.
    pub(crate) fn command(&self, op: OpCode, request: &[u8]) -> Vec<u8> {
        let mut command = Vec::with_capacity(Command::encoded_len(self.ids, request));
        Command::encode(self.session, self.time_ms, self.ids, op, request, &mut command);
        if self.enforces_quotas {
            Command::enforce_quotas(self.ids, &mut command);
        }
        command
    }
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}

impl Tree {
    /// The znodes that ZooKeeper begins with.
    pub fn new() -> Tree {
        let mut store = Store::empty();
        let readable = vec![world_readable()];
        let read_only = store.hold_acl(readable);
        let open = AclId::OPEN;
        let root = store.place(&system_node(""), open);
        let zookeeper = store.place(&system_node("zookeeper"), open);
        let quota = store.place(&system_node("quota"), open);
        // ZooKeeper sets its ACL in a way that leaves this version behind.
        let config = store.place(&Record { aversion: -1, ..system_node("config") }, read_only);
        store.release_acl(read_only);
        let adopted = store.adopt(&[(zookeeper, root), (quota, zookeeper), (config, zookeeper)]);
        assert!(adopted.is_ok() && store.weigh(), "the system znodes are a tree");
        let (sessions, origins) = (BTreeMap::new(), Origins::default());
        let overruns = QuotaOverruns::default();
        Tree {
            zxid: Zxid(0),
            floor: Zxid(0),
            store,
            sessions,
            origins,
            ensemble: None,
            secret: None,
            raised: RaisedLevel::default(),
            groups: FoundedGroups::default(),
            between_groups: BetweenGroups::default(),
            hosts: Hosts::default(),
            host_decisions: 0,
            is_among_groups: false,
            are_znodes_spread: false,
            recent_children: RecentChildren::default(),
            applied_items: Vec::new(),
            relayed_answers: None,
            changed_limits: Vec::new(),
            quota,
            overruns,
        }
    }

    /// Refuses those who have none of the wanted permissions for a znode.
    pub(crate) fn check_access(&self, node: NodeId, wanted: Perms, ids: IdList<'_>) -> Result<(), ErrorCode> {
        if self.store.acl(node) == AclId::OPEN {
            return Ok(());
        }
        if allows(self.store.acl_list(node), wanted, ids) { Ok(()) } else { Err(ErrorCode::NoAuth) }
    }

    /// True if the batch with this number is the next one of `origin`. If so its commands are to be applied now; if not,
    /// they have been already, or will be when what stands before them has been.
    pub fn admit(&mut self, origin: Origin, number: u64) -> bool {
        self.origins.admit(origin, number)
    }

    /// The number of the last batch of `origin` that was applied; 0 for none.
    pub fn applied_batch(&self, origin: Origin) -> u64 {
        self.origins.applied(origin)
    }

    /// Each member of which the state has applied something, and the incarnation under which it was heard last.
    pub fn incarnations(&self) -> impl Iterator<Item = (MemberNumber, u64)> {
        self.origins.last.iter().map(|(&member, &(incarnation, _))| (member, incarnation))
    }

    /// The incarnation of a member whose writes were applied last.
    pub fn incarnation(&self, member: MemberNumber) -> Option<u64> {
        self.origins.incarnation(member)
    }

    /// Carries out one write, or refuses it. Either takes the next zxid; only what concerns the right to resume a session takes
    /// none: ZooKeeper has no transactions for that.
    pub fn apply<'a>(&mut self, command: &Command<'a>) -> Outcome<'a> {
        let without_zxid = match command.write {
            Ok(Write::ResumeSession { timeout_ms, is_keyed, is_asking, moves }) => {
                Some(self.resume_session(command, timeout_ms, (is_keyed, is_asking), moves))
            }
            Ok(Write::BindSession) => Some(self.bind_session(command)),
            Ok(Write::SetSecret { secret }) if command.session == SessionId::NONE => {
                Some(self.set_secret(secret))
            }
            _ => None,
        };
        if let Some(result) = without_zxid {
            return Outcome { zxid: self.zxid, result, changes: Changes::new() };
        }
        self.take_zxid();
        let mut changes = Changes::new();
        let result = if self.is_among_groups {
            self.dispatch_among_groups(command, &mut changes)
        } else {
            self.dispatch(command, &mut changes)
        };
        assert!(result.is_ok() || changes.is_empty(), "a refusal changes nothing");
        Outcome { zxid: self.zxid, result, changes }
    }

    /// The next zxid, for a transaction that begins.
    #[inline]
    pub(crate) fn take_zxid(&mut self) -> Zxid {
        self.zxid = self.zxid.next().max(self.floor);
        self.zxid
    }

    /// The commands that follow stand in an entry of the log with this floor: none of them takes a smaller zxid. Without a floor, 0, each
    /// takes the one behind the last.
    #[inline]
    pub fn begin_entry(&mut self, floor: Zxid) {
        self.floor = floor;
    }

    /// Carries a command out where several groups have znodes, or will have.
    fn dispatch_among_groups<'a>(
        &mut self,
        command: &Command<'a>,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let (decided, items) = (self.zxid, self.applied_items.len());
        self.changed_limits.clear();
        if self.are_znodes_spread && self.is_about_points(command) {
            // The other groups are told. The place of that is one that no change has.
            self.take_zxid();
        }
        let result = self.dispatch(command, changes);
        if self.tell_points(decided) {
            self.note_own_part(decided);
        }
        self.tell_changed_limits(decided);
        self.note_recent_children(changes);
        for item in &self.applied_items[items..] {
            self.recent_children.pull_forward(item.zxid, item.decided);
        }
        result
    }

    fn dispatch<'a>(
        &mut self,
        command: &Command<'a>,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let Ok(write) = &command.write else { return Err(ErrorCode::MarshallingError) };
        let at = Circumstances {
            session: command.session,
            ids: command.ids,
            zxid: self.zxid,
            time_ms: command.time_ms,
            enforces_quotas: command.enforces_quotas,
        };
        match write {
            Write::CreateSession { timeout_ms } => {
                return self.create_session(at.session, command.member, at.ids, *timeout_ms);
            }
            Write::ExpireSession { session } => return Ok(self.close_session(*session, at.zxid, changes)),
            Write::CloseSession if self.may_close(command) => {
                if self.is_stalled(at.session) {
                    // What the session has asked for before is sent again, and comes before its end.
                    return Err(MISPLACED);
                }
                return Ok(self.close_session(at.session, at.zxid, changes));
            }
            Write::BetweenGroups(GroupsCommand::Through { moves }) => {
                return self.come_through(at.session, command.member, *moves).map(|()| WriteReply::Done);
            }
            _ => self.check_session(at.session, command.member)?,
        }
        if self.are_znodes_spread {
            self.check_guest(at.session, command.member)?;
            self.check_places(at.session, write)?;
        }
        if self.is_among_groups {
            self.check_room_for_limits(write)?;
        }
        match write {
            Write::SetAcl { path, acl, version } => self.set_acl(&at, path, *acl, *version),
            Write::Reconfig(asked) => self.reconfig(&at, asked),
            Write::FoundEnsemble { cluster, members } => self.found_ensemble(&at, *cluster, members, changes),
            Write::SettleReconfig { error } => self.settle_reconfig(&at, *error, changes),
            Write::DeleteContainer { path } => self.delete_container(&at, path, changes),
            Write::BetweenGroups(command) => self.carry_out_between_groups(&at, command, changes),
            // The service's own, and no session's.
            Write::SetSecret { .. } => Err(ErrorCode::BadArguments),
            Write::Multi(writes) => self.multi(&at, writes, changes),
            // Alone it is refused before it gets a zxid; a member that lets it through is told so.
            Write::Check { .. } => Err(ErrorCode::Unimplemented),
            single => self.carry_out(&at, single, changes),
        }
    }

    /// One of the operations that a multi may hold.
    pub(crate) fn carry_out<'a>(
        &mut self,
        at: &Circumstances<'a>,
        write: &Write<'a>,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        match *write {
            Write::Create(create) => self.create(at, &create, changes),
            Write::Delete { path, version } => self.delete(at, path, version, changes),
            Write::SetData { path, data, version } => self.set_data(at, path, data, version, changes),
            Write::Check { path, version } => self.check(at, path, version),
            Write::CheckNotExists { path, version } => self.check_not_exists(at, path, version),
            Write::CheckStat { path, version, ref stat } => self.check_stat(at, path, version, stat),
            Write::TryRemove { path, version } => self.try_remove(at, path, version, changes),
            Write::RemoveRecursive { path, nodes_max } => self.remove_recursive(at, path, nodes_max, changes),
            ref other => unreachable!("{other:?} is neither alone nor in a multi an operation on one znode"),
        }
    }
}

/// Facts for the service around the tree.
impl Tree {
    /// The zxid of the last command applied.
    pub fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// The `Stat` of a znode, for any client: for watches that are set again.
    pub fn stat(&self, path: &str) -> Option<Stat> {
        self.store.find(path).map(|node| self.store.stat(node))
    }

    /// The ACL of a znode, for any client.
    pub fn acl(&self, path: &str) -> Option<&[Acl]> {
        self.store.find(path).map(|node| &**self.store.acl_list(node))
    }

    /// A number that says what the state is: trees in the same state have the same one. It does not count what has been
    /// heard from which member.
    pub fn digest(&self) -> u64 {
        let sessions = self.sessions.iter().map(|(id, session)| session.digest(*id));
        let ensemble =
            self.ensemble.as_ref().map_or(0, Ensemble::digest) ^ secret_digest(self.secret.as_ref());
        // A state of level 0 has the digest that builds have for it that know of no levels.
        let ensemble = ensemble ^ u64::from(self.raised.level.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let ensemble = ensemble ^ self.groups.digest() ^ self.between_groups.digest() ^ self.hosts.digest();
        sessions.fold(self.store.digest() ^ ensemble ^ self.zxid.0 as u64, u64::wrapping_add)
    }

    /// Level of the features that the ensemble may use.
    pub fn feature_level(&self) -> FeatureLevel {
        self.raised.level
    }

    /// The level, with the release that it needs.
    pub fn raised_level(&self) -> &RaisedLevel {
        &self.raised
    }

    /// Raises the level of the features that the ensemble may use; one that is not higher changes nothing.
    pub fn raise_level(&mut self, raised: &RaisedLevel) {
        if raised.level <= self.raised.level {
            return;
        }
        let begins_quotas = self.raised.level < FeatureLevel::QUOTAS && raised.level >= FeatureLevel::QUOTAS;
        self.raised = raised.clone();
        if begins_quotas && self.is_among_groups {
            // At a lower level znodes that came with their slots were not counted.
            self.count_all_quotas();
            self.tell_all_limits(1, self.zxid);
        }
    }

    /// Groups that the home group, whose state this is, has founded.
    pub fn groups(&self) -> &FoundedGroups {
        &self.groups
    }

    /// Notes that these members found more groups, until there are `count` with the home group. Fewer than there are change nothing.
    ///
    /// # Panics
    /// If the feature level is lower than [`FeatureLevel::SEVERAL_GROUPS`]: a snapshot could not say it.
    pub fn found_groups(&mut self, count: u32, founders: GroupFounders) {
        self.found_groups_with(count, founders, 0);
    }

    /// As [`Tree::found_groups`], with a number of replicas of each group; 0 for one on each member.
    ///
    /// # Panics
    /// If the feature level is lower than [`FeatureLevel::SEVERAL_GROUPS`], or, for a number of replicas, than [`FeatureLevel::HOSTS`].
    pub fn found_groups_with(&mut self, count: u32, founders: GroupFounders, replicas: u32) {
        assert!(
            replicas == 0 || self.raised.level >= FeatureLevel::HOSTS,
            "groups have fewer replicas than members at a level that has hosts"
        );
        assert!(
            self.raised.level >= FeatureLevel::SEVERAL_GROUPS,
            "groups are founded at a level that has them"
        );
        let before = self.groups.count();
        self.groups.grow(count, founders, replicas);
        self.tell_new_groups(before);
    }

    /// As ZooKeeper counts, for which the root is two: `""` and `/`.
    pub fn node_count(&self) -> usize {
        self.store.node_count() + 1
    }

    pub fn ephemeral_count(&self) -> usize {
        self.store.ephemeral_count()
    }

    /// ZooKeeper's approximate data size: the characters of all paths and the bytes of all data.
    pub fn data_bytes(&self) -> u64 {
        self.store.data_bytes()
    }

    /// The sessions that own ephemeral znodes, and their paths in order.
    pub fn ephemerals(&self) -> impl Iterator<Item = (SessionId, Vec<String>)> {
        self.store.ephemerals().map(|(session, nodes)| (session, self.sorted_paths(nodes)))
    }

    /// At most `max` ephemeral znodes behind those that the cursor has passed, with their sessions; none at the end. So all are
    /// listed without holding the tree for long; what comes and goes meanwhile may be missing.
    pub fn ephemerals_behind(&self, cursor: &mut EphemeralCursor, max: usize) -> Vec<(SessionId, String)> {
        let found = self.store.ephemerals_behind(cursor.0, max);
        cursor.0 = found.last().copied().or(cursor.0);
        found.into_iter().map(|(session, node)| (session, self.store.path(node))).collect()
    }

    /// At most `max` znodes that have had their time at `now_ms`: containers whose children are gone, TTL znodes that
    /// were not written for too long. `Write::DeleteContainer` checks again.
    pub fn expired_nodes(&self, now_ms: i64, max: usize) -> Vec<String> {
        let expired = self.store.perishable().filter(|&node| self.has_had_its_time(node, now_ms));
        expired.take(max).map(|node| self.store.path(node)).collect()
    }

    /// Expired znodes among the next `looks` znodes behind the cursor that have had their time. So all are looked at without holding the tree for
    /// long; what comes meanwhile may be missing.
    pub fn expired_behind(&self, cursor: &mut ExpiryCursor, now_ms: i64, looks: usize) -> Vec<String> {
        let mut last = None;
        let mut expired = Vec::new();
        let mut left = self.store.perishable_behind(cursor.after);
        for node in left.by_ref().take(looks) {
            last = Some(node);
            if self.has_had_its_time(node, now_ms) {
                expired.push(self.store.path(node));
            }
        }
        cursor.is_at_end = left.next().is_none();
        cursor.after = last.or(cursor.after);
        expired
    }

    pub(crate) fn has_had_its_time(&self, node: NodeId, now_ms: i64) -> bool {
        if self.store.child_count(node) > 0 || self.is_spread_below(node) {
            return false;
        }
        match self.store.kind(node) {
            // A container that never had a child is still waiting for its first.
            ZnodeKind::Container => self.store.cversion(node) > 0,
            ZnodeKind::Ttl { ms } => now_ms.saturating_sub(self.store.mtime_ms(node)) > ms,
            ZnodeKind::Persistent | ZnodeKind::Ephemeral(_) => false,
        }
    }

    pub(crate) fn sorted_paths(&self, nodes: impl Iterator<Item = NodeId>) -> Vec<String> {
        let mut paths: Vec<String> = nodes.map(|node| self.store.path(node)).collect();
        paths.sort_unstable();
        paths
    }
}

/// Place in a list of all ephemeral znodes; the beginning by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct EphemeralCursor(Option<(SessionId, NodeId)>);

/// Place in a list of all containers and TTL znodes; the beginning by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpiryCursor {
    after: Option<NodeId>,
    is_at_end: bool,
}

impl ExpiryCursor {
    /// True once all have been looked at.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }
}

/// One of the znodes a tree begins with: made by no client, at no time.
pub(crate) fn system_node(name: &str) -> Record<'_> {
    Record {
        id: 0,
        parent: 0,
        acl: 0,
        name,
        data: Some(b""),
        czxid: 0,
        mzxid: 0,
        pzxid: 0,
        ctime_ms: 0,
        mtime_ms: 0,
        version: 0,
        cversion: 0,
        aversion: 0,
        kind: ZnodeKind::Persistent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_transaction_of_an_entry_takes_a_zxid_below_its_floor() {
        let mut tree = Tree::new();
        let mut refuse = |floor: i64| {
            tree.begin_entry(Zxid(floor));
            [(); 2].map(|()| tree.refuse(ErrorCode::NotEmpty).zxid.0)
        };
        assert_eq!(refuse(0), [1, 2]);
        assert_eq!(refuse(100), [100, 101]);
        assert_eq!(refuse(50), [102, 103], "zxids never fall");
        assert_eq!(refuse(0), [104, 105]);
    }

    #[test]
    fn a_new_tree_is_as_zookeeper_makes_it() {
        let tree = Tree::new();
        assert_eq!((tree.node_count(), tree.ephemeral_count(), tree.data_bytes()), (5, 0, 44));
        let stat = |path| tree.stat(path).unwrap();
        assert_eq!((stat("/").num_children, stat("/").cversion), (1, -1));
        assert_eq!((stat("/zookeeper").num_children, stat("/zookeeper").cversion), (2, -2));
        for path in SYSTEM_PATHS {
            assert!(tree.stat(path).is_some(), "{path}");
        }
        assert_eq!(tree.zxid(), Zxid(0));
    }
}
