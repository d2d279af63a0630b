//! Durability of a member: what it has given to its disk, what is synced there, and the messages that wait for that.
//!
//! Invariant: no message that promises something leaves before what it promises is on disk.

use std::collections::VecDeque;

use crate::effects::{Effects, Messages};
use crate::{HardState, LogEntry};

#[derive(Debug)]
pub(crate) struct Durability {
    /// The hard state as it was last given to the disk.
    written: HardState,
    /// True if the membership has changed: that the change is committed has to reach the disk soon.
    is_commit_due: bool,
    /// The newest round that was handed out to be synced, until it is reported.
    unsynced_round: Option<u64>,
    persisted_round: u64,
    /// The newest round in which this member began a term, or gave its vote.
    vote_round: u64,
    /// Messages that promise what is on disk after a round, by rising round.
    held: VecDeque<(u64, Messages)>,
}

/// A round of the Raft library as far as the disk has to know of it.
#[derive(Debug)]
pub(crate) struct DiskRound {
    pub(crate) number: u64,
    /// The hard state that the member has to remember with this round; its commit index need not be.
    pub(crate) hard_state: HardState,
    pub(crate) entries: Vec<LogEntry>,
    /// True if the commit index has to be written with everything else: other members may know less.
    pub(crate) is_in_ensemble: bool,
}

impl Durability {
    /// Durability of a member whose disk holds this hard state.
    pub(crate) fn new(written: HardState) -> Durability {
        Durability {
            written,
            is_commit_due: false,
            unsynced_round: None,
            persisted_round: 0,
            vote_round: 0,
            held: VecDeque::new(),
        }
    }

    /// The hard state as it was last given to the disk, where it may not be synced yet.
    pub(crate) fn written(&self) -> &HardState {
        &self.written
    }

    pub(crate) fn set_written(&mut self, hard_state: HardState) {
        self.written = hard_state;
    }

    /// True if nothing that was given to the disk waits to be synced.
    pub(crate) fn is_synced(&self) -> bool {
        self.unsynced_round.is_none()
    }

    /// Writes the commit index with the next round, whatever else that holds.
    pub(crate) fn make_commit_due(&mut self) {
        self.is_commit_due = true;
    }

    /// Puts into `effects` what of a round must reach the disk. Returns false if nothing must, and nothing that was given to
    /// the disk before is still to be synced: then the round counts as persisted. A commit index alone need not be written.
    pub(crate) fn record(&mut self, round: DiskRound, effects: &mut Effects) -> bool {
        let DiskRound { number, hard_state, entries, is_in_ensemble } = round;
        // A member that restarts must not take part as it did before a change that is committed. Others know as little of
        // what is committed as this member has written, so it goes with every entry; alone it is found again.
        let is_commit_due = std::mem::take(&mut self.is_commit_due);
        let commit = if is_commit_due || is_in_ensemble { hard_state.commit } else { self.written.commit };
        let promise = HardState { commit, ..hard_state };
        let is_promised = promise == HardState { commit, ..self.written };
        let is_nothing_new = entries.is_empty() && is_promised && !is_commit_due && effects.install.is_none();
        if is_nothing_new && self.is_synced() {
            return false;
        }
        if promise != self.written {
            self.written = promise;
            effects.hard_state = Some(promise);
        }
        effects.entries.extend(entries);
        effects.round = Some(number);
        self.unsynced_round = Some(number);
        true
    }

    /// Puts into `effects` up to which entry this member keeps silent, where no round of the Raft library takes that to the disk: a member that
    /// only asks has none. A process that has forgotten it would ask anew, and vote if there is no leader by then.
    pub(crate) fn record_silence(&mut self, silent_until: u64, learned_through: u64, effects: &mut Effects) {
        if silent_until == self.written.silent_until {
            return;
        }
        (self.written.silent_until, self.written.learned_through) = (silent_until, learned_through);
        effects.hard_state = Some(self.written);
        let round = *self.unsynced_round.get_or_insert(self.persisted_round);
        effects.round.get_or_insert(round);
    }

    /// Everything up to and including this round is on disk.
    pub(crate) fn persisted(&mut self, round: u64) {
        self.unsynced_round = self.unsynced_round.filter(|&last| last > round);
        self.persisted_round = round;
    }

