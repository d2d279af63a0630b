//! Taking changes back: those of a multi that failed half-way, and those of a write that was only tried.
//!
//! The operations of a multi are carried out one after the other, so that each sees those before it. While a journal is
//! open, what each change replaced is kept; the common case, a multi that succeeds, only drops it. A journal that is
//! opened within another one can be taken back alone. The last operation needs none: one that fails has changed nothing.

use smallvec::SmallVec;

use super::blobs::BlobId;
use super::node::{Modified, Node, NodeId};
use super::{AclId, Store};

#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Empty, and kept for the next journal, while none is open.
    undos: Vec<Undo>,
    /// One for each time that it was opened and not yet closed, the outermost first.
    begins: SmallVec<[Begin; 1]>,
    /// The only journal that is open keeps nothing more.
    rests: bool,
}

/// Undos for which room is kept from one journal to the next.
const UNDOS_KEPT: usize = 64;

/// Sums of the store when a journal was opened, and the undos that were there already.
#[derive(Debug)]
struct Begin {
    undos: usize,
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
    /// With the ACL that was replaced, which is not released yet.
    SetAcl { id: NodeId, acl: AclId, aversion: i32 },
}

impl Journal {
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        !self.begins.is_empty()
    }

    /// The journal, if what is changed now has to be kept in it.
    #[inline]
    pub(super) fn writing(&mut self) -> Option<&mut Journal> {
        (!self.begins.is_empty() && !self.rests).then_some(self)
    }

    pub(super) fn push(&mut self, undo: Undo) {
        self.undos.push(undo);
    }
}

impl Store {
    /// From here on changes can be taken back.
    pub(crate) fn open_journal(&mut self) {
        let (data_bytes, digest) = (self.data_bytes, self.digest);
        self.journal.rests = false;
        self.journal.begins.push(Begin { undos: self.journal.undos.len(), data_bytes, digest });
    }

    /// Lets the journal keep nothing of the next change, the last one before it is closed: if that fails, it has changed nothing. An outer journal keeps it all
    /// the same.
    pub(crate) fn rest_journal(&mut self) {
        self.journal.rests = self.journal.begins.len() == 1;
    }

    /// Keeps all changes since the last `open_journal`, unless an outer journal is taken back.
    pub(crate) fn commit_journal(&mut self) {
        self.close_journal();
        if !self.journal.begins.is_empty() {
            return;
        }
        let mut undos = std::mem::take(&mut self.journal.undos);
        for undo in undos.drain(..) {
            match undo {
                Undo::Create { .. } => {}
                Undo::Delete { node, .. } => self.release(node),
                Undo::SetData { blob, .. } => self.blobs.remove(blob),
                Undo::SetAcl { acl, .. } => self.acls.release(acl),
            }
        }
        if undos.capacity() <= UNDOS_KEPT {
            self.journal.undos = undos;
        }
    }

    /// Takes all changes since the last `open_journal` back.
    pub(crate) fn roll_back_journal(&mut self) {
        let begin = self.close_journal();
        let undos = self.journal.undos.split_off(begin.undos);
        for undo in undos.into_iter().rev() {
            self.take_back(undo);
        }
        (self.data_bytes, self.digest) = (begin.data_bytes, begin.digest);
    }

    /// The nodes, of those still there, that were changed since the outermost journal was opened. One may be named twice.
    pub(crate) fn journalled(&self) -> Vec<NodeId> {
        let undos = self.journal.undos.iter();
        let changed = undos.flat_map(|undo| match undo {
            Undo::Create { id, .. } => [*id, self.nodes[id.0].parent],
            Undo::Delete { node, .. } => [node.parent, node.parent],
            Undo::SetData { id, .. } | Undo::SetAcl { id, .. } => [*id, *id],
        });
        changed.filter(|id| *id != NodeId::NONE && !self.nodes[id.0].is_vacant()).collect()
    }

    pub(super) fn note(&mut self, undo: Undo) {
        if let Some(journal) = self.journal.writing() {
            journal.push(undo);
        }
    }

    /// Ends the innermost journal.
    fn close_journal(&mut self) -> Begin {
        self.journal.rests = false;
        self.journal.begins.pop().expect("the journal was opened")
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
            Undo::SetAcl { id, acl, aversion } => {
                let later = std::mem::replace(&mut self.nodes[id.0].acl, acl);
                self.acls.release(later);
                self.extra_mut(id).aversion = aversion;
            }
        }
    }
}
