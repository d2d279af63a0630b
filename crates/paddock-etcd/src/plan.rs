//! One etcd transaction for some writes, with compares on all that their outcomes depend on.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use paddock_proto::{
    ErrorCode, Id, MemberNumber, MultiResult, SessionId, Stat, Write, WriteReply, Zxid, parent_and_name,
};
use paddock_tree::{Command, Outcome, QuotaOverrun, Tree};

use crate::keys::Keys;
use crate::record::{Pending, SessionRecord, Tag, encode_znode};
use crate::revisions::Revisions;

/// A transaction: the operations are carried out if every compare holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    pub compares: Vec<Compare>,
    pub operations: Vec<Operation>,
}

impl Transaction {
    /// True if it puts a key, which takes space.
    pub(crate) fn puts(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation, Operation::Put { .. }))
    }
}

/// Condition that a key was last written in this revision; 0 if it must not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    pub key: Vec<u8>,
    pub mod_revision: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `lease`: the id of the lease with which the key goes.
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
        lease: Option<i64>,
    },
    Delete {
        key: Vec<u8>,
    },
}

impl Operation {
    pub fn key(&self) -> &[u8] {
        match self {
            Operation::Put { key, .. } | Operation::Delete { key } => key,
        }
    }
}

/// Largest transaction that etcd takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Compares, and operations; etcd's `--max-txn-ops`.
    pub operations_max: usize,
    /// Bytes of keys and values; a little less than etcd's `--max-request-bytes`.
    pub bytes_max: usize,
    /// Writes of clients that share a transaction; with 1 each has a zxid of its own.
    pub writes_max: usize,
}

impl Limits {
    /// Writes in a transaction at most, whatever etcd takes: all of them wait for it.
    pub const WRITES_MAX: usize = 128;
}

impl Default for Limits {
    /// etcd's defaults.
    fn default() -> Limits {
        Limits { operations_max: 128, bytes_max: 1536 * 1024 - 512, writes_max: Limits::WRITES_MAX }
    }
}

/// Reason why writes cannot be one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "transaction of {operations} operations is above etcd's limit of {max}: raise --max-txn-ops of etcd"
    )]
    TooManyOperations { operations: usize, max: usize },
    #[error("transaction of {bytes} bytes is above etcd's limit of {max}: raise --max-request-bytes of etcd")]
    TooManyBytes { bytes: usize, max: usize },
    #[error("members are changed in etcd, not here")]
    Membership,
}

/// Reply to a write.
pub type Reply = Result<WriteReply<'static>, ErrorCode>;

/// A transaction, and the outcomes of its writes if it succeeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub transaction: Transaction,
    pub outcomes: Vec<PlannedReply>,
    /// Limits of quotas that the writes go above.
    pub overruns: Vec<QuotaOverrun>,
}

/// Reply to a write, as far as it is known before its transaction has a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedReply {
    reply: Reply,
    pending: Pending,
}

impl PlannedReply {
    fn new(outcome: Outcome<'_>, pending: Pending) -> PlannedReply {
        PlannedReply { reply: outcome.result.map(owned), pending }
    }

    /// The reply when the transaction has succeeded in this revision.
    pub fn settle(self, revision: Zxid) -> Reply {
        self.reply.map(|reply| settle(reply, self.pending, revision))
    }
}

impl Plan {
    /// Replies to the writes, in their order, when the transaction has succeeded in this revision.
    pub fn replies(self, revision: Zxid) -> Vec<Reply> {
        self.outcomes.into_iter().map(|outcome| outcome.settle(revision)).collect()
    }
}

/// Circumstances of a front end that plans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) revisions: &'a Revisions,
    /// Leases of sessions that have another one than their first.
    pub(crate) leases: &'a HashMap<SessionId, i64>,
    /// Leases that sessions get instead.
    pub(crate) next_leases: &'a BTreeMap<SessionId, i64>,
    pub(crate) tag: Tag,
    pub(crate) limits: Limits,
}

