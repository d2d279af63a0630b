//! Shell of a member: the process around it, as far as the member needs it.

use paddock_proto::MemberNumber;
#[cfg(feature = "testing")]
use paddock_replica::LogEntry;
use paddock_replica::{HeldState, OwnState, Replicated, SoughtMembers};
use paddock_state::{Now, Outboxes};
use paddock_storage::SnapshotError;

use crate::clock::Clock;
use crate::snapshots::{SnapshotOrder, Taken};

/// The process around a member. It keeps the state, so that it can answer reads without the member.
pub trait Shell: Clock {
    /// Sends a message to another member, at the latest when [`Shell::flush`] is called. One that is lost is sent again, or was not needed.
    fn send(&mut self, to: MemberNumber, message: Vec<u8>);

    /// No other message is sent for now: those that are held back to be sent together leave.
    fn flush(&mut self) {}

    /// Cuts the link to a peer that belongs to another ensemble, whose id this is.
    fn refuse(&mut self, peer: MemberNumber, cluster: u64);

    /// Calls `change` with the state, which no other thread sees meanwhile, and then delivers what is in the outboxes. A reader of the
    /// state must find that all events that came before are on their way.
    fn change<T>(&mut self, change: impl FnOnce(&mut Replicated, &mut Outboxes) -> T) -> T;

    /// Changes the state while entries are applied: now and then others may have the state.
    fn apply(&mut self, apply: &mut dyn FnMut(&mut dyn HeldState)) {
        self.change(|state, outboxes| apply(&mut OwnState(state, outboxes)));
    }

    /// Time in milliseconds that a sync took which began then and has just ended.
    fn sync_ms(&self, began: Now) -> u64 {
        self.now().monotonic_ms.saturating_sub(began.monotonic_ms)
    }

    /// Reports that the state says something else of the ensemble's members than before: their addresses or their roles.
    fn members_changed(&mut self);

    /// This member hears no leader, or does again: it is to have links to these beside those in the state, in the place of those that were sought before.
    fn seek_members(&mut self, sought: SoughtMembers);

    /// Reports that another member's state differs from this one's: one of the two is not what the log made it.
    fn raise_alarm(&mut self, member: MemberNumber);

    /// Receives all that is committed, in order, before it is applied.
    #[cfg(feature = "testing")]
    fn committed(&mut self, _entries: &[LogEntry]) {}

    /// Receives all that is committed in a group that is not the home group, in order, before it is applied.
    #[cfg(feature = "testing")]
    fn committed_in(&mut self, _group: u32, _entries: &[LogEntry]) {}

    /// Begins to take a snapshot beside everything else. There is never more than one.
    fn begin_snapshot(&mut self, order: SnapshotOrder);

    /// The snapshot that was begun, once it is finished or has failed.
    fn finished_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>>;

    /// Returns when the snapshot that was begun, if any, is finished or has failed.
    fn await_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>>;
}
