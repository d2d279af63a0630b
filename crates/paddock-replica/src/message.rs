//! Messages between members, as bytes. The links between the processes carry them, and see to it that they arrive whole.
//!
//! Raft's own messages are encoded here, field by field: what comes over a network is never given to the library's
//! parser, and the form on the wire is ours.

use bytes::Bytes;
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, SessionId};
use paddock_tree::FeatureLevel;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};

use crate::configuration::is_readable;
use crate::effects::SnapshotWrite;
use crate::rosters::RosterReport;
use crate::told_members::ListMark;
use crate::{Cluster, Membership};

/// The head of every message: the ensemble and the process that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) cluster: Cluster,
    /// Tells the sender's process from all others, those with the same member number included.
    pub(crate) process: u64,
}

impl Envelope {
    const BYTES: usize = 9 + 8;

    /// Fills in the head that `PeerMessage::encode` has left room for.
    pub(crate) fn seal(self, message: &mut [u8]) {
        message[..9].copy_from_slice(&self.cluster.encode());
        message[9..Envelope::BYTES].copy_from_slice(&self.process.to_be_bytes());
    }

    /// The head of a message, and what is in it.
    pub(crate) fn open(message: &[u8]) -> Result<(Envelope, &[u8]), DecodeError> {
        let (head, body) =
            message.split_first_chunk::<{ Envelope::BYTES }>().ok_or(DecodeError::Truncated)?;
        let (cluster, process) = head.split_at(9);
        let cluster = Cluster::decode(cluster.try_into().expect("nine bytes"));
        let unknown = DecodeError::UnknownValue { field: "cluster id", value: i32::from(head[0]) };
        let process = u64::from_be_bytes(process.try_into().expect("eight bytes"));
        Ok((Envelope { cluster: cluster.ok_or(unknown)?, process }, body))
    }
}

/// A message of one member to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PeerMessage {
    Raft(Message),
    /// Writes that the sender has taken from its clients, for the leader to order.
    Forward(Bytes),
    /// A numbered report of the sessions that were heard on the sender, for the leader's judgement.
    Heard {
        number: u64,
        sessions: Vec<SessionId>,
    },
    /// The leader had the receiver's report of this number before a quorum confirmed that it leads. Builds before this one name no
    /// limits.
    Confirmed {
        number: u64,
        limits: Option<ConfirmationLimits>,
    },
    /// The library's message that a snapshot should replace what the receiver has. It says which; its bytes are fetched.
    Offer(Message),
    /// The receiver's snapshot up to `index` is wanted from `offset` on.
    Fetch {
        index: u64,
        offset: u64,
    },
    /// Answer to `Fetch`.
    Piece(SnapshotWrite),
    /// There is no such snapshot any more.
    Gone {
        index: u64,
    },
    /// A snapshot of the receiver has come whole, and is damaged.
    Damaged {
        index: u64,
    },
    Greeting(Greeting),
    /// Digest of the sender's state after an entry.
    Digest {
        index: u64,
        digest: u64,
        /// True while it is not known whether the sender's state is right.
        is_in_doubt: bool,
    },
    /// The digest that most members have of an entry: the receiver has another one.
    Diverged {
        index: u64,
        digest: u64,
    },
    /// Sign that the sender runs, sent now and then to all members.
    Present {
        /// Facts of the sender for those who operate the ensemble.
        profile: Vec<u8>,
        /// Mean of the sender's last syncs in microseconds, or the time of its way to a quorum if that is longer, if it has told any.
        lead_us: Option<u32>,
        /// Level of the features that the sender's program knows, and lets its ensemble use.
        level: FeatureLevel,
    },
    /// The sender's operator wants it to lead.
    WantsLead,
    /// The lines of the members in the sender's configuration, for the leader.
    FileList {
        lines: String,
    },
    /// The sender hears no leader, and wants the receiver's list of members if that is newer than the one with this mark.
    AskMembers(ListMark),
    /// The members in the sender's state, and the zxid of the write that settled them.
    Members {
        version: i64,
        lines: String,
    },
    /// The sender leads a group beside the home group, and tells how far that is with a roster.
    Roster(RosterReport),
    /// As [`PeerMessage::Roster`], told in the home group of a group that not all members have.
    RosterOf {
        group: u32,
        report: RosterReport,
    },
    /// The receiver is to answer at once.
    Probe {
        /// Time at which it was sent, by the sender's monotonic clock.
        sent_ms: u64,
    },
    /// Answer to `Probe`.
    Probed {
        sent_ms: u64,
    },
    /// Time that the sender's clock shows, in milliseconds since 1970, of which stamps are made. Told where there are several groups.
    Clock {
        wall_ms: i64,
    },
}

