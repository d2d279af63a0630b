//! Copies of single groups that members ask each other for, as far as they are under way.
//!
//! A member that copies all groups asks others for those that it does not have. The answers are files in pieces: the next piece is sent when it is asked
//! for, and a question that has no answer is asked again, so that neither side queues more than a piece, and what is lost with a link comes again. The messages
//! go over the links between members, past the engine.

mod message;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use paddock_proto::MemberNumber;
use parking_lot::Mutex;

pub(crate) use message::{CopyAnswer, CopyMessage, PieceQuestion};

/// Answers, and questions, that wait for a thread. More are dropped, as the network could have dropped them.
const WAITING_MAX: usize = 4;
/// Copies that are made at a time, each by a thread.
const MAKING_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct CopyExchange {
    /// Makes the numbers of copies, which differ from those of this member's process before.
    random: RandomState,
    next: AtomicU64,
    /// Copies that this member has asked for, by their numbers.
    asked: Mutex<BTreeMap<u64, AskedCopy>>,
    /// Copies that this member makes, by those who ask and their groups: of each the last one that was asked for.
    made: Mutex<BTreeMap<(MemberNumber, u32), MadeCopy>>,
    /// Number of threads that make copies, those included whose copies are not asked for any more.
    making: AtomicUsize,
}

/// Outcome of a question that has come.
#[derive(Debug)]
pub(crate) enum QuestionTaken {
    /// A copy is to be made, whose pieces at these offsets are asked for later.
    Begin(Receiver<u64>),
    UnderWay,
    /// There are too many copies.
    Refused,
}

#[derive(Debug)]
struct AskedCopy {
    of: MemberNumber,
    answers: Sender<CopyAnswer>,
}

#[derive(Debug)]
struct MadeCopy {
    copy: u64,
    /// Offsets of the pieces that are asked for.
    offsets: Sender<u64>,
}

impl CopyExchange {
    /// A number for a copy that is asked of a member, and the way of its answers. To be ended with [`CopyExchange::end_asking`].
    pub(crate) fn begin_asking(&self, of: MemberNumber) -> (u64, Receiver<CopyAnswer>) {
        let copy = self.random.hash_one(self.next.fetch_add(1, Relaxed));
        let (answers, receiver) = bounded(WAITING_MAX);
        self.asked.lock().insert(copy, AskedCopy { of, answers });
        (copy, receiver)
    }

    pub(crate) fn end_asking(&self, copy: u64) {
        self.asked.lock().remove(&copy);
    }

    /// Takes an answer. One for which there is no question is dropped.
    pub(crate) fn take_answer(&self, from: MemberNumber, copy: u64, answer: CopyAnswer) {
        if let Some(asked) = self.asked.lock().get(&copy).filter(|asked| asked.of == from) {
            // Who asks again gets it again.
            let _ = asked.answers.try_send(answer);
        }
    }

    /// Takes a question of a member. A copy that begins is to be ended with [`CopyExchange::end_making`].
    pub(crate) fn take_question(&self, from: MemberNumber, question: &PieceQuestion) -> QuestionTaken {
        let PieceQuestion { copy, cut, offset } = *question;
        let mut made = self.made.lock();
        let known = made.get(&(from, cut.group)).filter(|made| made.copy == copy);
        if let Some(Err(TrySendError::Full(_)) | Ok(())) = known.map(|made| made.offsets.try_send(offset)) {
            return QuestionTaken::UnderWay;
        }
        if self.making.fetch_add(1, Relaxed) >= MAKING_MAX {
            self.making.fetch_sub(1, Relaxed);
            return QuestionTaken::Refused;
        }
        let (offsets, receiver) = bounded(WAITING_MAX);
        made.insert((from, cut.group), MadeCopy { copy, offsets });
        QuestionTaken::Begin(receiver)
    }

    /// A copy is made no more, unless another one is by now.
    pub(crate) fn end_making(&self, by: MemberNumber, group: u32, copy: u64) {
        self.making.fetch_sub(1, Relaxed);
        let mut made = self.made.lock();
        if made.get(&(by, group)).is_some_and(|made| made.copy == copy) {
            made.remove(&(by, group));
        }
    }
}

#[cfg(test)]
mod tests {
    use paddock_member::GroupCut;
    use paddock_proto::Zxid;

    use super::*;

    fn question(copy: u64, group: u32, offset: u64) -> PieceQuestion {
        PieceQuestion { copy, cut: GroupCut { group, stamp: Zxid(1), last_item: 0 }, offset }
    }

    #[test]
    fn a_question_begins_a_copy_or_goes_to_the_thread_that_makes_it() {
        let exchange = CopyExchange::default();
        let QuestionTaken::Begin(offsets) = exchange.take_question(2, &question(5, 1, 0)) else {
            panic!("it is the first")
        };
        assert!(matches!(exchange.take_question(2, &question(5, 1, 9)), QuestionTaken::UnderWay));
        assert_eq!(offsets.try_recv(), Ok(9));
        // Another copy of the group takes its place, and its thread hears nothing any more.
        assert!(matches!(exchange.take_question(2, &question(6, 1, 0)), QuestionTaken::Begin(_)));
        assert!(offsets.try_recv().is_err_and(|error| error.is_disconnected()));
    }

    #[test]
    fn a_member_makes_a_bounded_number_of_copies() {
        let exchange = CopyExchange::default();
        let mut kept = Vec::new();
        let mut begins = |copy| match exchange.take_question(2, &question(copy, 1, 0)) {
            QuestionTaken::Begin(offsets) => {
                kept.push(offsets);
                true
            }
            _ => false,
        };
        assert_eq!((0..99).filter(|copy| begins(*copy)).count(), MAKING_MAX);
        exchange.end_making(2, 1, 0);
        assert!(begins(99) && !begins(100));
    }

    #[test]
    fn an_answer_counts_from_the_member_that_was_asked() {
        let exchange = CopyExchange::default();
        let (copy, answers) = exchange.begin_asking(3);
        exchange.take_answer(4, copy, CopyAnswer::Working);
        exchange.take_answer(3, copy.wrapping_add(1), CopyAnswer::Working);
        assert!(answers.try_recv().is_err());
        exchange.take_answer(3, copy, CopyAnswer::Working);
        assert_eq!(answers.try_recv(), Ok(CopyAnswer::Working));
        exchange.end_asking(copy);
        exchange.take_answer(3, copy, CopyAnswer::Working);
        assert!(answers.try_recv().is_err());
    }
}
