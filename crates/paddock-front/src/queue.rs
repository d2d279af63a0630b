//! Requests of a connection that the engine has to answer.

mod paths;

use std::collections::VecDeque;

use paddock_state::Slot;

use crate::Limits;
use crate::audit::AuditedWrite;
use paths::Paths;

/// A request that was handed to the engine.
#[derive(Debug)]
pub(crate) struct Waiting<Span> {
    /// Monotonic time at which it was handed over, in microseconds.
    pub(crate) since_us: u64,
    /// Its size.
    bytes: u32,
    /// Code of its operation.
    pub(crate) op: i32,
    /// The request is a long multi.
    is_long: bool,
    /// Bytes of its path.
    path_bytes: u16,
    /// Present if it is traced.
    pub(crate) span: Option<Span>,
    /// Present if it is a write and there is an audit log.
    pub(crate) audited: Option<Box<AuditedWrite>>,
    /// Its reply, if that has come before the reply to an earlier request.
    early_reply: Option<Box<[u8]>>,
}

/// The session's queue: the engine answers each of its requests once, and the client sees the replies in this order.
#[derive(Debug)]
pub(crate) struct Queue<Span> {
    waiting: VecDeque<Waiting<Span>>,
    /// Paths that these requests are about, which may be cut off; empty where there is none.
    paths: Paths,
    /// Place of the oldest one, or of the next if there is none.
    first: Slot,
    /// Size of these requests, and of replies that came early, together, in bytes.
    bytes: usize,
    /// Size of the long multis among them, in bytes.
    long_bytes: usize,
    /// Estimated size of the next reply in bytes, by those before it.
    reply_bytes_expected: u32,
}

impl<Span> Queue<Span> {
    pub(crate) fn new(limits: &Limits) -> Queue<Span> {
        Queue {
            waiting: VecDeque::new(),
            paths: Paths::default(),
            first: Slot::default(),
            bytes: 0,
            long_bytes: 0,
            reply_bytes_expected: u32::try_from(limits.first_reply_bytes).unwrap_or(u32::MAX),
        }
    }

    /// Place of the request that is added next.
    #[inline]
    fn next_slot(&self) -> Slot {
        Slot(self.first.0.wrapping_add(self.waiting.len() as u32))
    }

    /// Adds a request of an operation and its bytes, about a path, which may be a long multi. Returns its place.
    pub(crate) fn push(
        &mut self,
        since_us: u64,
        (op, bytes, is_long): (i32, usize, bool),
        path: &[u8],
        span: Option<Span>,
        audited: Option<Box<AuditedWrite>>,
    ) -> Slot {
        let slot = self.next_slot();
        self.bytes += bytes;
        if is_long {
            self.long_bytes += bytes;
        }
        self.paths.push(path);
        let (bytes, path_bytes) = (bytes as u32, path.len() as u16);
        self.waiting.push_back(Waiting {
            since_us,
            bytes,
            op,
            is_long,
            path_bytes,
            span,
            audited,
            early_reply: None,
        });
        slot
    }

    /// Nothing waits any more: little memory is kept for later.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.paths.rest();
    }

    /// True if the request at this place is the oldest one.
    #[inline]
    pub(crate) fn is_first(&self, slot: Slot) -> bool {
        slot == self.first
    }

    /// Number of requests that the engine has not answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.early_reply.is_none()).count()
    }

    /// Keeps a reply until all earlier requests have been answered.
    pub(crate) fn keep_early(&mut self, slot: Slot, reply: &[u8]) {
        let waiting = self.waiting.get_mut(slot.behind(self.first)).expect("the request waits");
        assert!(waiting.early_reply.is_none(), "the engine answers each request once");
        waiting.early_reply = Some(reply.into());
        self.bytes += reply.len();
    }

    /// The reply to the oldest request, if it came early.
    #[inline]
    pub(crate) fn take_early(&mut self) -> Option<Box<[u8]>> {
        let reply = self.waiting.front_mut()?.early_reply.take()?;
        self.bytes -= reply.len();
        Some(reply)
    }

    /// Takes the oldest request, which was answered by `reply_bytes` bytes, with its path.
    pub(crate) fn pop(&mut self, reply_bytes: usize) -> (Waiting<Span>, &[u8]) {
        self.note_reply(reply_bytes);
        let waiting = self.waiting.pop_front().expect("the engine answers each request once");
        self.first = self.first.next();
        self.bytes -= waiting.bytes as usize;
        if waiting.is_long {
            self.long_bytes -= waiting.bytes as usize;
        }
        let path_bytes = usize::from(waiting.path_bytes);
        (waiting, self.paths.pop(path_bytes))
    }

    /// Goes by a reply of its bytes, by the front or the engine, for what to expect of the next one.
    #[inline]
    pub(crate) fn note_reply(&mut self, bytes: usize) {
        // A large reply counts at once, small ones little by little.
        let expected = self.reply_bytes_expected;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.reply_bytes_expected = (expected - expected / 8).max(bytes).max(1);
    }

    #[inline]
    pub(crate) fn oldest(&self) -> Option<&Waiting<Span>> {
        self.waiting.front()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Size of the requests together, in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Size of the long multis among the requests, in bytes.
    #[inline]
    pub(crate) fn long_bytes(&self) -> usize {
        self.long_bytes
    }

    #[inline]
    pub(crate) fn reply_bytes_expected(&self) -> usize {
        self.reply_bytes_expected as usize
    }

    /// Requests that may wait at once, so that their replies have room in `room` bytes.
    #[inline]
    pub(crate) fn capacity(&self, room: usize, limits: &Limits) -> usize {
        (room / self.reply_bytes_expected()).clamp(1, limits.waiting_max)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Waiting<Span>> {
        (self.bytes, self.long_bytes) = (0, 0);
        self.first = self.next_slot();
        self.paths.clear();
        self.waiting.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_replies_leave_room_for_few_requests() {
        let limits = Limits::default();
        let mut queue: Queue<()> = Queue::new(&limits);
        assert_eq!(
            queue.capacity(limits.unsent_bytes_max, &limits),
            16,
            "an unknown client may ask for large replies"
        );
        for _ in 0..200 {
            queue.push(0, (1, 50, false), b"/a", None, None);
            assert_eq!(queue.bytes(), 50);
            assert_eq!(queue.pop(100).1, b"/a");
        }
        assert_eq!(queue.capacity(limits.unsent_bytes_max, &limits), limits.waiting_max);
        queue.push(0, (1, 50, false), b"", None, None);
        queue.pop(limits.unsent_bytes_max);
        assert_eq!(queue.capacity(limits.unsent_bytes_max, &limits), 1);
    }

    #[test]
    fn a_request_that_was_answered_early_is_not_unanswered() {
        let mut queue: Queue<()> = Queue::new(&Limits::default());
        let slots = [1, 2, 3].map(|op| queue.push(0, (op, 50, false), b"/a", None, None));
        queue.keep_early(slots[1], b"early");
        assert_eq!((queue.unanswered(), queue.len()), (2, 3));
        queue.pop(100);
        assert_eq!((queue.unanswered(), queue.take_early().as_deref()), (1, Some(&b"early"[..])));
    }
}
