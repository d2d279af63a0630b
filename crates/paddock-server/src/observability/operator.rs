//! A member as those who operate it reach it: its facts, and the few things that they may order.

use std::sync::Arc;
use std::time::Duration;

use paddock_replica::Role;

use super::snapshot_board::SnapshotTaken;
use crate::engine::EngineHandle;
use crate::shared::Shared;

#[derive(Clone, Debug)]
pub(crate) struct Operator {
    pub(crate) shared: Arc<Shared>,
    engine: EngineHandle,
}

impl Operator {
    pub(crate) fn new(shared: &Arc<Shared>, engine: &EngineHandle) -> Operator {
        Operator { shared: shared.clone(), engine: engine.clone() }
    }

    /// Orders a snapshot, which is taken beside everything else. Returns the last entry that is known to be committed now: the
    /// snapshot has that, or more.
    pub(crate) fn order_snapshot(&self) -> u64 {
        self.engine.order_snapshot();
        self.shared.standing().committed
    }

    /// Takes a snapshot and waits for it; `None` if it failed, or took longer than `patience`.
    pub(crate) fn take_snapshot(&self, patience: Duration) -> Option<SnapshotTaken> {
        let wanted = self.shared.snapshots.next();
        if !self.engine.order_snapshot() {
            return None;
        }
        self.shared.snapshots.wait_for(wanted, patience)
    }

    /// Hands the lead over to another member. False if this member does not lead, or nobody is there to take it.
    pub(crate) fn yield_lead(&self) -> bool {
        let is_leading = self.shared.role() == Role::Leader;
        if is_leading {
            self.engine.step_down();
        }
        is_leading
    }

    /// Asks the leader for the lead. False if there is none, or this member may not lead.
    pub(crate) fn request_lead(&self) -> bool {
        match self.shared.role() {
            Role::Leader => true,
            Role::Follower => {
                self.engine.request_lead();
                true
            }
            Role::Alone | Role::Observer | Role::ReadOnly | Role::Looking => false,
        }
    }
}
