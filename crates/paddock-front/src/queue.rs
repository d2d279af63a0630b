//! Requests of a connection that the engine has to answer.

use std::collections::VecDeque;

use crate::Limits;

/// A request that was handed to the engine.
#[derive(Debug)]
pub(crate) struct Waiting<Span> {
    /// Monotonic time at which it was handed over, in milliseconds.
    pub(crate) since_ms: u64,
    /// Present if it is traced.
    pub(crate) span: Option<Span>,
}

/// The session's queue: the engine answers its requests in this order, each once.
#[derive(Debug)]
pub(crate) struct Queue<Span> {
    waiting: VecDeque<Waiting<Span>>,
    /// Estimated size of the next reply in bytes, by those before it.
    reply_bytes_expected: usize,
}

impl<Span> Queue<Span> {
    pub(crate) fn new(limits: &Limits) -> Queue<Span> {
        Queue { waiting: VecDeque::new(), reply_bytes_expected: limits.first_reply_bytes }
    }

    pub(crate) fn push(&mut self, since_ms: u64, span: Option<Span>) {
        self.waiting.push_back(Waiting { since_ms, span });
    }

    /// Takes the oldest request, which was answered by so many bytes.
    pub(crate) fn pop(&mut self, reply_bytes: usize) -> Waiting<Span> {
        // A large reply counts at once, small ones little by little.
        let expected = self.reply_bytes_expected;
        self.reply_bytes_expected = (expected - expected / 8).max(reply_bytes).max(1);
        self.waiting.pop_front().expect("the engine answers each request once")
    }

    pub(crate) fn oldest(&self) -> Option<&Waiting<Span>> {
        self.waiting.front()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Requests that may wait at once, so that their replies have room.
    pub(crate) fn capacity(&self, limits: &Limits) -> usize {
        (limits.unsent_bytes_max / self.reply_bytes_expected).clamp(1, limits.waiting_max)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Waiting<Span>> {
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
        assert_eq!(queue.capacity(&limits), 16, "an unknown client may ask for large replies");
        for _ in 0..200 {
            queue.push(0, None);
            queue.pop(100);
        }
        assert_eq!(queue.capacity(&limits), limits.waiting_max);
        queue.push(0, None);
        queue.pop(limits.unsent_bytes_max);
        assert_eq!(queue.capacity(&limits), 1);
    }
}
