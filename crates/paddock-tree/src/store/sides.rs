//! Side tables: fields that few znodes have, beside their rows.
//!
//! A znode has no row here as long as it is a fresh leaf; one whose data was set, and nothing else, a small one; any other
//! a large one that holds the small one too.

use super::node::{Extra, Modified, Node};
use super::slab::Slab;

#[derive(Debug)]
pub(super) struct Sides {
    modified: Slab<Modified>,
    extras: Slab<Extra>,
}

/// A row of a table. The default is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SideId(u32);

#[derive(Clone, Copy)]
enum SideRow {
    None,
    Modified(u32),
    Extra(u32),
}

const EXTRA: u32 = 1 << 31;

impl Default for SideId {
    fn default() -> SideId {
        SideId(u32::MAX)
    }
}

impl SideId {
    fn modified(row: u32) -> SideId {
        assert!(row < EXTRA, "there are fewer than 2^31 modified leaves");
        SideId(row)
    }

    fn extra(row: u32) -> SideId {
        assert!(row < !EXTRA, "there are fewer than 2^31 - 1 large rows");
        SideId(row | EXTRA)
    }

    fn row(self) -> SideRow {
        match self.0 {
            u32::MAX => SideRow::None,
            row if row < EXTRA => SideRow::Modified(row),
            row => SideRow::Extra(row & !EXTRA),
        }
    }
}

impl Sides {
    pub(super) fn new() -> Sides {
        Sides { modified: Slab::new(), extras: Slab::new() }
    }

    /// Small ones and large ones.
    #[cfg(test)]
    pub(super) fn rows_in_use(&self) -> (usize, usize) {
        (self.modified.in_use(), self.extras.in_use())
    }

    /// Puts aside what of `extra` a fresh leaf would not have.
    pub(super) fn insert(&mut self, node: &mut Node, extra: Extra) {
        let fresh = Extra::of_leaf(node);
        let of_modified = Extra { modified: extra.modified, ..fresh };
        node.side = if extra == fresh {
            SideId::default()
        } else if extra == of_modified {
            SideId::modified(self.modified.insert(extra.modified))
        } else {
            SideId::extra(self.extras.insert(extra))
        };
    }

    pub(super) fn remove(&mut self, side: SideId) {
        match side.row() {
            SideRow::None => {}
            SideRow::Modified(row) => drop(self.modified.remove(row)),
            SideRow::Extra(row) => drop(self.extras.remove(row)),
        }
    }

    pub(super) fn modified(&self, node: &Node) -> Modified {
        match node.side.row() {
            SideRow::None => Modified::of_leaf(node),
            SideRow::Modified(row) => self.modified[row],
            SideRow::Extra(row) => self.extras[row].modified,
        }
    }

    pub(super) fn extra(&self, node: &Node) -> Extra {
        match node.side.row() {
            SideRow::None => Extra::of_leaf(node),
            SideRow::Modified(row) => Extra { modified: self.modified[row], ..Extra::of_leaf(node) },
            SideRow::Extra(row) => self.extras[row],
        }
    }

    pub(super) fn set_modified(&mut self, node: &mut Node, modified: Modified) {
        match node.side.row() {
            SideRow::None if modified == Modified::of_leaf(node) => {}
            SideRow::None => node.side = SideId::modified(self.modified.insert(modified)),
            SideRow::Modified(row) => self.modified[row] = modified,
            SideRow::Extra(row) => self.extras[row].modified = modified,
        }
    }

    /// Gives the znode a large row, if it has none.
    pub(super) fn extra_mut(&mut self, node: &mut Node) -> &mut Extra {
        let row = match node.side.row() {
            SideRow::Extra(row) => row,
            SideRow::None | SideRow::Modified(_) => {
                let extra = self.extra(node);
                self.remove(node.side);
                let row = self.extras.insert(extra);
                node.side = SideId::extra(row);
                row
            }
        };
        &mut self.extras[row]
    }
}
