//! Messages that one link has to send. Senders add to them; the links' thread takes them, unless a sender could write at once.

use std::io;
use std::time::{Duration, Instant};

use super::chunks::Chunks;
use super::frame::{FramePosition, HEADER_BYTES};
use super::settings::MESSAGE_BYTES_MAX;
use super::stream::Stream;

/// Bytes that may wait. A single message may be larger.
pub(super) const QUEUE_BYTES_MAX: usize = 64 << 20;
/// More bytes are left to the thread: the sender would spend its time on copying it into the socket.
const WRITTEN_BY_SENDER_MAX: usize = 64 << 10;
/// Messages that follow each other faster are a burst, which one write of the thread carries better than many of the
/// sender.
const BURST: Duration = Duration::from_micros(20);

#[derive(Debug)]
pub(super) struct Outbox {
    place: FramePosition,
    waiting: Chunks,
    /// Bytes of frames that the socket has not taken, be they in `waiting` or with the thread.
    bytes: usize,
    /// The thread is writing, or has been called to: senders only add.
    with_thread: bool,
    is_closed: bool,
    pushed_at: Instant,
}

impl Outbox {
    pub(super) fn new(place: FramePosition) -> Outbox {
        let now = Instant::now();
        Outbox {
            place,
            waiting: Chunks::default(),
            bytes: 0,
            with_thread: false,
            is_closed: false,
            pushed_at: now,
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes no more, and forgets what waits.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.waiting = Chunks::default();
    }

    /// True if a message may be pushed. Where it may not, it may later, unless it is larger than `MESSAGE_BYTES_MAX`.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let fits = self.bytes == 0 || self.bytes + HEADER_BYTES + bytes <= QUEUE_BYTES_MAX;
        !self.is_closed && fits && bytes <= MESSAGE_BYTES_MAX
    }

    /// Adds a message, behind which [`Outbox::end_push`] is to be called.
    pub(super) fn push(&mut self, message: Vec<u8>) {
        self.add(message);
    }

    /// Writes what was pushed if nothing else is being written. True if the thread has to be woken for it.
    pub(super) fn end_push(&mut self, stream: &Stream) -> bool {
        let pushed_before = std::mem::replace(&mut self.pushed_at, Instant::now());
        let is_burst = self.pushed_at.duration_since(pushed_before) < BURST;
        if self.with_thread {
            return false;
        }
        // Nothing waits but what has just been pushed.
        if self.bytes <= WRITTEN_BY_SENDER_MAX && !is_burst {
            self.write_at_once(stream);
        }
        self.with_thread = !self.waiting.is_empty();
        self.with_thread
    }

    /// Adds a heartbeat if nothing was sent for `quiet`. Returns the time at which that is to be looked at again.
    pub(super) fn keep_alive(&mut self, quiet: Duration) -> Instant {
        if self.bytes == 0 && self.pushed_at.elapsed() >= quiet {
            self.pushed_at = Instant::now();
            self.add(Vec::new());
        }
        // What the socket does not take is looked at now and then.
        (self.pushed_at + quiet).max(Instant::now() + quiet / 4)
    }

    fn add(&mut self, payload: Vec<u8>) {
        let header = self.place.header(&payload);
        self.bytes += header.len() + payload.len();
        self.waiting.push(header, payload);
    }

    fn write_at_once(&mut self, stream: &Stream) {
        match self.waiting.write_to(stream) {
            Ok(written) => self.bytes -= written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The thread meets the same error when it writes what is left, and ends the link.
            Err(_) => {}
        }
    }

    /// Gives the thread what waits, in exchange for `written_out`, which is empty. False if nothing waits: then senders
    /// write again.
    pub(super) fn hand_over(&mut self, written_out: &mut Chunks) -> bool {
        assert!(written_out.is_empty(), "chunks that were not written");
        std::mem::swap(&mut self.waiting, written_out);
        self.with_thread = !written_out.is_empty();
        self.with_thread
    }

    /// The thread has written `bytes` of it.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_may_be_sent_has_room_when_nothing_waits() {
        let mut outbox = Outbox::new(FramePosition::first(7));
        for bytes in [1, QUEUE_BYTES_MAX, QUEUE_BYTES_MAX + 1, MESSAGE_BYTES_MAX] {
            assert!(outbox.has_room(bytes), "{bytes} bytes");
        }
        assert!(!outbox.has_room(MESSAGE_BYTES_MAX + 1));
        outbox.add(vec![0]);
        assert!(outbox.has_room(1) && !outbox.has_room(QUEUE_BYTES_MAX));
        outbox.sent(HEADER_BYTES + 1);
        assert!(outbox.has_room(QUEUE_BYTES_MAX + 1), "it has its turn when the others are gone");
    }
}
