//! Packets of the learner protocol: jute records one behind the other, without a length in front.

use std::io::Read;

use paddock_proto::Zxid;
use paddock_proto::jute::Writer;

use crate::error::Problem;
use crate::jute_stream::JuteStream;

/// Bytes of the data of a packet, far more than `jute.maxbuffer` allows by default.
const DATA_BYTES_MAX: i32 = 256 << 20;
/// Identities behind a packet, and bytes of each of their two parts. A leader sends none.
const IDENTITIES_MAX: u32 = 64;
const IDENTITY_BYTES_MAX: i32 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketKind {
    Request,
    Proposal,
    Ack,
    Commit,
    Ping,
    Revalidate,
    Sync,
    Inform,
    CommitAndActivate,
    NewLeader,
    UpToDate,
    Diff,
    Trunc,
    Snap,
    ObserverInfo,
    LeaderInfo,
    AckEpoch,
    InformAndActivate,
}

const KINDS: [(i32, PacketKind); 18] = [
    (1, PacketKind::Request),
    (2, PacketKind::Proposal),
    (3, PacketKind::Ack),
    (4, PacketKind::Commit),
    (5, PacketKind::Ping),
    (6, PacketKind::Revalidate),
    (7, PacketKind::Sync),
    (8, PacketKind::Inform),
    (9, PacketKind::CommitAndActivate),
    (10, PacketKind::NewLeader),
    (12, PacketKind::UpToDate),
    (13, PacketKind::Diff),
    (14, PacketKind::Trunc),
    (15, PacketKind::Snap),
    (16, PacketKind::ObserverInfo),
    (17, PacketKind::LeaderInfo),
    (18, PacketKind::AckEpoch),
    (19, PacketKind::InformAndActivate),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LearnerPacket {
    pub(crate) kind: PacketKind,
    pub(crate) zxid: Zxid,
    /// `None` is null, which is not the same as empty: a ping that is answered with null ends the connection.
    pub(crate) data: Option<Vec<u8>>,
    /// Identities of a client as a jute vector; `None` is null.
    pub(crate) identities: Option<Vec<u8>>,
}

impl LearnerPacket {
    pub(crate) fn new(kind: PacketKind, zxid: Zxid, data: Option<Vec<u8>>) -> LearnerPacket {
        LearnerPacket { kind, zxid, data, identities: None }
    }

    pub(crate) fn read<R: Read>(stream: &mut JuteStream<R>) -> Result<LearnerPacket, Problem> {
        let number = stream.i32()?;
        let known = KINDS.iter().find(|(known, _)| *known == number);
        let kind = known.ok_or(Problem::PacketType(number))?.1;
        let zxid = Zxid(stream.i64()?);
        let mut data = Vec::new();
        let has_data = stream.short_buffer(&mut data, DATA_BYTES_MAX)?;
        let mut identity = Vec::new();
        let identities = stream.count()?;
        if identities > IDENTITIES_MAX {
            return Err(Problem::Length(identities as i32));
        }
        for _ in 0..identities * 2 {
            stream.short_buffer(&mut identity, IDENTITY_BYTES_MAX)?;
        }
        Ok(LearnerPacket::new(kind, zxid, has_data.then_some(data)))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let number = KINDS.iter().find(|(_, kind)| *kind == self.kind).expect("every kind has a number").0;
        out.put_i32(number);
        out.put_i64(self.zxid.0);
        out.put_buffer(self.data.as_deref());
        match &self.identities {
            Some(identities) => out.extend_from_slice(identities),
            None => out.put_i32(-1),
        }
    }
}
