//! The tree as simply as it can be said: a map from paths to znodes, copied whole where something may fail half-way.
//!
//! Slow and obviously right. It shares nothing with the tree but the types of its answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use paddock_proto::{
    Acl, CreateMode, ErrorCode, EventKind, Id, MultiResult, OpCode, SessionId, Stat, WriteReply, Zxid,
    validate_path,
};
use paddock_tree::Change;

use crate::dump::{Dump, Znode};
use crate::wire::{Call, Wish, acl};

use ErrorCode::*;

#[derive(Clone, Debug)]
pub(crate) struct Model {
    zxid: i64,
    nodes: BTreeMap<String, Node>,
    sessions: BTreeMap<SessionId, i32>,
}

#[derive(Clone, Debug)]
struct Node {
    data: Option<Vec<u8>>,
    acl: Vec<Acl>,
    /// As the wire says it, but for what depends on children.
    stat: Stat,
    creates: i32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Persistent,
    Ephemeral(SessionId),
    Container,
    Ttl(i64),
}

type Reply = Result<WriteReply<'static>, ErrorCode>;
type Changes = Vec<Change<'static>>;

impl Model {
    pub(crate) fn new() -> Model {
        let node = |acl| Node {
            data: Some(Vec::new()),
            acl: vec![acl],
            stat: Stat::default(),
            creates: 0,
            kind: Kind::Persistent,
        };
        let mut nodes = BTreeMap::new();
        for path in ["/", "/zookeeper", "/zookeeper/quota"] {
            nodes.insert(path.to_owned(), node(Acl::open()));
        }
        let mut config = node(acl(1, "world", "anyone"));
        config.stat.aversion = -1;
        nodes.insert("/zookeeper/config".to_owned(), config);
        Model { zxid: 0, nodes, sessions: BTreeMap::new() }
    }

    pub(crate) fn apply(&mut self, call: &Call) -> (Zxid, Reply, Changes) {
        self.zxid += 1;
        let mut changes = Vec::new();
        let reply = self.answer(call, &mut changes);
        (Zxid(self.zxid), reply, changes)
    }

    fn answer(&mut self, call: &Call, changes: &mut Changes) -> Reply {
        let is_service = call.session == SessionId::NONE;
        if cannot_be_decoded(&call.wish) {
            return Err(MarshallingError);
        }
        match &call.wish {
            Wish::CreateSession { timeout_ms } => {
                if is_service || self.sessions.contains_key(&call.session) {
                    return Err(BadArguments);
                }
                self.sessions.insert(call.session, *timeout_ms);
                return Ok(WriteReply::Done);
            }
            Wish::CloseSession => {
                let owned = |node: &Node| node.kind == Kind::Ephemeral(call.session);
                let paths: Vec<String> =
                    self.nodes.iter().filter(|(_, node)| owned(node)).map(|(path, _)| path.clone()).collect();
                paths.iter().for_each(|path| self.remove(path, changes));
                self.sessions.remove(&call.session);
                return Ok(WriteReply::Done);
            }
            _ if !is_service && !self.sessions.contains_key(&call.session) => return Err(SessionExpired),
            _ => {}
        }
        match &call.wish {
            Wish::Check { .. } => Err(Unimplemented),
            Wish::DeleteContainer { path } => self.delete_container(call, path, changes),
            Wish::Multi(wishes) => self.multi(call, wishes, changes),
            wish => self.single(call, wish, changes),
        }
    }

    fn multi(&mut self, call: &Call, wishes: &[Wish], changes: &mut Changes) -> Reply {
        if wishes.iter().any(cannot_be_in_multi) {
            return Err(MarshallingError);
        }
        let before = self.clone();
        let mut results = Vec::new();
        for (n, wish) in wishes.iter().enumerate() {
            let wish = as_in_multi(wish);
            match self.single(call, &wish, changes) {
                Ok(reply) => results.push(MultiResult::Done(wish.op(), reply)),
                Err(error) => {
                    *self = before;
                    changes.clear();
                    results = vec![MultiResult::Failed(None); n];
                    results.push(MultiResult::Failed(Some(error)));
                    results.resize(wishes.len(), MultiResult::Failed(Some(RuntimeInconsistency)));
                    break;
                }
            }
        }
        Ok(WriteReply::Multi(results))
    }

