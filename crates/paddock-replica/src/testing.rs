//! Messages between members, opened for tests: the simulator writes them into its story and checks what they promise.

use paddock_proto::SessionId;
use raft::eraftpb::{Message, MessageType};

use crate::LogEntry;
use crate::configuration::from_raft;
use crate::effects::SnapshotWrite;
use crate::message::{ConfirmationLimits, Envelope, Greeting, PeerMessage, Purpose};

/// Describes a message in one line, for the story of a run.
pub fn describe(message: &[u8]) -> String {
    let Ok((Envelope { cluster, .. }, body)) = Envelope::open(message) else {
        return "unreadable".to_owned();
    };
    format!("{} of {cluster:?}", describe_body(body))
}

fn describe_body(body: &[u8]) -> String {
    match PeerMessage::decode(body) {
        Ok(PeerMessage::Raft(message)) => describe_raft(&message),
        Ok(PeerMessage::Forward(batch)) => format!("forward of {} bytes", batch.len()),
        Ok(PeerMessage::Heard { number, sessions }) => {
            let sessions: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
            format!("report {number}: heard {}", sessions.join(" "))
        }
        Ok(PeerMessage::Confirmed { number, limits }) => match limits {
            Some(ConfirmationLimits { term, ended_through, .. }) => {
                format!("report {number} is confirmed in term {term}, with ends up to {ended_through}")
            }
            None => format!("report {number} is confirmed"),
        },
        Ok(PeerMessage::Offer(offer)) => {
            format!("offer of snapshot {} term={}", offer.get_snapshot().get_metadata().index, offer.term)
        }
        Ok(PeerMessage::Fetch { index, offset }) => format!("fetch of snapshot {index} from {offset}"),
        Ok(PeerMessage::Piece(piece)) => {
            let SnapshotWrite { index, offset, bytes, is_last } = piece;
            format!("piece of snapshot {index} from {offset}: {} bytes, last={is_last}", bytes.len())
        }
        Ok(PeerMessage::Gone { index }) => format!("snapshot {index} is gone"),
        Ok(PeerMessage::Damaged { index }) => format!("snapshot {index} is damaged"),
        Ok(PeerMessage::Greeting(Greeting { condition, purpose, term, leader, found, ruling, .. })) => {
            let you = if purpose == Purpose::Question { ", and you?" } else { "" };
            format!("greeting: {condition:?} term={term} leader={leader:?} {found:?} ruling={ruling:?}{you}")
        }
        Ok(PeerMessage::Present { .. }) => "present".to_owned(),
        Ok(PeerMessage::Probe { sent_ms }) => format!("probe of {sent_ms} ms"),
        Ok(PeerMessage::Probed { sent_ms }) => format!("answer to the probe of {sent_ms} ms"),
        Ok(PeerMessage::AskMembers(mark)) => format!("asks for a list newer than {mark:?}"),
        Ok(PeerMessage::Members { version, lines }) => format!("members at {version:#x}: {lines:?}"),
        Ok(PeerMessage::FileList { .. }) => "list of its file".to_owned(),
        Ok(PeerMessage::Clock { wall_ms }) => format!("its clock shows {wall_ms}"),
        Ok(PeerMessage::WantsLead) => "wants to lead".to_owned(),
        Ok(PeerMessage::Roster(report)) => format!("{report:?}"),
        Ok(PeerMessage::RosterOf { group, report }) => format!("{report:?} of group {group}"),
        Ok(PeerMessage::Digest { index, digest, .. }) => format!("digest {digest:016x} at {index}"),
        Ok(PeerMessage::Diverged { index, digest }) => format!("most have digest {digest:016x} at {index}"),
        Err(error) => format!("unreadable: {error}"),
    }
}

fn describe_raft(message: &Message) -> String {
    let Message { term, log_term, index, commit, reject, .. } = message;
    let (kind, entries) = (message.msg_type, message.entries.len());
    let refused = if *reject { " refused" } else { "" };
    format!(
        "{kind:?}{refused} term={term} index={index} log_term={log_term} commit={commit} entries={entries}"
    )
}

/// Facts about a message that checkers compare with disks and with other messages.
#[derive(Debug, Default)]
pub struct MessageFacts {
    /// Sessions that it reports as heard by its sender.
    pub heard: Vec<SessionId>,
    /// Entries that it brings to a follower, and the term in which its sender leads.
    pub entries: Vec<LogEntry>,
    pub term: u64,
    /// The term for which its sender asks for votes, and whether the leader has told it to.
    pub campaign: Option<(u64, bool)>,
    /// The term in which its sender votes for the receiver.
    pub vote: Option<u64>,
    /// Its sender would vote for the receiver, if it was asked.
    pub promises: bool,
    /// The last entry that its sender has, it says, and the term in which it says so.
    pub acknowledges: Option<(u64, u64)>,
    /// Its sender leads, and asks the receiver to.
    pub hands_over: bool,
    /// Entry and digest: what its sender's state was after that entry.
    pub digest: Option<(u64, u64)>,
    /// Entry and digest: what most voters' state was after that entry, and the receiver's was not.
    pub diverged: Option<(u64, u64)>,
}

impl MessageFacts {
    pub fn of(message: &[u8]) -> MessageFacts {
        match Envelope::open(message).and_then(|(_, body)| PeerMessage::decode(body)) {
            Ok(PeerMessage::Heard { sessions: heard, .. }) => {
                MessageFacts { heard, ..MessageFacts::default() }
            }
            Ok(PeerMessage::Digest { index, digest, .. }) => {
                MessageFacts { digest: Some((index, digest)), ..MessageFacts::default() }
            }
            Ok(PeerMessage::Diverged { index, digest }) => {
                MessageFacts { diverged: Some((index, digest)), ..MessageFacts::default() }
            }
            Ok(PeerMessage::Raft(message)) => MessageFacts::of_raft(message),
            _ => MessageFacts::default(),
        }
    }

    fn of_raft(mut message: Message) -> MessageFacts {
        let (term, none) = (message.term, MessageFacts::default());
        match message.msg_type {
            MessageType::MsgAppend => {
                let entries = message.take_entries().into_iter().map(from_raft).collect();
                MessageFacts { entries, term, ..none }
            }
            MessageType::MsgRequestVote => {
                let is_told = &message.context[..] == raft::CAMPAIGN_TRANSFER;
                MessageFacts { campaign: Some((term, is_told)), ..none }
            }
            MessageType::MsgTimeoutNow => MessageFacts { hands_over: true, ..none },
            _ if message.reject => none,
            MessageType::MsgRequestVoteResponse => MessageFacts { vote: Some(term), ..none },
            MessageType::MsgRequestPreVoteResponse => MessageFacts { promises: true, ..none },
            MessageType::MsgAppendResponse => {
                MessageFacts { acknowledges: Some((message.index, term)), ..none }
            }
            _ => none,
        }
    }
}
