//! Taking back a multi that failed half-way.
//!
//! The operations of a multi are carried out one after the other, so that each sees those before it. While a journal is
//! open, what each change replaced is kept; the common case, a multi that succeeds, only drops it.

use super::Store;
use super::node::{Blob, Extra, ExtraId, Node, NodeId};

#[derive(Debug)]
pub(super) struct Journal {
    undos: Vec<Undo>,
    data_bytes: u64,
    digest: u64,
}

/// How to take back one change, when all that came after it has been taken back.
#[derive(Debug)]
pub(super) enum Undo {
    /// With the parent's numbers before.
    Create {
        id: NodeId,
        cversion: i32,
        pzxid: i64,
    },
    /// With the parent's pzxid before. The node still counts as a user of its ACL.
    Delete {
        id: NodeId,
        node: Node,
        extra: Option<Extra>,
        pzxid: i64,
    },
    SetData {
        id: NodeId,
        blob: Blob,
        version: i32,
        mzxid: i64,
        mtime_ms: i64,
    },
}

impl Journal {
    pub(super) fn push(&mut self, undo: Undo) {
        self.undos.push(undo);
    }
}

impl Store {
    /// From here on changes can be taken back.
    pub(crate) fn open_journal(&mut self) {
        assert!(self.journal.is_none(), "a multi holds no multi");
        self.journal = Some(Journal { undos: Vec::new(), data_bytes: self.data_bytes, digest: self.digest });
    }

    /// Keeps all changes since `open_journal`.
    pub(crate) fn commit_journal(&mut self) {
        for undo in self.take_journal().undos {
            if let Undo::Delete { node, .. } = undo {
                self.acls.release(node.acl);
            }
        }
    }

    /// Takes all changes since `open_journal` back.
    pub(crate) fn roll_back_journal(&mut self) {
        let journal = self.take_journal();
        for undo in journal.undos.into_iter().rev() {
            self.take_back(undo);
        }
        (self.data_bytes, self.digest) = (journal.data_bytes, journal.digest);
    }

    pub(super) fn note(&mut self, undo: Undo) {
        if let Some(journal) = &mut self.journal {
            journal.push(undo);
        }
    }

    fn take_journal(&mut self) -> Journal {
        self.journal.take().expect("the journal was opened")
    }

    // Whatever is changed here was changed before, so a running scan has it already.
    fn take_back(&mut self, undo: Undo) {
        match undo {
            Undo::Create { id, cversion, pzxid } => {
                let parent = self.parent(id);
                self.detach(id);
                self.discard(id);
                let extra = self.extra_mut(parent);
                (extra.cversion, extra.pzxid) = (cversion, pzxid);
            }
            Undo::Delete { id, mut node, extra, pzxid } => {
                let parent = node.parent;
                node.extra = extra.map_or(ExtraId::NONE, |extra| ExtraId(self.extras.insert(extra)));
                let again = NodeId(self.nodes.insert(node));
                assert!(again == id, "the slot freed last is the next to be used");
                self.attach(id);
                self.extra_mut(parent).pzxid = pzxid;
            }
            Undo::SetData { id, blob, version, mzxid, mtime_ms } => {
                let node = &mut self.nodes[id.0];
                node.blob = blob;
                (node.version, node.mzxid, node.mtime_ms) = (version, mzxid, mtime_ms);
            }
        }
    }

    fn discard(&mut self, id: NodeId) {
        let Node { acl, extra, .. } = self.nodes.remove(id.0);
        if extra != ExtraId::NONE {
            self.extras.remove(extra.0);
        }
        self.acls.release(acl);
    }
}
