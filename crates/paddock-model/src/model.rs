//! The model itself: a map from paths to znodes, copied whole where something may fail half-way.
//!
//! A copy costs little, because znodes are shared until they change: a checker that wants to know what was true at an earlier
//! zxid keeps the model of that zxid.

mod extended;
mod members;
mod quota;
mod read;
mod rules;
mod write;

use std::collections::BTreeMap;
use std::rc::Rc;

use paddock_proto::{Acl, ErrorCode, EventKind, Id, MemberNumber, Perms, SessionId, Stat, WriteReply, Zxid};
use paddock_tree::{Change, Outcome};

use crate::dump::{Dump, Znode};
use crate::{Call, Wish, acl};
use members::ModelEnsemble;
use rules::{cannot_be_decoded, len, real, up};

pub use read::Asker;

pub type Reply = Result<WriteReply<'static>, ErrorCode>;
type Changes = Vec<Change<'static>>;

#[derive(Clone, Debug)]
pub struct Model {
    zxid: i64,
    /// The smallest zxid that a write of the current entry may take.
    floor: i64,
    nodes: BTreeMap<Rc<str>, Rc<ModelZnode>>,
    sessions: BTreeMap<SessionId, Session>,
    ensemble: Option<ModelEnsemble>,
    has_secret: bool,
    /// Level of the features that the ensemble may use.
    feature_level: u16,
}

#[derive(Clone, Debug)]
struct Session {
    timeout_ms: i32,
    /// The member that serves it.
    owner: MemberNumber,
    /// The session began when there was a secret.
    is_keyed: bool,
    proven: Option<Id>,
    moves: u32,
}

#[derive(Clone, Debug)]
struct ModelZnode {
    data: Option<Vec<u8>>,
    acl: Vec<Acl>,
    /// As the wire says it, but for what depends on children.
    stat: Stat,
    creates: i32,
    kind: ZnodeKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ZnodeKind {
    Persistent,
    Ephemeral(SessionId),
    Container,
    Ttl(i64),
}

/// The identity that a session is bound to, of those that its client has shown.
fn proven(ids: &[Id]) -> Option<Id> {
    ids.iter().find(|id| id.scheme == "sasl" || id.scheme == "x509").cloned()
}

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Model {
    /// A tree as every ensemble begins.
    pub fn new() -> Model {
        let node = |acl| ModelZnode {
            data: Some(Vec::new()),
            acl: vec![acl],
            stat: Stat::default(),
            creates: 0,
            kind: ZnodeKind::Persistent,
        };
        let mut nodes = BTreeMap::new();
        for path in ["/", "/zookeeper", "/zookeeper/quota"] {
            nodes.insert(path.into(), Rc::new(node(Acl::open())));
        }
        let mut config = node(acl(1, "world", "anyone"));
        config.stat.aversion = -1;
        nodes.insert("/zookeeper/config".into(), Rc::new(config));
        Model {
            zxid: 0,
            floor: 0,
            nodes,
            sessions: BTreeMap::new(),
            ensemble: None,
            has_secret: false,
            feature_level: 0,
        }
    }

    pub fn zxid(&self) -> Zxid {
        Zxid(self.zxid)
    }

    /// Number of znodes.
    #[expect(clippy::len_without_is_empty, reason = "there are always some")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(Rc::as_ref)
    }

    /// The ensemble may use the features up to this level, which never falls.
    pub fn raise_level(&mut self, level: u16) {
        self.feature_level = self.feature_level.max(level);
    }

    pub fn feature_level(&self) -> u16 {
        self.feature_level
    }

    /// No write that follows takes a smaller zxid than this floor.
    pub fn begin_entry(&mut self, floor: Zxid) {
        self.floor = floor.0;
    }

    fn take_zxid(&mut self) {
        self.zxid = (self.zxid + 1).max(self.floor);
    }

    /// The next write takes this zxid, which may be smaller than that of the last one: writes of several Raft groups have one order, and it is not quite
    /// that of their zxids.
    pub fn take_next(&mut self, zxid: Zxid) {
        (self.zxid, self.floor) = (zxid.0 - 1, 0);
    }

    /// The member that serves a session that lives.
    pub fn owner(&self, id: SessionId) -> Option<MemberNumber> {
        self.sessions.get(&id).map(|session| session.owner)
    }

    /// Paths of the znodes that are not as they were in `before`.
    pub fn changed_since(&self, before: &Model) -> Vec<Rc<str>> {
        let is_other = |(path, node): &(&Rc<str>, &Rc<ModelZnode>)| {
            before.nodes.get(*path).is_none_or(|former| !Rc::ptr_eq(former, node))
        };
        let changed = self.nodes.iter().filter(is_other).map(|(path, _)| path.clone());
        let gone = before.nodes.keys().filter(|path| !self.nodes.contains_key(*path)).cloned();
        changed.chain(gone).collect()
    }