    fn single(&mut self, call: &Call, wish: &Wish, changes: &mut Changes) -> Reply {
        match wish {
            Wish::Create { .. } => self.create(call, wish, changes),
            Wish::Delete { path, version } => {
                if is_special(path) || !path.contains('/') || path.contains('\0') {
                    return Err(BadArguments);
                }
                let parent = self.get(up(path))?;
                self.may(parent, 8, call)?;
                let node = self.get(path)?;
                fits(*version, node.stat.version)?;
                if !self.names_below(path).is_empty() {
                    return Err(NotEmpty);
                }
                self.remove(path, changes);
                Ok(WriteReply::Done)
            }
            Wish::SetData { path, data, version } => {
                validate_path(path).map_err(|_| BadArguments)?;
                let node = self.get(path)?;
                self.may(node, 2, call)?;
                fits(*version, node.stat.version)?;
                let bytes = len(data) as i64 - len(&node.data) as i64;
                let zxid = Zxid(self.zxid);
                let node = self.nodes.get_mut(path).unwrap();
                node.data = data.clone();
                node.stat.version += 1;
                node.stat.mzxid = zxid;
                node.stat.mtime_ms = call.time_ms;
                let stat = self.stat(path);
                changes.push(self.event(EventKind::NodeDataChanged, path));
                self.count_for_quota(path, 0, bytes);
                Ok(WriteReply::Changed { stat })
            }
            Wish::SetAcl { path, acl, version } => {
                validate_path(path).map_err(|_| BadArguments)?;
                let acl = resolve(acl, &call.ids)?;
                let node = self.get(path)?;
                self.may(node, 16, call)?;
                fits(*version, node.stat.aversion)?;
                let node = self.nodes.get_mut(path).unwrap();
                node.acl = acl;
                node.stat.aversion += 1;
                Ok(WriteReply::Changed { stat: self.stat(path) })
            }
            Wish::Check { path, version } => {
                validate_path(path).map_err(|_| BadArguments)?;
                let node = self.get(path)?;
                self.may(node, 1, call)?;
                fits(*version, node.stat.version)?;
                Ok(WriteReply::Done)
            }
            other => panic!("{other:?} is not on one znode"),
        }
    }

