//! Random names that never come twice, in any lane.
//!
//! The numbers from 0 to 62^length - 1, each as a name of that length, are shuffled by multiplying and adding modulo
//! their count. Lanes take every n-th of them, of n lanes, so they need not know of each other. When a lane has used up its
//! share of a length, its names get one letter longer.

use fastrand::Rng;

const LETTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Names of this many letters are as many as anyone can use up; letters behind them are drawn at random.
const COUNTED_LETTERS: usize = 10;

pub(crate) struct Names {
    seed: u64,
    lane: u64,
    lanes: u64,
    /// By length.
    sequences: Vec<Option<Sequence>>,
}

/// The names of one length.
#[derive(Clone)]
struct Sequence {
    taken: u64,
    count: u64,
    multiplier: u64,
    summand: u64,
}

impl Names {
    /// Lanes that share a seed never share a name.
    pub(crate) fn new(seed: u64, lane: usize, lanes: usize) -> Names {
        assert!(lane < lanes, "lane {lane} of {lanes}");
        Names { seed, lane: lane as u64, lanes: lanes as u64, sequences: vec![None; COUNTED_LETTERS + 1] }
    }

    /// Appends a name of at least `length` letters, at least one.
    pub(crate) fn append(&mut self, length: usize, rng: &mut Rng, out: &mut String) {
        for counted in length.clamp(1, COUNTED_LETTERS)..=COUNTED_LETTERS {
            if let Some(number) = self.take(counted) {
                append_number(number, counted, out);
                (counted..length)
                    .for_each(|_| out.push(char::from(*rng.choice(LETTERS).expect("not empty"))));
                return;
            }
        }
        unreachable!("62^{COUNTED_LETTERS} names outlast any run");
    }

    fn take(&mut self, length: usize) -> Option<u64> {
        let seed = self.seed;
        let sequence = self.sequences[length].get_or_insert_with(|| Sequence::new(seed, length));
        let number = sequence.taken * self.lanes + self.lane;
        if number >= sequence.count {
            return None;
        }
        sequence.taken += 1;
        Some(sequence.shuffled(number))
    }
}

impl Sequence {
    fn new(seed: u64, length: usize) -> Sequence {
        let count = 62u64.pow(length as u32);
        let mut rng = Rng::with_seed(seed.wrapping_mul(31).wrapping_add(length as u64));
        // Without a common factor with 62 = 2 * 31 the multiplication is a permutation.
        let multiplier = loop {
            let candidate = rng.u64(1..count);
            if !candidate.is_multiple_of(2) && !candidate.is_multiple_of(31) {
                break candidate;
            }
        };
        Sequence { taken: 0, count, multiplier, summand: rng.u64(0..count) }
    }

    fn shuffled(&self, number: u64) -> u64 {
        let shuffled = u128::from(number) * u128::from(self.multiplier) + u128::from(self.summand);
        u64::try_from(shuffled % u128::from(self.count)).expect("less than the count")
    }
}

fn append_number(mut number: u64, length: usize, out: &mut String) {
    for _ in 0..length {
        out.push(char::from(LETTERS[(number % 62) as usize]));
        number /= 62;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn check(length: usize, lanes: usize, each: usize, longest: usize) {
        let (mut seen, mut rng) = (HashSet::new(), Rng::with_seed(5));
        for lane in 0..lanes {
            let mut names = Names::new(9, lane, lanes);
            for _ in 0..each {
                let mut name = String::new();
                names.append(length, &mut rng, &mut name);
                assert!((length..=longest).contains(&name.len()), "{name}");
                assert!(seen.insert(name.clone()), "{name} came twice");
            }
        }
    }

    #[test]
    fn no_name_comes_twice() {
        check(5, 3, 10_000, 5);
        check(10, 65_536, 2, 10);
        check(15, 2, 1000, 15);
    }

    #[test]
    fn names_get_longer_when_they_run_out() {
        check(1, 1, 62, 1);
        check(1, 1, 63, 2);
        check(1, 100, 100, 3);
    }
}
