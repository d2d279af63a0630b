//! A connection of a client and its twin at the reference: the frames of both, cut out of what was copied, and the requests whose
//! answers have not both come.

use std::collections::VecDeque;

use paddock_proto::{ConnectRequest, ConnectResponse, SessionId, frame};

use super::sequencer::{Kind, Place};

/// Longest frame that is looked at.
pub(super) const FRAME_BYTES_MAX: i32 = 64 << 20;
/// Requests and bytes of answers that a pair keeps.
const REQUESTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 16 << 20;

/// A request, and the answers to it.
#[derive(Debug)]
pub(super) struct CheckedRequest {
    pub(super) xid: i32,
    pub(super) op: i32,
    /// The request itself, until this member has answered it.
    pub(super) frame: Vec<u8>,
    /// Beginning of its body: the path, for most.
    pub(super) about: String,
    pub(super) own: Option<Vec<u8>>,
    pub(super) reference: Option<Vec<u8>>,
    /// Time at which it went to the reference.
    pub(super) sent_ms: Option<u64>,
}

/// An event that one side has sent and the other one has not.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) text: String,
    pub(super) since_ms: u64,
}

#[derive(Debug, Default)]
pub(super) struct Pair {
    client_bytes: Vec<u8>,
    own_bytes: Vec<u8>,
    pub(super) has_greeted: bool,
    pub(super) own_greeting: Option<ConnectResponse>,
    pub(super) reference_greeting: Option<ConnectResponse>,
    pub(super) requests: VecDeque<CheckedRequest>,
    kept_bytes: usize,
    /// Place of the last request that this member has answered. None that is answered later comes before it, whatever zxid it has: auth
    /// has none.
    pub(super) last_place: Place,
    pub(super) own_events: Vec<Event>,
    pub(super) reference_events: Vec<Event>,
    /// The reference has closed the session.
    pub(super) has_ended: bool,
    /// The client has come back to the session over another connection.
    pub(super) has_moved: bool,
    /// The client is gone; the pair ends with the last answer.
    pub(super) is_closing: bool,
}

impl Pair {
    pub(super) fn take_client(&mut self, bytes: &[u8]) {
        self.client_bytes.extend_from_slice(bytes);
    }

    pub(super) fn take_own(&mut self, bytes: &[u8]) {
        self.own_bytes.extend_from_slice(bytes);
    }

    /// The next whole frame of the client, from behind its length. An error ends the check.
    pub(super) fn next_of_client(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        let split = if self.has_greeted {
            frame::split(&self.client_bytes, FRAME_BYTES_MAX)
        } else {
            ConnectRequest::split(&self.client_bytes, FRAME_BYTES_MAX)
        };
        cut(split.map(|found| found.map(|(body, len)| (body.to_vec(), len))), &mut self.client_bytes)
    }

    /// The next whole frame of this member.
    pub(super) fn next_own(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        let split = frame::split(&self.own_bytes, FRAME_BYTES_MAX);
        cut(split.map(|found| found.map(|(body, len)| (body.to_vec(), len))), &mut self.own_bytes)
    }

    /// Keeps an answer with the first request that has its xid and none of this side. Returns the request's operation and kind, and the
    /// request when it is answered by this member.
    pub(super) fn answer(&mut self, frame: Vec<u8>, is_own: bool) -> Option<(i32, Kind, Vec<u8>)> {
        let xid = i32::from_be_bytes(*frame.first_chunk::<4>()?);
        let waits = |request: &CheckedRequest| {
            request.xid == xid && if is_own { request.own.is_none() } else { request.reference.is_none() }
        };
        let request = self.requests.iter_mut().find(|request| waits(request))?;
        self.kept_bytes += frame.len();
        let kind = Kind::of(request.op, &frame);
        *(if is_own { &mut request.own } else { &mut request.reference }) = Some(frame);
        Some((request.op, kind, std::mem::take(&mut request.frame)))
    }

    /// The oldest request, if both answers have come.
    pub(super) fn next_answered(&mut self) -> Option<CheckedRequest> {
        self.requests.front().filter(|first| first.own.is_some() && first.reference.is_some())?;
        let request = self.requests.pop_front()?;
        let bytes = |answer: &Option<Vec<u8>>| answer.as_ref().map_or(0, Vec::len);
        self.kept_bytes = self.kept_bytes.saturating_sub(bytes(&request.own) + bytes(&request.reference));
        Some(request)
    }

    /// True if an event of one side has no match yet.
    pub(super) fn has_events(&self) -> bool {
        !self.own_events.is_empty() || !self.reference_events.is_empty()
    }

    pub(super) fn is_overfull(&self) -> bool {
        self.requests.len() > REQUESTS_MAX || self.kept_bytes > BYTES_MAX
    }

    /// True if this member has granted that session on this connection.
    pub(super) fn is_of(&self, session: SessionId) -> bool {
        self.own_greeting.is_some_and(|greeting| greeting.session == session)
    }

    /// True if something went to the reference before that time and has no answer.
    pub(super) fn waits_since_before(&self, before_ms: u64) -> bool {
        self.requests.iter().any(|request| {
            request.reference.is_none() && request.sent_ms.is_some_and(|sent_ms| sent_ms < before_ms)
        })
    }
}

/// Takes what was split off from the front of the bytes.
fn cut<E>(
    split: Result<Option<(Vec<u8>, usize)>, E>,
    bytes: &mut Vec<u8>,
) -> Result<Option<Vec<u8>>, &'static str> {
    match split {
        Ok(Some((body, len))) => {
            bytes.drain(..len);
            Ok(Some(body))
        }
        Ok(None) => Ok(None),
        Err(_) => Err("it is no connection of ZooKeeper's protocol, or a frame is too long"),
    }
}
