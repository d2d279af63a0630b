//! The names and data of all znodes.
//!
//! A name and its data lie together. In front of them stand the length of the name, with one bit below it for data that is
//! null, which is not the same as empty, and the length of data that is there; seven bits to a byte, so two bytes for
//! nearly every znode. Most lie in the arena; what is too large for its slots has an allocation of its own.

use smallvec::SmallVec;

use super::arena::{Arena, SLOT_BYTES_MAX, SlotId};
use super::slab::Slab;

#[derive(Debug)]
pub(super) struct Blobs {
    arena: Arena,
    large: Slab<Box<[u8]>>,
}

/// The number of a name and data within this member's memory. The default is a vacant slot's, and no znode's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlobId(u32);

impl Default for BlobId {
    fn default() -> BlobId {
        BlobId(u32::MAX)
    }
}

enum Home {
    Slot(SlotId),
    Own(u32),
}

impl BlobId {
    fn home(self) -> Home {
        match self.0.checked_sub(SlotId::END) {
            None => Home::Slot(SlotId(self.0)),
            Some(own) => Home::Own(own),
        }
    }
}

impl Blobs {
    pub(super) fn new() -> Blobs {
        Blobs { arena: Arena::new(), large: Slab::new() }
    }

    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.arena.slots_in_use() + self.large.in_use()
    }

    pub(super) fn insert(&mut self, name: &[u8], data: Option<&[u8]>) -> BlobId {
        let len = encoded_len(name, data);
        let slot = if len <= SLOT_BYTES_MAX { self.arena.take(len) } else { None };
        // Should the arena be full, there is still the allocator.
        let Some(slot) = slot else { return self.insert_own(len, name, data) };
        encode(name, data, self.arena.bytes_mut(slot));
        BlobId(slot.0)
    }

    fn insert_own(&mut self, len: usize, name: &[u8], data: Option<&[u8]>) -> BlobId {
        let mut bytes = vec![0; len].into_boxed_slice();
        encode(name, data, &mut bytes);
        let id = SlotId::END.checked_add(self.large.insert(bytes));
        BlobId(id.filter(|&id| id < u32::MAX).expect("there are fewer than 2^29 allocations"))
    }

    pub(super) fn remove(&mut self, id: BlobId) {
        match id.home() {
            Home::Slot(slot) => self.arena.free(slot),
            Home::Own(own) => drop(self.large.remove(own)),
        }
    }

    /// This name with other data, beside the one there is.
    pub(super) fn insert_with_name_of(&mut self, id: BlobId, data: Option<&[u8]>) -> BlobId {
        let name = SmallVec::<[u8; 128]>::from_slice(self.name(id));
        self.insert(&name, data)
    }

    /// This name with other data, in place of the one there is.
    pub(super) fn replace_data(&mut self, id: BlobId, data: Option<&[u8]>) -> BlobId {
        let name = SmallVec::<[u8; 128]>::from_slice(self.name(id));
        if let Home::Slot(slot) = id.home()
            && self.arena.fits(slot, encoded_len(&name, data))
        {
            encode(&name, data, self.arena.bytes_mut(slot));
            return id;
        }
        self.remove(id);
        self.insert(&name, data)
    }

    /// Numbers of a byte or two stand in front of nearly every name: its head, and the length of data if there are any.
    #[inline]
    pub(super) fn name(&self, id: BlobId) -> &[u8] {
        let bytes = self.bytes_from(id);
        let (len, rest) = match bytes {
            [head @ 0..0x80, rest @ ..] if head & 1 == 1 => (head >> 1, rest),
            [head @ 0..0x80, 0..0x80, rest @ ..] | [head @ 0..0x80, _, 0..0x80, rest @ ..] => {
                (head >> 1, rest)
            }
            _ => return self.parts(id).0,
        };
        &rest[..usize::from(len)]
    }

    pub(super) fn data(&self, id: BlobId) -> Option<&[u8]> {
        self.parts(id).1
    }

    pub(super) fn parts(&self, id: BlobId) -> (&[u8], Option<&[u8]>) {
        let (head, rest) = decode_number(self.bytes_from(id));
        let (name_len, is_null) = (head >> 1, head & 1 == 1);
        if is_null {
            return (&rest[..name_len], None);
        }
        let (data_len, rest) = decode_number(rest);
        let (name, rest) = rest.split_at(name_len);
        (name, Some(&rest[..data_len]))
    }

    /// Something of each part of memory in which a short name and short data lie.
    pub(super) fn look_at(&self, id: BlobId) -> usize {
        let bytes = self.bytes_from(id);
        [0, 64, 128].into_iter().filter_map(|at| bytes.get(at)).map(|byte| usize::from(*byte)).sum()
    }

    #[inline]
    fn bytes_from(&self, id: BlobId) -> &[u8] {
        match id.home() {
            Home::Slot(slot) => self.arena.bytes_from(slot),
            Home::Own(own) => &self.large[own],
        }
    }
}

fn encoded_len(name: &[u8], data: Option<&[u8]>) -> usize {
    let data = data.map_or(0, |data| number_len(data.len()) + data.len());
    number_len(head(name, false)) + name.len() + data
}

