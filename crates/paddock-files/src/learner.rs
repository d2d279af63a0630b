//! ZooKeeper's learner protocol as an observer speaks it: what a leader says in, answers and transactions out.
//!
//! An observer does not vote and is on no list of members. It is told every transaction once a quorum has it, first those that it missed
//! (or the whole tree), then each one as it is committed. [`Learner`] decides and touches nothing; [`LearnerStream`] carries its answers
//! over any stream of bytes. Every transaction that comes out follows the one before: what a leader leaves out or says twice is an
//! error, and so is an epoch that has passed.

mod members;
mod packet;
mod quorum_auth;
mod requests;

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use paddock_proto::jute::Writer;
use paddock_proto::{SessionId, Zxid};
use paddock_sasl::{ChallengeError, LoginExchange};

use crate::error::Problem;
use crate::jute_stream::JuteStream;
use crate::snapshot::{self, Snapshot};
pub use members::SourceMember;
use packet::{LearnerPacket, PacketKind};
pub use requests::{LearnerRequest, TouchedSessions};

/// Version of the protocol since ZooKeeper 3.4.
const PROTOCOL_VERSION: i32 = 0x1_0000;
/// Number under which a leader lists this observer. No voter has it, so nothing that is answered counts as a vote.
const OBSERVER_SID: i64 = -1;
/// Current epoch of one that does not vote on who leads.
const NO_EPOCH: i32 = -1;
/// Version of a configuration that every other one is newer than.
const NO_CONFIG: i64 = 0;
const EPOCH_SHIFT: u32 = 32;
const COUNTER_MASK: i64 = 0xffff_ffff;
/// Offset of the zxid in a transaction, behind session and xid.
const ZXID_OFFSET: usize = 12;
/// Length of the id of a designated leader in front of a transaction that changes the members.
const LEADER_ID_BYTES: usize = 8;
/// Bytes that proposals without their commits may hold.
const PROPOSED_BYTES_MAX: usize = 1 << 30;

/// Reason for which a leader is followed no longer.
#[derive(Debug, thiserror::Error)]
pub enum LearnerError {
    /// The connection ended, which a crash does too: another attempt may succeed.
    #[error("{0}")]
    Lost(Problem),
    /// The snapshot broke off, or does not fit together, which writes during its transfer can cause: another attempt may succeed.
    #[error("snapshot that the leader sends: {0}")]
    Snapshot(Problem),
    /// The connection ended before anything was said: this is no leader any more, or it wants to be spoken to otherwise.
    #[error("the leader hangs up at once; TLS (sslQuorum) needs --tls, SASL (quorum.auth) needs --sasl")]
    HungUp,
    /// The leader hangs up at the first word of SASL.
    #[error("the leader hangs up at SASL: without quorum.auth.enableSasl=true leave --sasl out")]
    NoSasl,
    #[error("the leader does not let {user} in by SASL: the password is wrong, or it has no such user")]
    LoginRefused { user: String },
    #[error("SASL on the leader's quorum port: {0}")]
    Sasl(ChallengeError),
    #[error("this is not the quorum port of a ZooKeeper: {0}")]
    Foreign(Problem),
    #[error("the leader's epoch is {found}, but epoch {known} has been there already")]
    Epoch { found: i64, known: i64 },
    #[error("the leader leaves transactions out: {last} is followed by {found}")]
    Gap { last: Zxid, found: Zxid },
    #[error("the leader's transaction {found} is of a later epoch than its own, {epoch}")]
    Future { found: Zxid, epoch: i64 },
    #[error("the leader commits {found}, but proposed {expected:?}")]
    Commit { found: Zxid, expected: Option<Zxid> },
    #[error("the leader's {what} does not belong here")]
    Unexpected { what: String },
    #[error("the leader's {what} cannot be read")]
    Malformed { what: &'static str },
}

impl LearnerError {
    /// True if another attempt may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            LearnerError::Lost(_) | LearnerError::Snapshot(_) | LearnerError::HungUp | LearnerError::NoSasl
        )
    }
}

/// A tree that a leader sent.
#[derive(Debug)]
pub struct ReceivedSnapshot(pub(crate) Snapshot);