impl Planner<'_> {
    pub(crate) fn plan(&self, tree: &mut Tree, commands: &[Command<'_>]) -> Result<Plan, PlanError> {
        if commands.iter().any(is_membership) {
            return Err(PlanError::Membership);
        }
        let mut depends = Dependencies::of(commands);
        let sessions_before: Vec<_> =
            depends.sessions.iter().map(|id| (*id, session_of(tree, *id))).collect();
        let pending = Pending(tree.zxid().0);

        let mut operations = Vec::new();
        let (outcomes, touched, overruns) = tree.try_out(commands, |tree, outcomes, touched| {
            let resumed = resumed_sessions(commands, &outcomes);
            for (id, before) in sessions_before {
                if self.has_ended(&depends, id) {
                    continue;
                }
                let is_fence = resumed.contains(&id);
                operations.extend(self.session_operation(id, before, session_of(tree, id), is_fence));
            }
            operations.extend(touched.iter().map(|path| self.znode_operation(tree, path, pending)));
            let outcomes = outcomes.into_iter().zip(commands).map(|(outcome, command)| {
                if self.has_ended(&depends, command.session) {
                    return PlannedReply { reply: Err(ErrorCode::SessionExpired), pending };
                }
                PlannedReply::new(outcome, pending)
            });
            (outcomes.collect(), touched, tree.quota_overruns().recent().cloned().collect())
        });
        depends.named.extend(touched);
        let transaction = Transaction { compares: self.compares(tree, &depends), operations };
        self.check_limits(&transaction)?;
        Ok(Plan { transaction, outcomes, overruns })
    }

    /// True if a session is resumed whose key is gone. As long as some of its znodes are there it is in the tree, and does not come
    /// to life again.
    fn has_ended(&self, depends: &Dependencies, id: SessionId) -> bool {
        depends.resumed.contains(&id) && self.revisions.of_session(id) == 0
    }

    /// `is_fence`: the key is written even if nothing changes, so that what the session asked before it was resumed finds it
    /// changed.
    fn session_operation(
        &self,
        id: SessionId,
        before: Option<PlannedSession>,
        after: Option<PlannedSession>,
        is_fence: bool,
    ) -> Option<Operation> {
        let key = self.keys.session(id);
        match after {
            same if same == before && !(is_fence && same.is_some()) => None,
            None => Some(Operation::Delete { key }),
            Some(PlannedSession { timeout_ms, is_keyed, proven, .. }) => {
                let lease = self.next_leases.get(&id).or_else(|| self.leases.get(&id)).copied();
                let value = SessionRecord { timeout_ms, is_keyed, proven, tag: self.tag, lease }.encode();
                Some(Operation::Put { key, value, lease: Some(lease.unwrap_or(id.0)) })
            }
        }
    }

    fn znode_operation(&self, tree: &Tree, path: &str, pending: Pending) -> Operation {
        let key = self.keys.znode(path);
        match tree.znode(path) {
            None => Operation::Delete { key },
            Some(znode) => {
                Operation::Put { key, value: encode_znode(&znode, pending, self.tag), lease: None }
            }
        }
    }

    fn compares(&self, tree: &Tree, depends: &Dependencies) -> Vec<Compare> {
        let sessions = depends
            .sessions
            .iter()
            .map(|id| Compare { key: self.keys.session(*id), mod_revision: self.revisions.of_session(*id) });
        let paths: BTreeSet<&String> = depends.named.union(&depends.parents).collect();
        let paths = paths.into_iter().map(|path| Compare {
            key: self.keys.znode(path),
            mod_revision: self.revisions.of_znode(tree, path),
        });
        sessions.chain(paths).collect()
    }

    fn check_limits(&self, transaction: &Transaction) -> Result<(), PlanError> {
        let Limits { operations_max, bytes_max, .. } = self.limits;
        let operations = transaction.operations.len().max(transaction.compares.len());
        if operations > operations_max {
            return Err(PlanError::TooManyOperations { operations, max: operations_max });
        }
        let compared = transaction.compares.iter().map(|compare| compare.key.len());
        let written = transaction.operations.iter().map(|operation| match operation {
            Operation::Put { key, value, .. } => key.len() + value.len(),
            Operation::Delete { key } => key.len(),
        });
        let bytes = compared.chain(written).sum();
        if bytes > bytes_max {
            return Err(PlanError::TooManyBytes { bytes, max: bytes_max });
        }
        Ok(())
    }
}

/// Keys that the outcomes of some writes depend on, beside those that they change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dependencies {
    pub(crate) sessions: BTreeSet<SessionId>,
    /// Sessions that their clients resume.
    resumed: BTreeSet<SessionId>,
    pub(crate) named: BTreeSet<String>,
    /// Parents of those, and of znodes whose names are not known yet.
    pub(crate) parents: BTreeSet<String>,
}

