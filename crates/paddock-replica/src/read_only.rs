//! Read-only mode: service of a member that cannot write. Its quorum is lost, its disk is full, it has not caught up since it came
//! without data, its state may be wrong, or it was removed from the ensemble.
//!
//! For a while writes wait, because most losses of a leader are short. Then the connections that wait are closed, for
//! it is not known what becomes of their writes, and new writes are refused. Reads go on, and clients that accept it get read-only
//! sessions; they are closed when there is a quorum again, so that their clients come back for real ones.

use std::collections::{BTreeSet, VecDeque};

use paddock_proto::SessionId;
use paddock_state::{ConnId, QueuedRead, RequestId};

/// Ticks for which writes wait for a leader.
const PATIENCE_TICKS: u32 = 50;

/// Reason for which a member cannot write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnlyReason {
    NoQuorum,
    DiskFull,
    /// The member came without data and has not caught up.
    Learning,
    Removed,
    /// The member's state differs from another one's, and it is not known which of them is right.
    InDoubt,
    /// A member that the configuration names leads another ensemble, and this one has no majority of those named.
    Disputed,
}

/// Verdicts of other members on this one, and of its disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdicts {
    pub(crate) is_disk_full: bool,
    pub(crate) is_removed: bool,
    pub(crate) is_in_doubt: bool,
    pub(crate) is_disputed: bool,
}

impl ReadOnlyReason {
    fn refuses_reads(self) -> bool {
        use ReadOnlyReason::{Disputed, InDoubt, Learning, Removed};
        matches!(self, Learning | Removed | InDoubt | Disputed)
    }
}

/// An input of a client in read-only mode, answered at once.
#[derive(Debug)]
pub(crate) enum ReadOnlyRequest {
    Read(QueuedRead),
    Disconnect {
        conn: ConnId,
    },
    /// A request that needs a quorum.
    Refused {
        conn: ConnId,
        request: RequestId,
    },
    /// A client that wants a session, a new one or its own.
    Connect {
        conn: ConnId,
        session: Option<SessionId>,
        timeout_ms: i32,
        may_only_read: bool,
    },
}

/// Turn of the mode, of which the connections are to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOnlyTurn {
    /// Read-only mode began, or it went on and began to refuse reads.
    Began,
    Ended,
}

#[derive(Debug, Default)]
pub(crate) struct ReadOnly {
    reason: Option<ReadOnlyReason>,
    ticks_without_leader: u32,
    /// True once a leader was known since the member was started.
    has_had_leader: bool,
    is_learning: bool,
    /// True if the mode began or ended, or reads came to be refused, and the connections have not been told.
    has_turned: bool,
    queue: VecDeque<ReadOnlyRequest>,
    /// Connections with read-only sessions.
    conns: BTreeSet<ConnId>,
}

impl ReadOnly {
    /// True if this member cannot write.
    pub(crate) fn is_active(&self) -> bool {
        self.reason.is_some()
    }

    /// True if this member does not even answer reads: its state is old, or its own past.
    pub(crate) fn refuses_reads(&self) -> bool {
        self.reason.is_some_and(ReadOnlyReason::refuses_reads)
    }

    pub(crate) fn reason(&self) -> Option<ReadOnlyReason> {
        self.reason
    }

    pub(crate) fn is_learning(&self) -> bool {
        self.is_learning
    }

    pub(crate) fn begin_learning(&mut self) {
        self.is_learning = true;
        if self.reason != Some(ReadOnlyReason::Removed) {
            self.turn_to(Some(ReadOnlyReason::Learning));
        }
    }

    /// Takes effect with the next judgement.
    pub(crate) fn end_learning(&mut self) {
        self.is_learning = false;
    }

    pub(crate) fn tick(&mut self, has_leader: bool) {
        let ticks = &mut self.ticks_without_leader;
        *ticks = if has_leader { 0 } else { ticks.saturating_add(1) };
        self.has_had_leader |= has_leader;
    }

    /// Judges anew whether this member can write. Returns true if it can again, and could not before.
    pub(crate) fn judge(&mut self, verdicts: Verdicts) -> bool {
        let reason = self.current_reason(verdicts);
        if reason == self.reason {
            return false;
        }
        match reason {
            Some(ReadOnlyReason::NoQuorum) if !self.has_had_leader => {
                tracing::warn!("no quorum yet: waiting for other members, refusing writes until then");
            }
            Some(ReadOnlyReason::NoQuorum) => tracing::error!("quorum lost: refusing writes"),
            Some(ReadOnlyReason::InDoubt) => {
                tracing::error!("no majority of the members has the state of this one: refusing clients")
            }
            Some(ReadOnlyReason::Disputed) => tracing::error!(
                "a member that the configuration names leads another ensemble, and this member's ensemble has no majority of those \
                 named: refusing clients; decide which data is right, stop the members that have the other, and start them with \
                 empty data directories, or start this member again when they are gone for good"
            ),
            Some(ReadOnlyReason::Removed) => tracing::error!(
                "this member was removed from the ensemble: refusing clients; stop it, or add it again"
            ),
            // The owner of the disk, or the beginning of the learning, logs these.
            Some(ReadOnlyReason::DiskFull | ReadOnlyReason::Learning) => {}
            None if self.reason == Some(ReadOnlyReason::Disputed) => {
                tracing::info!(
                    "no member of the configuration belongs to another ensemble any more: accepting writes"
                );
            }
            None => tracing::info!("quorum regained: accepting writes"),
        }
        self.turn_to(reason);
        reason.is_none()
    }

