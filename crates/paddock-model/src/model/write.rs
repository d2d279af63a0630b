//! Writes on znodes, alone and together.

use std::borrow::Cow;
use std::rc::Rc;

use paddock_proto::{
    CreateMode, ErrorCode, EventKind, Id, MultiResult, OpCode, SessionId, Stat, WriteReply, Zxid,
    validate_path,
};
use paddock_tree::Change;

use super::rules::{as_in_multi, cannot_be_in_multi, fits, is_below, is_special, len, real, resolve, up};
use super::{Changes, Model, ModelZnode, Reply, ZnodeKind};
use crate::{Call, Wish};
use ErrorCode::*;

impl Model {
    pub(super) fn multi(&mut self, call: &Call, wishes: &[Wish], changes: &mut Changes) -> Reply {
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

    pub(super) fn single(&mut self, call: &Call, wish: &Wish, changes: &mut Changes) -> Reply {
        match wish {
            Wish::Create { .. } => self.create(call, wish, changes),
            Wish::Delete { path, version } => {
                if is_special(path) || !path.contains('/') || path.contains('\0') {
                    return Err(BadArguments);
                }
                let parent = self.get(up(path))?;
                self.may(parent, 8, &call.ids)?;
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
                self.may(node, 2, &call.ids)?;
                let bytes = len(data) as i64 - len(&node.data) as i64;
                self.fits_quota(call, path, 0, bytes)?;
                fits(*version, node.stat.version)?;
                let zxid = self.zxid();
                let node = self.change(path);
                node.data = data.clone();
                node.stat.version += 1;
                node.stat.mzxid = zxid;
                node.stat.mtime_ms = call.time_ms;
                let stat = self.stat_of(path, self.get(path)?);
                changes.push(self.event(EventKind::NodeDataChanged, path));
                self.count_for_quota(path, 0, bytes);
                Ok(WriteReply::Changed { stat })
            }
            Wish::SetAcl { path, acl, version } => {
                validate_path(path).map_err(|_| BadArguments)?;
                let acl = resolve(acl, &call.ids)?;
                let node = self.get(path)?;
                self.may(node, 16, &call.ids)?;
                fits(*version, node.stat.aversion)?;
                let node = self.change(path);
                node.acl = acl;
                node.stat.aversion += 1;
                Ok(WriteReply::Changed { stat: self.stat_of(path, self.get(path)?) })
            }
            Wish::Check { path, version } => {
                validate_path(path).map_err(|_| BadArguments)?;
                let node = self.get(path)?;
                self.may(node, 1, &call.ids)?;
                fits(*version, node.stat.version)?;
                Ok(WriteReply::Done)
            }
            Wish::CheckNotExists { .. }
            | Wish::CheckStat { .. }
            | Wish::TryRemove { .. }
            | Wish::RemoveRecursive { .. } => self.extended(call, wish, changes),
            other => panic!("{other:?} is not on one znode"),
        }
    }

    fn create(&mut self, call: &Call, wish: &Wish, changes: &mut Changes) -> Reply {
        let Wish::Create { op, path, data, acl, flags, ttl_ms } = wish else { panic!("not a create") };
        let mode = CreateMode::from_flags(*flags).ok_or(BadArguments)?;
        let kind = match op {
            OpCode::CreateTtl if mode.has_ttl() && (1..=0xff_ffff_ffff).contains(ttl_ms) => {
                ZnodeKind::Ttl(*ttl_ms)
            }
            OpCode::CreateTtl => return Err(BadArguments),
            OpCode::CreateIfNotExists if mode.is_sequential() || mode == CreateMode::Container => {
                return Err(BadArguments);
            }
            _ if mode.has_ttl() => return Err(BadArguments),
            OpCode::CreateContainer => ZnodeKind::Container,
            _ if mode.is_ephemeral() && call.session == SessionId::NONE => return Err(SessionExpired),
            _ if mode.is_ephemeral() => ZnodeKind::Ephemeral(call.session),
            _ => ZnodeKind::Persistent,
        };
        if !path.contains('/') || path.contains('\0') {
            return Err(BadArguments);
        }
        let acl = resolve(acl, &call.ids)?;
        let parent = self.get(up(path))?;
        self.may(parent, 4, &call.ids)?;
        let path = if mode.is_sequential() { format!("{path}{:010}", parent.creates) } else { path.clone() };
        validate_path(&path).map_err(|_| BadArguments)?;
        if self.nodes.contains_key(&*path) && *op == OpCode::CreateIfNotExists {
            return Ok(WriteReply::Created { path: Cow::Owned(path) });
        }
        if self.nodes.contains_key(&*path) {
            return Err(NodeExists);
        }
        if matches!(parent.kind, ZnodeKind::Ephemeral(_)) {
            return Err(NoChildrenForEphemerals);
        }
        self.fits_quota(call, &path, 1, len(data) as i64)?;

        let (zxid, parent_path) = (Zxid(self.zxid), real(up(&path)).to_owned());
        let parent = self.change(&parent_path);
        parent.creates += 1;
        parent.stat.pzxid = zxid;
        let stat = Stat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: call.time_ms,
            mtime_ms: call.time_ms,
            ephemeral_owner: if let ZnodeKind::Ephemeral(session) = kind { session } else { SessionId::NONE },
            ..Stat::default()
        };
        let node = ModelZnode { data: data.clone(), acl, stat, creates: 0, kind };
        self.nodes.insert(path.as_str().into(), Rc::new(node));
        let stat = self.stat_of(&path, self.get(&path)?);
        changes.push(self.event(EventKind::NodeCreated, &path));
        changes.push(self.event(EventKind::NodeChildrenChanged, &parent_path));
        if let Some(subject) =
            path.strip_prefix("/zookeeper/quota").and_then(|p| p.strip_suffix("/zookeeper_stats"))
        {
            let below = |other: &str| subject.is_empty() || other == subject || is_below(other, subject);
            let counted: Vec<&Rc<ModelZnode>> =
                self.nodes.iter().filter(|(path, _)| below(path)).map(|(_, node)| node).collect();
            let bytes: usize = counted.iter().map(|node| len(&node.data)).sum();
            let text = format!("count={},bytes={bytes}", counted.len());
            self.change(&path).data = Some(text.into_bytes());
        }
        self.count_for_quota(&path, 1, len(data) as i64);
        let path = Cow::Owned(path);
        Ok(match op {
            OpCode::Create | OpCode::CreateIfNotExists => WriteReply::Created { path },
            _ => WriteReply::CreatedWithStat { path, stat },
        })
    }

