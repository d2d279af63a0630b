//! A member as those who operate it reach it: its facts, and the few things that they may order.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use paddock_proto::GroupsCommand;
use paddock_replica::Role;
use paddock_state::ConnId;
use paddock_statistics::snapshot_board::SnapshotTaken;

use crate::engine::MemberHandle;
use crate::engines::EngineHandle;
use crate::host::close_connections;
use crate::shared::Shared;

/// Time that a snapshot may take until it is given up waiting for.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(600);

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
        self.shared.engine.standing().committed
    }

    /// The member, if this process is one.
    pub(crate) fn member(&self) -> Option<MemberHandle> {
        self.engine.member()
    }

    /// True if this process is a member, which has a log.
    pub(crate) fn is_member(&self) -> bool {
        self.engine.is_member()
    }

    /// Takes a snapshot and waits for it; `None` if it failed, or took longer than ten minutes.
    pub(crate) fn take_snapshot(&self) -> Option<SnapshotTaken> {
        let wanted = self.shared.statistics.snapshots.next();
        if !self.engine.order_snapshot() {
            return None;
        }
        self.shared.statistics.snapshots.wait_for(wanted, SNAPSHOT_PATIENCE)
    }

    /// Closes `percentage` percent of this member's connections, drawn by chance; their clients go on with their sessions at any member.
    /// Returns the number of connections.
    pub(crate) fn shed_connections(&self, percentage: usize) -> usize {
        let order = RandomState::new();
        let mut conns: Vec<ConnId> =
            self.shared.statistics.clients.conns().into_iter().map(|(conn, _)| conn).collect();
        conns.sort_unstable_by_key(|conn| order.hash_one(conn));
        conns.truncate(conns.len() * percentage / 100);
        close_connections(&self.shared, &conns);
        conns.len()
    }

    /// Orders a command between groups. False if nothing can be written here now.
    pub(crate) fn order_between_groups(&self, command: &GroupsCommand<'_>) -> bool {
        let may_write = !matches!(self.shared.engine.role(), Role::ReadOnly | Role::Looking);
        if may_write {
            let mut body = Vec::new();
            command.encode(&mut body);
            self.engine.order_between_groups(body);
        }
        may_write
    }

    /// Hands the lead over to another member. False if this member does not lead, or no other one is there to take it.
    pub(crate) fn yield_lead(&self) -> bool {
        let is_leading = self.shared.engine.role() == Role::Leader;
        if is_leading {
            self.engine.step_down();
        }
        is_leading
    }

    /// Asks the leader for the lead. False if there is none, or this member may not lead.
    pub(crate) fn request_lead(&self) -> bool {
        match self.shared.engine.role() {
            Role::Leader => true,
            Role::Follower => {
                self.engine.request_lead();
                true
            }
            Role::Alone | Role::Observer | Role::ReadOnly | Role::Looking => false,
        }
    }
}
