//! Confirmations of a leader for the reports that members send it (`contact.rs`), its own among them.
//!
//! The leader asks its quorum if it still leads, once for each tick. An answer to a question confirms the reports that had come before it was
//! asked. A member that is a quorum together with the leader, as one of two other voters is, is sent its confirmation beside the question: it sees
//! itself that it knows of no later term. Nothing of this outlives the term: the next leader is sent new reports.

use std::collections::{BTreeMap, VecDeque};

/// After this many ticks without an answer the leader asks again: it may have asked before it had an entry of its term.
const AGAIN_TICKS: u32 = 2;
/// Questions without an answer that are remembered. An older one is answered with a newer one.
const QUESTIONS_MAX: usize = 32;

/// Members, and for each the process that has reported, and the number of its newest report.
pub(crate) type Reports = BTreeMap<u64, (u64, u64)>;

#[derive(Debug, Default)]
pub(crate) struct Confirming {
    /// Reports that came after the last question.
    received: Reports,
    /// Questions without an answer, each with the reports that it confirms, oldest first.
    asked: VecDeque<(u64, Reports)>,
    ticks_since_asked: u32,
}

impl Confirming {
    /// A process of a member has reported. Another one numbers its reports anew.
    pub(crate) fn receive(&mut self, member: u64, process: u64, report: u64) {
        let newest = self.received.entry(member).or_insert((process, report));
        *newest = if newest.0 == process { (process, report.max(newest.1)) } else { (process, report) };
    }

    /// Takes the reports of some members that came after the last question.
    pub(crate) fn take_received(&mut self, is_of: impl Fn(u64) -> bool) -> Reports {
        self.received.extract_if(.., |member, _| is_of(*member)).collect()
    }

    pub(crate) fn tick(&mut self) {
        self.ticks_since_asked += 1;
    }

    /// True if a tick has passed since the quorum was asked last: then an answer was waited for.
    pub(crate) fn is_behind(&self) -> bool {
        self.ticks_since_asked > 0
    }

    /// True if there is a reason to ask the quorum.
    pub(crate) fn is_question_due(&self) -> bool {
        let may_ask = self.asked.is_empty() || self.ticks_since_asked >= AGAIN_TICKS;
        may_ask && !self.received.is_empty()
    }

    /// The quorum is asked, by a question of this number.
    pub(crate) fn note_asked(&mut self, number: u64) {
        self.ticks_since_asked = 0;
        self.asked.push_back((number, std::mem::take(&mut self.received)));
        if self.asked.len() > QUESTIONS_MAX {
            self.asked.pop_front();
        }
    }

    /// A quorum has answered a question, and so all before it. Returns the reports that are confirmed.
    pub(crate) fn answer(&mut self, asking: u64) -> Reports {
        let mut confirmed = Reports::new();
        while let Some((_, reports)) = self.asked.pop_front_if(|(asked, _)| *asked <= asking) {
            confirmed.extend(reports);
        }
        confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_confirms_what_came_before_its_question() {
        let mut confirming = Confirming::default();
        assert!(!confirming.is_question_due(), "nobody has reported");
        confirming.receive(2, 10, 7);
        assert!(confirming.is_question_due());
        confirming.note_asked(1);
        confirming.receive(2, 10, 8);
        confirming.receive(3, 10, 1);
        assert!(!confirming.is_question_due(), "a question is under way");
        assert_eq!(confirming.answer(1), Reports::from([(2, (10, 7))]));
        assert!(confirming.is_question_due());
        confirming.note_asked(2);
        assert_eq!(confirming.answer(2), Reports::from([(2, (10, 8)), (3, (10, 1))]));
        assert_eq!(confirming.answer(2), Reports::new());
    }

    #[test]
    fn a_question_without_an_answer_is_asked_again() {
        let mut confirming = Confirming::default();
        confirming.receive(2, 10, 7);
        confirming.note_asked(1);
        confirming.tick();
        confirming.receive(2, 10, 8);
        assert!(!confirming.is_question_due());
        confirming.tick();
        assert!(confirming.is_question_due());
        confirming.note_asked(2);
        assert_eq!(confirming.answer(1), Reports::from([(2, (10, 7))]), "the first one was only slow");
        assert_eq!(confirming.answer(2), Reports::from([(2, (10, 8))]));
    }

    #[test]
    fn answers_to_questions_of_another_term_confirm_nothing() {
        let mut confirming = Confirming::default();
        confirming.receive(2, 10, 7);
        confirming.note_asked(1);
        let mut confirming = Confirming::default();
        confirming.receive(2, 10, 8);
        confirming.note_asked(2);
        assert_eq!(confirming.answer(1), Reports::new());
    }

    #[test]
    fn another_process_of_a_member_reports_for_itself() {
        let mut confirming = Confirming::default();
        confirming.receive(2, 10, 7);
        confirming.receive(2, 11, 1);
        confirming.note_asked(1);
        assert_eq!(confirming.answer(1), Reports::from([(2, (11, 1))]));
    }
}