    /// Takes another reason, or none. The connections are to be told if the mode begins or ends. They are to be told as well if it goes on
    /// for a reason that refuses reads, unlike the one before: those that were content with reading are served no more.
    fn turn_to(&mut self, reason: Option<ReadOnlyReason>) {
        let has_refused_reads = self.refuses_reads();
        self.has_turned |= reason.is_some() != self.reason.is_some();
        self.reason = reason;
        self.has_turned |= self.refuses_reads() && !has_refused_reads;
    }

    fn current_reason(&self, verdicts: Verdicts) -> Option<ReadOnlyReason> {
        if verdicts.is_removed {
            Some(ReadOnlyReason::Removed)
        } else if self.is_learning {
            Some(ReadOnlyReason::Learning)
        } else if verdicts.is_in_doubt {
            Some(ReadOnlyReason::InDoubt)
        } else if verdicts.is_disputed {
            Some(ReadOnlyReason::Disputed)
        } else if verdicts.is_disk_full {
            Some(ReadOnlyReason::DiskFull)
        } else if self.ticks_without_leader >= PATIENCE_TICKS {
            Some(ReadOnlyReason::NoQuorum)
        } else {
            None
        }
    }

    /// True if connections wait to be told or answered.
    pub(crate) fn has_work(&self) -> bool {
        self.has_turned || !self.queue.is_empty()
    }

    /// The turn of the mode of which the connections have not been told; they are now.
    pub(crate) fn take_turn(&mut self) -> Option<ReadOnlyTurn> {
        let turn = if self.is_active() { ReadOnlyTurn::Began } else { ReadOnlyTurn::Ended };
        std::mem::take(&mut self.has_turned).then_some(turn)
    }

    pub(crate) fn push(&mut self, request: ReadOnlyRequest) {
        if let ReadOnlyRequest::Disconnect { conn } = &request {
            self.conns.remove(conn);
        }
        self.queue.push_back(request);
    }

    /// The next request to answer.
    pub(crate) fn pop(&mut self) -> Option<ReadOnlyRequest> {
        self.queue.pop_front()
    }

    /// A connection gets a read-only session.
    pub(crate) fn add_conn(&mut self, conn: ConnId) {
        self.conns.insert(conn);
    }

    /// Takes the connections with read-only sessions. They are to be closed.
    pub(crate) fn take_conns(&mut self) -> BTreeSet<ConnId> {
        std::mem::take(&mut self.conns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_refused_once_a_leader_was_missing_for_long() {
        let mut read_only = ReadOnly::default();
        for _ in 1..PATIENCE_TICKS {
            read_only.tick(false);
            assert!(!read_only.judge(Verdicts::default()));
        }
        assert!(!read_only.is_active());
        read_only.tick(false);
        read_only.judge(Verdicts::default());
        assert!(read_only.is_active() && !read_only.refuses_reads());
        assert_eq!(read_only.take_turn(), Some(ReadOnlyTurn::Began));
        assert_eq!(read_only.take_turn(), None);
        read_only.tick(true);
        assert!(read_only.judge(Verdicts::default()), "writes are accepted again");
        assert_eq!(read_only.take_turn(), Some(ReadOnlyTurn::Ended));
    }

    #[test]
    fn a_member_whose_state_may_be_old_or_wrong_answers_no_reads() {
        let check = |is_removed, is_learning, (is_in_doubt, is_disputed), expected| {
            let mut read_only = ReadOnly { is_learning, ..ReadOnly::default() };
            read_only.judge(Verdicts { is_disk_full: true, is_removed, is_in_doubt, is_disputed });
            assert_eq!(read_only.reason, Some(expected));
            assert_eq!(read_only.refuses_reads(), expected != ReadOnlyReason::DiskFull);
        };
        check(true, true, (true, true), ReadOnlyReason::Removed);
        check(false, true, (true, true), ReadOnlyReason::Learning);
        check(false, false, (true, true), ReadOnlyReason::InDoubt);
        check(false, false, (false, true), ReadOnlyReason::Disputed);
        check(false, false, (false, false), ReadOnlyReason::DiskFull);
    }

    #[test]
    fn connections_are_told_when_reads_come_to_be_refused() {
        let judged = |read_only: &mut ReadOnly, is_disk_full, (is_removed, is_learning, is_in_doubt)| {
            read_only.is_learning = is_learning;
            read_only.judge(Verdicts { is_disk_full, is_removed, is_in_doubt, ..Verdicts::default() });
            read_only.take_turn()
        };
        let none = (false, false, false);
        for is_disk_full in [false, true] {
            for refusal in [(true, false, false), (false, true, false), (false, false, true)] {
                let ticks = if is_disk_full { 0 } else { PATIENCE_TICKS };
                let mut read_only = ReadOnly { ticks_without_leader: ticks, ..ReadOnly::default() };
                assert_eq!(judged(&mut read_only, is_disk_full, none), Some(ReadOnlyTurn::Began));
                assert_eq!(
                    judged(&mut read_only, is_disk_full, refusal),
                    Some(ReadOnlyTurn::Began),
                    "{refusal:?}"
                );
                assert_eq!(
                    judged(&mut read_only, is_disk_full, (true, true, true)),
                    None,
                    "reads were refused before"
                );
                assert_eq!(
                    judged(&mut read_only, is_disk_full, none),
                    None,
                    "nobody is served who could be told"
                );
                read_only.begin_learning();
                assert_eq!(read_only.take_turn(), Some(ReadOnlyTurn::Began));
            }
        }
    }
}
