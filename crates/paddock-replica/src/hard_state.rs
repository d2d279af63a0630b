//! The hard state of a member: what Raft makes it remember of its votes, and what it remembers of itself.

/// Hard state of a member: 40 bytes in the transaction log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    pub term: u64,
    pub vote: u64,
    pub commit: u64,
    /// A member that lost its data does not vote before it has everything up to this entry; 0 for all others.
    pub silent_until: u64,
    /// The number of the member's start: higher than that of every start before.
    pub incarnation: u64,
}

impl HardState {
    /// Value of `silent_until` in a member without data that has not asked yet which term it is.
    pub(crate) const TERM_UNKNOWN: u64 = u64::MAX;
    /// Value of `silent_until` in a member that knows the term, and waits for its leader to say up to which entry it has to learn.
    pub(crate) const COMMIT_UNKNOWN: u64 = u64::MAX - 1;

    pub fn encode(&self) -> [u8; 40] {
        let mut bytes = [0; 40];
        let values = [self.term, self.vote, self.commit, self.silent_until, self.incarnation];
        for (chunk, value) in bytes.chunks_exact_mut(8).zip(values) {
            chunk.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// `None` for bytes that `encode` did not write.
    pub fn decode(bytes: &[u8]) -> Option<HardState> {
        let bytes: &[u8; 40] = bytes.try_into().ok()?;
        let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at * 8 + i]));
        let [term, vote, commit, silent_until, incarnation] = std::array::from_fn(field);
        Some(HardState { term, vote, commit, silent_until, incarnation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_state_comes_back() {
        let hard_state = HardState { term: 9, vote: 2, commit: 77, silent_until: 5, incarnation: 1 << 40 };
        assert_eq!(HardState::decode(&hard_state.encode()), Some(hard_state));
        assert_eq!(HardState::decode(&[1]), None);
    }
}