impl ReceivedSnapshot {
    pub fn znodes(&self) -> u64 {
        self.0.znodes
    }
}

/// Outcome of something that a leader said.
#[derive(Debug)]
pub enum Event {
    /// Epoch that the leader has, which is to be remembered.
    Epoch(i64),
    /// All that is there is to be replaced by this, the effects of some later transactions among it.
    Snapshot {
        zxid: Zxid,
        snapshot: Box<ReceivedSnapshot>,
    },
    /// Missing transactions follow.
    Difference,
    /// The ensemble has lost transactions behind this one, which this observer has: it was rolled back.
    RolledBack(Zxid),
    /// A committed transaction, as it is in a log.
    Transaction(Vec<u8>),
    /// The ensemble as its leader lists it; empty before ZooKeeper 3.5.
    Members(Vec<SourceMember>),
    /// Everything has been sent that was committed when this observer came.
    Synced,
    /// Zxid of the last transaction that the leader has proposed.
    Proposed(Zxid),
    /// Everything has been sent that was committed when the oldest unanswered sync was asked for.
    Caught,
    /// A session whose client is said to be here: true if it lives.
    Revalidated(SessionId, bool),
    Nothing,
}

/// Step that an observer's conversation with a leader has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LearnerPhase {
    Greeted,
    EpochAccepted,
    Receiving,
    Acknowledged,
    Synced,
}

/// Conversation of an observer with one leader.
#[derive(Debug)]
struct Learner {
    phase: LearnerPhase,
    /// Largest epoch that any leader has had, and then that of this one.
    epoch: i64,
    /// Last transaction that came out, or that the snapshot has for certain.
    last: Zxid,
    /// Zxid of the snapshot alone: the leader may send earlier transactions once more.
    snapshot: Zxid,
    proposals: VecDeque<(Zxid, Vec<u8>)>,
    proposed_bytes: usize,
    touched: TouchedSessions,
}

impl Learner {
    fn new(epoch: i64, last: Zxid) -> Learner {
        Learner {
            phase: LearnerPhase::Greeted,
            epoch,
            last,
            snapshot: Zxid(0),
            proposals: VecDeque::new(),
            proposed_bytes: 0,
            touched: TouchedSessions::default(),
        }
    }

    fn greeting(&self) -> LearnerPacket {
        let mut data = Vec::new();
        data.put_i64(OBSERVER_SID);
        data.put_i32(PROTOCOL_VERSION);
        data.put_i64(NO_CONFIG);
        LearnerPacket::new(PacketKind::ObserverInfo, Zxid(self.epoch << EPOCH_SHIFT), Some(data))
    }

    /// Takes a packet; what is to be answered is appended to `answers`. A snapshot is read by the caller.
    fn receive(
        &mut self,
        packet: LearnerPacket,
        answers: &mut Vec<LearnerPacket>,
    ) -> Result<Event, LearnerError> {
        let LearnerPacket { kind, zxid, data, .. } = packet;
        match (self.phase, kind) {
            (LearnerPhase::Greeted, PacketKind::LeaderInfo) => self.accept_epoch(zxid, answers),
            (LearnerPhase::EpochAccepted, PacketKind::Diff) => self.begin(Event::Difference),
            (LearnerPhase::EpochAccepted, PacketKind::Trunc) => self.begin(Event::RolledBack(zxid)),
            (LearnerPhase::Receiving, PacketKind::NewLeader) => self.acknowledge(zxid, data, answers),
            (LearnerPhase::Acknowledged, PacketKind::UpToDate) => {
                self.phase = LearnerPhase::Synced;
                answers.push(LearnerPacket::new(PacketKind::Ack, Zxid(self.epoch << EPOCH_SHIFT), None));
                Ok(Event::Synced)
            }
            (LearnerPhase::Greeted | LearnerPhase::EpochAccepted, _) => Err(unexpected(kind, zxid)),
            (_, PacketKind::Proposal) => self.propose(zxid, data.unwrap_or_default()),
            (_, PacketKind::Commit | PacketKind::CommitAndActivate) => self.commit(zxid),
            (_, PacketKind::Inform) => self.inform(data.unwrap_or_default()),
            (_, PacketKind::InformAndActivate) => self.inform(behind_leader_id(data)?),
            (_, PacketKind::Ping) => {
                answers.push(LearnerPacket::new(PacketKind::Ping, zxid, Some(self.touched.take())));
                Ok(Event::Proposed(zxid))
            }
            (LearnerPhase::Synced, PacketKind::Sync) => Ok(Event::Caught),
            (LearnerPhase::Synced, PacketKind::Revalidate) => {
                let (session, lives) = requests::revalidated(data)?;
                Ok(Event::Revalidated(session, lives))
            }
            _ => Err(unexpected(kind, zxid)),
        }
    }

