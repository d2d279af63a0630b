//! Messages on a link: frames with checksums that depend on their place.
//!
//! Little-endian:
//! ```text
//!  0 u32 length        of the payload; 0 is a heartbeat
//!  4 u32 header crc    of the length, started from the frame's place
//!  8 u32 payload crc   of the payload, started from the header crc
//! 12     payload
//! ```
//! Checksums are CRC-32C. A frame's place is its number in one direction of one connection, so that a frame that was
//! flipped, lost, repeated, or that belongs to another connection, is an error. The header has a checksum of its own:
//! a flipped length would otherwise wait for bytes that never come.

use crc32c::crc32c_append;

use super::settings::MESSAGE_BYTES_MAX;

pub(super) const HEADER_BYTES: usize = 12;
/// Bytes that a length reserves before any byte of the message is there.
const RESERVE_BYTES: usize = 64 << 10;

/// Reasons for which a stream of frames cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("the header of frame {number} is damaged or out of place")]
    Header { number: u64 },
    #[error("the payload of frame {number} is damaged")]
    Payload { number: u64 },
    #[error("frame {number} has {length} bytes, more than a message may have")]
    Length { number: u64, length: u32 },
}

/// Position of the next frame in one direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct FramePosition {
    /// Key of the connection and the direction.
    key: u32,
    number: u64,
}

impl FramePosition {
    pub(super) fn first(key: u32) -> FramePosition {
        FramePosition { key, number: 0 }
    }

    fn checksum(self) -> u32 {
        crc32c_append(self.key, &self.number.to_le_bytes())
    }

    /// The header of the next frame.
    pub(super) fn header(&mut self, payload: &[u8]) -> [u8; HEADER_BYTES] {
        assert!(payload.len() <= MESSAGE_BYTES_MAX, "a message of {} bytes", payload.len());
        let length = (payload.len() as u32).to_le_bytes();
        let header_crc = crc32c_append(self.checksum(), &length);
        let payload_crc = crc32c_append(header_crc, payload);
        self.number += 1;
        let mut header = [0; HEADER_BYTES];
        header[0..4].copy_from_slice(&length);
        header[4..8].copy_from_slice(&header_crc.to_le_bytes());
        header[8..12].copy_from_slice(&payload_crc.to_le_bytes());
        header
    }
}

/// Takes the bytes of one direction as they come and gives messages. After an error it is of no further use.
#[derive(Debug)]
pub(super) struct Decoder {
    place: FramePosition,
    header: Vec<u8>,
    /// Once the header is complete.
    payload: Option<Payload>,
}

#[derive(Debug)]
struct Payload {
    length: usize,
    header_crc: u32,
    expected_crc: u32,
    bytes: Vec<u8>,
}

impl Decoder {
    pub(super) fn new(place: FramePosition) -> Decoder {
        Decoder { place, header: Vec::with_capacity(HEADER_BYTES), payload: None }
    }

    /// Heartbeats are not delivered.
    pub(super) fn feed(
        &mut self,
        mut input: &[u8],
        mut deliver: impl FnMut(Vec<u8>),
    ) -> Result<(), FrameError> {
        loop {
            let mut payload = match self.payload.take() {
                Some(payload) => payload,
                None => {
                    move_bytes(&mut input, &mut self.header, HEADER_BYTES);
                    if self.header.len() < HEADER_BYTES {
                        return Ok(());
                    }
                    self.open()?
                }
            };
            payload.fill(&mut input);
            if payload.bytes.len() < payload.length {
                self.payload = Some(payload);
                return Ok(());
            }
            let message = self.close(payload)?;
            if !message.is_empty() {
                deliver(message);
            }
        }
    }

    /// Checks a complete header.
    fn open(&mut self) -> Result<Payload, FrameError> {
        let word = |at: usize| u32::from_le_bytes(self.header[at..at + 4].try_into().expect("four bytes"));
        let (length, header_crc, expected_crc) = (word(0), word(4), word(8));
        let number = self.place.number;
        if header_crc != crc32c_append(self.place.checksum(), &length.to_le_bytes()) {
            return Err(FrameError::Header { number });
        }
        if length as usize > MESSAGE_BYTES_MAX {
            return Err(FrameError::Length { number, length });
        }
        self.header.clear();
        Ok(Payload { length: length as usize, header_crc, expected_crc, bytes: Vec::new() })
    }

    /// Checks a complete payload.
    fn close(&mut self, payload: Payload) -> Result<Vec<u8>, FrameError> {
        let number = self.place.number;
        if payload.expected_crc != crc32c_append(payload.header_crc, &payload.bytes) {
            return Err(FrameError::Payload { number });
        }
        self.place.number += 1;
        Ok(payload.bytes)
    }
}

impl Payload {
    fn fill(&mut self, input: &mut &[u8]) {
        let missing = self.length - self.bytes.len();
        let spare = self.bytes.capacity() - self.bytes.len();
        if input.len().min(missing) > spare {
            // Grows with what has come, and never beyond what is announced.
            let wanted = self.bytes.len().max(input.len()).max(RESERVE_BYTES);
            self.bytes.reserve_exact(wanted.min(missing));
        }
        move_bytes(input, &mut self.bytes, self.length);
    }
}

