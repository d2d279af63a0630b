//! Reading all znodes as they were at one moment, while writes go on.
//!
//! The slots are walked in slices. A write that comes to a slot before the walk does saves first what the slot held when
//! the scan began; the walk then takes that. So the scan is exact, and costs memory only for what changes ahead of it.

use std::collections::BTreeMap;

use super::Store;
use super::node::NodeId;
use super::record::Record;

/// A slice ends behind the record that reaches this size: copying megabytes would make writers wait.
const SLICE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Scan {
    /// The walk has passed all slots before.
    next: u32,
    /// Slots from here on were not in use when the scan began.
    end: u32,
    /// Changed ahead of the walk; `None` where there was no node.
    saved: BTreeMap<u32, Option<Box<[u8]>>>,
}

impl Store {
    pub(crate) fn begin_scan(&mut self) {
        assert!(self.scan.is_none(), "one scan runs at a time");
        self.scan = Some(Scan { next: 0, end: self.nodes.slots(), saved: BTreeMap::new() });
    }

    /// Appends the records of the next `max_slots` slots, or of fewer where they are large; false when none is left.
    pub(crate) fn scan_slice(&mut self, max_slots: usize, out: &mut Vec<u8>) -> bool {
        let mut scan = self.scan.take().expect("a scan was begun");
        let slots = u32::try_from(max_slots).unwrap_or(u32::MAX);
        let end = scan.next.saturating_add(slots).min(scan.end);
        let full = out.len() + SLICE_BYTES;
        while scan.next < end && out.len() < full {
            match scan.saved.remove(&scan.next) {
                Some(Some(record)) => out.extend_from_slice(&record),
                Some(None) => {}
                None => self.encode_node(NodeId(scan.next), out),
            }
            scan.next += 1;
        }
        let more = scan.next < scan.end;
        self.scan = Some(scan);
        more
    }

    pub(crate) fn end_scan(&mut self) {
        self.scan = None;
    }

    /// To be called before anything about a node changes that a record holds, and before a slot is filled or emptied.
    pub(super) fn touch(&mut self, id: NodeId) {
        let Some(scan) = &self.scan else { return };
        if !(scan.next..scan.end).contains(&id.0) || scan.saved.contains_key(&id.0) {
            return;
        }
        let mut record = Vec::new();
        self.encode_node(id, &mut record);
        let saved = (!record.is_empty()).then(|| record.into_boxed_slice());
        let scan = self.scan.as_mut().expect("a scan runs");
        scan.saved.insert(id.0, saved);
    }

    /// Nothing for a vacant slot.
    fn encode_node(&self, id: NodeId, out: &mut Vec<u8>) {
        let node = &self.nodes[id.0];
        if node.is_vacant() {
            return;
        }
        let extra = self.extra(id);
        let (name, data) = self.blobs.parts(node.blob);
        let record = Record {
            id: id.0,
            parent: node.parent.0,
            acl: node.acl.0,
            name: std::str::from_utf8(name).expect("a name was a string when it was stored"),
            data,
            czxid: node.czxid,
            mzxid: extra.modified.mzxid,
            pzxid: extra.pzxid,
            ctime_ms: node.ctime_ms,
            mtime_ms: extra.modified.mtime_ms,
            version: extra.modified.version,
            cversion: extra.cversion,
            aversion: extra.aversion,
            kind: extra.kind,
        };
        record.encode(out);
    }
}
