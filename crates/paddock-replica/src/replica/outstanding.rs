//! What this member has not carried out yet, in order: batches that have not been applied here, and reads that have to
//! see what was written anywhere before they were asked.

use std::collections::VecDeque;

use bytes::Bytes;
use paddock_tree::Origin;

use super::Item;
use crate::batch::BatchBuilder;
use crate::question::Question;

#[derive(Debug)]
pub(super) struct Outstanding {
    origin: Origin,
    queue: VecDeque<Waiting>,
    next_number: u64,
    next_question: u64,
    /// How often something was asked.
    askings: u64,
    /// The number of the last batch that the leader has been sent.
    sent: u64,
}

#[derive(Debug)]
enum Waiting {
    Batch {
        number: u64,
        bytes: Bytes,
        items: VecDeque<Item>,
    },
    /// The leader was asked how far the log has come; when this member has applied so much, the items may see its state.
    Sync {
        question: u64,
        asked_ms: u64,
        index: Option<u64>,
        items: VecDeque<Item>,
    },
}

impl Waiting {
    fn items(self) -> VecDeque<Item> {
        match self {
            Waiting::Batch { items, .. } | Waiting::Sync { items, .. } => items,
        }
    }
}

impl Outstanding {
    pub(super) fn new(origin: Origin) -> Outstanding {
        Outstanding { origin, queue: VecDeque::new(), next_number: 1, next_question: 1, askings: 0, sent: 0 }
    }

    /// The same without anything outstanding, of another start. What was asked may still be answered, so questions are
    /// not numbered anew.
    pub(super) fn begin_anew(&self, origin: Origin) -> Outstanding {
        let Outstanding { next_question, askings, .. } = *self;
        Outstanding { next_question, askings, ..Outstanding::new(origin) }
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Closes `batch`; `items` wait for it.
    pub(super) fn push_batch(&mut self, batch: &mut BatchBuilder, items: VecDeque<Item>) {
        let number = self.next_number;
        self.next_number += 1;
        self.queue.push_back(Waiting::Batch { number, bytes: batch.take(self.origin, number), items });
    }

    /// `items` wait for the answer to a question to the leader.
    pub(super) fn push_sync(&mut self, asked_ms: u64, items: VecDeque<Item>) {
        let question = self.next_question;
        self.next_question += 1;
        self.queue.push_back(Waiting::Sync { question, asked_ms, index: None, items });
    }

    /// The batches that the leader has not been sent, in order; it has now.
    pub(super) fn unsent(&mut self) -> Vec<Bytes> {
        let mut unsent = Vec::new();
        for waiting in &self.queue {
            if let Waiting::Batch { number, bytes, .. } = waiting
                && *number > self.sent
            {
                unsent.push(bytes.clone());
                self.sent = *number;
            }
        }
        unsent
    }

    pub(super) fn send_all_again(&mut self) {
        self.sent = 0;
    }

    /// The last question that has no answer: who answers that one answers those before it. A leader may drop it, and it may
    /// be asked twice.
    pub(super) fn ask(&mut self) -> Option<Question> {
        let number = self.queue.iter().rev().find_map(|waiting| match waiting {
            Waiting::Sync { question, index: None, .. } => Some(*question),
            _ => None,
        })?;
        self.askings += 1;
        Some(Question { origin: self.origin, number, asking: self.askings })
    }

    /// Returns when the question was asked first.
    pub(super) fn answer(&mut self, answered: Question, up_to: u64) -> Option<u64> {
        if answered.origin != self.origin {
            return None;
        }
        let mut first_ms = None;
        for waiting in &mut self.queue {
            if let Waiting::Sync { question, index, asked_ms, .. } = waiting
                && *question <= answered.number
            {
                index.get_or_insert(up_to);
                first_ms = (*question == answered.number).then_some(*asked_ms);
            }
        }
        first_ms
    }

    /// What waits last.
    pub(super) fn last_items(&mut self) -> Option<&mut VecDeque<Item>> {
        self.queue.back_mut().map(|waiting| match waiting {
            Waiting::Batch { items, .. } | Waiting::Sync { items, .. } => items,
        })
    }

    /// Whether something at the front has to see no more than what is applied.
    pub(super) fn is_ready(&self, applied: u64) -> bool {
        matches!(self.queue.front(), Some(Waiting::Sync { index: Some(index), .. }) if *index <= applied)
    }

    pub(super) fn take_ready(&mut self, applied: u64) -> Option<VecDeque<Item>> {
        if !self.is_ready(applied) {
            return None;
        }
        self.queue.pop_front().map(Waiting::items)
    }

    /// Batch `number` is being applied: what waits for it. What stands before it need not wait for an answer any more:
    /// the batch came into the log after it was asked.
    pub(super) fn applied(&mut self, applied: u64) -> VecDeque<Item> {
        let mut before = VecDeque::new();
        loop {
            match self.queue.pop_front().expect("an own batch is outstanding until it is applied") {
                Waiting::Sync { mut items, .. } => before.append(&mut items),
                Waiting::Batch { number, mut items, .. } => {
                    assert!(number == applied, "batch {applied} applied before batch {number}");
                    before.append(&mut items);
                    return before;
                }
            }
        }
    }

    /// What waits does not wait any more; the batches stay, and will be applied for nobody.
    pub(super) fn abandon(&mut self) -> Vec<Item> {
        let mut abandoned = Vec::new();
        self.queue.retain_mut(|waiting| match waiting {
            Waiting::Sync { items, .. } => {
                abandoned.extend(items.drain(..));
                false
            }
            Waiting::Batch { items, .. } => {
                let commands = items.iter().filter(|item| item.is_command()).count();
                abandoned.extend(items.drain(..));
                items.extend((0..commands).map(|_| Item::Abandoned));
                true
            }
        });
        abandoned
    }

    /// Batches up to this number were applied where nobody here saw it. Returns what waited for them, or before them.
    pub(super) fn forget_through(&mut self, last: u64) -> Vec<Item> {
        let is_forgotten =
            |waiting: &Waiting| matches!(waiting, Waiting::Batch { number, .. } if *number <= last);
        let count = self.queue.iter().rposition(is_forgotten).map_or(0, |position| position + 1);
        self.queue.drain(..count).flat_map(Waiting::items).collect()
    }
}
