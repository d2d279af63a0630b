//! Sizes of the entries that a leader has proposed.

/// Sizes of entries in bytes: the last one, the smallest, the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProposalSizes {
    pub last: usize,
    pub min: usize,
    pub max: usize,
}

impl ProposalSizes {
    /// Sizes with that of another entry.
    pub(crate) fn with(sizes: Option<ProposalSizes>, bytes: usize) -> ProposalSizes {
        let before = sizes.unwrap_or(ProposalSizes { last: bytes, min: bytes, max: bytes });
        ProposalSizes { last: bytes, min: before.min.min(bytes), max: before.max.max(bytes) }
    }
}
