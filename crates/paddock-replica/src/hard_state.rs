//! The hard state of a member: what Raft makes it remember of its votes, and what it remembers of itself.

/// Bytes of a hard state, without and with the entry up to which the member has learned.
const SHORT: usize = 40;
const LONG: usize = 48;

/// Hard state of a member: 40 bytes in the transaction log, and 8 more in the home group once the member has learned of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    pub term: u64,
    pub vote: u64,
    pub commit: u64,
    /// A member that lost its data does not vote before it has everything up to this entry; 0 for all others.
    pub silent_until: u64,
    /// The number of the member's start: higher than that of every start before.
    pub incarnation: u64,
    /// The last entry of the home group that the member had when it had learned everything, other groups among it: it came without data, or had lost it. Groups that were founded up
    /// to there it may have been in before. 0 in a member that has had its data from the first entry, or has learned nothing of other groups, and in all other groups.
    pub learned_through: u64,
}

impl HardState {
    /// Value of `silent_until` in a member without data that has not asked yet which term it is.
    pub(crate) const TERM_UNKNOWN: u64 = u64::MAX;
    /// Value of `silent_until` in a member that knows the term, and waits for its leader to say up to which entry it has to learn.
    pub(crate) const COMMIT_UNKNOWN: u64 = u64::MAX - 1;

    pub fn encode(&self) -> EncodedHardState {
        let HardState { term, vote, commit, silent_until, incarnation, learned_through } = *self;
        let values = [term, vote, commit, silent_until, incarnation, learned_through];
        let mut bytes = [0; LONG];
        for (chunk, value) in bytes.chunks_exact_mut(8).zip(values) {
            chunk.copy_from_slice(&value.to_le_bytes());
        }
        EncodedHardState { bytes, len: if learned_through == 0 { SHORT } else { LONG } }
    }

    /// `None` for bytes that `encode` did not write.
    pub fn decode(bytes: &[u8]) -> Option<HardState> {
        if bytes.len() != SHORT && bytes.len() != LONG {
            return None;
        }
        let field = |at: usize| {
            bytes.get(at * 8..at * 8 + 8).map_or([0; 8], |field| std::array::from_fn(|i| field[i]))
        };
        let [term, vote, commit, silent_until, incarnation, learned_through] =
            std::array::from_fn(|at| u64::from_le_bytes(field(at)));
        Some(HardState { term, vote, commit, silent_until, incarnation, learned_through })
    }
}

/// A hard state as it stands in the transaction log.
#[derive(Clone, Copy, Debug)]
pub struct EncodedHardState {
    bytes: [u8; LONG],
    len: usize,
}

impl std::ops::Deref for EncodedHardState {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_state_comes_back() {
        let incarnation = 1 << 40;
        for (learned_through, bytes) in [(0, 40), (1, 48), (u64::MAX, 48)] {
            let hard_state =
                HardState { term: 9, vote: 2, commit: 77, silent_until: 5, incarnation, learned_through };
            let encoded = hard_state.encode();
            assert_eq!((HardState::decode(&encoded), encoded.len()), (Some(hard_state), bytes));
            assert_eq!(HardState::decode(&encoded[1..]), None);
        }
    }
}
