//! What a member needs of the process that it lives in.

use paddock_replica::{LogEntry, Replicated};
use paddock_state::{Now, Outboxes};
use paddock_storage::SnapshotError;

use crate::{SnapshotOrder, Taken};

/// Where time comes from.
pub trait Clock {
    fn now(&self) -> Now;
}

/// The state of a member, which others than the member itself may read.
pub trait StateLock {
    /// Calls `change` with the state, which nobody else sees meanwhile.
    fn write<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T;
}

/// The process around a member. It keeps the state, so that it can answer reads without the member.
pub trait Shell: Clock {
    /// Says something to another member. A message that is lost is sent again, or was not needed.
    fn send(&mut self, to: u8, message: Vec<u8>);

    /// A peer belongs to another ensemble, whose id this is: its link is to be cut.
    fn refuse(&mut self, peer: u8, cluster: u64);

    /// Calls `change` with the state, which nobody else sees meanwhile, and delivers what is in the outboxes then. Who
    /// reads the state afterwards must find that all events that came before are on their way.
    fn change<T>(&mut self, change: impl FnOnce(&mut Replicated, &mut Outboxes) -> T) -> T;

    /// The state says something else of the ensemble's members than before: where they are, or who takes part.
    fn members_changed(&mut self);

    /// The state of another member is not what it should be: that, or this member's, is not what the log made it.
    fn raise_alarm(&mut self, member: u64);

    /// Is told of all that is committed, in order, before it is applied. Nobody has to listen.
    fn committed(&mut self, _entries: &[LogEntry]) {}

    /// Begins to take a snapshot beside everything else. There is never more than one.
    fn begin_snapshot(&mut self, order: SnapshotOrder);

    /// The snapshot that was begun, once it is finished or has failed.
    fn finished_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>>;

    /// Returns when the snapshot that was begun, if any, is finished or has failed.
    fn await_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>>;
}

/// A clock that stands still.
impl Clock for Now {
    fn now(&self) -> Now {
        *self
    }
}
