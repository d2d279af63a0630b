//! Bytes on their way to a client.

mod large_buffers;
mod pieces;

use std::sync::Arc;

use paddock_proto::blocks;

pub(crate) use large_buffers::LargeBuffers;
use pieces::{Piece, Pieces};

/// A buffer that grew beyond this is let go when it is empty, in bytes.
pub(crate) const BUFFER_BYTES_KEPT: usize = 16 << 10;

/// Replies and events of a connection that the client has not been sent yet, in the order in which it must see them.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    ahead: Ahead,
    /// Bytes that were sent of what is sent next.
    sent: usize,
}

/// Bytes that are sent before those of the buffer.
#[derive(Debug, Default)]
enum Ahead {
    #[default]
    Nothing,
    /// Compressed blocks of what was in the buffer, where the client wants them.
    Packed(Vec<u8>),
    /// Events that other connections have, too, and what stands between them.
    Pieces(Box<Pieces>),
}

impl Ahead {
    fn packed(&mut self) -> &mut Vec<u8> {
        if !matches!(self, Ahead::Packed(_)) {
            assert!(
                matches!(self, Ahead::Nothing),
                "events are not shared with a client that wants them compressed"
            );
            *self = Ahead::Packed(Vec::new());
        }
        match self {
            Ahead::Packed(packed) => packed,
            Ahead::Nothing | Ahead::Pieces(_) => unreachable!("it is packed since the lines above"),
        }
    }
}

impl Output {
    /// Bytes that are not sent yet. Those that are still to be compressed count as they are.
    #[inline]
    pub(crate) fn unsent_bytes(&self) -> usize {
        let ahead = match &self.ahead {
            Ahead::Nothing => 0,
            Ahead::Packed(packed) => packed.len(),
            Ahead::Pieces(pieces) => pieces.len(),
        };
        self.bytes.len() + ahead - self.sent
    }

    /// Bytes of memory that it takes, beside buffers that are kept.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        let ahead = match &self.ahead {
            Ahead::Nothing => 0,
            Ahead::Packed(packed) => held_bytes(packed),
            Ahead::Pieces(pieces) => pieces.held_bytes(),
        };
        held_bytes(&self.bytes) + ahead
    }

    /// Gets a large buffer for the replies of many requests, if nothing is on its way and one is kept. Returns true if it did.
    #[inline]
    pub(crate) fn borrow(&mut self, buffers: &mut LargeBuffers) -> bool {
        matches!(self.ahead, Ahead::Nothing) && self.bytes.is_empty() && buffers.lend(&mut self.bytes)
    }

    /// Gives the large buffer back if a small one is enough.
    #[inline]
    pub(crate) fn give_back_unused(&mut self, buffers: &mut LargeBuffers) {
        if self.sent == 0 {
            buffers.take_back(&mut self.bytes);
        }
    }

    /// The first packet of a connection is never compressed, whatever the client has asked for in its greeting.
    #[inline]
    pub(crate) fn greeting(&mut self, is_compressed: bool) -> &mut Vec<u8> {
        if is_compressed { self.ahead.packed() } else { &mut self.bytes }
    }

    /// Appends bytes that other connections have, too. The client does not want them compressed.
    pub(crate) fn share(&mut self, shared: Arc<[u8]>) {
        self.push(Piece::Shared(shared));
    }

    /// Appends names of a list that others may have, too. The client does not want them compressed.
    pub(crate) fn share_names(&mut self, names: Arc<Vec<u8>>) {
        self.push(Piece::Names(names));
    }

    fn push(&mut self, piece: Piece) {
        let own = std::mem::take(&mut self.bytes);
        if let Ahead::Nothing = self.ahead {
            self.ahead = Ahead::Pieces(Box::new(Pieces::behind(own)));
        } else if !own.is_empty() {
            self.pieces().push(Piece::Own(own));
        }
        self.pieces().push(piece);
    }

    fn pieces(&mut self) -> &mut Pieces {
        match &mut self.ahead {
            Ahead::Pieces(pieces) => pieces,
            Ahead::Nothing | Ahead::Packed(_) => panic!("events are shared uncompressed, and behind others"),
        }
    }

    /// The bytes to send next.
    #[inline]
    pub(crate) fn unsent(&mut self, is_compressed: bool) -> &[u8] {
        if is_compressed {
            blocks::pack(&self.bytes, self.ahead.packed());
            clear(&mut self.bytes);
        }
        let sending = match &mut self.ahead {
            Ahead::Nothing => &self.bytes,
            Ahead::Packed(packed) => packed,
            Ahead::Pieces(pieces) => pieces.ready(),
        };
        &sending[self.sent..]
    }

    /// The client was sent `bytes` of these. A large buffer that is empty then goes to those that are kept.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize, buffers: &mut LargeBuffers) {
        self.sent += bytes;
        let sending = match &mut self.ahead {
            Ahead::Nothing => &mut self.bytes,
            Ahead::Packed(packed) => packed,
            Ahead::Pieces(_) => return self.advance_pieces(buffers),
        };
        assert!(self.sent <= sending.len(), "more was sent than there is");
        if self.sent == sending.len() {
            sending.clear();
            buffers.take_back(sending);
            self.sent = 0;
        }
    }

    fn advance_pieces(&mut self, buffers: &mut LargeBuffers) {
        let sent = self.sent;
        let pieces = self.pieces();
        assert!(sent <= pieces.run_len(), "more was sent than there is");
        if sent == pieces.run_len() {
            let is_over = pieces.end_run();
            self.sent = 0;
            if is_over && let Ahead::Pieces(pieces) = std::mem::take(&mut self.ahead) {
                let mut run = pieces.into_run();
                buffers.take_back(&mut run);
                if self.bytes.capacity() == 0 {
                    self.bytes = run;
                }
            }
        }
    }

    /// Drops what is not sent.
    pub(crate) fn drop_all(&mut self) {
        *self = Output::default();
    }
}

