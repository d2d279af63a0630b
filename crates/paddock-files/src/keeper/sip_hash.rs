//! SipHash-2-4 with a key of zeros, ClickHouse's checksum and digest.

use std::hash::Hasher;

/// Hash of several pieces, as if they were one.
#[derive(Clone)]
pub(super) struct SipHash(
    #[expect(deprecated, reason = "the other hashers of the standard library promise no algorithm")]
    std::hash::SipHasher,
);

impl SipHash {
    pub(super) fn new() -> SipHash {
        #[expect(deprecated, reason = "the other hashers of the standard library promise no algorithm")]
        SipHash(std::hash::SipHasher::new())
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub(super) fn value(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of `sipHash64` in the engine of ClickHouse 26.9.
    #[test]
    fn it_is_clickhouses() {
        let mut hash = SipHash::new();
        assert_eq!(hash.value(), 0x1e92_4b9d_7377_00d7);
        hash.update(b"a");
        hash.update(b"bc");
        assert_eq!(hash.value(), 4_596_069_200_710_135_518);
    }
}
