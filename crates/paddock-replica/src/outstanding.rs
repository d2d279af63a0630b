//! Requests of this member that are outstanding, in order: batches that have not been applied here, and reads that have to
//! see what was written anywhere before they were asked.

use std::collections::VecDeque;

use bytes::Bytes;
use paddock_state::ConnId;
use paddock_tree::Origin;

use crate::batch::{self, BatchBuilder};
use crate::question::Question;
use crate::queued_item::QueuedItem;

#[derive(Debug)]
pub(crate) struct Outstanding {
    origin: Origin,
    queue: VecDeque<Waiting>,
    next_number: u64,
    next_question: u64,
    /// Number of times that anything was asked: no two questions look the same.
    askings: u64,
    /// The number of the last batch that the leader has been sent.
    sent: u64,
}

#[derive(Debug)]
enum Waiting {
    Batch {
        number: u64,
        bytes: Bytes,
        items: VecDeque<QueuedItem>,
    },
    /// The leader was asked how far the log has come; when this member has applied that far, the items may see its state.
    Sync {
        question: u64,
        asked_ms: u64,
        index: Option<u64>,
        items: VecDeque<QueuedItem>,
    },
}

impl Waiting {
    fn items(self) -> VecDeque<QueuedItem> {
        match self {
            Waiting::Batch { items, .. } | Waiting::Sync { items, .. } => items,
        }
    }
}

impl Outstanding {
    pub(crate) fn new(origin: Origin) -> Outstanding {
        Outstanding { origin, queue: VecDeque::new(), next_number: 1, next_question: 1, askings: 0, sent: 0 }
    }