/// The long event that was shared last, of one box of mail.
#[derive(Debug, Default)]
pub(crate) struct SharedEvent(Option<(Place, Arc<[u8]>)>);

/// Address and length of bytes in the box.
type Place = (*const u8, usize);

impl SharedEvent {
    /// The event at this place of the box, copied once for all that are told of it one after the other.
    pub(crate) fn of(&mut self, event: &[u8]) -> Arc<[u8]> {
        let place = (event.as_ptr(), event.len());
        match &self.0 {
            Some((last, bytes)) if *last == place => Arc::clone(bytes),
            _ => {
                let bytes: Arc<[u8]> = event.into();
                self.0 = Some((place, Arc::clone(&bytes)));
                bytes
            }
        }
    }
}

/// Bytes of memory that a buffer takes, beside what it keeps when it is empty.
#[inline]
pub(crate) fn held_bytes(buffer: &Vec<u8>) -> usize {
    if buffer.capacity() <= BUFFER_BYTES_KEPT { buffer.len() } else { buffer.capacity() }
}

/// Empties a buffer that may have become large. One that has is given back, not made smaller: glibc maps a large one into memory by itself until
/// one was given back, and shrinking and growing such a one again and again costs a fault for each of its pages.
#[inline]
pub(crate) fn clear(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_BYTES_KEPT {
        *buffer = Vec::with_capacity(BUFFER_BYTES_KEPT);
    } else {
        buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all in steps of `step` bytes at most.
    fn sent(output: &mut Output, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let unsent = output.unsent(false);
            if unsent.is_empty() {
                return all;
            }
            let piece = &unsent[..unsent.len().min(step)];
            all.extend_from_slice(piece);
            let bytes = piece.len();
            output.advance(bytes, &mut LargeBuffers::default());
        }
    }

    /// Replies and shared events in turns, and what the client is to see of them.
    fn filled() -> (Output, Vec<u8>) {
        let (mut output, mut expected) = (Output::default(), Vec::new());
        for number in 0..100u8 {
            let event: Arc<[u8]> = vec![number; 1000].into();
            expected.extend_from_slice(&event);
            output.share(event);
            if number % 7 == 0 {
                output.bytes.extend_from_slice(b"reply");
                expected.extend_from_slice(b"reply");
            }
        }
        (output, expected)
    }

    #[test]
    fn shared_events_and_replies_leave_in_their_order() {
        for step in [1, 999, 1000, 70_000, usize::MAX] {
            let (mut output, expected) = filled();
            assert_eq!(output.unsent_bytes(), expected.len());
            assert!(sent(&mut output, step) == expected, "in steps of {step}");
            assert_eq!((output.unsent_bytes(), output.held_bytes()), (0, 0));
            assert!(matches!(output.ahead, Ahead::Nothing));
        }
    }

    #[test]
    fn an_event_comes_behind_what_is_partly_sent() {
        let mut output = Output { bytes: b"reply".to_vec(), ..Output::default() };
        assert_eq!(output.unsent(false), b"reply");
        output.advance(2, &mut LargeBuffers::default());
        output.share(Arc::from(&b"event"[..]));
        output.bytes.extend_from_slice(b"last");
        assert_eq!(output.unsent_bytes(), 3 + 5 + 4);
        assert_eq!(sent(&mut output, 4), b"plyeventlast");
    }

    #[test]
    fn what_a_client_does_not_read_is_not_copied() {
        let (mut output, event) = (Output::default(), Arc::<[u8]>::from(vec![7; 1000]));
        for _ in 0..1000 {
            output.share(Arc::clone(&event));
            output.unsent(false);
        }
        let Ahead::Pieces(pieces) = &output.ahead else { panic!("events are shared") };
        assert!(pieces.run_len() < 70_000, "{} bytes were copied", pieces.run_len());
        assert_eq!(output.unsent_bytes(), 1_000_000);
    }
}