    /// Takes a leader's messages, which need not wait for its disk, but for the term in which it leads. The only voter leads
    /// as soon as it begins a term, which it must not forget: it would lead again in the same one, and others have entries
    /// of it. `vote` is the term and the vote of this round, if one of them has changed.
    pub(crate) fn send_of_leader(
        &mut self,
        vote: Option<(u64, u64)>,
        round: u64,
        messages: Messages,
        out: &mut Messages,
    ) {
        if vote.is_some_and(|vote| vote != (self.written.term, self.written.vote)) {
            self.vote_round = round;
        }
        if self.vote_round > self.persisted_round {
            self.held.push_back((self.vote_round, messages));
        } else {
            out.extend(messages);
        }
    }

    /// Keeps messages until a round is on disk.
    pub(crate) fn hold(&mut self, round: u64, messages: Messages) {
        self.held.push_back((round, messages));
    }

    /// Moves the messages whose promises the disk now holds to `out`.
    pub(crate) fn release_messages(&mut self, out: &mut Messages) {
        while let Some((_, messages)) = self.held.pop_front_if(|(round, _)| *round <= self.persisted_round) {
            out.extend(messages);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const WRITTEN: HardState =
        HardState { term: 3, vote: 2, commit: 5, silent_until: 0, incarnation: 1, learned_through: 0 };

    fn round(number: u64, hard_state: HardState, entries: usize) -> DiskRound {
        let entry = LogEntry { index: 6, term: 3, payload: Bytes::new() };
        DiskRound { number, hard_state, entries: vec![entry; entries], is_in_ensemble: true }
    }

    fn released(durability: &mut Durability) -> Vec<u64> {
        let mut out = Messages::new();
        durability.release_messages(&mut out);
        out.into_iter().map(|(to, _)| to).collect()
    }

    #[test]
    fn silence_reaches_the_disk_without_a_round_and_once() {
        let mut durability = Durability::new(WRITTEN);
        durability.persisted(7);
        let mut effects = Effects::default();
        durability.record_silence(0, 0, &mut effects);
        assert_eq!((effects.hard_state, effects.round), (None, None), "the disk knows that");
        durability.record_silence(9, 0, &mut effects);
        let silent = HardState { silent_until: 9, ..WRITTEN };
        assert_eq!((effects.hard_state.take(), effects.round.take()), (Some(silent), Some(7)));
        assert!(!durability.is_synced());
        durability.record_silence(9, 0, &mut effects);
        assert_eq!((effects.hard_state, effects.round), (None, None));
        durability.persisted(7);
        assert!(durability.is_synced());
    }

    #[test]
    fn a_promise_waits_until_its_round_is_on_disk() {
        let mut durability = Durability::new(WRITTEN);
        let mut effects = Effects::default();
        durability.hold(1, vec![(2, vec![])]);
        assert!(durability.record(round(1, WRITTEN, 1), &mut effects));
        assert_eq!((effects.round, effects.hard_state, effects.entries.len()), (Some(1), None, 1));
        assert_eq!(released(&mut durability), []);
        durability.hold(2, vec![(3, vec![])]);
        durability.persisted(1);
        assert_eq!(released(&mut durability), [2]);
        durability.persisted(2);
        assert_eq!(released(&mut durability), [3]);
    }

    #[test]
    fn a_commit_index_alone_is_written_only_after_a_change_of_members() {
        let mut durability = Durability::new(WRITTEN);
        let mut effects = Effects::default();
        let later = HardState { commit: 9, ..WRITTEN };
        assert!(!durability.record(round(1, later, 0), &mut effects));
        assert!(effects.is_empty());
        durability.make_commit_due();
        assert!(durability.record(round(2, later, 0), &mut effects));
        assert_eq!(effects.hard_state, Some(later));
        let mut effects = Effects::default();
        assert!(durability.record(round(3, later, 0), &mut effects), "round 2 is not synced");
        assert_eq!((effects.round, effects.hard_state), (Some(3), None));
    }

    #[test]
    fn a_leaders_messages_wait_for_its_term_alone() {
        let mut durability = Durability::new(WRITTEN);
        let mut out = Messages::new();
        durability.send_of_leader(None, 1, vec![(2, vec![])], &mut out);
        durability.send_of_leader(Some((3, 2)), 2, vec![(2, vec![])], &mut out);
        assert_eq!(out.len(), 2, "the disk knows that term and vote");
        durability.send_of_leader(Some((4, 1)), 3, vec![(2, vec![])], &mut out);
        durability.send_of_leader(None, 4, vec![(3, vec![])], &mut out);
        assert_eq!(out.len(), 2);
        durability.persisted(3);
        assert_eq!(released(&mut durability), [2, 3]);
    }
}