    fn create(&mut self, call: &Call, wish: &Wish, changes: &mut Changes) -> Reply {
        let Wish::Create { op, path, data, acl, flags, ttl_ms } = wish else { panic!("not a create") };
        let mode = CreateMode::from_flags(*flags).ok_or(BadArguments)?;
        let kind = match op {
            OpCode::CreateTtl if mode.has_ttl() && (1..=0xff_ffff_ffff).contains(ttl_ms) => {
                Kind::Ttl(*ttl_ms)
            }
            OpCode::CreateTtl => return Err(BadArguments),
            _ if mode.has_ttl() => return Err(BadArguments),
            OpCode::CreateContainer => Kind::Container,
            _ if mode.is_ephemeral() && call.session == SessionId::NONE => return Err(SessionExpired),
            _ if mode.is_ephemeral() => Kind::Ephemeral(call.session),
            _ => Kind::Persistent,
        };
        if !path.contains('/') || path.contains('\0') {
            return Err(BadArguments);
        }
        let acl = resolve(acl, &call.ids)?;
        let parent = self.get(up(path))?;
        self.may(parent, 4, call)?;
        let path = if mode.is_sequential() { format!("{path}{:010}", parent.creates) } else { path.clone() };
        validate_path(&path).map_err(|_| BadArguments)?;
        if self.nodes.contains_key(&path) {
            return Err(NodeExists);
        }
        if matches!(parent.kind, Kind::Ephemeral(_)) {
            return Err(NoChildrenForEphemerals);
        }

        let (zxid, parent_path) = (Zxid(self.zxid), real(up(&path)).to_owned());
        let parent = self.nodes.get_mut(&parent_path).unwrap();
        parent.creates += 1;
        parent.stat.pzxid = zxid;
        let stat = Stat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: call.time_ms,
            mtime_ms: call.time_ms,
            ephemeral_owner: if let Kind::Ephemeral(session) = kind { session } else { SessionId::NONE },
            ..Stat::default()
        };
        self.nodes.insert(path.clone(), Node { data: data.clone(), acl, stat, creates: 0, kind });
        let stat = self.stat(&path);
        changes.push(self.event(EventKind::NodeCreated, &path));
        changes.push(self.event(EventKind::NodeChildrenChanged, &parent_path));
        if let Some(subject) =
            path.strip_prefix("/zookeeper/quota").and_then(|p| p.strip_suffix("/zookeeper_stats"))
        {
            let below = |other: &&String| subject.is_empty() || *other == subject || is_below(other, subject);
            let counted: Vec<&String> = self.nodes.keys().filter(below).collect();
            let bytes: usize = counted.iter().map(|path| len(&self.nodes[*path].data)).sum();
            let text = format!("count={},bytes={bytes}", counted.len());
            self.nodes.get_mut(&path).unwrap().data = Some(text.into_bytes());
        }
        self.count_for_quota(&path, 1, len(data) as i64);
        let path = Cow::Owned(path);
        Ok(match op {
            OpCode::Create => WriteReply::Created { path },
            _ => WriteReply::CreatedWithStat { path, stat },
        })
    }

    fn delete_container(&mut self, call: &Call, path: &str, changes: &mut Changes) -> Reply {
        if call.session != SessionId::NONE {
            return Err(Unimplemented);
        }
        if is_special(path) || !path.contains('/') || path.contains('\0') {
            return Err(BadArguments);
        }
        let node = self.get(path)?;
        let (kind, creates, mtime) = (node.kind, node.creates, node.stat.mtime_ms);
        if !self.names_below(path).is_empty() {
            return Err(NotEmpty);
        }
        match kind {
            Kind::Container if creates > 0 => {}
            Kind::Ttl(ms) if call.time_ms - mtime > ms => {}
            _ => return Err(BadVersion),
        }
        self.remove(path, changes);
        Ok(WriteReply::Done)
    }

    fn remove(&mut self, path: &str, changes: &mut Changes) {
        changes.push(self.event(EventKind::NodeDeleted, path));
        let node = self.nodes.remove(path).unwrap();
        let (zxid, parent) = (Zxid(self.zxid), real(up(path)));
        self.nodes.get_mut(parent).unwrap().stat.pzxid = zxid;
        changes.push(self.event(EventKind::NodeChildrenChanged, parent));
        self.count_for_quota(path, -1, -(len(&node.data) as i64));
    }

    fn count_for_quota(&mut self, path: &str, count: i64, bytes: i64) {
        let has_quota =
            |top: &&str| self.nodes.contains_key(&format!("/zookeeper/quota{top}/zookeeper_limits"));
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).skip(1);
        let Some(top) = ends.map(|end| &path[..end]).filter(has_quota).last() else { return };
        let Some(stats) = self.nodes.get_mut(&format!("/zookeeper/quota{top}/zookeeper_stats")) else {
            return;
        };
        let text = String::from_utf8(stats.data.clone().unwrap_or_default()).unwrap();
        let (old_count, old_bytes) =
            match text.strip_prefix("count=").and_then(|rest| rest.split_once(",bytes=")) {
                Some((count, bytes)) => (count.parse::<i64>().unwrap(), bytes.parse::<i64>().unwrap()),
                None if text.is_empty() => (-1, -1),
                None => return,
            };
        stats.data = Some(format!("count={},bytes={}", old_count + count, old_bytes + bytes).into_bytes());
    }

    fn event(&self, kind: EventKind, path: &str) -> Change<'static> {
        let acl = &self.nodes[path].acl;
        let public = acl.iter().any(|entry| entry.perms.0 & 1 != 0 && entry.id == Id::new("world", "anyone"));
        let readers = (!public).then(|| acl.clone().into());
        Change { kind, path: Cow::Owned(path.to_owned()), readers }
    }

    fn get(&self, path: &str) -> Result<&Node, ErrorCode> {
        self.nodes.get(real(path)).ok_or(NoNode)
    }

    fn may(&self, node: &Node, perm: i32, call: &Call) -> Result<(), ErrorCode> {
        let meant = |entry: &Acl| entry.id == Id::new("world", "anyone") || call.ids.contains(&entry.id);
        let granted = node.acl.iter().any(|entry| entry.perms.0 & perm != 0 && meant(entry));
        if granted || call.ids.iter().any(|id| id.scheme == "super") { Ok(()) } else { Err(NoAuth) }
    }

    fn names_below(&self, path: &str) -> Vec<&str> {
        self.nodes
            .keys()
            .filter(|other| *other != "/" && real(up(other)) == path)
            .map(String::as_str)
            .collect()
    }

    fn stat(&self, path: &str) -> Stat {
        let node = &self.nodes[path];
        let num_children = self.names_below(path).len() as i32;
        let cversion = 2 * node.creates - num_children;
        Stat { cversion, num_children, data_length: len(&node.data) as i32, ..node.stat }
    }

    pub(crate) fn dump(&self) -> Dump {
        let znode = |(path, node): (&String, &Node)| {
            let znode = Znode { data: node.data.clone(), acl: node.acl.clone(), stat: self.stat(path) };
            (path.clone(), znode)
        };
        let mut ephemerals: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
        for (path, node) in &self.nodes {
            if let Kind::Ephemeral(session) = node.kind {
                ephemerals.entry(session).or_default().push(path.clone());
            }
        }
        let is_perishable = |(path, node): &(&String, &Node)| match node.kind {
            Kind::Container => node.creates > 0 && self.names_below(path).is_empty(),
            Kind::Ttl(_) => self.names_below(path).is_empty(),
            Kind::Persistent | Kind::Ephemeral(_) => false,
        };
        let bytes = self.nodes.iter().map(|(path, node)| (path.len() + len(&node.data)) as u64).sum();
        Dump {
            zxid: Zxid(self.zxid),
            znodes: self.nodes.iter().map(znode).collect(),
            sessions: self.sessions.iter().map(|(&session, &timeout_ms)| (session, timeout_ms)).collect(),
            counts: (self.nodes.len() + 1, ephemerals.values().map(Vec::len).sum(), bytes),
            ephemerals: ephemerals.into_iter().collect(),
            perishable: self.nodes.iter().filter(is_perishable).map(|(path, _)| path.clone()).collect(),
        }
    }
}

