//! The form of a record: what it need not say, because those before it in its segment have said it.

use super::pack::Packer;
use super::record::{EntryPosition, Record, Stored};

/// Forms records in the order in which they are appended.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// If entries are compressed.
    packer: Option<Packer>,
    /// The last entry, and the segment that it is in. None of an earlier process.
    last: Option<(u64, EntryPosition)>,
}

impl Former {
    pub(super) fn new(compresses: bool) -> Former {
        Former { packer: compresses.then(Packer::new), last: None }
    }

    /// As the record is to be stored if it comes into this segment.
    pub(super) fn form<'a>(&'a mut self, segment: u64, record: &Record<'a>) -> Stored<'a> {
        let stored = Stored::from(*record);
        let Record::Entry { payload, .. } = *record else { return stored };
        let follows = self.last.map(|(number, last)| (number, last.next()))
            == EntryPosition::of(record).map(|place| (segment, place));
        let stored = match &mut self.packer {
            Some(packer) => stored.packed(packer.pack(segment, payload)),
            None => stored,
        };
        if follows { stored.following() } else { stored }
    }

    /// The record that was formed last came into this segment.
    pub(super) fn came_into(&mut self, segment: u64, record: &Record<'_>) {
        let Some(place) = EntryPosition::of(record) else { return };
        self.last = Some((segment, place));
        if let Some(packer) = &mut self.packer {
            packer.came_into(segment);
        }
    }
}
