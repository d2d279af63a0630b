//! The dice: everything that could go one way or another is decided here, from one seed.

/// SplitMix64. Each part of the world has dice of its own, so that a fault that is left out does not change what the
/// clients ask.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Dice for a part of the world: the same `part` of the same seed throws the same.
    pub(crate) fn of(seed: u64, part: &str) -> Chance {
        let mut chance = Chance(seed);
        for byte in part.bytes() {
            chance.0 = chance.next() ^ u64::from(byte);
        }
        chance
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is no number below zero");
        self.next() % end
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// As often as not nearer to `low` than the square root of the way: small values, and now and then a large one.
    pub(crate) fn mostly_low(&mut self, low: u64, high: u64) -> u64 {
        let bits = self.below(u64::from((high - low + 1).ilog2()) + 1);
        low + self.below((high - low).min(1 << bits) + 1)
    }

    pub(crate) fn permille(&mut self, of_thousand: u64) -> bool {
        self.below(1000) < of_thousand
    }

    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_throw_differently_and_always_the_same() {
        let throw = |part| Chance::of(7, part).next();
        assert_eq!(throw("disk"), throw("disk"));
        assert_ne!(throw("disk"), throw("network"));
        assert_ne!(Chance::of(8, "disk").next(), throw("disk"));
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut chance = Chance::new(1);
        let mut seen = [false; 3];
        for _ in 0..100 {
            seen[chance.between(5, 7) as usize - 5] = true;
            assert!((10..=90).contains(&chance.mostly_low(10, 90)));
        }
        assert_eq!(seen, [true; 3]);
    }
}