impl Dependencies {
    pub(crate) fn of(commands: &[Command<'_>]) -> Dependencies {
        let mut depends = Dependencies::default();
        commands.iter().for_each(|command| depends.add_command(command));
        depends
    }

    fn add_command(&mut self, command: &Command<'_>) {
        if command.session != SessionId::NONE {
            self.sessions.insert(command.session);
        }
        if matches!(command.write, Ok(Write::ResumeSession { .. })) {
            self.resumed.insert(command.session);
        }
        if let Ok(write) = &command.write {
            self.add_write(write);
        }
    }

    fn add_write(&mut self, write: &Write<'_>) {
        match write {
            Write::ExpireSession { session } => drop(self.sessions.insert(*session)),
            Write::Multi(writes) => writes.iter().for_each(|write| self.add_write(write)),
            // The name is not known yet; it is among those that are changed.
            Write::Create(create) if create.mode().is_some_and(|mode| mode.is_sequential()) => {
                self.add_parent(create.path);
            }
            Write::Create(create) => self.add_path(create.path),
            Write::Delete { path, .. }
            | Write::DeleteContainer { path }
            | Write::SetData { path, .. }
            | Write::SetAcl { path, .. }
            | Write::Check { path, .. }
            | Write::CheckNotExists { path, .. }
            | Write::CheckStat { path, .. }
            | Write::TryRemove { path, .. }
            | Write::RemoveRecursive { path, .. } => self.add_path(path),
            Write::CreateSession { .. }
            | Write::CloseSession
            | Write::ResumeSession { .. }
            | Write::BindSession
            | Write::SetSecret { .. }
            | Write::BetweenGroups(_)
            | Write::Reconfig(_)
            | Write::FoundEnsemble { .. }
            | Write::SettleReconfig { .. } => {}
        }
    }

    fn add_path(&mut self, path: &str) {
        if paddock_proto::validate_path(path).is_ok() {
            self.named.insert(path.to_owned());
            self.add_parent(path);
        }
    }

    fn add_parent(&mut self, path: &str) {
        if let Some((parent, _)) = parent_and_name(path)
            && paddock_proto::validate_path(parent).is_ok()
        {
            self.parents.insert(parent.to_owned());
        }
    }
}

fn is_membership(command: &Command<'_>) -> bool {
    use Write::{FoundEnsemble, Reconfig, SettleReconfig};
    matches!(command.write, Ok(Reconfig(_) | FoundEnsemble { .. } | SettleReconfig { .. }))
}

/// A session as a transaction finds or leaves it.
#[derive(Debug, PartialEq)]
struct PlannedSession {
    timeout_ms: i32,
    owner: MemberNumber,
    is_keyed: bool,
    proven: Option<Id>,
}

fn session_of(tree: &Tree, id: SessionId) -> Option<PlannedSession> {
    let (timeout_ms, owner) = tree.session_timeout_ms(id).zip(tree.session_owner(id))?;
    let (is_keyed, proven) = (tree.is_session_keyed(id), tree.session_identity(id).cloned());
    Some(PlannedSession { timeout_ms, owner, is_keyed, proven })
}

/// Sessions that their clients resume, and may.
fn resumed_sessions(commands: &[Command<'_>], outcomes: &[Outcome<'_>]) -> BTreeSet<SessionId> {
    let is_resumed =
        |command: &Command<'_>| matches!(command.write, Ok(Write::ResumeSession { is_asking: false, .. }));
    let all = commands.iter().zip(outcomes);
    let resumed = all.filter(|(command, outcome)| is_resumed(command) && outcome.result.is_ok());
    resumed.map(|(command, _)| command.session).collect()
}

fn owned(reply: WriteReply<'_>) -> WriteReply<'static> {
    match reply {
        WriteReply::Done => WriteReply::Done,
        WriteReply::Created { path } => WriteReply::Created { path: Cow::Owned(path.into_owned()) },
        WriteReply::CreatedWithStat { path, stat } => {
            WriteReply::CreatedWithStat { path: Cow::Owned(path.into_owned()), stat }
        }
        WriteReply::Changed { stat } => WriteReply::Changed { stat },
        WriteReply::Multi(results) => WriteReply::Multi(results.into_iter().map(owned_result).collect()),
    }
}

fn owned_result(result: MultiResult<'_>) -> MultiResult<'static> {
    match result {
        MultiResult::Done(op, reply) => MultiResult::Done(op, owned(reply)),
        MultiResult::Failed(error) => MultiResult::Failed(error),
    }
}

/// The reply with the transaction's revision in place of the zxids that it was tried out with.
fn settle(reply: WriteReply<'_>, pending: Pending, revision: Zxid) -> WriteReply<'_> {
    let zxid = |zxid: Zxid| if zxid.0 > pending.0 { revision } else { zxid };
    let stat = |stat: Stat| Stat {
        czxid: zxid(stat.czxid),
        mzxid: zxid(stat.mzxid),
        pzxid: zxid(stat.pzxid),
        ..stat
    };
    match reply {
        WriteReply::CreatedWithStat { path, stat: tried } => {
            WriteReply::CreatedWithStat { path, stat: stat(tried) }
        }
        WriteReply::Changed { stat: tried } => WriteReply::Changed { stat: stat(tried) },
        WriteReply::Multi(results) => {
            let settled = results.into_iter().map(|result| match result {
                MultiResult::Done(op, reply) => MultiResult::Done(op, settle(reply, pending, revision)),
                failed => failed,
            });
            WriteReply::Multi(settled.collect())
        }
        other => other,
    }
}
