//! Contact of a member with a leader that a quorum follows.
//!
//! A client that is connected believes that its session lives. So a member keeps a client's connection only as long as
//! no leader can have ended the session elsewhere. Once for each tick it sends the leader a numbered report of the sessions that
//! it has heard, with its answer to the leader's next heartbeat, and without one when another tick has passed. The leader asks its quorum if it
//! still leads, and confirms the reports that it had before it asked
//! (`confirming.rs`). When report `n` is confirmed, a leader that a quorum followed knew of every session that was heard
//! here before `n` was sent: that time is the member's last contact.
//!
//! A leader that has judged a session silent before it had the report may have ended it. So a confirmation says up to which entry sessions have
//! been ended, and counts once this member has applied that: then it knows of them, and has closed their connections.
//!
//! A session stays in all reports until one that holds it is confirmed: a lost report loses nothing.

use std::collections::{BTreeMap, VecDeque};

use paddock_proto::SessionId;
/// Reports without a confirmation that are remembered, one for each tick: more than any connection lives without contact.
const REPORTS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Contact {
    /// Sessions that no confirmed report holds, each with the number of the first report after it was heard last.
    heard: BTreeMap<SessionId, u64>,
    /// Number and time of the reports that are not confirmed, oldest first.
    sent: VecDeque<(u64, u64)>,
    next_number: u64,
    /// Reports that are confirmed, each with the entry that has to be applied before that counts.
    unapplied: Vec<(u64, u64)>,
    due: Due,
    /// The leader has sent a heartbeat since reports were last looked at.
    has_heartbeat: bool,
    confirmed_ms: u64,
    /// The member that spoke as leader last, for a member that cannot follow because its disk is full.
    speaker: Option<u64>,
}

/// Moment at which the next report is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Due {
    #[default]
    Later,
    /// With the answer to the leader's next heartbeat: one packet instead of two.
    WithHeartbeat,
    Now,
}

impl Contact {
    /// Contact of a member that starts: it has heard no session yet, so there is none of which a leader does not know.
    pub(crate) fn new(now_ms: u64) -> Contact {
        Contact {
            heard: BTreeMap::new(),
            sent: VecDeque::new(),
            next_number: 1,
            unapplied: Vec::new(),
            due: Due::Later,
            has_heartbeat: false,
            confirmed_ms: now_ms,
            speaker: None,
        }
    }

    /// Every session that was heard here before this time was known then to a leader that a quorum followed.
    pub(crate) fn confirmed_ms(&self) -> u64 {
        self.confirmed_ms
    }

    pub(crate) fn hear(&mut self, session: SessionId) {
        self.heard.insert(session, self.next_number);
    }

    /// There are no other members, who could decide anything.
    pub(crate) fn be_alone(&mut self, now_ms: u64) {
        self.heard.clear();
        self.sent.clear();
        self.unapplied.clear();
        self.confirmed_ms = now_ms;
    }

    /// A report is to be sent as soon as there is a leader.
    pub(crate) fn make_due(&mut self) {
        self.due = Due::Now;
    }

    /// A tick has passed: a report is to be sent with the answer to the next heartbeat, or at once if there was none since the last tick.
    pub(crate) fn tick(&mut self) {
        self.due = if self.due == Due::Later { Due::WithHeartbeat } else { Due::Now };
    }

    /// The leader has sent a heartbeat, which is about to be answered.
    pub(crate) fn note_heartbeat(&mut self) {
        self.has_heartbeat = true;
    }

    /// True if a report is to be sent now by a member that does not lead. To be asked whenever messages are about to leave.
    pub(crate) fn takes_turn(&mut self) -> bool {
        let has_heartbeat = std::mem::take(&mut self.has_heartbeat);
        self.due == Due::Now || self.due == Due::WithHeartbeat && has_heartbeat
    }

    /// True if a leader, which has no other one to wait for, is to report to itself.
    pub(crate) fn is_due(&self) -> bool {
        self.due != Due::Later
    }

    pub(crate) fn note_speaker(&mut self, leader: u64) {
        self.speaker = Some(leader);
    }

    pub(crate) fn speaker(&self) -> Option<u64> {
        self.speaker
    }

    /// The next report: its number, and the sessions.
    pub(crate) fn report(&mut self, now_ms: u64) -> (u64, Vec<SessionId>) {
        let number = self.next_number;
        self.next_number += 1;
        self.due = Due::Later;
        self.sent.push_back((number, now_ms));
        if self.sent.len() > REPORTS_MAX {
            self.sent.pop_front();
        }
        (number, self.heard.keys().copied().collect())
    }

