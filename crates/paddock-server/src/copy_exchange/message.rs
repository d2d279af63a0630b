//! Messages about copies of groups, as bytes.

use paddock_member::GroupCut;
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, Zxid};

const QUESTION: u8 = 1;
const WORKING: u8 = 2;
const PIECE: u8 = 3;
const PASSED: u8 = 4;
const FAILED: u8 = 5;

/// A message between two members about a copy that one of them makes for the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyMessage {
    Question(PieceQuestion),
    Answer { copy: u64, answer: CopyAnswer },
}

/// A piece of a copy is wanted, from this offset on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceQuestion {
    /// Number that the asker has given the copy.
    pub(crate) copy: u64,
    pub(crate) cut: GroupCut,
    pub(crate) offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyAnswer {
    /// The copy is not ready.
    Working,
    Piece {
        offset: u64,
        is_last: bool,
        bytes: Vec<u8>,
    },
    /// A snapshot with this zxid is behind the point: there may be a copy of a later one.
    Passed {
        at: Zxid,
    },
    Failed {
        reason: String,
    },
}

impl CopyMessage {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            CopyMessage::Question(PieceQuestion { copy, cut, offset }) => {
                out.push(QUESTION);
                out.put_i64(*copy as i64);
                out.put_i32(cut.group as i32);
                [cut.stamp.0, cut.last_item as i64, *offset as i64]
                    .iter()
                    .for_each(|value| out.put_i64(*value));
            }
            CopyMessage::Answer { copy, answer } => {
                out.push(answer.kind());
                out.put_i64(*copy as i64);
                match answer {
                    CopyAnswer::Working => {}
                    CopyAnswer::Piece { offset, is_last, bytes } => {
                        out.put_i64(*offset as i64);
                        out.put_bool(*is_last);
                        out.extend_from_slice(bytes);
                    }
                    CopyAnswer::Passed { at } => out.put_i64(at.0),
                    CopyAnswer::Failed { reason } => out.put_string(reason),
                }
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<CopyMessage, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (kind, copy) = (reader.u8()?, reader.i64()? as u64);
        let answer = match kind {
            QUESTION => {
                let (group, stamp, last_item) =
                    (reader.i32()? as u32, Zxid(reader.i64()?), reader.i64()? as u64);
                let (cut, offset) = (GroupCut { group, stamp, last_item }, reader.i64()? as u64);
                return Ok(CopyMessage::Question(PieceQuestion { copy, cut, offset }));
            }
            WORKING => CopyAnswer::Working,
            PIECE => {
                let (offset, is_last) = (reader.i64()? as u64, reader.bool()?);
                CopyAnswer::Piece { offset, is_last, bytes: reader.rest().to_vec() }
            }
            PASSED => CopyAnswer::Passed { at: Zxid(reader.i64()?) },
            FAILED => CopyAnswer::Failed { reason: reader.string()?.to_owned() },
            other => {
                return Err(DecodeError::UnknownValue { field: "message about a copy", value: other.into() });
            }
        };
        Ok(CopyMessage::Answer { copy, answer })
    }
}

impl CopyAnswer {
    fn kind(&self) -> u8 {
        match self {
            CopyAnswer::Working => WORKING,
            CopyAnswer::Piece { .. } => PIECE,
            CopyAnswer::Passed { .. } => PASSED,
            CopyAnswer::Failed { .. } => FAILED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let cut = GroupCut { group: 7, stamp: Zxid(i64::MAX), last_item: 9 };
        let answers = [
            CopyAnswer::Working,
            CopyAnswer::Piece { offset: 1 << 40, is_last: true, bytes: vec![1, 2, 3] },
            CopyAnswer::Piece { offset: 0, is_last: false, bytes: Vec::new() },
            CopyAnswer::Passed { at: Zxid(5) },
            CopyAnswer::Failed { reason: "why".to_owned() },
        ];
        let answers = answers.into_iter().map(|answer| CopyMessage::Answer { copy: u64::MAX, answer });
        let question = CopyMessage::Question(PieceQuestion { copy: 3, cut, offset: u64::MAX });
        for message in answers.chain([question]) {
            assert_eq!(CopyMessage::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        for bytes in [&b""[..], &[QUESTION, 0, 0], &[0; 20], &[6; 20], &[FAILED; 11]] {
            assert!(CopyMessage::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