/// Fills the front of `out`.
fn encode(name: &[u8], data: Option<&[u8]>, out: &mut [u8]) {
    let mut rest = encode_number(head(name, data.is_none()), out);
    if let Some(data) = data {
        rest = encode_number(data.len(), rest);
    }
    let (at_name, rest) = rest.split_at_mut(name.len());
    at_name.copy_from_slice(name);
    let data = data.unwrap_or_default();
    rest[..data.len()].copy_from_slice(data);
}

fn head(name: &[u8], is_null: bool) -> usize {
    name.len() << 1 | usize::from(is_null)
}

fn number_len(number: usize) -> usize {
    (usize::BITS - number.leading_zeros()).div_ceil(7).max(1) as usize
}

/// Gives what is left of `out`.
fn encode_number(mut number: usize, out: &mut [u8]) -> &mut [u8] {
    let mut len = 0;
    while number >= 0x80 {
        out[len] = number as u8 | 0x80;
        number >>= 7;
        len += 1;
    }
    out[len] = number as u8;
    &mut out[len + 1..]
}

/// A number, and what follows it. Nearly every one has one byte or two.
#[inline]
fn decode_number(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes {
        [first @ 0..0x80, rest @ ..] => (usize::from(*first), rest),
        [first, second @ 0..0x80, rest @ ..] => {
            (usize::from(*first & 0x7f) | usize::from(*second) << 7, rest)
        }
        _ => decode_long_number(bytes),
    }
}

fn decode_long_number(bytes: &[u8]) -> (usize, &[u8]) {
    let mut number = 0;
    for (n, &byte) in bytes.iter().enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * n);
        if byte < 0x80 {
            return (number, &bytes[n + 1..]);
        }
    }
    unreachable!("a number was written here")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use proptest::sample::{Index, select};
    use proptest::test_runner::RngSeed;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(usize, Option<usize>),
        InsertWithNameOf(Index, Option<usize>),
        Replace(Index, Option<usize>),
        Remove(Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        let name = prop_oneof![4 => 1..20usize, 1 => select(vec![0, 63, 64, 127, 128, 8191, 8192])];
        let data = || {
            let odd = vec![126, 127, 128, 129, 4070, 4096, 5000, 16_383, 16_384, 100_000];
            prop::option::weighted(0.9, prop_oneof![4 => 0..200usize, 1 => select(odd), 1 => 0..5000usize])
        };
        prop_oneof![
            4 => (name, data()).prop_map(|(name, data)| Step::Insert(name, data)),
            1 => (any::<Index>(), data()).prop_map(|(of, data)| Step::InsertWithNameOf(of, data)),
            3 => (any::<Index>(), data()).prop_map(|(of, data)| Step::Replace(of, data)),
            2 => any::<Index>().prop_map(Step::Remove),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 200,
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn names_and_data_are_as_they_were_put_in(steps in prop::collection::vec(step(), 1..200)) {
            let mut blobs = Blobs::new();
            let mut model: BTreeMap<BlobId, (Vec<u8>, Option<Vec<u8>>)> = BTreeMap::new();
            for (step, letter) in steps.into_iter().zip((b'a'..=b'z').cycle()) {
                let bytes = |len: usize| vec![letter; len];
                let ids: Vec<BlobId> = model.keys().copied().collect();
                match step {
                    Step::Insert(name, data) => {
                        let (name, data) = (bytes(name), data.map(bytes));
                        let id = blobs.insert(&name, data.as_deref());
                        prop_assert_eq!(model.insert(id, (name, data)), None);
                    }
                    _ if ids.is_empty() => {}
                    Step::InsertWithNameOf(of, data) => {
                        let (of, data) = (*of.get(&ids), data.map(bytes));
                        let id = blobs.insert_with_name_of(of, data.as_deref());
                        let name = model[&of].0.clone();
                        prop_assert_eq!(model.insert(id, (name, data)), None);
                    }
                    Step::Replace(of, data) => {
                        let (of, data) = (*of.get(&ids), data.map(bytes));
                        let (name, _) = model.remove(&of).unwrap();
                        let id = blobs.replace_data(of, data.as_deref());
                        prop_assert_eq!(model.insert(id, (name, data)), None);
                    }
                    Step::Remove(of) => {
                        model.remove(of.get(&ids));
                        blobs.remove(*of.get(&ids));
                    }
                }
                for (&id, (name, data)) in &model {
                    prop_assert_eq!(blobs.name(id), &name[..]);
                    prop_assert_eq!(blobs.data(id), data.as_deref());
                }
            }
        }
    }

    #[test]
    fn null_data_is_not_empty_data() {
        let mut blobs = Blobs::new();
        for data in [None, Some(&b""[..]), Some(b"x")] {
            let id = blobs.insert(b"name", data);
            assert_eq!((blobs.name(id), blobs.data(id)), (&b"name"[..], data));
        }
    }

    #[test]
    fn a_full_arena_is_no_end() {
        let mut blobs = Blobs { arena: Arena::with_chunks_max(1), large: Slab::new() };
        let ids: Vec<BlobId> = (0..5000).map(|_| blobs.insert(b"name", Some(&[b'd'; 120]))).collect();
        assert!(ids.iter().any(|id| matches!(id.home(), Home::Own(_))));
        assert!(ids.iter().all(|&id| blobs.name(id) == b"name" && blobs.data(id) == Some(&[b'd'; 120])));
        ids.into_iter().for_each(|id| blobs.remove(id));
        assert!(matches!(blobs.insert(b"name", None).home(), Home::Slot(_)));
    }
}
