//! The memory that a connection holds, and the room that others leave it.

use super::Connection;
use super::ending::Ending;
use crate::host::Host;
use crate::long_request::LongRequest;
use crate::output::held_bytes;
use crate::{LimitHit, Limits};

/// Memory of a connection that holds more than little.
#[derive(Debug)]
pub(super) struct Holding {
    /// Bytes, as they are counted among what all connections hold.
    bytes: usize,
    /// Bytes that have moved since `still_since_ms`: those that the client was sent, and those that it has sent.
    moved_bytes: usize,
    /// Monotonic time in milliseconds at which enough had moved. Present once the connection has been looked at.
    still_since_ms: Option<u64>,
}

impl Holding {
    /// A connection that moves fewer bytes within `STILL_MAX_MS` does not move.
    const MOVED_BYTES_MIN: usize = 64 << 10;
    /// Time in milliseconds for which a connection may hold memory without moving, when little is left for others.
    const STILL_MAX_MS: u64 = 2000;

    /// Returns true if too little has moved for too long.
    fn is_still(&mut self, now_ms: u64) -> bool {
        if self.moved_bytes >= Holding::MOVED_BYTES_MIN {
            (self.moved_bytes, self.still_since_ms) = (0, None);
        }
        now_ms - *self.still_since_ms.get_or_insert(now_ms) >= Holding::STILL_MAX_MS
    }
}

impl<H: Host> Connection<H> {
    /// True if the connection may hold another request, or its reply.
    #[inline]
    pub(super) fn has_room(&self, limits: &Limits) -> bool {
        let room = Self::room(limits);
        let held = self.output.unsent_bytes() + self.queue.bytes();
        held < room
            && self.queue.len() < self.queue.capacity(room, limits)
            && (self.queue.is_empty() || !limits.counters.outstanding.is_reached())
            && self.may_hold_more(limits)
    }

    /// Bytes that the connection may hold in unsent replies and unanswered requests.
    #[inline]
    pub(super) fn room(limits: &Limits) -> usize {
        limits.counters.buffers.share().max(limits.little_bytes).min(limits.unsent_bytes_max)
    }

    /// True if others leave enough for a request and its reply. Who holds little and asks for little always may.
    #[inline]
    fn may_hold_more(&self, limits: &Limits) -> bool {
        !limits.counters.buffers.is_short() || self.may_hold_more_than_is_left(limits)
    }

    #[cold]
    fn may_hold_more_than_is_left(&self, limits: &Limits) -> bool {
        let buffers = &limits.counters.buffers;
        // What is set needs no memory any more, and a list that is being copied has had its memory from the beginning on.
        let has_its_memory = match self.long_request.as_deref() {
            Some(LongRequest::Watches(_)) => true,
            Some(LongRequest::List(copy)) => copy.list.is_begun(),
            None => false,
        };
        if has_its_memory {
            return true;
        }
        let expected = match self.long_request.as_deref() {
            Some(LongRequest::List(copy)) => copy.list.expected_bytes(),
            _ => self.queue.reply_bytes_expected(),
        };
        let own = self.holding.as_ref().map_or(0, |holding| holding.bytes);
        let has_room_for_reply = expected <= limits.little_bytes || expected <= buffers.left();
        // A request may be larger than all that is left, if it is the only one.
        has_room_for_reply && (own == 0 || buffers.held().saturating_sub(own) < buffers.max())
    }

    /// Counts the memory that the connection holds, of whose bytes this number have moved.
    #[inline]
    pub(crate) fn count_memory(&mut self, moved_bytes: usize, limits: &Limits) {
        let buffers = held_bytes(&self.input) + held_bytes(&self.unpacked) + self.output.held_bytes();
        let long_request = self.long_request.as_ref().map_or(0, |request| request.held_bytes());
        let identities = self.client().ids_bytes();
        let held = buffers + self.queue.bytes() + long_request + identities;
        if held > limits.little_bytes || self.holding.is_some() {
            self.count_held(held, moved_bytes, limits);
        }
    }

    fn count_held(&mut self, held: usize, moved_bytes: usize, limits: &Limits) {
        if held <= limits.little_bytes {
            return self.let_go_of_memory(limits);
        }
        let holding = self
            .holding
            .get_or_insert_with(|| Box::new(Holding { bytes: 0, moved_bytes: 0, still_since_ms: None }));
        holding.moved_bytes += moved_bytes;
        if held.abs_diff(holding.bytes) >= limits.little_bytes {
            limits.counters.buffers.change(holding.bytes, held);
            holding.bytes = held;
        }
    }

    /// The connection holds little, or nothing any more.
    pub(crate) fn let_go_of_memory(&mut self, limits: &Limits) {
        if let Some(holding) = self.holding.take() {
            limits.counters.buffers.change(holding.bytes, 0);
        }
    }

    /// Looks after a connection while clients hold much together: closes it if it does not move, and lets its worker look again
    /// if it was told to wait.
    pub(crate) fn look_after_memory(&mut self, now_ms: u64, limits: &Limits) {
        let is_still = self.holding.as_mut().is_some_and(|holding| holding.is_still(now_ms));
        if is_still && limits.counters.buffers.is_short() && self.ending != Ending::Silenced {
            let held_bytes = self.holding.as_ref().map_or(0, |holding| holding.bytes);
            let all = limits.counters.buffers.held();
            self.hit(LimitHit::Buffers, now_ms, &format_args!("{held_bytes} bytes of {all}"), limits);
            self.abandon();
            (self.input, self.unpacked) = (Vec::new(), Vec::new());
            if let Some(request) = &mut self.long_request {
                request.forget();
            }
            self.count_memory(0, limits);
        }
        self.has_changed |= self.is_held_back.take();
    }

    /// Bytes that may be unsent when an event comes: events cannot be held back.
    pub(super) fn event_room(limits: &Limits) -> usize {
        (2 * limits.counters.buffers.share()).max(limits.little_bytes).min(limits.event_bytes_max)
    }
}
