//! A disk can be read again after every crash, and holds what its member has applied and acknowledged. A disk that was damaged is
//! recognised as such, or does no harm.

use paddock_replica::Replicated;

use super::truth::Truth;
use super::{Checked, agreement, ensure};

const CHECKER: &str = "recovery";

/// Checks the disk of a member before it starts: the last entry of its log. The member had applied up to `applied`.
pub(crate) fn check_log(member: u8, last_entry: Option<u64>, applied: u64) -> Checked {
    ensure!(
        last_entry.is_some_and(|last| last >= applied),
        CHECKER,
        "member {member} had applied up to entry {applied}; its log ends with {last_entry:?}"
    );
    Ok(())
}

/// Checks that a member still has what it has told a leader that it has, unless a later leader has put other entries in its place.
pub(crate) fn check_acknowledged(
    member: u8,
    (last, last_term): (u64, u64),
    (index, term): (u64, u64),
) -> Checked {
    ensure!(
        last >= index || last_term > term,
        CHECKER,
        "member {member} had acknowledged entries up to {index} in term {term}; its log ends with entry {last} of term \
         {last_term}"
    );
    Ok(())
}

/// A member knows for whom it has voted.
pub(crate) fn check_vote(member: u8, written: Option<(u64, u64)>, (term, candidate): (u64, u64)) -> Checked {
    let is_there = written.is_some_and(|(last, vote)| last > term || (last, vote) == (term, candidate));
    ensure!(
        is_there || term == 0,
        CHECKER,
        "member {member} had voted for {candidate} in term {term}; its log says {written:?}"
    );
    Ok(())
}

/// A member could not be started though nothing was done to its disk but what it must bear.
pub(crate) fn check_start(member: u8, was_disturbed: bool, error: &dyn std::error::Error) -> Checked {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    ensure!(was_disturbed, CHECKER, "member {member} does not start: {error}{cause}");
    Ok(())
}

/// Checks that a loaded state is one that was once true.
pub(crate) fn check_state(member: u8, state: &Replicated, truth: &Truth) -> Checked {
    let index = state.applied().0;
    ensure!(
        index <= truth.last_index(),
        CHECKER,
        "member {member} starts with a state after entry {index}, which nobody has applied"
    );
    agreement::check_state(member, state, truth)
}
