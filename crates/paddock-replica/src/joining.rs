//! Phases of a member that has no say yet: it founds an ensemble, learns one's state, or waits for admission.
//!
//! A member without data looks for others (`founding.rs`). If there is an ensemble already, it asks which term it is
//! (`inquiry.rs`), hears from that term's leader up to which entry it has to learn, and learns. A member with data waits for
//! admission (`admission.rs`). In each of these phases it keeps out of elections.

use std::collections::BTreeSet;

use crate::admission::{Admission, AdmissionState};
use crate::founding::{FIRST_TERM, Founders};
use crate::inquiry::Inquiry;
use crate::message::{Condition, Greeting};
use crate::{Cluster, Founding, HardState, Membership};

#[derive(Debug)]
pub(crate) struct Joining {
    /// This member's number.
    own: u64,
    /// Present while this member has no data and knows of no ensemble.
    founders: Option<Founders>,
    /// Present while this member does not know which term it is.
    inquiry: Option<Inquiry>,
    /// Present while a member that was started waits for admission.
    admission: Option<Admission>,
    /// Members of an ensemble that exists, as a founder hears of them that has not heard whether its founding succeeded.
    vouchers: Inquiry,
    /// Entry up to which a member has to learn that had no data, or a value of `HardState` in its place.
    silent_until: Option<u64>,
}

impl Joining {
    /// A member whose hard state says that it is silent up to this entry; 0 if it is not.
    pub(crate) fn new(own: u64, silent_until: u64) -> Joining {
        Joining {
            own,
            founders: None,
            inquiry: None,
            admission: None,
            vouchers: Inquiry::default(),
            silent_until: Some(silent_until).filter(|until| *until > 0),
        }
    }