    /// The sessions that live, with their timeouts.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, i32)> {
        self.sessions.iter().map(|(&id, session)| (id, session.timeout_ms))
    }

    pub fn has_session(&self, id: SessionId) -> bool {
        self.sessions.contains_key(&id)
    }

    /// Carries out one write, or refuses it. Only what concerns the right to a session takes no zxid.
    pub fn apply(&mut self, call: &Call) -> Outcome<'static> {
        let mut changes = Vec::new();
        let result = match &call.wish {
            Wish::ResumeSession { timeout_ms, is_keyed, is_asking, moves } => {
                self.resume(call, *timeout_ms, (*is_keyed, *is_asking), *moves)
            }
            Wish::BindSession => self.bind(call),
            Wish::SetSecret { .. } if call.session == SessionId::NONE => {
                self.has_secret = true;
                Ok(WriteReply::Done)
            }
            _ => {
                self.take_zxid();
                self.answer(call, &mut changes)
            }
        };
        Outcome { zxid: self.zxid(), result, changes: changes.into_iter().collect() }
    }

    /// Removes the next `at_once` of the znodes that a write removes, in a transaction of their own; `None` if there are no more than
    /// that, which is for [`Model::apply`].
    pub fn remove_portion(&mut self, call: &Call, at_once: usize) -> Option<Outcome<'static>> {
        let doomed = self.removed_by(call);
        if doomed.len() <= at_once {
            return None;
        }
        let mut changes = Vec::new();
        self.take_zxid();
        doomed[..at_once].iter().for_each(|path| self.remove(path, &mut changes));
        let changes = changes.into_iter().collect();
        Some(Outcome { zxid: self.zxid(), result: Ok(WriteReply::Done), changes })
    }

    /// Znodes that the end of a session or the removal of a subtree takes along, in the order in which they go.
    fn removed_by(&self, call: &Call) -> Vec<String> {
        if !matches!(
            call.wish,
            Wish::ExpireSession { .. } | Wish::CloseSession | Wish::RemoveRecursive { .. }
        ) {
            return Vec::new();
        }
        let changes = self.clone().apply(call).changes;
        let deleted = changes.into_iter().filter(|change| change.kind == EventKind::NodeDeleted);
        deleted.map(|change| change.path.into_owned()).collect()
    }

    fn answer(&mut self, call: &Call, changes: &mut Changes) -> Reply {
        let is_service = call.session == SessionId::NONE;
        if cannot_be_decoded(&call.wish) {
            return Err(ErrorCode::MarshallingError);
        }
        let owner = self.sessions.get(&call.session).map(|session| session.owner);
        match &call.wish {
            Wish::CreateSession { timeout_ms } => {
                if is_service || owner.is_some() {
                    return Err(ErrorCode::BadArguments);
                }
                let (is_keyed, proven) = (self.has_secret, proven(&call.ids));
                let session =
                    Session { timeout_ms: *timeout_ms, owner: call.member, is_keyed, proven, moves: 0 };
                self.sessions.insert(call.session, session);
                return Ok(WriteReply::Done);
            }
            Wish::ExpireSession { session } => return self.end(*session, changes),
            Wish::CloseSession if owner.is_none_or(|owner| owner == call.member) => {
                return self.end(call.session, changes);
            }
            _ if is_service => {}
            _ if owner.is_none() => return Err(ErrorCode::SessionExpired),
            _ if owner != Some(call.member) => return Err(ErrorCode::SessionMoved),
            _ => {}
        }
        match &call.wish {
            Wish::Check { .. } => Err(ErrorCode::Unimplemented),
            Wish::SetSecret { .. } => Err(ErrorCode::BadArguments),
            Wish::Reconfig { .. } => self.reconfig(call),
            // Only the service says so.
            Wish::FoundEnsemble { .. } | Wish::SettleReconfig { .. } | Wish::BetweenGroups { .. }
                if !is_service =>
            {
                Err(ErrorCode::BadArguments)
            }
            // Nothing of it shows in what clients ask for.
            Wish::BetweenGroups { .. } => Ok(WriteReply::Done),
            Wish::FoundEnsemble { members, .. } => self.found_ensemble(call, members, changes),
            Wish::SettleReconfig { error } => self.settle_reconfig(call, *error, changes),
            Wish::DeleteContainer { path } => self.delete_container(call, path, changes),
            Wish::Multi(wishes) => self.multi(call, wishes, changes),
            wish => self.single(call, wish, changes),
        }
    }

    fn resume(
        &mut self,
        call: &Call,
        timeout_ms: i32,
        (is_keyed, is_asking): (bool, bool),
        moves: Option<u32>,
    ) -> Reply {
        let Some(session) = self.sessions.get_mut(&call.session) else {
            return Err(ErrorCode::SessionExpired);
        };
        if session.is_keyed != is_keyed {
            return Err(ErrorCode::SessionExpired);
        }
        if !is_asking {
            if session.proven.as_ref().is_some_and(|proven| !call.ids.contains(proven)) {
                return Err(ErrorCode::NoAuth);
            }
            if moves.is_some_and(|moves| moves != session.moves) {
                return Err(ErrorCode::SessionMoved);
            }
            session.timeout_ms = timeout_ms;
            session.owner = call.member;
            session.moves += u32::from(moves.is_some());
        }
        Ok(WriteReply::Done)
    }

    fn bind(&mut self, call: &Call) -> Reply {
        if call.session == SessionId::NONE {
            return Err(ErrorCode::BadArguments);
        }
        let session = self.sessions.get_mut(&call.session).ok_or(ErrorCode::SessionExpired)?;
        if session.owner != call.member {
            return Err(ErrorCode::SessionMoved);
        }
        session.proven = session.proven.take().or_else(|| proven(&call.ids));
        Ok(WriteReply::Done)
    }

    fn end(&mut self, session: SessionId, changes: &mut Changes) -> Reply {
        let owned = |node: &ModelZnode| node.kind == ZnodeKind::Ephemeral(session);
        let paths: Vec<Rc<str>> =
            self.nodes.iter().filter(|(_, node)| owned(node)).map(|(path, _)| path.clone()).collect();
        paths.iter().for_each(|path| self.remove(path, changes));
        self.sessions.remove(&session);
        Ok(WriteReply::Done)
    }

    fn get(&self, path: &str) -> Result<&ModelZnode, ErrorCode> {
        self.nodes.get(real(path)).map(Rc::as_ref).ok_or(ErrorCode::NoNode)
    }

    /// A znode that is there, to be changed.
    fn change(&mut self, path: &str) -> &mut ModelZnode {
        Rc::make_mut(self.nodes.get_mut(path).expect("whoever changes a znode has seen it"))
    }

    fn may(&self, node: &ModelZnode, perm: i32, ids: &[Id]) -> Result<(), ErrorCode> {
        let meant = |entry: &Acl| entry.id == Id::new("world", "anyone") || ids.contains(&entry.id);
        let granted = node.acl.iter().any(|entry| entry.perms.0 & perm != 0 && meant(entry));
        if granted || ids.iter().any(|id| id.scheme == "super") { Ok(()) } else { Err(ErrorCode::NoAuth) }
    }

    fn names_below(&self, path: &str) -> Vec<&str> {
        let is_child = |other: &&Rc<str>| &***other != "/" && real(up(other)) == path;
        self.nodes.keys().filter(is_child).map(Rc::as_ref).collect()
    }

    /// The Stat of a znode that is there.
    fn stat_of(&self, path: &str, node: &ModelZnode) -> Stat {
        let num_children = self.names_below(path).len() as i32;
        let cversion = 2 * node.creates - num_children;
        Stat { cversion, num_children, data_length: len(&node.data) as i32, ..node.stat }
    }

    /// True if a znode is there and a client with these identities may read it.
    pub fn may_read(&self, path: &str, ids: &[Id]) -> bool {
        self.get(path).is_ok_and(|node| self.may(node, Perms::READ.0, ids).is_ok())
    }

    pub fn stat(&self, path: &str) -> Option<Stat> {
        self.nodes.get(path).map(|node| self.stat_of(path, node))
    }

    /// All that can be seen of it.
    pub fn dump(&self) -> Dump {
        let znode = |(path, node): (&Rc<str>, &Rc<ModelZnode>)| {
            let stat = self.stat_of(path, node);
            (path.to_string(), Znode { data: node.data.clone(), acl: node.acl.clone(), stat })
        };
        let mut ephemerals: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
        for (path, node) in &self.nodes {
            if let ZnodeKind::Ephemeral(session) = node.kind {
                ephemerals.entry(session).or_default().push(path.to_string());
            }
        }
        let is_perishable = |(path, node): &(&Rc<str>, &Rc<ModelZnode>)| match node.kind {
            ZnodeKind::Container => node.creates > 0 && self.names_below(path).is_empty(),
            ZnodeKind::Ttl(_) => self.names_below(path).is_empty(),
            ZnodeKind::Persistent | ZnodeKind::Ephemeral(_) => false,
        };
        let bytes = self.nodes.iter().map(|(path, node)| (path.len() + len(&node.data)) as u64).sum();
        Dump {
            zxid: self.zxid(),
            znodes: self.nodes.iter().map(znode).collect(),
            sessions: self.sessions.iter().map(|(&id, s)| (id, s.timeout_ms, s.owner)).collect(),
            rights: self.sessions.iter().map(|(&id, s)| (id, s.is_keyed, s.proven.clone())).collect(),
            counts: (self.nodes.len() + 1, ephemerals.values().map(Vec::len).sum(), bytes),
            ephemerals: ephemerals.into_iter().collect(),
            perishable: self.nodes.iter().filter(is_perishable).map(|(path, _)| path.to_string()).collect(),
        }
    }
}
