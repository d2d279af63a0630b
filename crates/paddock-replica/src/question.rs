//! A question to the leader: up to which entry can anything have been acknowledged by now?
//!
//! The leader asks a quorum whether it still leads, and takes what a member says to that for an answer to this question and to
//! all that came before it. So no two may look the same, not even the same one that is asked again: what was said to the
//! first would answer what came between the two.

use std::iter;

use paddock_proto::{MemberNumber, narrow_member_number};
use paddock_tree::Origin;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Member and start that ask. A member that was restarted is another one: its questions begin anew.
    pub(crate) origin: Origin,
    /// Counted by its origin. `Question::OF_LEADER` is a leader's own.
    pub(crate) number: u64,
    /// Number of times that its origin has asked anything: no two questions look the same.
    pub(crate) asking: u64,
}

impl Question {
    /// With this number a leader asks only if it still leads.
    pub(crate) const OF_LEADER: u64 = 0;

    pub(crate) fn encode(self) -> Vec<u8> {
        let numbers = [self.origin.incarnation, self.number, self.asking];
        let narrow = narrow_member_number(self.origin.member);
        let mut bytes: Vec<u8> =
            iter::once(narrow).chain(numbers.into_iter().flat_map(u64::to_le_bytes)).collect();
        if narrow == 0 {
            bytes.extend_from_slice(&self.origin.member.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Question> {
        let (member, numbers) = match bytes.split_first()? {
            (0, behind) => {
                let (numbers, wide) = behind.split_last_chunk()?;
                (MemberNumber::from_le_bytes(*wide), numbers)
            }
            (&narrow, numbers) => (narrow.into(), numbers),
        };
        let (numbers, []) = numbers.as_chunks::<8>() else { return None };
        let [incarnation, number, asking] = *numbers else { return None };
        let origin = Origin { member, incarnation: u64::from_le_bytes(incarnation) };
        Some(Question { origin, number: u64::from_le_bytes(number), asking: u64::from_le_bytes(asking) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_comes_back_as_it_was() {
        [3, 0, 255, 256, 1001].into_iter().for_each(check);
    }

    fn check(member: MemberNumber) {
        let question = Question { origin: Origin { member, incarnation: 1 << 60 }, number: 7, asking: 9 };
        let bytes = question.encode();
        assert_eq!(Question::decode(&bytes), Some(question));
        for len in 0..bytes.len() {
            assert_eq!(Question::decode(&bytes[..len]), None);
        }
        assert_ne!(Question { asking: 10, ..question }.encode(), bytes);
    }
}