/// Limits of a confirmation: it is meant for one process of the receiver, and counts once that has applied an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmationLimits {
    /// The process that has reported.
    pub(crate) process: u64,
    /// The term in which the sender leads.
    pub(crate) term: u64,
    /// The entry up to which the leader has ended sessions.
    pub(crate) ended_through: u64,
}

impl ConfirmationLimits {
    fn decode(reader: &mut Reader<'_>) -> Result<ConfirmationLimits, DecodeError> {
        let (process, term, ended_through) = (reader.i64()?, reader.i64()?, reader.i64()?);
        Ok(ConfirmationLimits {
            process: process as u64,
            term: term as u64,
            ended_through: ended_through as u64,
        })
    }
}

/// Condition of the sender, for members that look for each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Greeting {
    pub(crate) condition: Condition,
    pub(crate) purpose: Purpose,
    pub(crate) term: u64,
    /// Membership, as far as the sender knows.
    pub(crate) membership: Membership,
    /// Digest of the members' addresses in the sender's state; `None` while no ensemble stands there.
    pub(crate) addresses: Option<u64>,
    /// The leader, as far as the sender knows.
    pub(crate) leader: Option<u64>,
    /// The sender's disk as its process found it.
    pub(crate) found: FoundOnDisk,
    /// A leader's judgement of the disk of the member that has asked.
    pub(crate) ruling: Option<Ruling>,
    /// The last entry that the sender has applied: as of that its membership is. 0 from a build that does not say.
    pub(crate) applied: u64,
}

/// Purpose of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The sender asks for the receiver's greeting.
    Question,
    /// The sender answers the question of a process. No other one with the same member number may take it for its own.
    Answer { asker: u64 },
}

/// The disk of a process as it was when the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundOnDisk {
    /// The number of the member's start before this one; 0 if there was none.
    pub(crate) former_start: u64,
    /// The number of this start.
    pub(crate) start: u64,
    /// Term and index of the last entry in the log, or of the snapshot if there is nothing behind it.
    pub(crate) last: (u64, u64),
}

/// A leader's judgement of a member that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Its disk has everything that it acknowledged, for all that the leader knows.
    Admitted,
    /// Its disk is older than what it acknowledged.
    Outdated,
}

/// Condition of a member: how much of an ensemble's state it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The sender has nothing, and asks who has.
    Empty,
    /// The sender has founded an ensemble with others, and knows of no leader yet.
    Founding,
    /// The sender knows of an ensemble and is being told its state: it does not vote.
    Learning,
    /// The sender belongs to an ensemble.
    Established,
}

const RAFT: u8 = 1;
const FORWARD: u8 = 2;
const HEARD: u8 = 3;
const OFFER: u8 = 4;
const FETCH: u8 = 5;
const PIECE: u8 = 6;
const GONE: u8 = 7;
const GREETING: u8 = 8;
const DIGEST: u8 = 9;
const DAMAGED: u8 = 10;
const PRESENT: u8 = 11;
const DIVERGED: u8 = 12;
const CONFIRMED: u8 = 13;
const WANTS_LEAD: u8 = 14;
const FILE_LIST: u8 = 15;
const ROSTER: u8 = 16;
const CLOCK: u8 = 17;
const ROSTER_OF: u8 = 18;
const ASK_MEMBERS: u8 = 19;
const MEMBERS: u8 = 20;
const PROBE: u8 = 21;
const PROBED: u8 = 22;

