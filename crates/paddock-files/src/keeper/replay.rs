//! Requests of ClickHouse Keeper's log, carried out as Keeper does: it logs what was asked, not what came of it.
//!
//! A request that Keeper refused is refused here, too, and changes nothing. The rules are those of Keepers of 2024 to 2026; where Keeper
//! wrote digests, a difference shows with the first request that it concerns.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use paddock_proto::jute::Reader;
use paddock_proto::{
    Acl, AclList, Auth, Create, Dialect, Id, OpCode, Perms, Request, SessionId, Stat, Write,
};
use paddock_tree::{DraftNode, Facts, ZnodeKind};
use sha1::{Digest, Sha1};

use super::entry::{ChangelogEntry, SESSION_ID};
use super::state::{KeeperState, counter, is_computed};
use crate::error::Problem;

/// Session of requests that Keeper makes for a client. Those below are of its collector of TTLs and containers.
const OF_NO_SESSION: SessionId = SessionId(-1);
/// Scheme of the identity that may do everything.
const SUPER: &str = "super";

/// Outcome of a request that does not change anything.
enum ReplayRefusal {
    /// Keeper refused it.
    Refused,
    /// Keeper accepted it, or would have, and it cannot be carried out here.
    Problem(Problem),
}

impl From<Problem> for ReplayRefusal {
    fn from(problem: Problem) -> ReplayRefusal {
        ReplayRefusal::Problem(problem)
    }
}

use ReplayRefusal::Refused;

impl KeeperState {
    /// Carries out the request at this index of the log.
    pub(super) fn apply(&mut self, entry: &ChangelogEntry<'_>, index: u64) -> Result<(), Problem> {
        if entry.op == SESSION_ID {
            return self.begin_session(entry.body);
        }
        if entry.op == OpCode::Reconfig.code() {
            return Ok(());
        }
        if entry.session < OF_NO_SESSION {
            return Err(Problem::Collector);
        }
        let zxid = entry.zxid_at(index);
        if zxid <= self.zxid {
            return Err(Problem::ZxidBack { zxid, last: self.zxid });
        }
        self.zxid = zxid;
        let op = OpCode::from_code(entry.op).ok_or(Problem::Operation(entry.op))?;
        match op {
            OpCode::CloseSession => self.close_session(entry.session),
            OpCode::Auth => {
                if let Request::Auth(auth) = Request::decode(op, entry.body, Dialect::ClickHouse)? {
                    self.authenticate(entry.session, &auth);
                }
            }
            op if op.is_write() => return self.write(entry, &Write::decode(op, entry.body)?),
            OpCode::CreateSession | OpCode::Sasl => return Err(Problem::Operation(entry.op)),
            _ => {}
        }
        Ok(())
    }

    fn begin_session(&mut self, body: &[u8]) -> Result<(), Problem> {
        let mut r = Reader::new(body);
        let (_, timeout_ms) = (r.i64()?, r.i64()?);
        self.draft.begin_session(SessionId(self.next_session), super::timeout(timeout_ms));
        self.next_session = self.next_session.wrapping_add(1);
        Ok(())
    }

    fn close_session(&mut self, session: SessionId) {
        for path in self.draft.ephemerals_of(session) {
            self.change(parent_of(&path), |state| state.remove(&path));
        }
        self.draft.end_session(session);
        self.identities.remove(&session);
    }

    fn authenticate(&mut self, session: SessionId, auth: &Auth<'_>) {
        let text = auth.auth.unwrap_or_default();
        let mut parts = text.splitn(2, |byte| *byte == b':');
        let (Some(user), Some(password)) = (parts.next(), parts.next()) else { return };
        if auth.scheme != "digest" || password.contains(&b':') {
            return;
        }
        let hash = STANDARD.encode(Sha1::digest(text));
        let id = Id::new("digest", format!("{}:{hash}", String::from_utf8_lossy(user)));
        let ids = self.identities.entry(session).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }

