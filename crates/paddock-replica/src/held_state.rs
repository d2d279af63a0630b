//! The state, held for writing while committed entries are applied, and let go for a moment when that takes long.
//!
//! A command is one step of the state, but an entry may have thousands of them: between two of them other threads may have the state. A thread
//! that has it then finds some commands of an entry applied and others not. Readers do not mind; a snapshot would, and has to wait
//! ([`Replicated::is_within_entry`]).

use paddock_state::Outboxes;

use crate::Replicated;

/// The state and the outboxes, in the hands of an engine.
pub trait HeldState {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes);

    /// Delivers what is in the outboxes and lets others have the state that wait for it.
    fn yield_to_others(&mut self);
}

impl<H: HeldState + ?Sized> HeldState for &mut H {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        (**self).parts()
    }

    fn yield_to_others(&mut self) {
        (**self).yield_to_others();
    }
}

/// The state where no other thread waits for it.
#[derive(Debug)]
pub struct OwnState<'a>(pub &'a mut Replicated, pub &'a mut Outboxes);

impl HeldState for OwnState<'_> {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        (self.0, self.1)
    }

    fn yield_to_others(&mut self) {}
}

/// Work after which others may have the state. A command and a change of a znode count as one each; together they take some hundred
/// microseconds.
pub const WORK_AT_ONCE: usize = 256;

/// Work that was done since others had the state.
#[derive(Debug)]
pub(crate) struct Stretch {
    work: usize,
    max: usize,
}

impl Stretch {
    /// Events that take as long as the change of a znode.
    const EVENTS_OF_A_CHANGE: usize = 16;

    pub(crate) fn new(max: usize) -> Stretch {
        Stretch { work: 0, max }
    }

    /// Counts a command that changed `znodes` znodes and made `events` events. True if others are to have the state now.
    #[inline]
    pub(crate) fn is_over(&mut self, changes: usize, events: usize) -> bool {
        self.work += 1 + changes + events / Stretch::EVENTS_OF_A_CHANGE;
        let is_over = self.work >= self.max;
        if is_over {
            self.work = 0;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_have_the_state_after_so_much_work() {
        let mut stretch = Stretch::new(WORK_AT_ONCE);
        let mut check = |changes, events, commands| {
            assert_eq!((1..).find(|_| stretch.is_over(changes, events)), Some(commands));
        };
        check(0, 0, WORK_AT_ONCE);
        check(3, 0, WORK_AT_ONCE / 4);
        check(1_000_000, 0, 1);
        check(0, 3 * Stretch::EVENTS_OF_A_CHANGE, WORK_AT_ONCE / 4);
        check(0, 1_000_000, 1);
    }
}
