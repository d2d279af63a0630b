//! Account of what a transaction came to, for a program that shows the copy of an ensemble to clients.

use std::collections::BTreeSet;

use paddock_proto::{SessionId, Zxid};
use paddock_tree::{AppliedTransaction, Draft, StoredZnode, Tree, ZnodeKind};

use crate::answer::Answered;
use crate::transaction::{Body, Transaction};

/// Paths and sessions that a transaction is about to change.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    paths: BTreeSet<String>,
    began: Vec<(SessionId, i32)>,
    ended: Vec<SessionId>,
}

impl Touched {
    /// Looks at a transaction before it is applied.
    pub(crate) fn by(transaction: &Transaction<'_>, draft: &Draft) -> Touched {
        let mut touched = Touched::default();
        touched.note(&transaction.body, transaction.session, draft);
        touched
    }

    fn note(&mut self, body: &Body<'_>, session: SessionId, draft: &Draft) {
        match body {
            Body::CreateSession { timeout_ms } => self.began.push((session, *timeout_ms)),
            Body::CloseSession { paths } => {
                paths.iter().for_each(|path| self.note_with_parent(path));
                draft.ephemerals_of(session).iter().for_each(|path| self.note_with_parent(path));
                self.ended.push(session);
            }
            Body::Create { path, .. } | Body::Delete { path } => self.note_with_parent(path),
            Body::SetData { path, .. } | Body::SetAcl { path, .. } => {
                self.paths.insert((*path).to_owned());
            }
            Body::Multi(bodies) => bodies.iter().for_each(|body| self.note(body, session, draft)),
            Body::Nothing => {}
        }
    }

    fn note_with_parent(&mut self, path: &str) {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        self.paths.insert(if parent.is_empty() { "/" } else { parent }.to_owned());
        self.paths.insert(path.to_owned());
    }

    /// Looks at the draft after the transaction was applied.
    pub(crate) fn applied(self, zxid: Zxid, draft: &Draft, answered: Answered) -> AppliedTransaction {
        let Touched { paths, began, ended } = self;
        let znodes = paths.into_iter().map(|path| {
            let znode = draft.find(&path).map(|node| draft.znode(node));
            let is_shown = |znode: &StoredZnode<'_>| !is_orphan(znode, draft);
            let znode = znode.filter(is_shown).map(|znode| znode.to_znode());
            (path, znode)
        });
        let Answered { asked, answer } = answered;
        AppliedTransaction { zxid, asked, answer, began, znodes: znodes.collect(), ended }
    }
}

/// The tree as of a zxid, which clients can be shown, while the draft goes on.
pub(crate) fn copy_of(draft: &Draft, zxid: Zxid) -> Tree {
    let mut copy = Draft::new();
    let mut znodes = draft.znodes();
    while let Some((path, znode)) = znodes.next_znode() {
        let placed = copy.place_with(path, &znode.facts(), znode.acl.to_vec());
        assert!(placed.is_ok(), "{path} has a place in the draft");
    }
    draft.sessions().for_each(|(session, timeout_ms)| copy.begin_session(session, timeout_ms));
    copy.finish(zxid, 1).0
}

/// True for an ephemeral whose session is not known. ZooKeeper may keep one for a moment; no tree does.
fn is_orphan(znode: &StoredZnode<'_>, draft: &Draft) -> bool {
    matches!(znode.kind, ZnodeKind::Ephemeral(session) if !draft.has_session(session))
}