    /// True if this member keeps out of elections.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_without_data() || self.silent_until.is_some() || self.awaits_admission()
    }

    /// True if this member has no data and knows of no ensemble.
    pub(crate) fn is_without_data(&self) -> bool {
        self.founders.is_some()
    }

    /// True if this member does not know yet to which leaders it may listen.
    pub(crate) fn is_inquiring(&self) -> bool {
        self.inquiry.is_some()
    }

    /// True if this member was started and has not been told that its disk is as new as it should be.
    pub(crate) fn awaits_admission(&self) -> bool {
        self.admission.is_some()
    }

    pub(crate) fn is_writing_first_entry(&self) -> bool {
        self.founders.as_ref().is_some_and(Founders::is_writing)
    }

    /// True if this member has to ask others at each tick.
    pub(crate) fn has_questions(&self) -> bool {
        self.is_without_data() || self.is_inquiring() || self.awaits_admission()
    }

    /// Entry up to which this member has to learn; `None` if it need not.
    pub(crate) fn silent_until(&self) -> Option<u64> {
        self.silent_until
    }

    /// Condition of this member, as it tells others. `term` is that of its hard state.
    pub(crate) fn condition(&self, is_learning: bool, term: u64) -> Condition {
        if self.is_without_data() {
            Condition::Empty
        } else if is_learning {
            Condition::Learning
        } else if term <= FIRST_TERM {
            Condition::Founding
        } else {
            Condition::Established
        }
    }

    /// Members to ask: those of the configuration, of the log, and those that answers have named.
    pub(crate) fn asked(&self, configured: &Membership, membership: &Membership) -> BTreeSet<u64> {
        let named = self.inquiry.iter().flat_map(Inquiry::known);
        configured.all().chain(named).chain(membership.all()).filter(|id| *id != self.own).collect()
    }

    /// This member has no data, and there may be no ensemble.
    pub(crate) fn begin_founding(&mut self) {
        self.founders = Some(Founders::default());
    }

    /// This member has no data in a group that was not there before this entry of the home group. If it never had any, it need not ask others before it writes the first entry.
    pub(crate) fn begin_founding_since(&mut self, not_before: u64) {
        self.founders = Some(Founders::of_group(not_before));
    }

    /// The home group's log says that the group was not there before this entry.
    pub(crate) fn note_not_before(&mut self, not_before: Option<u64>) {
        if let (Some(founders), Some(index)) = (&mut self.founders, not_before) {
            founders.note_not_before(index);
        }
    }

    /// Another member without data has been heard.
    pub(crate) fn note_empty(&mut self, member: u64) {
        if let Some(founders) = &mut self.founders {
            founders.note_empty(member);
        }
    }

    /// Another member has been heard whose log has only begun.
    pub(crate) fn note_begun(&mut self, member: u64) {
        if let Some(founders) = &mut self.founders {
            founders.note_begun(member);
        }
    }

    /// True if it is time to write the first entry: no voter has data, or this member cannot have been in the group before. `learned_through` is the last entry of the home
    /// group that the member may have applied later than the ensemble did.
    pub(crate) fn may_found(&self, founding: &Founding, learned_through: u64) -> bool {
        if self.founders.as_ref().is_some_and(Founders::is_writing) {
            return false;
        }
        if self.is_first_time(founding, learned_through) {
            return true;
        }
        self.unheard_founders(founding).is_some_and(|unheard| founding.by_majority || unheard.is_empty())
    }

    /// True if this member is a founder that has never had anything of the group.
    pub(crate) fn is_first_time(&self, founding: &Founding, learned_through: u64) -> bool {
        let is_new = |founders: &Founders| founders.is_first_time(learned_through);
        self.founders.as_ref().is_some_and(is_new) && founding.membership.voters.contains(&self.own)
    }

    /// Most of the voters have no data: those that have not been heard yet. `None` if they are fewer, or if this member founds nothing.
    pub(crate) fn unheard_founders(&self, founding: &Founding) -> Option<Vec<u64>> {
        let voters = &founding.membership.voters;
        let founders = self.founders.as_ref().filter(|founders| !founders.is_writing())?;
        founders.are_most(self.own, voters).then(|| founders.unheard(self.own, voters))
    }

    /// A tick of a founder. Returns now and then the voters for which it waits, though most are there.
    pub(crate) fn tick_founding(&mut self, founding: &Founding) -> Option<Vec<u64>> {
        let unheard = self.unheard_founders(founding).filter(|unheard| !unheard.is_empty())?;
        let founders = self.founders.as_mut()?;
        founders.is_time_to_tell().then_some(unheard)
    }

    pub(crate) fn begin_writing_first_entry(&mut self) {
        if let Some(founders) = &mut self.founders {
            founders.begin_writing();
        }
    }

    /// The first entry is on disk.
    pub(crate) fn end_founding(&mut self) {
        self.founders = None;
    }

    /// From now on this member does not vote until it knows as much as the ensemble did when it came.
    pub(crate) fn await_state(&mut self) {
        self.founders = None;
        self.admission = None;
        self.inquiry = Some(Inquiry::default());
        self.silent_until = Some(HardState::TERM_UNKNOWN);
    }

    /// Takes another member's answer. Returns ensemble and term if it is known now which term it is: leaders of earlier ones
    /// are not listened to.
    pub(crate) fn note_answer(
        &mut self,
        from: u64,
        cluster: Cluster,
        greeting: Greeting,
    ) -> Option<(u64, u64)> {
        let inquiry = self.inquiry.as_mut()?;
        inquiry.note(from, cluster, greeting);
        let outcome = inquiry.outcome(self.own)?;
        self.inquiry = None;
        self.silent_until = Some(HardState::COMMIT_UNKNOWN);
        Some(outcome)
    }

    /// Takes what another member tells a founder. Returns the ensemble that exists once enough members have vouched for it.
    pub(crate) fn note_voucher(&mut self, from: u64, cluster: Cluster, greeting: Greeting) -> Option<u64> {
        self.vouchers.note(from, cluster, greeting);
        self.vouchers.outcome(self.own).map(|(cluster, _)| cluster)
    }

    /// A leader of `term` has sent entries, and says that everything up to `commit` is committed: this is what the member may have
    /// helped to commit before it lost its data. `current_term` is this member's.
    pub(crate) fn note_append(&mut self, from: u64, term: u64, commit: u64, current_term: u64) {
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.note_leader(from);
        } else if term >= current_term && self.silent_until == Some(HardState::COMMIT_UNKNOWN) {
            self.silent_until = Some(commit.max(1));
        }
    }

    /// Ends learning if everything is here. What stands in the log before the leader's own first entry may count too, so one of its
    /// term must have come. Returns true if it has ended.
    pub(crate) fn catch_up(&mut self, (applied, applied_term): (u64, u64), leader_term: u64) -> bool {
        let has_caught_up =
            self.silent_until.is_some_and(|until| applied >= until && applied_term == leader_term);
        if has_caught_up {
            self.silent_until = None;
        }
        has_caught_up
    }

    /// This member was started and knows of which ensemble it is.
    pub(crate) fn begin_admission(&mut self, membership: &Membership) {
        let admission = Admission::default();
        self.admission = (!admission.is_nobody_leading(self.own, (0, membership))).then_some(admission);
    }

    /// Ends the wait for admission if no other member is needed for it, as the membership is now: what was heard so far may be enough of fewer voters.
    /// Returns true if it has ended.
    pub(crate) fn reconsider_admission(&mut self, (applied, membership): (u64, &Membership)) -> bool {
        let is_over =
            |admission: &mut Admission| admission.is_nobody_leading(self.own, (applied, membership));
        self.admission.take_if(is_over).is_some()
    }

    /// Takes another member's answer to the question for admission.
    pub(crate) fn note_admission(
        &mut self,
        (from, greeting): (u64, &Greeting),
        (applied, membership): (u64, &Membership),
    ) -> AdmissionState {
        let Some(admission) = &mut self.admission else { return AdmissionState::Waiting };
        let state = admission.note(self.own, (from, greeting), (applied, membership));
        if state != AdmissionState::Waiting {
            self.admission = None;
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_without_data_is_silent_until_it_has_what_was_committed_when_it_came() {
        let mut joining = Joining::new(3, 0);
        assert!(!joining.is_silent());
        joining.begin_founding();
        joining.await_state();
        assert!(joining.is_inquiring() && joining.is_silent());
        joining.note_append(1, 5, 7, 0);
        assert_eq!(
            joining.silent_until(),
            Some(HardState::TERM_UNKNOWN),
            "it does not know which term it is"
        );
        joining.inquiry = None;
        joining.silent_until = Some(HardState::COMMIT_UNKNOWN);
        joining.note_append(1, 4, 9, 5);
        assert_eq!(joining.silent_until(), Some(HardState::COMMIT_UNKNOWN), "that leader is of the past");
        joining.note_append(1, 5, 7, 5);
        assert_eq!(joining.silent_until(), Some(7));
        assert!(!joining.catch_up((6, 5), 5));
        assert!(!joining.catch_up((7, 4), 5), "no entry of the leader's own term has come");
        assert!(joining.catch_up((7, 5), 5));
        assert!(!joining.is_silent());
    }

    #[test]
    fn the_only_voter_needs_no_admission() {
        let mut joining = Joining::new(1, 0);
        joining.begin_admission(&Membership::new(vec![1], vec![2]));
        assert!(!joining.awaits_admission());
        joining.begin_admission(&Membership::new(vec![1, 2], vec![]));
        assert!(joining.awaits_admission() && joining.is_silent());
    }
}
