//! Taking back a multi that failed half-way.
//!
//! The operations of a multi are carried out one after the other, so that each sees those before it. While a journal is
//! open, what each change replaced is kept; the common case, a multi that succeeds, only drops it.

use super::Store;
use super::blobs::BlobId;
use super::node::{Modified, Node, NodeId};

#[derive(Debug)]
pub(super) struct Journal {
    undos: Vec<Undo>,
    data_bytes: u64,
    digest: u64,
}

/// Way to take back one change, when all that came after it has been taken back.
#[derive(Debug)]
pub(super) enum Undo {
    /// With the parent's numbers before.
    Create { id: NodeId, cversion: i32, pzxid: i64 },
    /// With the parent's pzxid before. The node still has its name and data, and all else that it is to release.
    Delete { id: NodeId, node: Node, pzxid: i64 },
    /// With what was replaced.
    SetData { id: NodeId, blob: BlobId, modified: Modified },
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
            match undo {
                Undo::Create { .. } => {}
                Undo::Delete { node, .. } => self.release(node),
                Undo::SetData { blob, .. } => self.blobs.remove(blob),
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
                let node = self.nodes.remove(id.0);
                self.release(node);
                let extra = self.extra_mut(parent);
                (extra.cversion, extra.pzxid) = (cversion, pzxid);
            }
            Undo::Delete { id, node, pzxid } => {
                let parent = node.parent;
                let again = NodeId(self.nodes.insert(node));
                assert!(again == id, "the slot freed last is the next to be used");
                self.attach(id, self.hash(id));
                self.extra_mut(parent).pzxid = pzxid;
            }
            Undo::SetData { id, blob, modified } => {
                let node = &mut self.nodes[id.0];
                let later = std::mem::replace(&mut node.blob, blob);
                self.sides.set_modified(node, modified);
                self.blobs.remove(later);
            }
        }
    }
}