fn resolve(list: &[Acl], ids: &[Id]) -> Result<Vec<Acl>, ErrorCode> {
    let mut unique: Vec<&Acl> = Vec::new();
    for entry in list {
        if !unique.contains(&entry) {
            unique.push(entry);
        }
    }
    let mut resolved = Vec::new();
    for entry in unique {
        match (entry.id.scheme.as_str(), entry.id.id.as_str()) {
            ("world", "anyone") => resolved.push(entry.clone()),
            ("auth", _) => {
                let digests: Vec<&Id> = ids.iter().filter(|id| id.scheme == "digest").collect();
                if digests.is_empty() {
                    return Err(InvalidAcl);
                }
                resolved.extend(digests.into_iter().map(|id| Acl { perms: entry.perms, id: id.clone() }));
            }
            ("digest", id) if id.split(':').count() == 2 => resolved.push(entry.clone()),
            _ => return Err(InvalidAcl),
        }
    }
    if resolved.is_empty() { Err(InvalidAcl) } else { Ok(resolved) }
}

fn fits(expected: i32, actual: i32) -> Result<(), ErrorCode> {
    if expected == -1 || expected == actual { Ok(()) } else { Err(BadVersion) }
}

fn cannot_be_decoded(wish: &Wish) -> bool {
    let fits_in_multi = |wish: &Wish| match wish {
        Wish::Create { op, flags, .. } => {
            *op == OpCode::CreateTtl || CreateMode::from_flags(*flags).is_some()
        }
        Wish::Delete { .. } | Wish::SetData { .. } | Wish::Check { .. } => true,
        _ => false,
    };
    match wish {
        Wish::Broken => true,
        Wish::Multi(wishes) => !wishes.iter().all(fits_in_multi),
        _ => false,
    }
}

/// A TTL mode must come with a TTL.
fn cannot_be_in_multi(wish: &Wish) -> bool {
    matches!(wish, Wish::Create { op, flags: 5 | 6, .. } if *op != OpCode::CreateTtl)
}

fn as_in_multi(wish: &Wish) -> Wish {
    let mut wish = wish.clone();
    if let Wish::Create { op, flags, .. } = &mut wish {
        if *flags == 4 {
            *op = OpCode::CreateContainer;
        } else if *op == OpCode::CreateTtl && *flags < 4 {
            *op = OpCode::Create;
        }
    }
    wish
}

fn is_special(path: &str) -> bool {
    matches!(path, "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config")
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'))
}

/// What stands before the last slash.
fn up(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The root has two names.
fn real(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn len(data: &Option<Vec<u8>>) -> usize {
    data.as_ref().map_or(0, Vec::len)
}