    /// Requests of another start, with nothing outstanding. What was asked may still be answered, so questions are
    /// not numbered anew.
    pub(crate) fn begin_anew(&self, origin: Origin) -> Outstanding {
        let Outstanding { next_question, askings, .. } = *self;
        Outstanding { next_question, askings, ..Outstanding::new(origin) }
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// True if a batch has got a number of this start.
    pub(crate) fn has_numbered(&self) -> bool {
        self.next_number > 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Closes `batch`; `items` wait for it.
    pub(crate) fn push_batch(&mut self, batch: &mut BatchBuilder, items: VecDeque<QueuedItem>) {
        let number = self.next_number;
        self.next_number += 1;
        self.queue.push_back(Waiting::Batch { number, bytes: batch.take(self.origin, number), items });
    }

    /// `items` wait for the answer to a question to the leader.
    pub(crate) fn push_sync(&mut self, asked_ms: u64, items: VecDeque<QueuedItem>) {
        let question = self.next_question;
        self.next_question += 1;
        self.queue.push_back(Waiting::Sync { question, asked_ms, index: None, items });
    }

    /// The batches that the leader has not been sent, in order; it has now.
    pub(crate) fn unsent(&mut self) -> Vec<Bytes> {
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

    /// The number of the batch that is closed next.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Withdraws the commands of this batch for sessions that wait for a connection. A leader that has the batch already may still carry
    /// them out; none that is sent it from now on does.
    pub(crate) fn withdraw(&mut self, batch: u64, conn: ConnId) {
        for waiting in &mut self.queue {
            if let Waiting::Batch { number, bytes, items } = waiting
                && *number == batch
            {
                let is_of_conn = |item: &QueuedItem| item.is_session_of(conn);
                withdraw_commands(bytes, items, is_of_conn);
            }
        }
    }

    pub(crate) fn send_all_again(&mut self) {
        self.sent = 0;
    }

    /// The newest question that has no answer: an answer to it answers those before it. A leader may drop it, and it may be
    /// asked twice.
    pub(crate) fn ask(&mut self) -> Option<Question> {
        let number = self.queue.iter().rev().find_map(|waiting| match waiting {
            Waiting::Sync { question, index: None, .. } => Some(*question),
            _ => None,
        })?;
        self.askings += 1;
        Some(Question { origin: self.origin, number, asking: self.askings })
    }

    /// A leader's own question: does it still lead?
    pub(crate) fn ask_as_leader(&mut self) -> Question {
        self.askings += 1;
        Question { origin: self.origin, number: Question::OF_LEADER, asking: self.askings }
    }

    /// Takes the answer to a question. Returns when it was asked first, in milliseconds of the monotonic clock.
    pub(crate) fn answer(&mut self, answered: Question, up_to: u64) -> Option<u64> {
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

    /// Items of the newest batch or question.
    pub(crate) fn last_items(&mut self) -> Option<&mut VecDeque<QueuedItem>> {
        self.queue.back_mut().map(|waiting| match waiting {
            Waiting::Batch { items, .. } | Waiting::Sync { items, .. } => items,
        })
    }

    /// True if the items at the front have to see no more than what is applied.
    pub(crate) fn is_ready(&self, applied: u64) -> bool {
        matches!(self.queue.front(), Some(Waiting::Sync { index: Some(index), .. }) if *index <= applied)
    }

    pub(crate) fn take_ready(&mut self, applied: u64) -> Option<VecDeque<QueuedItem>> {
        if !self.is_ready(applied) {
            return None;
        }
        self.queue.pop_front().map(Waiting::items)
    }

    /// Takes the items of a batch that is being applied, and those in front of it, which need not wait for an answer any more:
    /// the batch came into the log after they were asked.
    pub(crate) fn applied(&mut self, applied: u64) -> VecDeque<QueuedItem> {
        let mut before = VecDeque::new();
        loop {
            match self.queue.pop_front().expect("an own batch is outstanding until it is applied") {
                Waiting::Sync { mut items, .. } => before.append(&mut items),
                Waiting::Batch { number, mut items, .. } => {
                    assert!(number == applied, "batch {applied} applied before batch {number}");
                    if before.is_empty() {
                        return items;
                    }
                    before.append(&mut items);
                    return before;
                }
            }
        }
    }

    /// Takes all items. The batches stay, and will be applied without an answer; sessions that were to begin or to come back are withdrawn.
    pub(crate) fn abandon(&mut self) -> Vec<QueuedItem> {
        let mut abandoned = Vec::new();
        self.queue.retain_mut(|waiting| match waiting {
            Waiting::Sync { items, .. } => {
                abandoned.extend(items.drain(..));
                false
            }
            Waiting::Batch { bytes, items, .. } => {
                withdraw_commands(bytes, items, QueuedItem::is_session);
                let commands = items.iter().filter(|item| item.is_command()).count();
                abandoned.extend(items.drain(..));
                items.extend((0..commands).map(|_| QueuedItem::Abandoned));
                true
            }
        });
        abandoned
    }

    /// Drops batches up to this number, which were applied where this member did not see it. Returns the items that waited for them, or
    /// before them.
    pub(crate) fn forget_through(&mut self, last: u64) -> Vec<QueuedItem> {
        let is_forgotten =
            |waiting: &Waiting| matches!(waiting, Waiting::Batch { number, .. } if *number <= last);
        let count = self.queue.iter().rposition(is_forgotten).map_or(0, |position| position + 1);
        self.queue.drain(..count).flat_map(Waiting::items).collect()
    }
}

/// Withdraws the commands that wait with such items.
fn withdraw_commands(bytes: &mut Bytes, items: &VecDeque<QueuedItem>, is_such: impl Fn(&QueuedItem) -> bool) {
    let commands = items.iter().filter(|item| item.is_command()).enumerate();
    let places: Vec<usize> = commands.filter(|(_, item)| is_such(item)).map(|(place, _)| place).collect();
    if !places.is_empty() {
        let mut changed = bytes.to_vec();
        places.into_iter().for_each(|place| batch::withdraw(&mut changed, place));
        *bytes = changed.into();
    }
}
