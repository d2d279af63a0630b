//! Letters of one guest and one host about one group, each once and in order, over links that may lose, double and reorder messages.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use paddock_proto::DecodeError;
use paddock_proto::jute::{Reader, Writer};

/// Ticks after which letters that were not acknowledged are sent again.
const RESEND_TICKS: u32 = 5;
/// Bytes of letters in a frame above which no other one is put into it.
const FRAME_BYTES: usize = 1 << 20;
/// Letters that are kept before those in front of them have come. Others are dropped, and come again.
const EARLY_MAX: u64 = 1024;

/// Name of a line: a number of the start of the guest's process, and one that this process has given it. A guest that has lost a host begins a new one; names rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineName {
    pub(crate) start: u64,
    pub(crate) number: u64,
}

/// One end of a line.
#[derive(Debug)]
pub(crate) struct Line {
    name: LineName,
    /// Letters that the other end has not acknowledged; the last one has the number `pushed`.
    kept: VecDeque<Vec<u8>>,
    pushed: u64,
    /// Number of the last letter that was sent since the last time at which all were sent again.
    sent: u64,
    /// Only the first letter may be sent: the other end has not said that it knows the line.
    is_held_back: bool,
    /// Number of the last letter that was received with all before it.
    received: u64,
    early: BTreeMap<u64, Vec<u8>>,
    owes_acknowledgement: bool,
    /// Ticks for which a letter has waited for its acknowledgement.
    waiting_ticks: u32,
}

/// Letters on their way, as they stand in a message between members.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineFrame<'a> {
    pub(crate) line: LineName,
    /// Number of the last letter that the sender has received.
    acknowledged: u64,
    /// Number of the first letter here.
    pub(crate) first: u64,
    letters: Vec<&'a [u8]>,
}

impl<'a> LineFrame<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_i64(self.line.start as i64);
        for number in [self.line.number, self.acknowledged, self.first] {
            out.put_i64(number as i64);
        }
        out.put_count(self.letters.len());
        self.letters.iter().for_each(|letter| out.put_buffer(Some(letter)));
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<LineFrame<'a>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut number = || Ok::<u64, DecodeError>(reader.i64()? as u64);
        let line = LineName { start: number()?, number: number()? };
        let (acknowledged, first) = (number()?, number()?);
        let letters = reader.list(|reader| reader.buffer()?.ok_or(DecodeError::UnexpectedNull))?;
        Ok(LineFrame { line, acknowledged, first, letters })
    }
}

impl Line {
    pub(crate) fn new(name: LineName) -> Line {
        Line {
            name,
            kept: VecDeque::new(),
            pushed: 0,
            sent: 0,
            is_held_back: false,
            received: 0,
            early: BTreeMap::new(),
            owes_acknowledgement: false,
            waiting_ticks: 0,
        }
    }

    /// A line of which only the first letter is sent until [`Line::open`]: a process that takes the place of the one at the other end must not take up the
    /// line, and begins none with a later letter.
    pub(crate) fn new_held_back(name: LineName) -> Line {
        Line { is_held_back: true, ..Line::new(name) }
    }

    /// The other end knows the line: all letters may be sent.
    pub(crate) fn open(&mut self) {
        self.is_held_back = false;
    }

    pub(crate) fn name(&self) -> LineName {
        self.name
    }

    /// Adds a letter. Returns its number; the first one is 1.
    pub(crate) fn push(&mut self, letter: Vec<u8>) -> u64 {
        self.kept.push_back(letter);
        self.pushed += 1;
        self.pushed
    }