/// Mark in front of the time of the sender's syncs behind a profile, in a sign of presence.
const SYNC_MARK: [u8; 4] = *b"\0syn";
/// Mark in front of the feature level at the end of a sign of presence.
const LEVEL_MARK: [u8; 4] = *b"\0lvl";

/// True if a message is about the log, the leader or the members, as most are, and not about a snapshot.
pub fn is_of_log(message: &[u8]) -> bool {
    matches!(
        message.get(Envelope::BYTES),
        Some(&(RAFT | FORWARD | HEARD | CONFIRMED | PRESENT | CLOCK | PROBE | PROBED))
    )
}

impl PeerMessage {
    /// The message behind the room for its head, which `Envelope::seal` fills in.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; Envelope::BYTES];
        match self {
            PeerMessage::Raft(message) => {
                out.push(RAFT);
                encode_raft(message, &mut out);
            }
            PeerMessage::Forward(batch) => {
                out.push(FORWARD);
                out.extend_from_slice(batch);
            }
            PeerMessage::Heard { number, sessions } => {
                out.push(HEARD);
                out.put_i64(*number as i64);
                sessions.iter().for_each(|session| out.put_i64(session.0));
            }
            PeerMessage::Confirmed { number, limits } => {
                out.push(CONFIRMED);
                out.put_i64(*number as i64);
                if let Some(ConfirmationLimits { process, term, ended_through }) = limits {
                    [process, term, ended_through].iter().for_each(|value| out.put_i64(**value as i64));
                }
            }
            PeerMessage::Offer(message) => {
                out.push(OFFER);
                encode_offer(message, &mut out);
            }
            PeerMessage::Fetch { index, offset } => {
                out.push(FETCH);
                out.put_i64(*index as i64);
                out.put_i64(*offset as i64);
            }
            PeerMessage::Piece(piece) => {
                out.push(PIECE);
                out.put_i64(piece.index as i64);
                out.put_i64(piece.offset as i64);
                out.put_bool(piece.is_last);
                out.extend_from_slice(&piece.bytes);
            }
            PeerMessage::Gone { index } => {
                out.push(GONE);
                out.put_i64(*index as i64);
            }
            PeerMessage::Damaged { index } => {
                out.push(DAMAGED);
                out.put_i64(*index as i64);
            }
            PeerMessage::Greeting(greeting) => {
                out.push(GREETING);
                encode_greeting(greeting, &mut out);
            }
            PeerMessage::Digest { index, digest, is_in_doubt } => {
                out.push(DIGEST);
                out.put_i64(*index as i64);
                out.put_i64(*digest as i64);
                out.put_bool(*is_in_doubt);
            }
            PeerMessage::Diverged { index, digest } => {
                out.push(DIVERGED);
                out.put_i64(*index as i64);
                out.put_i64(*digest as i64);
            }
            PeerMessage::Present { profile, lead_us, level } => {
                out.push(PRESENT);
                out.extend_from_slice(profile);
                // Builds that know of no levels or syncs skip what stands behind a profile, and say nothing.
                if let Some(lead_us) = lead_us {
                    out.extend_from_slice(&SYNC_MARK);
                    out.extend_from_slice(&lead_us.to_be_bytes());
                }
                if *level > FeatureLevel::NONE {
                    out.extend_from_slice(&LEVEL_MARK);
                    out.extend_from_slice(&level.0.to_be_bytes());
                }
            }
            PeerMessage::WantsLead => out.push(WANTS_LEAD),
            PeerMessage::FileList { lines } => {
                out.push(FILE_LIST);
                out.put_string(lines);
            }
            PeerMessage::AskMembers(ListMark { version, digest }) => {
                out.push(ASK_MEMBERS);
                out.put_i64(*version);
                out.put_i64(*digest as i64);
            }
            PeerMessage::Members { version, lines } => {
                out.push(MEMBERS);
                out.put_i64(*version);
                out.put_string(lines);
            }
            PeerMessage::Roster(report) => {
                out.push(ROSTER);
                put_report(report, &mut out);
            }
            PeerMessage::RosterOf { group, report } => {
                out.push(ROSTER_OF);
                out.put_i32(*group as i32);
                put_report(report, &mut out);
            }
            PeerMessage::Probe { sent_ms } => {
                out.push(PROBE);
                out.put_i64(*sent_ms as i64);
            }
            PeerMessage::Probed { sent_ms } => {
                out.push(PROBED);
                out.put_i64(*sent_ms as i64);
            }
            PeerMessage::Clock { wall_ms } => {
                out.push(CLOCK);
                out.put_i64(*wall_ms);
            }
        }
        out
    }

    /// The message in an envelope.
    pub(crate) fn decode(bytes: &[u8]) -> Result<PeerMessage, DecodeError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            RAFT => decode_raft(&mut reader).map(PeerMessage::Raft),
            FORWARD => Ok(PeerMessage::Forward(Bytes::copy_from_slice(reader.rest()))),
            HEARD => {
                let number = reader.i64()? as u64;
                let mut sessions = Vec::new();
                while !reader.is_empty() {
                    sessions.push(SessionId(reader.i64()?));
                }
                Ok(PeerMessage::Heard { number, sessions })
            }
            CONFIRMED => {
                let number = reader.i64()? as u64;
                let has_limits = !reader.is_empty();
                let limits = has_limits.then(|| ConfirmationLimits::decode(&mut reader)).transpose()?;
                Ok(PeerMessage::Confirmed { number, limits })
            }
            OFFER => decode_offer(&mut reader).map(PeerMessage::Offer),
            FETCH => Ok(PeerMessage::Fetch { index: reader.i64()? as u64, offset: reader.i64()? as u64 }),
            PIECE => {
                let (index, offset) = (reader.i64()? as u64, reader.i64()? as u64);
                let is_last = reader.bool()?;
                Ok(PeerMessage::Piece(SnapshotWrite {
                    index,
                    offset,
                    bytes: reader.rest().to_vec(),
                    is_last,
                }))
            }
            GONE => Ok(PeerMessage::Gone { index: reader.i64()? as u64 }),
            DAMAGED => Ok(PeerMessage::Damaged { index: reader.i64()? as u64 }),
            GREETING => decode_greeting(&mut reader).map(PeerMessage::Greeting),
            DIGEST => {
                let (index, digest) = (reader.i64()? as u64, reader.i64()? as u64);
                Ok(PeerMessage::Digest { index, digest, is_in_doubt: reader.bool()? })
            }
            DIVERGED => {
                Ok(PeerMessage::Diverged { index: reader.i64()? as u64, digest: reader.i64()? as u64 })
            }
            PRESENT => Ok(decode_present(reader.rest())),
            WANTS_LEAD => Ok(PeerMessage::WantsLead),
            FILE_LIST => Ok(PeerMessage::FileList { lines: reader.string()?.to_owned() }),
            ASK_MEMBERS => {
                let (version, digest) = (reader.i64()?, reader.i64()? as u64);
                Ok(PeerMessage::AskMembers(ListMark { version, digest }))
            }
            MEMBERS => {
                Ok(PeerMessage::Members { version: reader.i64()?, lines: reader.string()?.to_owned() })
            }
            ROSTER => read_report(&mut reader).map(PeerMessage::Roster),
            ROSTER_OF => {
                let group = reader.i32()? as u32;
                Ok(PeerMessage::RosterOf { group, report: read_report(&mut reader)? })
            }
            PROBE => Ok(PeerMessage::Probe { sent_ms: reader.i64()? as u64 }),
            PROBED => Ok(PeerMessage::Probed { sent_ms: reader.i64()? as u64 }),
            CLOCK => Ok(PeerMessage::Clock { wall_ms: reader.i64()? }),
            other => Err(DecodeError::UnknownValue { field: "message between members", value: other.into() }),
        }
    }
}