    fn accept_epoch(&mut self, zxid: Zxid, answers: &mut Vec<LearnerPacket>) -> Result<Event, LearnerError> {
        let found = zxid.0 >> EPOCH_SHIFT;
        let known = self.epoch.max(self.last.0 >> EPOCH_SHIFT);
        if found < known {
            return Err(LearnerError::Epoch { found, known });
        }
        (self.epoch, self.phase) = (found, LearnerPhase::EpochAccepted);
        let mut data = Vec::new();
        data.put_i32(NO_EPOCH);
        answers.push(LearnerPacket::new(PacketKind::AckEpoch, self.last, Some(data)));
        Ok(Event::Epoch(found))
    }

    fn begin(&mut self, event: Event) -> Result<Event, LearnerError> {
        self.phase = LearnerPhase::Receiving;
        Ok(event)
    }

    /// A snapshot that was read, all of it up to `zxid` for certain.
    fn take_snapshot(&mut self, zxid: Zxid) -> Result<(), LearnerError> {
        let epoch = self.epoch;
        if zxid.0 >> EPOCH_SHIFT > epoch {
            return Err(LearnerError::Future { found: zxid, epoch });
        }
        (self.last, self.snapshot, self.phase) = (zxid, zxid, LearnerPhase::Receiving);
        Ok(())
    }

    fn acknowledge(
        &mut self,
        zxid: Zxid,
        config: Option<Vec<u8>>,
        answers: &mut Vec<LearnerPacket>,
    ) -> Result<Event, LearnerError> {
        if zxid.0 != self.epoch << EPOCH_SHIFT {
            return Err(LearnerError::Epoch { found: zxid.0 >> EPOCH_SHIFT, known: self.epoch });
        }
        self.phase = LearnerPhase::Acknowledged;
        answers.push(LearnerPacket::new(PacketKind::Ack, zxid, None));
        Ok(Event::Members(members::parse(&config.unwrap_or_default())))
    }

    fn propose(&mut self, zxid: Zxid, transaction: Vec<u8>) -> Result<Event, LearnerError> {
        self.proposed_bytes += transaction.len();
        if self.proposed_bytes > PROPOSED_BYTES_MAX {
            return Err(LearnerError::Unexpected { what: format!("proposal {zxid} without a commit") });
        }
        self.proposals.push_back((zxid, transaction));
        Ok(Event::Nothing)
    }

    fn commit(&mut self, found: Zxid) -> Result<Event, LearnerError> {
        let first = self.proposals.pop_front();
        match first {
            Some((zxid, transaction)) if zxid == found => {
                self.proposed_bytes -= transaction.len();
                self.inform(transaction)
            }
            other => Err(LearnerError::Commit { found, expected: other.map(|(zxid, _)| zxid) }),
        }
    }

    /// A committed transaction. Its own header counts: that is what a log holds.
    fn inform(&mut self, transaction: Vec<u8>) -> Result<Event, LearnerError> {
        let bytes = transaction.get(ZXID_OFFSET..ZXID_OFFSET + 8);
        let bytes = bytes.ok_or(LearnerError::Malformed { what: "transaction" })?;
        let zxid = Zxid(i64::from_be_bytes(bytes.try_into().expect("it has eight bytes")));
        if zxid <= self.snapshot {
            return Ok(Event::Nothing);
        }
        if zxid.0 >> EPOCH_SHIFT > self.epoch {
            return Err(LearnerError::Future { found: zxid, epoch: self.epoch });
        }
        if !follows(self.last, zxid) {
            return Err(LearnerError::Gap { last: self.last, found: zxid });
        }
        self.last = zxid;
        Ok(Event::Transaction(transaction))
    }
}

