//! The batches of this member that have not been applied here, with whoever waits for them.

use std::collections::VecDeque;

use bytes::Bytes;
use paddock_tree::Origin;

use super::Item;
use crate::batch::BatchBuilder;

#[derive(Debug)]
pub(super) struct Outstanding {
    origin: Origin,
    batches: VecDeque<Waiting>,
    next_number: u64,
    /// How many of `batches`, from the front, the leader has been sent.
    sent: usize,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    bytes: Bytes,
    items: VecDeque<Item>,
}

impl Outstanding {
    pub(super) fn new(origin: Origin) -> Outstanding {
        Outstanding { origin, batches: VecDeque::new(), next_number: 1, sent: 0 }
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Closes `batch`; `items` wait for it.
    pub(super) fn push(&mut self, batch: &mut BatchBuilder, items: VecDeque<Item>) {
        let number = self.next_number;
        self.next_number += 1;
        self.batches.push_back(Waiting { number, bytes: batch.take(self.origin, number), items });
    }

    /// Those that the leader has not been sent, in order; it has now.
    pub(super) fn unsent(&mut self) -> Vec<Bytes> {
        let unsent = self.batches.iter().skip(self.sent).map(|waiting| waiting.bytes.clone()).collect();
        self.sent = self.batches.len();
        unsent
    }

    pub(super) fn send_all_again(&mut self) {
        self.sent = 0;
    }

    /// What waits for the last batch.
    pub(super) fn last_items(&mut self) -> Option<&mut VecDeque<Item>> {
        self.batches.back_mut().map(|waiting| &mut waiting.items)
    }

    /// Batches up to this number were applied where nobody here saw it. Returns what waited for them.
    pub(super) fn forget_through(&mut self, number: u64) -> Vec<Item> {
        let mut forgotten = Vec::new();
        while let Some(waiting) = self.batches.pop_front_if(|waiting| waiting.number <= number) {
            self.sent = self.sent.saturating_sub(1);
            forgotten.extend(waiting.items);
        }
        forgotten
    }

    /// Batch `number` is being applied: what waits for it.
    pub(super) fn applied(&mut self, number: u64) -> VecDeque<Item> {
        let first = self.batches.pop_front().expect("an own batch is outstanding until it is applied");
        assert!(first.number == number, "batch {number} applied before batch {}", first.number);
        self.sent = self.sent.saturating_sub(1);
        first.items
    }
}