    /// Takes a frame of this line. Returns the letters whose turn has come, with their numbers.
    pub(crate) fn receive<'f>(&mut self, frame: &LineFrame<'f>) -> Vec<(u64, Cow<'f, [u8]>)> {
        self.drop_acknowledged(frame.acknowledged);
        self.owes_acknowledgement |= !frame.letters.is_empty();
        let mut due = Vec::with_capacity(frame.letters.len());
        for (place, letter) in (0..).zip(&frame.letters) {
            let number = frame.first.saturating_add(place);
            let next = self.received + 1;
            if number == next {
                self.received = next;
                due.push((next, Cow::Borrowed(*letter)));
                while let Some(letter) = self.early.remove(&(self.received + 1)) {
                    self.received += 1;
                    due.push((self.received, Cow::Owned(letter)));
                }
            } else if number > next && number - next < EARLY_MAX {
                self.early.entry(number).or_insert_with(|| letter.to_vec());
            }
        }
        due
    }

    fn drop_acknowledged(&mut self, acknowledged: u64) {
        let first = self.pushed - self.kept.len() as u64 + 1;
        // A frame that was late acknowledges what is gone, and one that this end did not cause acknowledges what it never sent.
        let known = acknowledged.saturating_add(1).saturating_sub(first).min(self.kept.len() as u64);
        if known > 0 {
            self.kept.drain(..known as usize);
            self.waiting_ticks = 0;
        }
    }

    /// The other end is to hear of this one, whatever it has sent.
    pub(crate) fn answer(&mut self) {
        self.owes_acknowledgement = true;
    }

    /// The next frame that is to be sent, if there is one: letters that were not sent yet, or an acknowledgement.
    pub(crate) fn next_frame(&mut self) -> Option<Vec<u8>> {
        let first_kept = self.pushed - self.kept.len() as u64 + 1;
        let first = first_kept.max(self.sent + 1);
        let mut bytes = 0;
        let may_be_sent = if self.is_held_back { 2u64.saturating_sub(first) as usize } else { usize::MAX };
        let unsent = self.kept.iter().skip((first - first_kept) as usize).take(may_be_sent);
        let letters: Vec<&[u8]> = unsent
            .take_while(|letter| {
                let is_first = bytes == 0;
                bytes += letter.len();
                is_first || bytes <= FRAME_BYTES
            })
            .map(Vec::as_slice)
            .collect();
        if letters.is_empty() && !self.owes_acknowledgement {
            return None;
        }
        self.owes_acknowledgement = false;
        self.sent = first - 1 + letters.len() as u64;
        let frame = LineFrame { line: self.name, acknowledged: self.received, first, letters };
        let mut out = Vec::with_capacity(bytes + 64);
        frame.encode(&mut out);
        Some(out)
    }

    /// A tick has passed.
    pub(crate) fn tick(&mut self) {
        if self.kept.is_empty() {
            self.waiting_ticks = 0;
            return;
        }
        self.waiting_ticks = self.waiting_ticks.saturating_add(1);
        if self.waiting_ticks.is_multiple_of(RESEND_TICKS) {
            self.sent = self.pushed - self.kept.len() as u64;
        }
    }

    /// Ticks for which the other end has acknowledged nothing of what it was sent.
    pub(crate) fn silent_ticks(&self) -> u32 {
        self.waiting_ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: LineName = LineName { start: 7, number: 1 };

    fn letters(line: &mut Line, frame: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let due = line.receive(&LineFrame::decode(frame).unwrap());
        due.into_iter().map(|(number, letter)| (number, letter.into_owned())).collect()
    }

    #[test]
    fn letters_come_once_and_in_order_though_frames_are_lost_doubled_and_late() {
        let (mut from, mut to) = (Line::new(NAME), Line::new(NAME));
        assert_eq!(from.push(b"a".to_vec()), 1);
        let first = from.next_frame().unwrap();
        assert!(from.next_frame().is_none());
        from.push(b"b".to_vec());
        let second = from.next_frame().unwrap();
        assert_eq!(letters(&mut to, &second), [], "the first one is missing");
        let both = [(1, b"a".to_vec()), (2, b"b".to_vec())];
        assert_eq!(letters(&mut to, &first), both);
        assert_eq!((letters(&mut to, &first), letters(&mut to, &second)), (vec![], vec![]));
        // The acknowledgement is lost, and all come again.
        to.next_frame().unwrap();
        (0..RESEND_TICKS).for_each(|_| from.tick());
        assert_eq!(from.silent_ticks(), RESEND_TICKS);
        let again = from.next_frame().unwrap();
        assert_eq!(letters(&mut to, &again), []);
        let acknowledged = to.next_frame().unwrap();
        assert!(to.next_frame().is_none());
        assert_eq!(letters(&mut from, &acknowledged), []);
        (0..RESEND_TICKS).for_each(|_| from.tick());
        assert_eq!((from.next_frame(), from.silent_ticks()), (None, 0));
    }

    #[test]
    fn a_line_that_is_held_back_sends_its_first_letter_alone() {
        let mut line = Line::new_held_back(NAME);
        for letter in ["a", "b", "c"] {
            line.push(letter.as_bytes().to_vec());
        }
        let frame = line.next_frame().unwrap();
        assert_eq!(LineFrame::decode(&frame).unwrap().letters, [b"a"]);
        (0..RESEND_TICKS).for_each(|_| line.tick());
        assert_eq!((line.next_frame(), line.next_frame()), (Some(frame), None));
        line.open();
        let rest = line.next_frame().unwrap();
        let rest = LineFrame::decode(&rest).unwrap();
        assert_eq!((rest.first, rest.letters), (2, vec![&b"b"[..], b"c"]));
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_drops_no_more_than_there_is() {
        let mut line = Line::new(NAME);
        line.push(b"a".to_vec());
        let frame = LineFrame { line: NAME, acknowledged: u64::MAX, first: u64::MAX, letters: vec![b"x"] };
        assert_eq!(line.receive(&frame), []);
        assert_eq!(line.push(b"b".to_vec()), 2);
    }

    #[test]
    fn a_frame_has_many_letters_or_a_large_one() {
        let mut line = Line::new(NAME);
        for bytes in [10, FRAME_BYTES, 20, 30] {
            line.push(vec![0; bytes]);
        }
        let mut counts = Vec::new();
        while let Some(frame) = line.next_frame() {
            counts.push(LineFrame::decode(&frame).unwrap().letters.len());
        }
        assert_eq!(counts, [1, 1, 2]);
        assert!(LineFrame::decode(&[0; 11]).is_err());
    }
}