/// Moves bytes from the front of `input` to the end of `to`, until that has `length` of them.
fn move_bytes(input: &mut &[u8], to: &mut Vec<u8>, length: usize) {
    let (taken, rest) = input.split_at(input.len().min(length - to.len()));
    to.extend_from_slice(taken);
    *input = rest;
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u32 = 0x5EED;

    fn frames(messages: &[&[u8]]) -> Vec<u8> {
        let mut place = FramePosition::first(KEY);
        messages.iter().flat_map(|message| [&place.header(message)[..], message].concat()).collect()
    }

    /// Feeds `stream` in pieces of `piece` bytes.
    fn decode(stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, Result<(), FrameError>) {
        let mut messages = Vec::new();
        let mut decoder = Decoder::new(FramePosition::first(KEY));
        let end =
            stream.chunks(piece).try_for_each(|input| decoder.feed(input, |message| messages.push(message)));
        (messages, end)
    }

    fn check(stream: &[u8], expected: &[&[u8]], expected_end: Result<(), FrameError>) {
        for piece in [1, 2, 11, 12, 13, stream.len()] {
            let (messages, end) = decode(stream, piece);
            assert_eq!(messages, expected, "in pieces of {piece}");
            assert_eq!(end, expected_end, "in pieces of {piece}");
        }
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        check(&frames(&[b"one", b"two", &[7; 100]]), &[b"one", b"two", &[7; 100]], Ok(()));
    }

    #[test]
    fn heartbeats_are_numbered_and_not_delivered() {
        check(&frames(&[b"", b"one", b"", b"", b"two"]), &[b"one", b"two"], Ok(()));
    }

    #[test]
    fn a_lost_or_repeated_frame_is_noticed() {
        let stream = frames(&[b"one", b"two", b"six"]);
        let frame = stream.len() / 3;
        check(&stream[frame..], &[], Err(FrameError::Header { number: 0 }));
        check(
            &[&stream[..frame], &stream[2 * frame..]].concat(),
            &[b"one"],
            Err(FrameError::Header { number: 1 }),
        );
        check(&[&stream[..frame], &stream].concat(), &[b"one"], Err(FrameError::Header { number: 1 }));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let stream = frames(&[b"one", b"", b"two"]);
        for bit in 0..stream.len() * 8 {
            let mut flipped = stream.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (messages, end) = decode(&flipped, 5);
            assert!(end.is_err(), "bit {bit}");
            assert!(messages.len() <= 1 && messages.iter().all(|m| m == b"one"), "bit {bit}");
        }
    }

    #[test]
    fn another_connections_frames_are_noticed() {
        let mut place = FramePosition::first(KEY + 1);
        check(&[&place.header(b"one")[..], b"one"].concat(), &[], Err(FrameError::Header { number: 0 }));
    }

    #[test]
    fn a_length_beyond_the_maximum_is_refused() {
        let length = MESSAGE_BYTES_MAX as u32 + 1;
        let crc = crc32c_append(FramePosition::first(KEY).checksum(), &length.to_le_bytes());
        let header = [length.to_le_bytes(), crc.to_le_bytes(), [0; 4]].concat();
        check(&header, &[], Err(FrameError::Length { number: 0, length }));
    }

    #[test]
    fn a_length_reserves_little_before_its_bytes_come() {
        let mut decoder = Decoder::new(FramePosition::first(KEY));
        let message = vec![1; 16 << 20];
        decoder.feed(&FramePosition::first(KEY).header(&message), |_| ()).unwrap();
        decoder.feed(&message[..1000], |_| ()).unwrap();
        assert!(decoder.payload.as_ref().unwrap().bytes.capacity() <= RESERVE_BYTES);
        let mut arrived = Vec::new();
        decoder.feed(&message[1000..], |message| arrived = message).unwrap();
        assert!(arrived == message);
        assert_eq!(arrived.capacity(), message.len());
    }

    #[test]
    fn random_bytes_are_never_a_message() {
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..20_000 {
            let mut bytes = vec![0; random.usize(HEADER_BYTES..200)];
            random.fill(&mut bytes);
            let (messages, end) = decode(&bytes, random.usize(1..64));
            assert!(messages.is_empty());
            assert_eq!(end, Err(FrameError::Header { number: 0 }));
        }
    }

    #[test]
    fn random_damage_never_makes_a_message_that_was_not_sent() {
        let mut random = fastrand::Rng::with_seed(5);
        let sent: Vec<Vec<u8>> = (0..20_u8).map(|n| vec![n; usize::from(n) * 5]).collect();
        let stream = frames(&sent.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let whole: Vec<Vec<u8>> = sent.into_iter().filter(|message| !message.is_empty()).collect();
        for _ in 0..20_000 {
            let mut damaged = stream.clone();
            let (from, to) = (random.usize(..stream.len()), random.usize(..stream.len()));
            match random.u8(..4) {
                0 => damaged[from] ^= random.u8(1..),
                1 => drop(damaged.drain(from.min(to)..from.max(to))),
                2 => damaged.insert(from, random.u8(..)),
                _ => damaged.extend_from_within(from.min(to)..from.max(to)),
            }
            let (messages, _) = decode(&damaged, random.usize(1..100));
            assert!(whole.starts_with(&messages));
        }
    }
}