fn put_report(&RosterReport { number, is_ready, progress }: &RosterReport, out: &mut Vec<u8>) {
    out.put_i64(number as i64);
    out.put_bool(is_ready);
    out.put_i64(progress as i64);
}

fn read_report(reader: &mut Reader<'_>) -> Result<RosterReport, DecodeError> {
    let (number, is_ready) = (reader.i64()? as u64, reader.bool()?);
    Ok(RosterReport { number, is_ready, progress: reader.i64()? as u64 })
}

fn decode_present(bytes: &[u8]) -> PeerMessage {
    let told = bytes.split_last_chunk::<{ LEVEL_MARK.len() + 2 }>();
    let told = told.filter(|(_, last)| last.starts_with(&LEVEL_MARK));
    let (profile, level) = told.map_or((bytes, FeatureLevel::NONE), |(profile, &[.., high, low])| {
        (profile, FeatureLevel(u16::from_be_bytes([high, low])))
    });
    let told = profile.split_last_chunk::<{ SYNC_MARK.len() + 4 }>();
    let told = told.filter(|(_, last)| last.starts_with(&SYNC_MARK));
    let (profile, lead_us) = told.map_or((profile, None), |(profile, &[.., a, b, c, d])| {
        (profile, Some(u32::from_be_bytes([a, b, c, d])))
    });
    PeerMessage::Present { profile: profile.to_vec(), lead_us, level }
}

