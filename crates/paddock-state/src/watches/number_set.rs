//! A set of numbers that is small with one of them and with many.
//!
//! Most paths are watched by one connection, and most connections watch few paths; a service may have ten thousand connections that watch the same
//! two thousand paths. Few numbers lie side by side in their order. Many are a Roaring bitmap, which takes two bytes for each of
//! them or less.

use roaring::RoaringBitmap;

/// More than these become a bitmap.
const FEW_MAX: usize = 32;
/// Fewer than these become a list again. It is less than `FEW_MAX`, so that a set of about that size does not change its form again and again.
const MANY_MIN: usize = 16;

#[derive(Debug)]
pub(super) enum NumberSet {
    Few(Vec<u32>),
    Many(Box<RoaringBitmap>),
}

impl Default for NumberSet {
    fn default() -> Self {
        NumberSet::Few(Vec::new())
    }
}

impl NumberSet {
    pub(super) fn len(&self) -> usize {
        match self {
            NumberSet::Few(few) => few.len(),
            NumberSet::Many(many) => many.len() as usize,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            NumberSet::Few(few) => few.is_empty(),
            NumberSet::Many(many) => many.is_empty(),
        }
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        match self {
            NumberSet::Few(few) => few.binary_search(&number).is_ok(),
            NumberSet::Many(many) => many.contains(number),
        }
    }

    /// False if it was there.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        match self {
            NumberSet::Many(many) => many.insert(number),
            NumberSet::Few(few) => {
                let Err(place) = few.binary_search(&number) else { return false };
                if few.len() < FEW_MAX {
                    few.insert(place, number);
                } else {
                    let mut many: RoaringBitmap = few.iter().copied().collect();
                    many.insert(number);
                    *self = NumberSet::Many(Box::new(many));
                }
                true
            }
        }
    }

    /// False if it was not there.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        match self {
            NumberSet::Few(few) => {
                let Ok(place) = few.binary_search(&number) else { return false };
                few.remove(place);
                true
            }
            NumberSet::Many(many) => {
                let was_there = many.remove(number);
                if was_there && many.len() < MANY_MIN as u64 {
                    *self = NumberSet::Few(many.iter().collect());
                }
                was_there
            }
        }
    }

    /// The largest ones, `max` at most or a few more.
    pub(super) fn some(&self, max: usize) -> Vec<u32> {
        match self {
            NumberSet::Few(few) => few.clone(),
            NumberSet::Many(many) => many.iter().rev().take(max).collect(),
        }
    }

    /// The numbers, rising.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (few, many) = match self {
            NumberSet::Few(few) => (&few[..], None),
            NumberSet::Many(many) => (&[][..], Some(many.iter())),
        };
        few.iter().copied().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((any::<bool>(), 0..100_u32), 0..300), max in 0..200_usize) {
            let (mut numbers, mut model) = (NumberSet::default(), BTreeSet::new());
            for (comes, number) in steps {
                // Some lie far apart.
                let number = if number % 7 == 0 { number << 20 } else { number };
                prop_assert_eq!(numbers.contains(number), model.contains(&number));
                if comes {
                    prop_assert_eq!(numbers.insert(number), model.insert(number));
                } else {
                    prop_assert_eq!(numbers.remove(number), model.remove(&number));
                }
                prop_assert_eq!((numbers.len(), numbers.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(numbers.iter().eq(model.iter().copied()));
            }
            let some = numbers.some(max);
            prop_assert!(some.len() <= max.max(FEW_MAX) && some.iter().all(|number| model.contains(number)));
            prop_assert!(!some.is_empty() || model.is_empty() || max == 0);
        }
    }
}