/// True if nothing can be between two transactions: an epoch counts from 1 without gaps, and the one before may have ended anywhere.
fn follows(last: Zxid, next: Zxid) -> bool {
    let (last_epoch, epoch) = (last.0 >> EPOCH_SHIFT, next.0 >> EPOCH_SHIFT);
    if epoch == last_epoch { next.0 == last.0 + 1 } else { epoch > last_epoch && next.0 & COUNTER_MASK == 1 }
}

fn behind_leader_id(data: Option<Vec<u8>>) -> Result<Vec<u8>, LearnerError> {
    let mut data = data.unwrap_or_default();
    if data.len() < LEADER_ID_BYTES {
        return Err(LearnerError::Malformed { what: "change of members" });
    }
    Ok(data.split_off(LEADER_ID_BYTES))
}

fn unexpected(kind: PacketKind, zxid: Zxid) -> LearnerError {
    LearnerError::Unexpected { what: format!("packet {kind:?} ({zxid})") }
}

/// The conversation over a stream of bytes: a connection, or anything else that can be read and written.
#[derive(Debug)]
pub struct LearnerStream<S> {
    stream: JuteStream<S>,
    learner: Learner,
}

impl<S: Read + Write> LearnerStream<S> {
    /// Greets the leader at the other end, as an observer that has everything up to `last` and has seen the epoch `epoch`. It logs in
    /// before, if the leader wants SASL.
    pub fn greet(
        stream: S,
        login: Option<&LoginExchange>,
        epoch: i64,
        last: Zxid,
    ) -> Result<LearnerStream<S>, LearnerError> {
        let mut stream = JuteStream::new(stream);
        if let Some(login) = login {
            quorum_auth::log_in(&mut stream, login)?;
        }
        let learner = Learner::new(epoch, last);
        let greeting = learner.greeting();
        let mut stream = LearnerStream { stream, learner };
        stream.send(&[greeting])?;
        Ok(stream)
    }

    /// The leader is told of these sessions with every answer to a ping.
    pub fn tell_of(&mut self, touched: &TouchedSessions) {
        self.learner.touched = touched.clone();
    }

    /// Waits for the next packet and answers it.
    pub fn next(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Event, LearnerError> {
        let packet = LearnerPacket::read(&mut self.stream).map_err(|problem| self.unreadable(problem))?;
        if packet.kind == PacketKind::Snap && self.learner.phase == LearnerPhase::EpochAccepted {
            let read = snapshot::read_sent(&mut self.stream, progress).map_err(LearnerError::Snapshot)?;
            self.learner.take_snapshot(packet.zxid)?;
            let snapshot = Box::new(ReceivedSnapshot(read));
            return Ok(Event::Snapshot { zxid: packet.zxid, snapshot });
        }
        let mut answers = Vec::new();
        let event = self.learner.receive(packet, &mut answers)?;
        self.send(&answers)?;
        Ok(event)
    }

    fn unreadable(&self, problem: Problem) -> LearnerError {
        match problem {
            Problem::Io(_) | Problem::Truncated if self.learner.phase == LearnerPhase::Greeted => {
                LearnerError::HungUp
            }
            Problem::Io(_) | Problem::Truncated => LearnerError::Lost(problem),
            problem if self.learner.phase == LearnerPhase::Greeted => LearnerError::Foreign(problem),
            _ => LearnerError::Unexpected { what: format!("packet ({problem})") },
        }
    }

    fn send(&mut self, packets: &[LearnerPacket]) -> Result<(), LearnerError> {
        let mut bytes = Vec::new();
        packets.iter().for_each(|packet| packet.encode(&mut bytes));
        let stream = self.stream.get_mut();
        stream.write_all(&bytes).and_then(|()| stream.flush()).map_err(lost)
    }
}

fn lost(error: io::Error) -> LearnerError {
    LearnerError::Lost(Problem::Io(error))
}

#[cfg(test)]
mod tests;