fn encode_greeting(greeting: &Greeting, out: &mut Vec<u8>) {
    let Greeting { condition, purpose, term, membership, addresses, leader, found, ruling, applied } =
        greeting;
    match purpose {
        Purpose::Question => out.put_bool(true),
        Purpose::Answer { asker } => {
            out.put_bool(false);
            out.put_i64(*asker as i64);
        }
    }
    out.push(match condition {
        Condition::Empty => 0,
        Condition::Founding => 1,
        Condition::Established => 2,
        Condition::Learning => 3,
    });
    out.put_i64(*term as i64);
    out.put_buffer(Some(&membership.encode()));
    out.put_bool(addresses.is_some());
    let FoundOnDisk { former_start, start, last } = *found;
    let numbers =
        [addresses.unwrap_or_default(), leader.unwrap_or_default(), former_start, start, last.0, last.1];
    for number in numbers {
        out.put_i64(number as i64);
    }
    out.push(match ruling {
        None => 0,
        Some(Ruling::Admitted) => 1,
        Some(Ruling::Outdated) => 2,
    });
    // Earlier builds do not look behind the ruling.
    out.put_i64(*applied as i64);
}

fn decode_greeting(reader: &mut Reader<'_>) -> Result<Greeting, DecodeError> {
    let unknown = |field, value: u8| DecodeError::UnknownValue { field, value: value.into() };
    let is_question = reader.bool()?;
    let purpose =
        if is_question { Purpose::Question } else { Purpose::Answer { asker: reader.i64()? as u64 } };
    let condition = match reader.u8()? {
        0 => Condition::Empty,
        1 => Condition::Founding,
        2 => Condition::Established,
        3 => Condition::Learning,
        other => return Err(unknown("condition", other)),
    };
    let term = reader.i64()? as u64;
    let membership = Membership::decode(reader.buffer()?.unwrap_or_default());
    let membership = membership.ok_or(DecodeError::Truncated)?;
    let has_addresses = reader.bool()?;
    let addresses = Some(reader.i64()? as u64).filter(|_| has_addresses);
    let leader = Some(reader.i64()? as u64).filter(|leader| *leader > 0);
    let (former_start, start) = (reader.i64()? as u64, reader.i64()? as u64);
    let found = FoundOnDisk { former_start, start, last: (reader.i64()? as u64, reader.i64()? as u64) };
    let ruling = match reader.u8()? {
        0 => None,
        1 => Some(Ruling::Admitted),
        2 => Some(Ruling::Outdated),
        other => return Err(unknown("ruling", other)),
    };
    let applied = if reader.is_empty() { 0 } else { reader.i64()? as u64 };
    Ok(Greeting { condition, purpose, term, membership, addresses, leader, found, ruling, applied })
}

