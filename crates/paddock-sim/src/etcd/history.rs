//! The changes of znodes as the revisions of etcd show them, for the checker of watches.

use std::borrow::Cow;
use std::collections::BTreeMap;

use paddock_proto::{EventKind, Zxid};
use paddock_tree::{Change, Znode};

use crate::checks::watching::{Stamps, WatchedHistory};

/// A znode before and after a revision.
pub(crate) type ZnodeStep<'a> = (&'a str, Option<&'a Znode>, Option<&'a Znode>);

#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Newest revision that was looked at.
    newest: i64,
    /// Changes of the revisions that have any.
    revisions: BTreeMap<i64, Vec<Change<'static>>>,
    /// Zxids of each znode from a revision on; `None` where it is gone.
    stamps: BTreeMap<String, Vec<(i64, Option<Stamps>)>>,
}

impl Changes {
    /// Notes what the next revision did.
    pub(crate) fn note(&mut self, revision: i64, steps: &[ZnodeStep<'_>]) {
        let mut changes = Vec::new();
        for (path, had, has) in steps {
            let change = |kind| Change { kind, path: Cow::Owned((*path).to_owned()), readers: None };
            changes.extend(kinds_of(*had, *has).into_iter().map(change));
        }
        self.note_told(revision, steps, changes);
    }

    /// Notes what the next revision did, and what watchers are told of it.
    pub(crate) fn note_told(
        &mut self,
        revision: i64,
        steps: &[ZnodeStep<'_>],
        changes: Vec<Change<'static>>,
    ) {
        self.newest = revision;
        for (path, _, has) in steps {
            let stamps = has.map(|has| Stamps { mzxid: Zxid(has.mzxid), pzxid: Zxid(has.pzxid) });
            self.stamps.entry((*path).to_owned()).or_default().push((revision, stamps));
        }
        if !changes.is_empty() {
            self.revisions.insert(revision, changes);
        }
    }
}

fn kinds_of(had: Option<&Znode>, has: Option<&Znode>) -> Vec<EventKind> {
    let is_same = matches!((had, has), (Some(had), Some(has)) if had.czxid == has.czxid);
    let mut kinds = Vec::new();
    if had.is_some() && !is_same {
        kinds.push(EventKind::NodeDeleted);
    }
    match (had, has) {
        (Some(had), Some(has)) if is_same => {
            let is_set = (had.mzxid, had.version) != (has.mzxid, has.version);
            kinds.extend(is_set.then_some(EventKind::NodeDataChanged));
            kinds.extend((had.pzxid != has.pzxid).then_some(EventKind::NodeChildrenChanged));
        }
        (_, Some(has)) => {
            kinds.push(EventKind::NodeCreated);
            // Created and set in one transaction.
            kinds.extend((has.version != 0).then_some(EventKind::NodeDataChanged));
        }
        _ => {}
    }
    kinds
}

impl WatchedHistory for Changes {
    /// A revision is one transaction of etcd, which does not tell the order of its writes.
    const IS_ORDERED: bool = false;

    fn changes_at(&self, zxid: Zxid) -> Option<&[Change<'_>]> {
        let changes = self.revisions.get(&zxid.0).map_or(&[][..], Vec::as_slice);
        (zxid.0 <= self.newest).then_some(changes)
    }

    fn changes_behind(&self, zxid: Zxid) -> Option<(Zxid, &[Change<'_>])> {
        let next = zxid.next();
        Some((next, self.changes_at(next)?))
    }

    fn stamps_at(&self, zxid: Zxid, path: &str) -> Option<Stamps> {
        let all = self.stamps.get(path)?;
        let behind = all.partition_point(|(revision, _)| *revision <= zxid.0);
        all[..behind].last()?.1
    }
}