    fn write(&mut self, entry: &ChangelogEntry<'_>, write: &Write<'_>) -> Result<(), Problem> {
        self.begin();
        let mut request = Doing { state: self, session: entry.session, time_ms: entry.time_ms };
        let problem = match request.carry_out(write) {
            Ok(()) => None,
            Err(Refused) => {
                self.take_back();
                None
            }
            Err(ReplayRefusal::Problem(problem)) => Some(problem),
        };
        self.keep();
        problem.map_or(Ok(()), Err)
    }
}

/// A request that is being carried out.
struct Doing<'s> {
    state: &'s mut KeeperState,
    session: SessionId,
    time_ms: i64,
}

impl Doing<'_> {
    fn carry_out(&mut self, write: &Write<'_>) -> Result<(), ReplayRefusal> {
        match *write {
            Write::Create(ref create) => self.create(create),
            Write::Delete { path, version } => self.delete(path, version),
            Write::TryRemove { path, version } => self.try_remove(path, version),
            Write::RemoveRecursive { path, nodes_max } => self.remove_recursive(path, nodes_max),
            Write::SetData { path, data, version } => self.set_data(path, data, version),
            Write::SetAcl { path, acl, version } => self.set_acl(path, acl, version),
            Write::Check { path, version } => self.check(path, version).map(|_| ()),
            Write::CheckNotExists { path, version } => self.check_not_exists(path, version),
            Write::CheckStat { path, version, ref stat } => self.check_stat(path, version, stat),
            Write::Multi(ref writes) => writes.iter().try_for_each(|write| self.carry_out(write)),
            _ => Err(Problem::NotOfKeeper.into()),
        }
    }

    fn create(&mut self, create: &Create<'_>) -> Result<(), ReplayRefusal> {
        let parent_path = parent_of(create.path);
        let parent = self.state.draft.find(parent_path).ok_or(Refused)?;
        self.allow(parent, Perms::CREATE)?;
        let facts = self.state.draft.znode(parent);
        if matches!(facts.kind, ZnodeKind::Ephemeral(_) | ZnodeKind::Ttl { .. }) {
            return Err(Refused);
        }
        let created = facts.cversion;
        let pzxid = facts.pzxid.max(self.state.zxid.0);
        let is_ttl = create.op == OpCode::CreateTtl;
        let is_sequential = create.flags & 2 != 0;
        let numbered = is_sequential.then(|| format!("{}{created:010}", create.path));
        let path = numbered.as_deref().unwrap_or(create.path);
        if is_computed(path) {
            return Err(Refused);
        }
        if self.state.draft.find(path).is_some() {
            let is_content = create.op == OpCode::CreateIfNotExists;
            return if is_content { Ok(()) } else { Err(Refused) };
        }
        if path.ends_with('/') {
            return Err(Refused);
        }
        let kind = match create.ttl_ms {
            _ if create.op == OpCode::CreateContainer => ZnodeKind::Container,
            Some(ms) if is_ttl && ms <= 0 => return Err(Refused),
            Some(ms) => ZnodeKind::Ttl { ms },
            None if create.flags & 1 != 0 => ZnodeKind::Ephemeral(self.session),
            None => ZnodeKind::Persistent,
        };
        let acl = self.fixed_acl(create.acl)?;
        let raised = counter(parent_path, i64::from(created) + 1)?;
        let facts = self.new_facts(create.data, kind);
        let made: Result<(), Problem> = self.state.change(parent_path, |state| {
            let placed = state.change(path, |state| match acl {
                None => state.draft.place(path, &facts, state.draft.open_acl()),
                Some(acl) => state.draft.place_with(path, &facts, acl),
            });
            placed.map_err(|error| Problem::Znode { path: path.to_owned(), error })?;
            state.draft.set_cversion(parent, raised);
            state.draft.set_pzxid(parent, pzxid);
            Ok(())
        });
        Ok(made?)
    }

    fn new_facts<'d>(&self, data: Option<&'d [u8]>, kind: ZnodeKind) -> Facts<'d> {
        Facts::of_new(Some(data.unwrap_or_default()), kind, self.state.zxid.0, self.time_ms)
    }

    fn delete(&mut self, path: &str, version: i32) -> Result<(), ReplayRefusal> {
        if is_computed(path) {
            return Err(Refused);
        }
        let (parent, node) = self.with_parent(path)?;
        self.allow(parent, Perms::DELETE)?;
        let znode = self.state.draft.znode(node.ok_or(Refused)?);
        if version != -1 && version != znode.version || znode.children != 0 || path == "/" {
            return Err(Refused);
        }
        // Keeper leaves the pzxid of the parent as it is.
        self.state.change(parent_of(path), |state| state.remove(path));
        Ok(())
    }

    /// A delete that Keeper accepts even if there is nothing that it may delete. Without the permission it is refused.
    fn try_remove(&mut self, path: &str, version: i32) -> Result<(), ReplayRefusal> {
        if is_computed(path) {
            return Err(Refused);
        }
        let Ok((parent, node)) = self.with_parent(path) else { return Ok(()) };
        self.allow(parent, Perms::DELETE)?;
        let Some(node) = node else { return Ok(()) };
        let znode = self.state.draft.znode(node);
        if (version == -1 || version == znode.version) && znode.children == 0 && path != "/" {
            self.state.change(parent_of(path), |state| state.remove(path));
        }
        Ok(())
    }

    fn remove_recursive(&mut self, path: &str, nodes_max: u32) -> Result<(), ReplayRefusal> {
        if is_computed(path) || path == "/" {
            return Err(Refused);
        }
        let Ok((parent, node)) = self.with_parent(path) else { return Ok(()) };
        self.allow(parent, Perms::DELETE)?;
        let Some(node) = node else { return Ok(()) };
        let limit = usize::try_from(nodes_max).unwrap_or(usize::MAX);
        let paths: Vec<String> = self.state.draft.subtree(node).take(limit.saturating_add(1)).collect();
        if paths.len() > limit {
            return Err(Refused);
        }
        for path in &paths {
            let node = self.state.draft.find(path).expect("the walk has found it");
            self.allow(node, Perms::DELETE)?;
        }
        self.state.change(parent_of(path), |state| state.remove_subtree(&paths));
        Ok(())
    }

    fn set_data(&mut self, path: &str, data: Option<&[u8]>, version: i32) -> Result<(), ReplayRefusal> {
        let node = self.find(path)?;
        self.allow(node, Perms::WRITE)?;
        let known = self.state.draft.znode(node).version;
        if version != -1 && version != known {
            return Err(Refused);
        }
        let (data, zxid, time_ms) = (Some(data.unwrap_or_default()), self.state.zxid.0, self.time_ms);
        self.state.change(path, |state| {
            state.draft.set_data(node, data, known.wrapping_add(1), zxid, time_ms);
        });
        if path != "/" {
            let parent = parent_of(path);
            self.state.change(parent, |state| state.raise_surplus(parent));
        }
        Ok(())
    }

    fn set_acl(&mut self, path: &str, acl: AclList<'_>, version: i32) -> Result<(), ReplayRefusal> {
        let node = self.find(path)?;
        self.allow(node, Perms::ADMIN)?;
        let known = self.state.draft.znode(node).aversion;
        if version != -1 && version != known {
            return Err(Refused);
        }
        let acl = self.fixed_acl(acl)?.unwrap_or_else(|| vec![Acl::open()]);
        self.state.change(path, |state| state.draft.set_acl(node, acl, known.wrapping_add(1)));
        Ok(())
    }

    fn check(&mut self, path: &str, version: i32) -> Result<DraftNode, ReplayRefusal> {
        let node = self.find(path)?;
        self.allow(node, Perms::READ)?;
        let is_right = version == -1 || version == self.state.draft.znode(node).version;
        if is_right { Ok(node) } else { Err(Refused) }
    }

    fn check_not_exists(&mut self, path: &str, version: i32) -> Result<(), ReplayRefusal> {
        if is_computed(path) {
            return Err(Refused);
        }
        let Some(node) = self.known(path) else { return Ok(()) };
        self.allow(node, Perms::READ)?;
        let is_it = version == -1 || version == self.state.draft.znode(node).version;
        if is_it { Err(Refused) } else { Ok(()) }
    }

    fn check_stat(&mut self, path: &str, version: i32, wanted: &Stat) -> Result<(), ReplayRefusal> {
        let node = self.check(path, version)?;
        let znode = self.state.draft.znode(node);
        let counters = self.state.counters(path, &znode);
        let owner = match znode.kind {
            ZnodeKind::Ephemeral(session) => session.0,
            ZnodeKind::Container => i64::MIN,
            ZnodeKind::Persistent | ZnodeKind::Ttl { .. } => 0,
        };
        let longs = [
            (wanted.czxid.0, znode.czxid),
            (wanted.mzxid.0, znode.mzxid),
            (wanted.pzxid.0, znode.pzxid),
            (wanted.ctime_ms, znode.ctime_ms),
            (wanted.mtime_ms, znode.mtime_ms),
            (wanted.ephemeral_owner.0, owner),
        ];
        let ints = [
            (wanted.version, znode.version),
            (wanted.cversion, counters.cversion),
            (wanted.aversion, znode.aversion),
            (wanted.data_length, znode.data.map_or(0, <[u8]>::len) as i32),
            (wanted.num_children, counters.children),
        ];
        let is_right = longs.iter().all(|(wanted, found)| *wanted == -1 || wanted == found)
            && ints.iter().all(|(wanted, found)| *wanted == -1 || wanted == found);
        if is_right { Ok(()) } else { Err(Refused) }
    }

    /// A znode that a request may change.
    fn find(&self, path: &str) -> Result<DraftNode, ReplayRefusal> {
        if is_computed(path) {
            return Err(Refused);
        }
        self.known(path).ok_or(Refused)
    }

    /// The znode at a path. To ZooKeeper the empty string is the root's other name; to Keeper, which looks paths up as they are, it is
    /// that of no znode.
    fn known(&self, path: &str) -> Option<DraftNode> {
        self.state.draft.find(path).filter(|_| !path.is_empty())
    }

    /// The parent of a path, and the znode itself if there is one.
    fn with_parent(&self, path: &str) -> Result<(DraftNode, Option<DraftNode>), ReplayRefusal> {
        let parent = self.state.draft.find(parent_of(path)).ok_or(Refused)?;
        Ok((parent, self.known(path)))
    }

    /// Refuses what the ACL of a znode does not allow the session.
    fn allow(&self, node: DraftNode, perms: Perms) -> Result<(), ReplayRefusal> {
        let ids = self.state.identities.get(&self.session).map_or(&[][..], Vec::as_slice);
        let acl = self.state.draft.znode(node).acl;
        let is_allowed = ids.iter().any(|id| id.scheme == SUPER)
            || acl.iter().any(|entry| {
                entry.perms.any_of(perms) && (is_everybody(&entry.id) || ids.contains(&entry.id))
            });
        if is_allowed { Ok(()) } else { Err(Refused) }
    }

    /// The ACL that a znode gets; `None` for the one that everybody may do everything.
    fn fixed_acl(&self, list: AclList<'_>) -> Result<Option<Vec<Acl>>, ReplayRefusal> {
        // A list that is null has the same meaning as an empty one.
        let asked = list.to_vec();
        if list.is_open() || asked.is_empty() {
            return Ok(None);
        }
        let mut fixed = Vec::new();
        for Acl { perms, id } in asked {
            match id.scheme.as_str() {
                "auth" => {
                    let ids = self.state.identities.get(&self.session).into_iter().flatten();
                    fixed.extend(ids.map(|id| Acl { perms, id: id.clone() }));
                }
                "world" if is_everybody(&id) => fixed.push(Acl { perms, id }),
                "digest" if id.id.matches(':').count() != 1 => return Err(Refused),
                "digest" => fixed.push(Acl { perms, id }),
                _ => {}
            }
        }
        match fixed.iter().all(|entry| *entry == Acl::open()) {
            _ if fixed.is_empty() => Err(Refused),
            true => Ok(None),
            false => Ok(Some(fixed)),
        }
    }
}

fn is_everybody(id: &Id) -> bool {
    id.scheme == "world" && id.id == "anyone"
}

fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}