/// The messages that travel, with their numbers. The library has others, for itself alone.
const TYPES: [(i32, MessageType); 11] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgHeartbeat),
    (6, MessageType::MsgHeartbeatResponse),
    (7, MessageType::MsgTimeoutNow),
    (8, MessageType::MsgReadIndex),
    (9, MessageType::MsgReadIndexResp),
    (10, MessageType::MsgRequestPreVote),
    (11, MessageType::MsgRequestPreVoteResponse),
];

/// A message of the library as it travels. Some are for the library alone.
pub(crate) fn to_peer(message: Message) -> Option<(u64, Vec<u8>)> {
    let to = message.to;
    let message = match message.msg_type {
        MessageType::MsgSnapshot => PeerMessage::Offer(message),
        kind if TYPES.iter().any(|(_, known)| *known == kind) => PeerMessage::Raft(message),
        _ => return None,
    };
    Some((to, message.encode()))
}

fn encode_offer(message: &Message, out: &mut Vec<u8>) {
    let metadata = message.get_snapshot().get_metadata();
    let membership = Membership::from_raft(metadata.get_conf_state());
    for value in [message.to, message.from, message.term, metadata.index, metadata.term] {
        out.put_i64(value as i64);
    }
    out.put_buffer(Some(&membership.encode()));
}

fn decode_offer(reader: &mut Reader<'_>) -> Result<Message, DecodeError> {
    let mut message = Message { msg_type: MessageType::MsgSnapshot, ..Message::default() };
    for field in [&mut message.to, &mut message.from, &mut message.term] {
        *field = reader.i64()? as u64;
    }
    let metadata = message.mut_snapshot().mut_metadata();
    metadata.index = reader.i64()? as u64;
    metadata.term = reader.i64()? as u64;
    let membership = reader.buffer()?.and_then(Membership::decode);
    let unknown = DecodeError::UnknownValue { field: "membership", value: 0 };
    metadata.set_conf_state(membership.ok_or(unknown)?.to_raft());
    Ok(message)
}

fn encode_raft(message: &Message, out: &mut Vec<u8>) {
    let number = TYPES.iter().find(|(_, kind)| *kind == message.msg_type).map(|(number, _)| *number);
    out.put_i32(number.expect("only messages that travel are sent"));
    for value in [
        message.to,
        message.from,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.request_snapshot,
        message.reject_hint,
    ] {
        out.put_i64(value as i64);
    }
    out.put_bool(message.reject);
    out.put_buffer(Some(&message.context));
    out.put_count(message.entries.len());
    for entry in &message.entries {
        out.put_i64(entry.index as i64);
        out.put_i64(entry.term as i64);
        let is_change = entry.get_entry_type() != EntryType::EntryNormal;
        out.put_bool(is_change);
        // Of a change, what it is lies in its context: see `configuration.rs`.
        out.put_buffer(Some(if is_change { &entry.context } else { &entry.data }));
    }
}

fn decode_raft(reader: &mut Reader<'_>) -> Result<Message, DecodeError> {
    let number = reader.i32()?;
    let kind = TYPES.iter().find(|(known, _)| *known == number).map(|(_, kind)| *kind);
    let unknown = DecodeError::UnknownValue { field: "Raft message", value: number };
    let mut message = Message { msg_type: kind.ok_or(unknown)?, ..Message::default() };
    for field in [
        &mut message.to,
        &mut message.from,
        &mut message.term,
        &mut message.log_term,
        &mut message.index,
        &mut message.commit,
        &mut message.commit_term,
        &mut message.request_snapshot,
        &mut message.reject_hint,
    ] {
        *field = reader.i64()? as u64;
    }
    message.reject = reader.bool()?;
    message.context = Bytes::copy_from_slice(reader.buffer()?.unwrap_or_default());
    message.entries = reader.list(decode_entry)?.into();
    check_entries(&message)?;
    Ok(message)
}