    /// A report is confirmed, by a leader that has ended sessions up to this entry. Those before it need not be.
    pub(crate) fn confirm(&mut self, number: u64, ended_through: u64, applied: u64) {
        if self.unapplied.len() == REPORTS_MAX {
            self.unapplied.remove(0);
        }
        self.unapplied.push((number, ended_through));
        self.note_applied(applied);
    }

    /// This member has applied everything up to an entry.
    pub(crate) fn note_applied(&mut self, applied: u64) {
        if self.unapplied.is_empty() {
            return;
        }
        let is_known = |(_, ended_through): &(u64, u64)| *ended_through <= applied;
        let newest = self.unapplied.iter().filter(|report| is_known(report)).map(|(number, _)| *number).max();
        self.unapplied.retain(|report| !is_known(report));
        if let Some(number) = newest {
            self.count(number);
        }
    }

    fn count(&mut self, number: u64) {
        let Some(place) = self.sent.iter().position(|(sent, _)| *sent == number) else { return };
        self.confirmed_ms = self.sent[place].1;
        self.sent.drain(..=place);
        self.heard.retain(|_, first| *first > number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SessionId = SessionId(1);
    const B: SessionId = SessionId(2);

    #[test]
    fn a_session_is_reported_until_a_report_that_holds_it_is_confirmed() {
        let mut contact = Contact::new(0);
        contact.hear(A);
        assert_eq!(contact.report(100), (1, vec![A]));
        contact.hear(B);
        assert_eq!(contact.report(200), (2, vec![A, B]));
        contact.confirm(1, 0, 0);
        assert_eq!(contact.confirmed_ms(), 100);
        assert_eq!(contact.report(300), (3, vec![B]));
        contact.hear(B);
        contact.confirm(3, 0, 0);
        assert_eq!(contact.confirmed_ms(), 300);
        assert_eq!(contact.report(400), (4, vec![B]), "it was heard after the report was sent");
    }

    #[test]
    fn a_report_goes_with_a_heartbeat_or_a_tick_later() {
        let mut contact = Contact::new(0);
        contact.note_heartbeat();
        assert!(!contact.takes_turn(), "nothing is due");
        contact.tick();
        assert!(!contact.takes_turn(), "the heartbeat before was answered without one");
        contact.note_heartbeat();
        assert!(contact.takes_turn());
        contact.report(100);
        contact.note_heartbeat();
        assert!(!contact.takes_turn(), "one for each tick");
        contact.tick();
        assert!(!contact.takes_turn());
        contact.tick();
        assert!(contact.takes_turn(), "no heartbeat has come");
        contact.report(300);
        contact.make_due();
        assert!(contact.takes_turn(), "another member leads");
    }

    #[test]
    fn a_confirmation_counts_from_the_time_at_which_its_report_was_sent_and_never_goes_back() {
        let mut contact = Contact::new(50);
        assert_eq!(contact.confirmed_ms(), 50);
        for time_ms in [100, 200, 300] {
            contact.report(time_ms);
        }
        contact.confirm(2, 0, 0);
        assert_eq!(contact.confirmed_ms(), 200);
        for late in [1, 2, 9] {
            contact.confirm(late, 0, 0);
            assert_eq!(contact.confirmed_ms(), 200, "report {late} is not waited for");
        }
    }

    #[test]
    fn reports_without_an_answer_are_not_remembered_for_ever() {
        let mut contact = Contact::new(0);
        for time_ms in 1..=10_000 {
            contact.report(time_ms);
        }
        assert_eq!(contact.sent.len(), REPORTS_MAX);
        contact.confirm(1, 0, 0);
        assert_eq!(contact.confirmed_ms(), 0);
        contact.confirm(10_000, 0, 0);
        assert_eq!(contact.confirmed_ms(), 10_000);
    }

    #[test]
    fn a_confirmation_counts_once_the_ends_of_sessions_are_applied() {
        let mut contact = Contact::new(50);
        contact.hear(A);
        for time_ms in [100, 200, 300] {
            contact.report(time_ms);
        }
        contact.confirm(1, 7, 7);
        assert_eq!(contact.confirmed_ms(), 100);
        contact.confirm(2, 9, 7);
        contact.confirm(3, 10, 7);
        contact.note_applied(8);
        assert_eq!(contact.confirmed_ms(), 100, "a session may have ended that this member takes for alive");
        contact.note_applied(9);
        assert_eq!(contact.confirmed_ms(), 200);
        contact.note_applied(12);
        assert_eq!(contact.confirmed_ms(), 300);
        for number in 4..1000 {
            contact.report(number);
            contact.confirm(number, 100, 12);
        }
        assert_eq!(contact.unapplied.len(), REPORTS_MAX);
    }
}
