//! Clock and state of a member, as the process around it has them.

use paddock_replica::Replicated;
use paddock_state::Now;

/// Source of time.
pub trait Clock {
    fn now(&self) -> Now;

    /// Takes note of long work that goes on: its name, and how much of it is done, in a unit.
    fn note_progress(&self, _work: &'static str, _done: u64, _unit: &'static str) {}
}

/// The state of a member, which others than the member itself may read.
pub trait StateLock {
    /// Calls `change` with the state, which no other thread sees meanwhile.
    fn write<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T;
}

/// A clock that stands still.
impl Clock for Now {
    fn now(&self) -> Now {
        *self
    }
}