/// Checks that entries for the log follow each other and what they stand behind, as the library takes for granted, and that this member
/// can read and write them.
fn check_entries(message: &Message) -> Result<(), DecodeError> {
    if message.msg_type != MessageType::MsgAppend {
        return Ok(());
    }
    let unknown = |field| DecodeError::UnknownValue { field, value: 0 };
    let (mut index, mut term) = (message.index, 0);
    for entry in &message.entries {
        if index.checked_add(1) != Some(entry.index) || !(term..=message.term).contains(&entry.term) {
            return Err(unknown("place of an entry"));
        }
        if !is_readable(entry) {
            return Err(unknown("payload of an entry"));
        }
        (index, term) = (entry.index, entry.term);
    }
    Ok(())
}

fn decode_entry(reader: &mut Reader<'_>) -> Result<Entry, DecodeError> {
    let (index, term) = (reader.i64()? as u64, reader.i64()? as u64);
    let is_change = reader.bool()?;
    let bytes = Bytes::copy_from_slice(reader.buffer()?.unwrap_or_default());
    let mut entry = Entry { index, term, ..Entry::default() };
    if is_change {
        entry.set_entry_type(EntryType::EntryConfChangeV2);
        entry.context = bytes;
    } else {
        entry.data = bytes;
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: PeerMessage) {
        let mut bytes = message.encode();
        let envelope = Envelope { cluster: Cluster::Known(7), process: 9 };
        envelope.seal(&mut bytes);
        let (opened, bytes) = Envelope::open(&bytes).unwrap();
        assert_eq!(opened, envelope);
        assert_eq!(PeerMessage::decode(bytes), Ok(message));
        for end in 0..bytes.len() {
            // Cut short it is an error or another message, never a crash.
            let _ = PeerMessage::decode(&bytes[..end]);
        }
    }

    #[test]
    fn messages_come_back_as_encoded() {
        check(PeerMessage::Forward(Bytes::from_static(b"batch")));
        check(PeerMessage::Heard { number: 7, sessions: vec![SessionId(1), SessionId(-2)] });
        check(PeerMessage::Confirmed { number: 7, limits: None });
        let limits = ConfirmationLimits { process: 8, term: 9, ended_through: 10 };
        check(PeerMessage::Confirmed { number: 7, limits: Some(limits) });
        check(PeerMessage::Fetch { index: 7, offset: 1 << 40 });
        check(PeerMessage::Gone { index: 7 });
        check(PeerMessage::Damaged { index: 7 });
        check(PeerMessage::Digest { index: 7, digest: u64::MAX, is_in_doubt: true });
        check(PeerMessage::Diverged { index: 7, digest: u64::MAX });
        use Condition::{Empty, Established, Founding, Learning};
        let rulings = [None, None, Some(Ruling::Admitted), Some(Ruling::Outdated)];
        for (condition, ruling) in [Empty, Founding, Learning, Established].into_iter().zip(rulings) {
            for purpose in [Purpose::Question, Purpose::Answer { asker: 1 << 63 }] {
                let membership = Membership::new(vec![1, 2, 3], vec![4]);
                let found = FoundOnDisk { former_start: 1 << 40, start: 1 << 41, last: (3, 77) };
                let leader = Some(3).filter(|_| purpose == Purpose::Question);
                let addresses = leader.map(|_| u64::MAX);
                let (term, applied) = (7, 1 << 42);
                let greeting = Greeting {
                    condition,
                    purpose,
                    term,
                    membership,
                    addresses,
                    leader,
                    found,
                    ruling,
                    applied,
                };
                check(PeerMessage::Greeting(greeting));
            }
        }
        for level in [FeatureLevel::NONE, FeatureLevel(1), FeatureLevel(u16::MAX)] {
            for lead_us in [None, Some(0), Some(u32::MAX)] {
                check(PeerMessage::Present { profile: vec![], lead_us, level });
                check(PeerMessage::Present { profile: b"version".to_vec(), lead_us, level });
            }
        }
        check(PeerMessage::WantsLead);
        check(PeerMessage::Probe { sent_ms: u64::MAX });
        check(PeerMessage::Probed { sent_ms: 7 });
        check(PeerMessage::AskMembers(ListMark { version: 5, digest: u64::MAX }));
        check(PeerMessage::Members { version: -1, lines: "server.1=a:1:2\n".to_owned() });
        let report = RosterReport { number: 3, is_ready: true, progress: 9 };
        check(PeerMessage::Roster(report));
        check(PeerMessage::RosterOf { group: 5, report });
        check(PeerMessage::FileList { lines: "server.1=a:1:2\n".to_owned() });
        check(PeerMessage::Clock { wall_ms: -1 });
        let bytes = b"piece".to_vec();
        check(PeerMessage::Piece(SnapshotWrite { index: 7, offset: 5, bytes, is_last: true }));
        let mut offer =
            Message { msg_type: MessageType::MsgSnapshot, to: 1, from: 2, term: 3, ..Message::default() };
        let metadata = offer.mut_snapshot().mut_metadata();
        (metadata.index, metadata.term) = (7, 2);
        metadata.set_conf_state(Membership::new(vec![1, 2, 3], vec![4]).to_raft());
        check(PeerMessage::Offer(offer));
        let entry =
            |index| Entry { index, term: 3, data: Bytes::from_static(b"\x02xyz"), ..Entry::default() };
        let mut change = Entry {
            context: Bytes::from_static(&[3, 0, 0, 0, 0, 0, 0, 0, 1]),
            data: Bytes::new(),
            ..entry(8)
        };
        change.set_entry_type(EntryType::EntryConfChangeV2);
        for (_, kind) in TYPES {
            check(PeerMessage::Raft(Message {
                msg_type: kind,
                to: 1,
                from: 2,
                term: 3,
                log_term: 4,
                index: 5,
                commit: 6,
                commit_term: 7,
                request_snapshot: 8,
                reject_hint: 9,
                reject: true,
                context: Bytes::from_static(b"context"),
                entries: vec![entry(6), entry(7), change.clone()].into(),
                ..Message::default()
            }));
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(PeerMessage::decode(&[]).is_err());
        assert!(PeerMessage::decode(&[99]).is_err());
        assert!(PeerMessage::decode(&[GREETING, 3]).is_err());
        assert!(PeerMessage::decode(&[RAFT, 0, 0, 0, 99]).is_err());
        let truncated = PeerMessage::Heard { number: 7, sessions: vec![SessionId(1)] }.encode();
        assert!(PeerMessage::decode(&truncated[Envelope::BYTES..][..5]).is_err());
        assert!(Envelope::open(&truncated[..5]).is_err());
        assert!(Envelope::open(&[9; 40]).is_err(), "of no kind of cluster id");
    }

    #[test]
    fn entries_that_do_not_follow_each_other_are_refused() {
        let decoded = |index: u64, term: u64, places: &[(u64, u64)]| {
            let entry = |&(index, term): &(u64, u64)| Entry { index, term, ..Entry::default() };
            let entries = places.iter().map(entry).collect::<Vec<_>>().into();
            let msg_type = MessageType::MsgAppend;
            let message = Message { msg_type, index, term, entries, ..Message::default() };
            PeerMessage::decode(&PeerMessage::Raft(message).encode()[Envelope::BYTES..])
        };
        assert!(decoded(5, 3, &[(6, 2), (7, 3)]).is_ok());
        for places in
            [&[(7, 3)][..], &[(5, 3)], &[(6, 3), (8, 3)], &[(6, 3), (6, 3)], &[(6, 4)], &[(6, 3), (7, 2)]]
        {
            assert!(decoded(5, 3, places).is_err(), "{places:?}");
        }
        assert!(decoded(u64::MAX, 3, &[(0, 3)]).is_err());
    }
}
