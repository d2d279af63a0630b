use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use super::*;

impl Arena {
    fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes.len()).sum()
    }

    /// Bytes that are in use by the slabs' own account.
    fn in_use_bytes(&self) -> usize {
        self.slabs.iter().map(|slab| usize::from(slab.size) * usize::from(slab.in_use) * GRANULE).sum()
    }

    /// Everything that is noted twice is noted alike.
    fn check(&self) {
        for (n, slab) in self.slabs.iter().enumerate() {
            let number = n as u32;
            let chunk = &self.chunks[n / CHUNK_SLABS as usize];
            let is_in_use = chunk.in_use & 1 << (number % CHUNK_SLABS) > 0;
            assert_eq!(is_in_use, slab.in_use > 0, "slab {n}: {slab:?}");
            if !is_in_use {
                assert_eq!(*slab, Slab::default());
                continue;
            }
            let free = std::iter::successors(slab.free.checked_sub(1), |&place| {
                let bytes = self.bytes_from(SlotId(number << SLAB_BITS | u32::from(place)));
                u16::from_le_bytes([bytes[0], bytes[1]]).checked_sub(1)
            });
            assert_eq!(slab.in_use + free.count() as u16, slab.fresh / slab.size, "slab {n}: {slab:?}");
            let is_roomy = self.roomy[usize::from(slab.size)].contains(&number);
            assert_eq!(is_roomy, slab.in_use < SLAB as u16 / slab.size, "slab {n}: {slab:?}");
        }
        let roomy = self.roomy.iter().flatten().count();
        assert!(
            roomy <= self.slabs.iter().filter(|slab| slab.in_use > 0).count(),
            "a slab is roomy for one size"
        );
        let (mut idle, mut returned) = (None, Vec::new());
        for (chunk, n) in self.chunks.iter().zip(0..) {
            let has_memory = !chunk.bytes.is_empty();
            assert_eq!(self.open.contains(&n), has_memory && chunk.in_use < u8::MAX, "chunk {n}");
            match (has_memory, chunk.in_use) {
                (true, 0) => assert_eq!(idle.replace(n), None, "at most one chunk is idle"),
                (false, in_use) => {
                    assert_eq!(in_use, 0, "chunk {n} has slots but no memory");
                    returned.push(n);
                }
                _ => {}
            }
        }
        assert_eq!(self.idle, idle);
        let mut noted = self.returned.clone();
        noted.sort_unstable();
        assert_eq!(noted, returned);
    }
}

#[derive(Clone, Debug)]
enum ArenaStep {
    /// Takes slots: their number, and the bytes of each.
    Take(usize, usize),
    /// Slots at these places among all that are in use.
    Free(Vec<prop::sample::Index>),
    FreeAllOfSize(usize),
}

fn step() -> impl Strategy<Value = ArenaStep> {
    let bytes = || {
        prop_oneof![
            4 => select(vec![0, 1, 8, 9, 120, 1000, 2048, 4089, 4096]),
            1 => 0..=SLOT_BYTES_MAX,
        ]
    };
    prop_oneof![
        6 => (1..60usize, bytes()).prop_map(|(count, bytes)| ArenaStep::Take(count, bytes)),
        4 => prop::collection::vec(any::<prop::sample::Index>(), 1..40).prop_map(ArenaStep::Free),
        2 => bytes().prop_map(ArenaStep::FreeAllOfSize),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn slots_keep_what_was_put_in(steps in prop::collection::vec(step(), 1..120)) {
        // Few enough to be all in use now and then.
        let mut arena = Arena::with_chunks_max(3);
        let mut model: BTreeMap<SlotId, (usize, u8)> = BTreeMap::new();
        let mut pattern = 0u8;
        for step in steps {
            let freed: Vec<SlotId> = match &step {
                &ArenaStep::Take(count, bytes) => {
                    for _ in 0..count {
                        let Some(slot) = arena.take(bytes) else {
                            prop_assert_eq!((arena.chunks.len(), arena.returned.len()), (3, 0));
                            break;
                        };
                        pattern = pattern.wrapping_add(1);
                        let room = arena.bytes_mut(slot);
                        prop_assert_eq!(room.len(), bytes.max(1).next_multiple_of(GRANULE));
                        room.fill(pattern);
                        prop_assert_eq!(model.insert(slot, (room.len(), pattern)), None);
                    }
                    Vec::new()
                }
                ArenaStep::Free(indexes) => {
                    let slots: Vec<SlotId> = model.keys().copied().collect();
                    indexes.iter().filter(|_| !slots.is_empty()).map(|index| *index.get(&slots)).collect()
                }
                ArenaStep::FreeAllOfSize(bytes) => {
                    let size = bytes.max(&1).next_multiple_of(GRANULE);
                    model.iter().filter(|(_, kept)| kept.0 == size).map(|(&slot, _)| slot).collect()
                }
            };
            for slot in freed {
                if model.remove(&slot).is_some() {
                    arena.free(slot);
                }
            }
            arena.check();
            prop_assert_eq!(arena.in_use_bytes(), model.values().map(|kept| kept.0).sum::<usize>());
            for (&slot, &(size, pattern)) in &model {
                prop_assert!(arena.bytes_from(slot)[..size].iter().all(|&byte| byte == pattern));
            }
        }
        model.into_keys().for_each(|slot| arena.free(slot));
        arena.check();
        prop_assert!(arena.memory_bytes() <= CHUNK as usize * GRANULE);
    }
}

#[test]
fn an_empty_slab_serves_any_size() {
    let mut arena = Arena::with_chunks_max(1);
    let fill =
        |arena: &mut Arena, bytes| -> Vec<SlotId> { std::iter::from_fn(|| arena.take(bytes)).collect() };
    for bytes in [120, 4096, 8, 2048, 600, 120] {
        let slots = fill(&mut arena, bytes);
        assert_eq!(slots.len(), (CHUNK_SLABS * (SLAB / (bytes / GRANULE) as u32)) as usize);
        slots.into_iter().for_each(|slot| arena.free(slot));
        arena.check();
    }
}

#[test]
fn the_first_slab_with_room_is_filled_first() {
    let mut arena = Arena::new();
    let slots: Vec<SlotId> = (0..5 * SLAB / 30).map(|_| arena.take(120).unwrap()).collect();
    let (first, last) = (slots[7], slots[slots.len() - 7]);
    arena.free(last);
    arena.free(first);
    assert_eq!((arena.take(120), arena.take(117)), (Some(first), Some(last)));
}

#[test]
fn memory_that_nobody_uses_is_given_back() {
    let mut arena = Arena::new();
    let slots: Vec<SlotId> = (0..100_000).map(|_| arena.take(120).unwrap()).collect();
    let full = arena.memory_bytes();
    assert!(full < 100_000 * 122 + CHUNK as usize * GRANULE);
    slots.iter().for_each(|&slot| arena.free(slot));
    arena.check();
    assert_eq!(arena.memory_bytes(), CHUNK as usize * GRANULE);
    let again: BTreeMap<SlotId, ()> = (0..100_000).map(|_| (arena.take(120).unwrap(), ())).collect();
    assert_eq!((again.len(), arena.memory_bytes()), (100_000, full));
}