    pub(super) fn delete_container(&mut self, call: &Call, path: &str, changes: &mut Changes) -> Reply {
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
            ZnodeKind::Container if creates > 0 => {}
            ZnodeKind::Ttl(ms) if call.time_ms - mtime > ms => {}
            _ => return Err(BadVersion),
        }
        self.remove(path, changes);
        Ok(WriteReply::Done)
    }

    pub(super) fn remove(&mut self, path: &str, changes: &mut Changes) {
        changes.push(self.event(EventKind::NodeDeleted, path));
        let node = self.nodes.remove(path).expect("whoever removes a znode has seen it");
        let (zxid, parent) = (Zxid(self.zxid), real(up(path)));
        self.change(parent).stat.pzxid = zxid;
        changes.push(self.event(EventKind::NodeChildrenChanged, parent));
        self.count_for_quota(path, -1, -(len(&node.data) as i64));
    }

    pub(super) fn event(&self, kind: EventKind, path: &str) -> Change<'static> {
        let acl = &self.nodes[path].acl;
        let public = acl.iter().any(|entry| entry.perms.0 & 1 != 0 && entry.id == Id::new("world", "anyone"));
        let readers = (!public).then(|| acl.clone().into());
        Change { kind, path: Cow::Owned(path.to_owned()), readers }
    }
}
