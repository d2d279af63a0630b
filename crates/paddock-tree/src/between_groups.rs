//! The part of a state that joins groups: in the home group split points and streams, in another group the place that it has reached in its stream.

use paddock_proto::DecodeError;
use paddock_proto::jute::{Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

use crate::split_points::SplitPoints;
use crate::streams::{Streams, read_number};

/// Split points, streams, and the place in the own stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BetweenGroups {
    pub(crate) split_points: SplitPoints,
    pub(crate) streams: Streams,
    /// Number of the last item of its stream that the group has applied.
    pub(crate) received: u64,
}

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
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<BetweenGroups, DecodeError> {
        let (split_points, streams) = (SplitPoints::decode(r)?, Streams::decode(r)?);
        Ok(BetweenGroups { split_points, streams, received: read_number(r)? })
    }
}
