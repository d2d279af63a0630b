//! The part of a state that joins groups: in the home group split points and streams, in another group the place that it has reached in its stream.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, SessionId};
use xxhash_rust::xxh3::xxh3_64;

use crate::open_multis::Multis;
use crate::split_points::{SlotMap, SplitPoints};
use crate::streams::{Streams, read_number};

/// Split points, streams, and the place in the own stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BetweenGroups {
    pub(crate) split_points: SplitPoints,
    pub(crate) streams: Streams,
    /// Number of the last item of its stream that the group has applied.
    pub(crate) received: u64,
    /// Other groups in which a session of the home group may write.
    pub(crate) attached: BTreeMap<SessionId, BTreeSet<u32>>,
    /// Slots of another group, by the paths of their split points, as those of group [`OWN`].
    pub(crate) own_slots: BTreeMap<String, SlotMap>,
    /// Znodes of slots that have left another group, until the home group has them all.
    pub(crate) given: Vec<GivenZnodes>,
    /// Sessions one of whose commands met a slot of another group: nothing of them is carried out until they go on.
    pub(crate) stalled: BTreeSet<SessionId>,
    pub(crate) multis: Multis,
    /// Zxid of the last change of an ACL since znodes were spread for the first time; 0 before.
    pub(crate) acl_zxid: i64,
}

/// Znodes of slots that have left a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenZnodes {
    /// The split point.
    pub(crate) path: String,
    pub(crate) first: u16,
    /// Zxid with which they left.
    pub(crate) zxid: i64,
    /// Encoded; one at least.
    pub(crate) portions: Vec<Vec<u8>>,
}

/// Number that stands in another group's own map for that group.
pub(crate) const OWN: u32 = 1;

impl BetweenGroups {
    /// 0 while nothing joins groups.
    pub(crate) fn digest(&self) -> u64 {
        if *self == BetweenGroups::default() {
            return 0;
        }
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        xxh3_64(&bytes)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.split_points.encode(out);
        self.streams.encode(out);
        out.put_i64(self.received as i64);
        out.put_count(self.attached.len());
        for (session, groups) in &self.attached {
            out.put_i64(session.0);
            out.put_count(groups.len());
            groups.iter().for_each(|group| out.put_i32(*group as i32));
        }
        out.put_count(self.own_slots.len());
        for (path, slots) in &self.own_slots {
            out.put_string(path);
            slots.encode(out);
        }
        out.put_count(self.given.len());
        for GivenZnodes { path, first, zxid, portions } in &self.given {
            out.put_string(path);
            out.put_i32((*first).into());
            out.put_i64(*zxid);
            out.put_count(portions.len());
            portions.iter().for_each(|portion| out.put_buffer(Some(portion)));
        }
        out.put_count(self.stalled.len());
        self.stalled.iter().for_each(|session| out.put_i64(session.0));
        out.put_i64(self.acl_zxid);
        self.multis.encode(out);
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<BetweenGroups, DecodeError> {
        let (split_points, streams) = (SplitPoints::decode(r)?, Streams::decode(r)?);
        let mut between =
            BetweenGroups { split_points, streams, received: read_number(r)?, ..BetweenGroups::default() };
        for _ in 0..r.count()? {
            let session = SessionId(r.i64()?);
            let mut groups = BTreeSet::new();
            for _ in 0..r.count()? {
                groups.insert(r.i32()? as u32);
            }
            between.attached.insert(session, groups);
        }
        for _ in 0..r.count()? {
            between.own_slots.insert(r.string()?.to_owned(), SlotMap::decode(r)?);
        }
        for _ in 0..r.count()? {
            let (path, first, zxid) = (r.string()?.to_owned(), r.i32()? as u16, r.i64()?);
            let mut portions = Vec::new();
            for _ in 0..r.count()? {
                portions.push(r.buffer()?.ok_or(DecodeError::UnexpectedNull)?.to_vec());
            }
            between.given.push(GivenZnodes { path, first, zxid, portions });
        }
        for _ in 0..r.count()? {
            between.stalled.insert(SessionId(r.i64()?));
        }
        between.acl_zxid = r.i64()?;
        between.multis = Multis::decode(r)?;
        Ok(between)
    }

    /// True if there are split points, or stubs of them.
    pub(crate) fn is_among_groups(&self) -> bool {
        !self.split_points.is_empty() || self.received > 0 || self.are_znodes_spread()
    }

    /// True if a command may be about a znode of another group, or be one of a session that has to go on first. It stays true when all znodes are in
    /// one group again: answers and events may still be on their way through the members' routers.
    pub(crate) fn are_znodes_spread(&self) -> bool {
        self.acl_zxid > 0 || !self.own_slots.is_empty() || !self.stalled.is_empty()
    }
}
