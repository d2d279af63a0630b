//! The bytes of a snapshot: a header block, then blocks of znodes.
//!
//! A snapshot is the state exactly as it was when it began, whatever is written meanwhile. How blocks get to a file, and
//! how a torn file is recognised, is for others: each block here is only what `TreeLoader` is to be given back.

use std::ops::RangeInclusive;

use paddock_proto::jute::Writer;
use paddock_proto::narrow_member_number;

use crate::Tree;
use crate::ensemble::{Ensemble, lines};
use crate::features::FeatureLevel;
use crate::member_bytes::put_member;

/// In front of the header; the number grows when an older member could not read the rest.
pub(crate) const FORMAT: i32 = 7;
/// The number of snapshots of builds that knew of no feature levels. They are read, and written while the level is 0, so that members of
/// such builds can read them.
pub(crate) const FORMAT_WITHOUT_LEVEL: i32 = 6;
/// The number of snapshots of builds that knew members from 1 to 255 only. They are read, and written where no other number occurs,
/// so that members of such builds can read them.
pub(crate) const FORMAT_OF_NARROW_NUMBERS: i32 = 5;
/// The number of snapshots of builds that did not count the moves of sessions, which are read.
pub(crate) const FORMAT_WITHOUT_MOVES: i32 = 4;
/// The number of snapshots of builds that knew ZooKeeper's passwords only, which are read.
pub(crate) const FORMAT_WITHOUT_SECRET: i32 = 3;
/// Formats of a tree in a snapshot: all that are read; the last one is written.
pub const SNAPSHOT_FORMATS: RangeInclusive<i32> = FORMAT_WITHOUT_SECRET..=FORMAT;
pub(crate) const HEADER_BLOCK: u8 = b'H';
pub(crate) const ZNODE_BLOCK: u8 = b'Z';

/// A snapshot on its way. Nothing of it may be lost between `begin_snapshot` and `end_snapshot`: the tree saves what it
/// changes for as long as the scan runs.
#[derive(Debug)]
pub struct SnapshotScan {
    /// Encoded when the snapshot began; `None` once it has been given out.
    header: Option<Vec<u8>>,
}

impl Tree {
    /// Fixes the state to be saved. Takes time for sessions and ACLs, not for znodes. One snapshot runs at a time.
    pub fn begin_snapshot(&mut self) -> SnapshotScan {
        self.store.begin_scan();
        SnapshotScan { header: Some(self.header()) }
    }

    /// Appends the next block, which holds at most `max_nodes` znodes, and fewer where they are large; false when it was
    /// the last one.
    pub fn scan_snapshot(&mut self, scan: &mut SnapshotScan, max_nodes: usize, out: &mut Vec<u8>) -> bool {
        if let Some(header) = scan.header.take() {
            out.extend_from_slice(&header);
            return true;
        }
        out.push(ZNODE_BLOCK);
        self.store.scan_slice(max_nodes, out)
    }

    /// To be called when all is scanned, and when the snapshot is given up.
    pub fn end_snapshot(&mut self, _scan: SnapshotScan) {
        self.store.end_scan();
    }

    fn header(&self) -> Vec<u8> {
        let mut out = vec![HEADER_BLOCK];
        let sessions = self.sessions.values().map(|session| session.owner);
        let are_narrow =
            sessions.chain(self.origins.last.keys().copied()).all(|member| narrow_member_number(member) != 0);
        if self.raised.level > FeatureLevel::NONE {
            out.put_i32(FORMAT);
            out.put_i32(self.raised.level.0.into());
            out.put_string(&self.raised.since);
            if self.raised.level >= FeatureLevel::SEVERAL_GROUPS {
                self.groups.encode(&mut out);
            }
            if self.raised.level >= FeatureLevel::SPLIT_POINTS {
                self.between_groups.encode(&mut out);
            }
            if self.raised.level >= FeatureLevel::HOSTS {
                self.groups.encode_replicas(&mut out);
                self.hosts.encode(&mut out);
            }
        } else {
            out.put_i32(if are_narrow { FORMAT_OF_NARROW_NUMBERS } else { FORMAT_WITHOUT_LEVEL });
        }
        out.put_i64(self.zxid.0);
        out.put_i64(self.store.node_count() as i64);
        out.put_i64(self.digest() as i64);
        out.put_count(self.sessions.len());
        for (id, session) in &self.sessions {
            out.put_i64(id.0);
            out.put_i32(session.timeout_ms);
            put_member(session.owner, &mut out);
            out.put_bool(session.is_keyed);
            out.put_bool(session.proven.is_some());
            session.proven.iter().for_each(|id| id.encode(&mut out));
            out.put_i32(session.moves as i32);
        }
        out.put_count(self.origins.last.len());
        for (&member, &(incarnation, number)) in &self.origins.last {
            put_member(member, &mut out);
            out.put_i64(incarnation as i64);
            out.put_i64(number as i64);
        }
        put_ensemble(self.ensemble.as_ref(), &mut out);
        out.put_buffer(self.secret.as_ref().map(|secret| &secret.0[..]));
        out.put_count(self.store.acls().count());
        for (id, list) in self.store.acls() {
            out.put_i32(id as i32);
            out.put_count(list.len());
            list.iter().for_each(|acl| acl.encode(&mut out));
        }
        out
    }
}

fn put_ensemble(ensemble: Option<&Ensemble>, out: &mut Vec<u8>) {
    out.put_bool(ensemble.is_some());
    let Some(Ensemble { cluster, members, version, target }) = ensemble else { return };
    out.put_i64(*cluster as i64);
    out.put_string(&lines(members));
    out.put_i64(*version);
    out.put_bool(target.is_some());
    if let Some(target) = target {
        out.put_string(&lines(target));
    }
}
