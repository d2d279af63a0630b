//! The seeded generator of the simulator, of the simulated disk and of the tests: a seed that found a mistake finds it on every
//! machine, for as long as the code that asks stays the same.

/// A sequence of numbers that a seed decides (SplitMix64: one word of state, good enough to choose inputs of tests).
///
/// Libraries of random numbers reserve the right to change theirs; a seed in a bug report must not change its meaning.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The generator of one part of a simulation. The same `part` of the same seed always gets the same numbers, however many
    /// the other parts draw.
    pub fn of(seed: u64, part: &str) -> Chance {
        let mut chance = Chance(seed);
        for byte in part.bytes() {
            chance.0 = chance.word() ^ u64::from(byte);
        }
        chance
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number from 0 to `end - 1`. Its bias is of no consequence for tests.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is no number below zero");
        self.word() % end
    }

    /// An index into something of this length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A number from `low` to `high`, small ones as often as large ones: every doubling of the distance from `low` is equally
    /// likely.
    pub fn mostly_low(&mut self, low: u64, high: u64) -> u64 {
        let bits = self.below(u64::from((high - low + 1).ilog2()) + 1);
        low + self.below((high - low).min(1 << bits) + 1)
    }

    /// True in `count` of a hundred cases.
    pub fn percent(&mut self, count: u64) -> bool {
        self.below(100) < count
    }

    /// True in `count` of a thousand cases.
    pub fn permille(&mut self, count: u64) -> bool {
        self.below(1000) < count
    }

    /// True in one of `count` cases.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of `choices`, which are equally likely.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// One of `choices`, each as likely as its weight says.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut at = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for &(weight, choice) in choices {
            if at < weight {
                return choice;
            }
            at -= weight;
        }
        unreachable!("the weights add up to more than any number below their sum")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut chance = Chance::new(1);
        assert_eq!([chance.word(), chance.word()], [0x910A_2DEC_8902_5CC1, 0xBEEB_8DA1_658E_EC67]);
    }

    #[test]
    fn parts_draw_differently_and_always_the_same() {
        let draw = |part| Chance::of(7, part).word();
        assert_eq!(draw("disk"), draw("disk"));
        assert_ne!(draw("disk"), draw("network"));
        assert_ne!(Chance::of(8, "disk").word(), draw("disk"));
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut chance = Chance::new(1);
        let mut seen = [false; 3];
        for _ in 0..100 {
            seen[chance.between(5, 7) as usize - 5] = true;
            assert!((10..=90).contains(&chance.mostly_low(10, 90)));
            assert_eq!(chance.weighted(&[(0, 'a'), (2, 'b'), (0, 'c')]), 'b');
        }
        assert_eq!(seen, [true; 3]);
    }
}
